//! Applies the options of one section to a draft.
//!
//! In: entries as written. Out: the draft changed, the words that took effect, and a diagnostic
//! for each entry that is wrong; one wrong entry stops no other. The engine and the unit base
//! are applied first wherever they stand, the rest in order.

use weir_schema::catalogue::{EngineInfo, SettingInfo, SettingKind};
use weir_schema::{Setting, Word};

use crate::diagnostic::{Diagnostic, Fault};
use crate::draft::{Draft, EngineDraft, SizesDraft};
use crate::load::{OptionEntry, Origin};
use crate::nearest::nearest;
use crate::options::{Apply, Env, OptionRecord, Scope, Support, find_option, names};
use crate::path_map::PathMaps;
use crate::report::{CompileReport, MAX_ERRORS};
use crate::substitute::{Substituted, substitute};
use crate::value::number::{NumberScale, number};
use crate::value::{self, Value};
use crate::{CompileRequest, Context, Dialect};

/// Engines of fio that no build of weir has, and what comes nearest.
const OTHER_ENGINES: &[(&str, &str)] = &[
    ("sg", "psync"),
    ("netsplice", "net"),
    ("rdma", "net"),
    ("nbd", ""),
    ("dfs", ""),
    ("http", ""),
    ("libpmem", "mmap"),
    ("dev-dax", "mmap"),
    ("pmemblk", "mmap"),
    ("rbd", ""),
    ("rados", ""),
    ("gfapi", ""),
    ("gfapi_async", ""),
    ("mtd", ""),
    ("e4defrag", ""),
    ("libhdfs", ""),
    ("libzbc", ""),
    ("xnvme", "io_uring"),
    ("libblkio", "io_uring"),
    ("libiscsi", ""),
    ("external", ""),
    ("cpp_null", "null"),
    ("ime_psync", "psync"),
    ("ime_psyncv", "pvsync"),
    ("ime_aio", "libaio"),
];

/// State of applying options to jobs.
pub(crate) struct Applier<'a> {
    pub context: &'a Context<'a>,
    pub request: &'a CompileRequest,
    /// Sets that were reported already: they are applied to each job.
    failed_sets: Vec<usize>,
    /// Faults so far: beyond those that are shown no nearest name is looked for.
    faults: usize,
    pub maps: PathMaps,
}

impl<'a> Applier<'a> {
    pub(crate) fn new(
        context: &'a Context<'a>,
        request: &'a CompileRequest,
        maps: PathMaps,
    ) -> Self {
        Self {
            context,
            request,
            failed_sets: Vec::new(),
            faults: 0,
            maps,
        }
    }

    /// Applies a section's entries; tells whether all were right.
    pub(crate) fn section(
        &mut self,
        draft: &mut Draft,
        entries: &[OptionEntry],
        name: &str,
        report: &mut CompileReport,
    ) -> (Vec<Word>, bool) {
        let mut words = vec![None; entries.len()];
        let mut faults = Vec::new();
        for first in [true, false] {
            for (index, entry) in entries.iter().enumerate() {
                let record = find_option(&entry.key);
                if record.is_some_and(|r| matches!(r.name, "ioengine" | "kb_base")) != first {
                    continue;
                }
                match self.entry(draft, entry, record, report) {
                    Ok(word) => words[index] = word,
                    Err(fault) => {
                        self.faults += 1;
                        faults.push((index, entry.origin, fault));
                    }
                }
            }
        }
        let right = faults.is_empty();
        faults.sort_by_key(|(index, ..)| *index);
        self.report(faults, name, report);
        (words.into_iter().flatten().collect(), right)
    }

    fn report(
        &mut self,
        faults: Vec<(usize, Origin, Box<Diagnostic>)>,
        name: &str,
        report: &mut CompileReport,
    ) {
        let last = faults.len();
        for (nth, (_, origin, mut fault)) in faults.into_iter().enumerate() {
            if let Origin::Set(set) = origin {
                if self.failed_sets.contains(&set) {
                    continue;
                }
                self.failed_sets.push(set);
            }
            if nth + 1 == last && origin != Origin::Command {
                fault.peer.push(format!("fio: job {name} dropped"));
            }
            report.push(*fault);
        }
    }

