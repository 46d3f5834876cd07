//! Puts the parts together: sections become jobs, jobs become groups, groups the plan.
//!
//! In: a request. Out: a plan and notes, or every error of every section. Not here: how a file
//! is read, what an option does.

use std::collections::HashMap;
use std::sync::Arc;

use weir_schema::catalogue::EngineInfo;
use weir_schema::{Group, Job, Plan, Word};

use crate::apply::Applier;
use crate::diagnostic::{COMMAND_LINE, ColumnSpan, Diagnostic, Fault, Place};
use crate::draft::{DEFAULT_ENGINE, Draft};
use crate::extension::{FioJob, FioPlan, WordReach};
use crate::finish::finish;
use crate::idle_options::IdleOptions;
use crate::load::{self, Batch, OptionEntry, Origin, Section};
use crate::nearest::nearest;
use crate::options::find_option;
use crate::path_map::PathMaps;
use crate::report::CompileReport;
use crate::show::ShowCommand;
use crate::{CompileRequest, Compiled, Context, Dialect, JobSource};

/// Compiles a request into a plan.
///
/// # Errors
/// Everything that is wrong, in the order of the sources.
pub fn compile(
    request: &CompileRequest,
    context: &Context<'_>,
) -> Result<Compiled, Vec<Diagnostic>> {
    let mut report = CompileReport::default();
    let batches = load::batches(request, context.files, &mut report);
    let sets = sets(&request.sets, &mut report);
    let maps = PathMaps::read(&request.maps, &mut report);
    if request.sections.iter().any(|s| s == "global") {
        report.push(Diagnostic::general(
            Fault::new("job.section", "`global` cannot be the only section")
                .help("name job sections; the global ones always count")
                .peer("fio: can't use global as only section"),
        ));
    }
    let mut assembly = Assembly {
        applier: Applier::new(context, request, maps),
        request,
        context,
        report,
        sets,
        groups: vec![Group::default()],
        names: HashMap::new(),
        idle: IdleOptions::default(),
        global_words: Vec::new(),
        reach: Vec::new(),
        show: ShowCommand::new(),
        defined: Vec::new(),
        dropped: false,
    };
    for (index, batch) in batches.into_iter().enumerate() {
        assembly.batch(batch, index > 0);
    }
    assembly.finish()
}

/// A `--set` with the section it is for.
struct Set {
    section: Option<String>,
    entry: OptionEntry,
    used: bool,
}

fn sets(texts: &[String], report: &mut CompileReport) -> Vec<Set> {
    let mut sets = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let (head, value) = match text.split_once('=') {
            Some((head, value)) => (head, Some(value)),
            None => (text.as_str(), None),
        };
        let (section, key) = match head.rsplit_once(':') {
            Some((section, key)) => (Some(section), key.trim()),
            None => (None, head.trim()),
        };
        let prefix = "--set ".len();
        let chars = |s: &str| s.chars().count();
        let key_at = prefix + section.map_or(0, |s| chars(s) + 1) + 1;
        let value_span = value.map(|v| ColumnSpan {
            column: prefix + chars(head) + 2,
            length: chars(v),
        });
        let place = Place {
            source: Arc::from(COMMAND_LINE),
            text: Arc::from(format!("--set {text}")),
            line: 0,
            key: ColumnSpan {
                column: key_at,
                length: chars(key),
            },
            value: value_span,
        };
        if key.is_empty() || section == Some("") {
            let fault = Fault::new("job.syntax", format!("`--set {text}` names no option"))
                .label("expected [section:]key=value");
            report.push(place.at_key(fault));
            continue;
        }
        let value = value.map(|v| v.trim().to_owned());
        let entry = OptionEntry {
            key: key.to_owned(),
            value,
            place,
            origin: Origin::Set(index),
        };
        sets.push(Set {
            section: section.map(str::to_owned),
            entry,
            used: false,
        });
    }
    sets
}

struct Assembly<'a> {
    applier: Applier<'a>,
    request: &'a CompileRequest,
    context: &'a Context<'a>,
    report: CompileReport,
    sets: Vec<Set>,
    groups: Vec<Group>,
    /// Jobs so far by displayed name.
    names: HashMap<String, u32>,
    idle: IdleOptions,
    global_words: Vec<Word>,
    /// The jobs that each of them is for.
    reach: Vec<WordReach>,
    show: ShowCommand,
    /// Names of all job sections, chosen or not.
    defined: Vec<String>,
    dropped: bool,
}