    fn entry(
        &mut self,
        draft: &mut Draft,
        entry: &OptionEntry,
        record: Option<&'static OptionRecord>,
        report: &mut CompileReport,
    ) -> Result<Option<Word>, Box<Diagnostic>> {
        let environment = self.context.environment;
        let raw = entry.value.as_deref();
        let mut given = raw.map(|v| substitute(v, environment));
        let Some(record) = record else {
            return self.house_setting(draft, entry, given.as_ref(), report);
        };
        if let Scope::Engines(engines) = record.scope {
            if self.engine(draft).is_none() {
                // The engine's own error says it all.
                return Ok(None);
            }
            if !engines.contains(&draft.engine.name.as_str()) {
                return Err(Box::new(self.unknown(draft, entry, Some(engines))));
            }
        }
        if let Some(given) = given.as_mut().filter(|g| g.keyword)
            && let Some(value) = value::arithmetic(record, &given.text, draft.kb_base)
        {
            given.text = value;
        }
        if let Some(given) = given.as_mut()
            && matches!(record.name, "filename" | "directory")
            && let Some(mapped) = self.maps.apply(&given.text)
        {
            given.text = mapped;
        }
        let text = given.as_ref().map(|g| g.text.as_str());
        if let Origin::Set(_) = entry.origin
            && matches!(record.name, "bs" | "bsrange" | "bssplit")
        {
            draft.sizes = SizesDraft {
                unaligned: draft.sizes.unaligned,
                ..SizesDraft::default()
            };
        }
        self.act(draft, record, text, report)
            .or_else(|fault| self.act_on_the_rest(draft, record, entry, fault, text, report))
            .map_err(|fault| Box::new(at(entry, explain(fault, given.as_ref()), record)))?;
        note_unset(entry, given.as_ref(), report);
        Ok(Some(Word {
            key: record.name.to_owned(),
            value: text.map(str::to_owned),
        }))
    }

    fn engine(&self, draft: &Draft) -> Option<&EngineInfo> {
        self.context.catalogue.find(&draft.engine.name)
    }

    fn act(
        &self,
        draft: &mut Draft,
        record: &OptionRecord,
        text: Option<&str>,
        report: &mut CompileReport,
    ) -> Result<(), Fault> {
        match record.support {
            Support::Refused { nearest } => {
                if text.is_some_and(|t| record.neutral.contains(&t)) {
                    return Ok(());
                }
                return Err(Fault::new(
                    "job.unsupported",
                    format!("`{}` is not supported", record.name),
                )
                .label(record.short)
                .help(nearest));
            }
            Support::Meaningless(why) => {
                value::read(record, text, draft.kb_base)?;
                report.note(format!("`{}` has no effect: {why}", record.name));
                return Ok(());
            }
            Support::Supported => {}
        }
        if let Apply::Setting(house) = record.apply {
            let info = self
                .engine(draft)
                .and_then(|e| e.settings.iter().find(|s| s.name == house));
            let info = info.ok_or_else(|| {
                Fault::new(
                    "job.unsupported",
                    format!(
                        "engine {} cannot be told `{}`",
                        draft.engine.name, record.name
                    ),
                )
                .label("this build's engine has no such setting")
            })?;
            return set(draft, info, record.name, text);
        }
        let value = value::read(record, text, draft.kb_base)?;
        if let ("ioengine", Value::Text(name)) = (record.name, &value) {
            return self.choose_engine(draft, name);
        }
        self.call(draft, record.apply, value)
    }

    /// At fio's door a number counts without what stands behind it, and a note says so.
    fn act_on_the_rest(
        &self,
        draft: &mut Draft,
        record: &OptionRecord,
        entry: &OptionEntry,
        fault: Fault,
        text: Option<&str>,
        report: &mut CompileReport,
    ) -> Result<(), Fault> {
        let is_fio = self.request.dialect == Dialect::Fio && fault.code == "job.value";
        let read = text.filter(|_| is_fio);
        let Some(read) = read.and_then(|text| value::as_fio_reads(record, text)) else {
            return Err(fault);
        };
        if self.act(draft, record, Some(&read), report).is_err() {
            return Err(fault);
        }
        report.note(format!("`{}` is read as {read}", typed(entry)));
        Ok(())
    }

    fn call(&self, draft: &mut Draft, apply: Apply, value: Value<'_>) -> Result<(), Fault> {
        let env = Env {
            environment: self.context.environment,
            files: self.context.files,
            read_only: self.request.read_only,
        };
        match (apply, value) {
            (Apply::Switch(f), Value::Switch(on)) => f(draft, on),
            (Apply::Integer(f), Value::Integer(n)) => f(draft, n),
            (Apply::Signed(f), Value::Signed(n)) => f(draft, n),
            (Apply::Triple(f), Value::Triple(values)) => f(draft, values),
            (Apply::Size(f), Value::Size(size)) => f(draft, size),
            (Apply::Duration(f), Value::Duration(time)) => f(draft, time),
            (Apply::Numbers(f), Value::Numbers(list)) => f(draft, list),
            (Apply::Choice(f), Value::Word(word, _)) => f(draft, word),
            (Apply::OptionalText(f), Value::OptionalText(text)) => f(draft, text),
            (Apply::Word(f), Value::Word(word, tail)) => return f(draft, word, tail, &env),
            (Apply::Text(f), Value::Text(text)) => return f(draft, text, &env),
            // A test makes sure that every record's value and function fit.
            _ => {}
        }
        Ok(())
    }

    fn choose_engine(&self, draft: &mut Draft, name: &str) -> Result<(), Fault> {
        if draft.engine.name != name {
            draft.engine = EngineDraft {
                name: name.to_owned(),
                settings: std::collections::BTreeMap::new(),
            };
        }
        let catalogue = self.context.catalogue;
        if catalogue.find(name).is_some() {
            return Ok(());
        }
        let here: Vec<&str> = catalogue.engines.iter().map(|e| e.name).collect();
        let head = name.split(':').next().unwrap_or(name);
        let (message, near) = match OTHER_ENGINES.iter().find(|(n, _)| *n == head) {
            Some((_, near)) => (format!("engine {head} is not built in"), Some(*near)),
            None => (
                format!("there is no engine `{name}`"),
                nearest(name, here.iter().copied()),
            ),
        };
        let near = near.filter(|n| here.contains(n));
        let near = near.map_or(String::new(), |n| format!("the nearest is {n}; "));
        Err(Fault::new("job.engine", message)
            .label("not in this build")
            .help(format!("{near}this build has {}", here.join(", ")))
            .peer(format!("fio: engine {name} not loadable"))
            .peer("fio: failed to load engine"))
    }

    /// A setting by its house word, for engines that fio does not know.
    fn house_setting(
        &self,
        draft: &mut Draft,
        entry: &OptionEntry,
        given: Option<&Substituted>,
        report: &mut CompileReport,
    ) -> Result<Option<Word>, Box<Diagnostic>> {
        let engine = self.engine(draft);
        let info = engine
            .and_then(|e| e.settings.iter().find(|s| s.name == entry.key))
            .copied();
        let Some(info) = info else {
            return Err(Box::new(self.unknown(draft, entry, None)));
        };
        let text = given.map(|g| g.text.as_str());
        set(draft, &info, info.name, text).map_err(|fault| {
            let mut diagnostic = entry.place.at_value(explain(fault, given));
            diagnostic
                .peer
                .push(format!("fio: failed parsing {}", typed(entry)));
            Box::new(diagnostic)
        })?;
        note_unset(entry, given, report);
        Ok(Some(Word {
            key: info.name.to_owned(),
            value: text.map(str::to_owned),
        }))
    }