impl Assembly<'_> {
    /// Jobs so far.
    fn jobs(&self) -> u32 {
        let jobs: usize = self.groups.iter().map(|g| g.jobs.len()).sum();
        u32::try_from(jobs).unwrap_or(u32::MAX)
    }

    fn batch(&mut self, batch: Batch, mut barrier: bool) {
        if barrier {
            self.show.next_file();
            self.idle.next_file();
            let until = Some(self.jobs());
            for reach in &mut self.reach {
                reach.until = reach.until.or(until);
            }
        }
        if let Some(group) = self.groups.last_mut() {
            // Most files are one group: what is moved once is not moved again while it grows.
            group.jobs.reserve(batch.len());
        }
        let mut defaults = Draft::new(self.request.dialect);
        let mut global_entries: Vec<OptionEntry> = Vec::new();
        for section in batch {
            if section.is_global() {
                let (words, _) = self.applier.section(
                    &mut defaults,
                    &section.entries,
                    "global",
                    &mut self.report,
                );
                self.show.defaults(&words);
                self.idle.for_all(&words);
                let reach = WordReach {
                    below: self.jobs(),
                    until: None,
                };
                self.reach.extend(words.iter().map(|_| reach));
                self.global_words.extend(words);
                global_entries.extend(section.entries);
                continue;
            }
            self.defined.push(section.name.clone());
            let chosen = &self.request.sections;
            if chosen.is_empty() || chosen.contains(&section.name) {
                let mut draft = defaults.clone();
                draft.name.clone_from(&section.name);
                draft.section.clone_from(&section.name);
                draft.stonewall |= barrier;
                barrier = false;
                self.section(&mut draft, section, &global_entries);
            }
        }
    }

    fn section(&mut self, draft: &mut Draft, mut section: Section, globals: &[OptionEntry]) {
        for set in &mut self.sets {
            if set
                .section
                .as_ref()
                .is_none_or(|name| *name == section.name)
            {
                set.used = true;
                section.entries.push(set.entry.clone());
            }
        }
        if section.name.is_empty() {
            self.report
                .push(section.place.at_value(Fault::value("a job without a name")));
        }
        let (words, mut right) =
            self.applier
                .section(draft, &section.entries, &section.name, &mut self.report);
        let words = last_set_wins(words, &section.entries);
        self.show.job(&draft.name, &words);
        let context = self.context;
        let engine = context.catalogue.find(&draft.engine.name);
        if engine.is_none() && draft.engine.name == DEFAULT_ENGINE {
            let message = format!("engine {DEFAULT_ENGINE} is not built in");
            let fault = Fault::new("job.engine", message).help("name another with ioengine=");
            self.report.push(section.place.at_key(fault));
        }
        let name = draft.name.clone();
        if let Some(engine) = engine.filter(|_| right) {
            self.idle.job(draft, engine, &words);
            right = self.job(draft, engine, words, &section, globals);
        }
        self.dropped |= !right;
        *self.names.entry(name).or_default() += 1;
    }

    /// Adds the section's job to its group; tells whether its options fit together.
    fn job(
        &mut self,
        draft: &mut Draft,
        engine: &EngineInfo,
        words: Vec<Word>,
        section: &Section,
        globals: &[OptionEntry],
    ) -> bool {
        let place = |names: &[&str]| {
            let of =
                |e: &&OptionEntry| find_option(&e.key).is_some_and(|r| names.contains(&r.name));
            let entry = section.entries.iter().rev().find(of);
            entry
                .or_else(|| globals.iter().rev().find(of))
                .map_or(&section.place, |e| &e.place)
        };
        let new_group = draft.stonewall || draft.new_group;
        match finish(
            draft,
            engine,
            self.request.read_only,
            words,
            &mut self.report,
        ) {
            Err(conflicts) => {
                for (fault, names) in conflicts {
                    self.report.push(place(names).at_value(fault));
                }
                false
            }
            Ok(job) => {
                if let Some((fault, names)) = self.order_fault(&job, new_group) {
                    self.report.push(place(names).at_value(fault));
                }
                if new_group && self.groups.last().is_some_and(|g| !g.jobs.is_empty()) {
                    self.groups.push(Group::default());
                }
                if let Some(group) = self.groups.last_mut() {
                    group.jobs.push(job);
                }
                true
            }
        }
    }

    /// Conflict between a job and the earlier ones.
    fn order_fault(&self, job: &Job, new_group: bool) -> Option<(Fault, &'static [&'static str])> {
        let group = self.groups.last().filter(|_| !new_group);
        let of_lat = |j: &Job| FioJob::of(j).percentiles_of_lat;
        let merged = |j: &Job| j.report.merge && !j.report.hidden;
        let differs = group.is_some_and(|g| {
            merged(job) && g.jobs.iter().any(|j| merged(j) && of_lat(j) != of_lat(job))
        });
        if differs {
            let fault = Fault::new(
                "job.group",
                format!("`{}` and its group differ in lat_percentiles", job.name),
            )
            .label("jobs of a group must agree")
            .help("set lat_percentiles in [global], or start a group with new_group")
            .peer(format!(
                "fio: lat_percentiles in job: {} differs from group",
                job.name
            ));
            return Some((fault, &["lat_percentiles"]));
        }
        let awaited = job.start.wait_for.as_deref()?;
        let fault = |message: String| Fault::new("job.wait", message);
        let name = &job.name;
        let fault = match self.names.get(awaited).copied().unwrap_or(0) {
            _ if awaited == name => fault(format!("`{name}` cannot wait for itself")).peer(
                format!("{name}: a job cannot wait for itself (wait_for={awaited})."),
            ),
            0 => {
                let fault = fault(format!("no earlier job is called `{awaited}`"))
                    .label("an earlier section is meant")
                    .peer(format!("{name}: waitee job {awaited} unknown."));
                if self.request.sections.is_empty() {
                    fault
                } else {
                    fault.help(format!("add --section={awaited}"))
                }
            }
            1 => return None,
            _ => fault(format!("several jobs are called `{awaited}`"))
                .label("which one?")
                .peer(format!("{name}: multiple waitees {awaited} found,"))
                .peer("please avoid duplicates when using wait_for option."),
        };
        Some((fault, &["wait_for"]))
    }

    fn finish(mut self) -> Result<Compiled, Vec<Diagnostic>> {
        for set in self
            .sets
            .iter()
            .filter(|s| !s.used && !self.defined.is_empty())
        {
            let name = set.section.as_deref().unwrap_or_default();
            let near = nearest(name, self.defined.iter().map(String::as_str));
            let fault = Fault::new("job.section", format!("`--set` names no section `{name}`"))
                .label("for this option");
            self.report.push(set.entry.place.at_key(match near {
                Some(near) => fault.help(format!("did you mean `{near}`?")),
                None => fault,
            }));
        }
        let empty = self.groups.iter().all(|g| g.jobs.is_empty());
        if empty && !self.dropped && self.report.errors.is_empty() {
            self.report.push(self.nothing());
        }
        if self.report.errors.is_empty() {
            std::mem::take(&mut self.applier.maps).finish(&mut self.report);
        }
        if !self.report.errors.is_empty() {
            return Err(self.report.into_errors());
        }
        let door = match self.request.dialect {
            Dialect::Run => "run",
            Dialect::Fio => "fio",
        };
        let plan = Plan {
            name: plan_name(self.request).unwrap_or(door).to_owned(),
            door: door.to_owned(),
            command: self.request.command.clone(),
            global_words: self.global_words,
            groups: self.groups,
            extensions: FioPlan {
                global_words: self.reach,
                ..FioPlan::default()
            }
            .extensions(),
            ..Plan::default()
        };
        for sentence in self.idle.sentences() {
            self.report.note(sentence);
        }
        Ok(Compiled {
            plan,
            notes: self.report.notes,
            show_command: self.show.finish(),
        })
    }

    fn nothing(&self) -> Diagnostic {
        let fault = Fault::new("job.none", "no job is defined").peer("No job(s) defined");
        let chosen = self.request.sections.first();
        let near = chosen.and_then(|s| nearest(s, self.defined.iter().map(String::as_str)));
        Diagnostic::general(match (chosen, near) {
            (Some(name), Some(near)) => fault.help(format!(
                "no section is called `{name}`; did you mean `{near}`?"
            )),
            (Some(name), None) => fault.help(format!("no section is called `{name}`")),
            (None, _) => fault.help(match self.request.dialect {
                Dialect::Run => "a job is a section such as `[a]`, with its options below it",
                Dialect::Fio => "give a job file, or --name=JOB with its options",
            }),
        })
    }
}

/// The first file's name without its directory.
fn plan_name(request: &CompileRequest) -> Option<&str> {
    request.sources.iter().find_map(|s| match s {
        JobSource::File(path) if path == "-" => Some("standard input"),
        JobSource::File(path) => path.rsplit('/').next(),
        JobSource::Text { name, .. } => Some(name),
        JobSource::Words(_) => None,
    })
}

/// Words that `--set` replaces lose their place to the replacement.
fn last_set_wins(words: Vec<Word>, entries: &[OptionEntry]) -> Vec<Word> {
    let sets = entries
        .iter()
        .filter(|e| matches!(e.origin, Origin::Set(_)))
        .count();
    if sets == 0 || sets > words.len() {
        return words;
    }
    let replaced: Vec<String> = words[words.len() - sets..]
        .iter()
        .map(|w| w.key.clone())
        .collect();
    let first = words.len() - sets;
    words
        .into_iter()
        .enumerate()
        .filter(|(index, word)| *index >= first || !replaced.contains(&word.key))
        .map(|(_, word)| word)
        .collect()
}