    fn unknown(&self, draft: &Draft, entry: &OptionEntry, engines: Option<&[&str]>) -> Diagnostic {
        let key = entry.key.as_str();
        let mut fault = match engines {
            None => Fault::new("job.unknown-option", format!("there is no option `{key}`"))
                .label("unknown"),
            Some(engines) => Fault::new(
                "job.unknown-option",
                format!("engine {} has no option `{key}`", draft.engine.name),
            )
            .label(format!("an option of {}", engines.join(", "))),
        };
        let settings = self.engine(draft).map_or(&[][..], |e| e.settings);
        let known = names()
            .chain(settings.iter().map(|s| s.name))
            .filter(|n| *n != key);
        let near = if self.faults >= MAX_ERRORS || engines.is_some() {
            None
        } else {
            nearest(key, known)
        };
        match entry.origin {
            Origin::Command if engines.is_none() => {
                let sentence = format!("fio: unrecognized option '{}'", entry.place.text);
                fault = fault.peer(sentence.clone()).peer(sentence);
            }
            _ => fault = fault.peer(format!("Bad option <{}>", typed(entry))),
        }
        if let Some(near) = near {
            fault = fault
                .help(format!("did you mean `{near}`?"))
                .peer(format!("Did you mean {near}?"));
        }
        entry.place.at_key(fault)
    }
}

/// The entry as it was typed, without substitution.
fn typed(entry: &OptionEntry) -> String {
    match &entry.value {
        Some(value) => format!("{}={value}", entry.key),
        None => entry.key.clone(),
    }
}

fn at(entry: &OptionEntry, fault: Fault, record: &OptionRecord) -> Diagnostic {
    let at_key = fault.code == "job.unsupported" && fault.piece.is_none();
    let mut diagnostic = if at_key {
        entry.place.at_key(fault)
    } else {
        entry.place.at_value(fault)
    };
    if record.name != "ioengine" {
        diagnostic
            .peer
            .push(format!("fio: failed parsing {}", typed(entry)));
    }
    diagnostic
}

/// Adds that a variable is not set, which may be the reason.
fn explain(fault: Fault, given: Option<&Substituted>) -> Fault {
    match given.and_then(|g| g.unset.first()) {
        None => fault,
        Some(name) => {
            let unset = format!("(environment variable {name} is not set)");
            let message = format!("{} {unset}", fault.message);
            Fault { message, ..fault }.peer(unset)
        }
    }
}

fn note_unset(entry: &OptionEntry, given: Option<&Substituted>, report: &mut CompileReport) {
    for name in given.iter().flat_map(|g| &g.unset) {
        report.note(format!(
            "environment variable {name} is not set (in `{}`)",
            typed(entry)
        ));
    }
}

/// Gives an engine its setting, in the form that the engine declares.
fn set(draft: &mut Draft, info: &SettingInfo, key: &str, text: Option<&str>) -> Result<(), Fault> {
    let scale = NumberScale::Count {
        kb_base: draft.kb_base,
    };
    let value = match (info.value, text) {
        (SettingKind::Bool, None | Some("1" | "yes" | "true" | "on")) => Setting::Bool(true),
        (SettingKind::Bool, Some("0" | "no" | "false" | "off")) => Setting::Bool(false),
        (SettingKind::Bool, Some(other)) => {
            return Err(
                Fault::value(format!("`{key}={other}` is neither 0 nor 1")).label(info.help)
            );
        }
        (SettingKind::Number { min, max }, Some(text)) => {
            let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
            let n = number(digits, scale)?;
            let n = i64::try_from(n)
                .ok()
                .map(|n| sign * n)
                .filter(|n| (min..=max).contains(n));
            Setting::Number(n.ok_or_else(|| {
                Fault::range(format!("`{key}={text}` is outside {min}–{max}")).label(info.help)
            })?)
        }
        (SettingKind::Text, Some(text)) => Setting::Text(text.to_owned()),
        (SettingKind::Checked(check), Some(text)) => {
            check(text).map_err(|wrong| Fault::value(wrong).label(info.help))?;
            Setting::Text(text.to_owned())
        }
        (SettingKind::Word(words), Some(text)) => {
            if !words.contains(&text) {
                let fault = Fault::value(format!("`{key}={text}` is not known"));
                return Err(fault.label(format!("one of {}", words.join(", "))));
            }
            Setting::Text(text.to_owned())
        }
        (_, None) => {
            return Err(Fault::value(format!("`{key}` needs a value"))
                .label(info.help)
                .peer(format!("Option {key} requires an argument")));
        }
    };
    draft.engine.settings.insert(info.name.to_owned(), value);
    Ok(())
}
