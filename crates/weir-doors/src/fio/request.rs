//! fio's command line: flags of the door, options of jobs and files, in any order.
//!
//! In: the words after the program's name. Out: an [`Action`], or a [`Refusal`] with fio's code
//! for wrong usage. As with `getopt_long_only`, one dash does for two, `--option value` does for
//! `--option=value` where a value is required, and all options count as standing before the
//! files. Not here: what job options mean (`weir-jobfile`).

use weir_jobfile::{
    CommandWord, CompileRequest, Dialect, JobSource, ValueKind, find_option, option_records,
};
use weir_schema::VerifyMethod;
use weir_schema::catalogue::Catalogue;
use weir_units::Nanos;

use super::debug::{self, DebugWords};
use super::flags::{FLAGS, OWN};
use super::help;
use super::options::{Eta, ExitStyle, FioFormat, FioOptions, IdleScope};
use super::output::TerseVersion;
use crate::flags::{Flag, Standing, find, nearest, nothing_to_store};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Compile the jobs, say what is wrong, run nothing.
    ParseOnly(FioRun),
    /// Compile the jobs and print them as a command line.
    ShowCommand(FioRun),
    /// Compile the jobs and print the plan.
    ShowPlan(FioRun),
    /// Run the jobs.
    Run(FioRun),
    /// Measure how fast these checksums are.
    Checksums(Vec<VerifyMethod>),
    /// See whether the clock runs forward over all CPUs.
    ClockTest,
    /// Print the text of a compressed log.
    InflateLog(String),
    /// Measure the unit of work that idleness is reported with.
    IdleUnit,
}

/// The jobs, and how they are reported.
#[derive(Clone, Debug)]
pub struct FioRun {
    /// The jobs.
    pub request: CompileRequest,
    /// How they are reported.
    pub options: FioOptions,
    /// What was accepted without effect, for standard error.
    pub notes: Vec<String>,
}

/// The words after the program's name.
///
/// # Errors
/// Words that are not understood, or ask for what is not there.
pub fn read(words: &[String], catalogue: &Catalogue) -> Result<Action, Refusal> {
    let mut reader = Reader::new(words, catalogue);
    let mut index = 0;
    while let Some(text) = words.get(index) {
        index += match option_of(text) {
            _ if reader.only_files => reader.file(text),
            None if text == "--" => reader.end_of_options(),
            None => reader.file(text),
            Some((name, value)) => reader.option(index, name, value)?,
        };
        if let Some(action) = reader.instead.take() {
            return Ok(action);
        }
    }
    reader.finish()
}

/// Name and value of an option; `-` alone is the file standard input.
fn option_of(text: &str) -> Option<(&str, Option<&str>)> {
    let body = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    if body.is_empty() {
        return None;
    }
    Some(
        body.split_once('=')
            .map_or((body, None), |(name, value)| (name, Some(value))),
    )
}

/// The name that is meant, which need not be written to its end where no other begins alike.
/// Names of weir's own are written out: what is short for one of fio's stays so.
///
/// # Errors
/// Several names begin so: all of them.
fn whole_name(name: &str) -> Result<&str, Vec<&'static str>> {
    if find(FLAGS, name).is_some() || find_option(name).is_some() {
        return Ok(name);
    }
    let of_letter = |flag: &&Flag| flag.letter.is_some_and(|letter| name == letter.to_string());
    if let Some(flag) = FLAGS.iter().find(of_letter) {
        return Ok(flag.name);
    }
    let flags = FLAGS.iter().filter(|flag| flag.category != OWN);
    let flags = flags.map(|flag| (flag.name, flag.name));
    let options = option_records().flat_map(|record| {
        let names = std::iter::once(record.name).chain(record.aliases.iter().copied());
        names.map(|known| (record.name, known))
    });
    let known = flags.chain(options);
    let meant: Vec<_> = known.filter(|(_, k)| k.starts_with(name)).collect();
    match meant.first() {
        None => Ok(name),
        Some((first, known)) if meant.iter().all(|(one, _)| one == first) => Ok(known),
        Some(_) => Err(meant.into_iter().map(|(_, known)| known).collect()),
    }
}

/// What is asked for besides running.
#[derive(Clone, Copy)]
enum Mode {
    Run,
    ParseOnly,
    ShowCommand,
    ShowPlan,
}

struct Reader<'a> {
    words: &'a [String],
    catalogue: &'a Catalogue,
    job_words: Vec<CommandWord>,
    files: Vec<String>,
    sets: Vec<String>,
    maps: Vec<String>,
    sections: Vec<String>,
    read_only: bool,
    only_files: bool,
    mode: Mode,
    options: FioOptions,
    flags: GivenFlags,
    notes: Vec<String>,
    instead: Option<Action>,
}

impl<'a> Reader<'a> {
    fn new(words: &'a [String], catalogue: &'a Catalogue) -> Self {
        Self {
            words,
            catalogue,
            job_words: Vec::new(),
            files: Vec::new(),
            sets: Vec::new(),
            maps: Vec::new(),
            sections: Vec::new(),
            read_only: false,
            only_files: false,
            mode: Mode::Run,
            options: FioOptions::default(),
            flags: GivenFlags::new(FLAGS),
            notes: Vec::new(),
            instead: None,
        }
    }

    fn file(&mut self, text: &str) -> usize {
        self.files.push(text.to_owned());
        1
    }

    fn end_of_options(&mut self) -> usize {
        self.only_files = true;
        1
    }

    /// Takes an option and returns how many words it used.
    fn option(&mut self, index: usize, name: &str, value: Option<&str>) -> Result<usize, Refusal> {
        let name = whole_name(name).map_err(|meant| unknown(name, &meant, self.words, index))?;
        if let Some(flag) = find(FLAGS, name) {
            if flag.value.is_none() && value.is_some() {
                return Err(refuse(format!(
                    "fio: option '--{name}' doesn't allow an argument"
                )));
            }
            let needs = flag.value.is_some() && !flag.optional;
            let (value, used) = self.value(index, name, value, needs)?;
            self.flag(flag, value.unwrap_or_default())?;
            return Ok(used);
        }
        let Some(record) = find_option(name) else {
            return Err(unknown(name, &[], self.words, index));
        };
        let needs = record.value != ValueKind::Flag;
        let (value, used) = self.value(index, name, value, needs)?;
        self.job_words.push(CommandWord {
            key: name.to_owned(),
            value: value.map(str::to_owned),
            // Counted as in the request's command, where the program's name is first.
            argument: index + 1,
            text: self.words[index..index + used].join(" "),
        });
        Ok(used)
    }

    /// The value in the word itself or, where one is required, in the next word.
    fn value<'v>(
        &self,
        index: usize,
        name: &str,
        inline: Option<&'v str>,
        needed: bool,
    ) -> Result<(Option<&'v str>, usize), Refusal>
    where
        'a: 'v,
    {
        if inline.is_some() || !needed {
            return Ok((inline, 1));
        }
        match self.words.get(index + 1) {
            Some(next) => Ok((Some(next), 2)),
            None => Err(refuse(format!(
                "fio: option '--{name}' requires an argument"
            ))),
        }
    }

    fn flag(&mut self, flag: &'static Flag, value: &str) -> Result<(), Refusal> {
        self.flags.add(flag, value);
        match flag.standing {
            Standing::Works => {}
            Standing::WithoutEffect(why) => {
                self.notes
                    .push(format!("--{} has no effect: {why}", flag.name));
                return Ok(());
            }
            Standing::Refused(why) => {
                return Err(refuse(format!(
                    "fio: option '--{}' is not supported\n{why}",
                    flag.name
                )));
            }
        }
        if !flag.choices.is_empty() && !flag.choices.contains(&value) {
            let known = flag.choices.join(", ");
            return Err(refuse(format!(
                "fio: --{}={value} is not one of: {known}\nfio: failed parsing {}",
                flag.name, flag.name
            )));
        }
        match flag.name {
            "help" | "version" | "cmdhelp" | "enghelp" => {
                self.instead = Some(Action::Print(self.help(flag, value)?));
            }
            "debug" => self.debug(value),
            "inflate-log" => self.instead = Some(Action::InflateLog(value.to_owned())),
            "crctest" => self.instead = Some(Action::Checksums(checksums(value)?)),
            "trigger-timeout" => self.options.trigger.after = Some(time(flag.name, value)?),
            "output-format" => self.options.formats = formats(value)?,
            "terse-version" => {
                self.options.terse = TerseVersion::of(value)
                    .ok_or_else(|| refuse("fio: bad terse version format"))?;
            }
            "eta-newline" => self.options.eta_newline = Some(time(flag.name, value)?),
            "eta-interval" => self.options.eta_interval = Some(eta_interval(value)?),
            "status-interval" => self.options.status_interval = Some(status_interval(value)?),
            "section" if value == "global" => {
                return Err(refuse("fio: can't use global as only section"));
            }
            "set" if !value.contains('=') => {
                return Err(refuse(format!(
                    "fio: --set {value}: expected [SECTION:]KEY=VALUE"
                )));
            }
            _ => self.keep(flag, value),
        }
        Ok(())
    }

    fn keep(&mut self, flag: &Flag, value: &str) {
        let text = || Some(value.to_owned());
        match flag.name {
            "parse-only" => self.mode = Mode::ParseOnly,
            "showcmd" => self.mode = Mode::ShowCommand,
            "show-plan" => self.mode = Mode::ShowPlan,
            "section" => self.sections.extend(text()),
            "set" => self.sets.extend(text()),
            "map" => self.maps.extend(text()),
            "readonly" => self.read_only = true,
            "warnings-fatal" => self.options.warnings_fatal = true,
            "output" => self.options.output = text(),
            "bandwidth-log" => {
                let prefix = if value.is_empty() { "agg" } else { value };
                self.options.bandwidth_log = Some(prefix.to_owned());
            }
            "aux-path" => self.options.aux_path = text(),
            "eta" => {
                self.options.eta = match value {
                    "always" => Eta::Always,
                    "never" => Eta::Never,
                    _ => Eta::Auto,
                }
            }
            "idle-prof" => match value {
                "system" => self.options.idleness = Some(IdleScope::System),
                "percpu" => self.options.idleness = Some(IdleScope::PerCpu),
                _ => self.instead = Some(Action::IdleUnit),
            },
            "cpuclock-test" => self.instead = Some(Action::ClockTest),
            "trigger-file" => self.options.trigger.file = text(),
            "trigger" => self.options.trigger.command = text(),
            "store-result" => self.options.store = text(),
            "compat" => self.options.compat = true,
            "minimal" => self.options.formats = vec![FioFormat::Terse],
            "append-terse" => self.options.append_terse(),
            "compat-banner" => self.options.compat_banner = true,
            "exit" if value == "unix" => self.options.exit = ExitStyle::Unix,
            _ => {}
        }
    }

    fn debug(&mut self, list: &str) {
        match debug::read(list) {
            DebugWords::List => self.instead = Some(Action::Print(debug::list())),
            DebugWords::Chosen { parse, notes } => {
                self.options.shows_parsing |= parse;
                self.notes.extend(notes);
            }
        }
    }

    fn help(&self, flag: &Flag, value: &str) -> Result<String, Refusal> {
        match flag.name {
            "help" => Ok(help::page()),
            "version" => Ok(help::version(self.options.compat_banner)),
            "cmdhelp" => help::option(value),
            _ => help::engine(self.catalogue, value),
        }
    }

    fn finish(mut self) -> Result<Action, Refusal> {
        let names_a_job = self.job_words.iter().any(|w| w.key == "name");
        if !names_a_job && self.files.is_empty() && matches!(self.mode, Mode::ParseOnly) {
            self.job_words.insert(0, nameless_job());
        } else if self.files.is_empty() && !names_a_job {
            return Err(refuse(format!("No job(s) defined\n\n{}", help::page())));
        }
        if let (Some(file), false) = (&self.options.store, matches!(self.mode, Mode::Run)) {
            return Err(refuse(format!("fio: {}", nothing_to_store(file))));
        }
        if self.options.formats.is_empty() {
            self.options.formats.push(FioFormat::Normal);
        }
        let idle = self.flags.idle();
        let idle =
            idle.map(|(flag, when)| format!("--{} has no effect: it acts only {when}", flag.name));
        self.notes.extend(idle);
        let mut sources = Vec::new();
        if !self.job_words.is_empty() {
            sources.push(JobSource::Words(self.job_words));
        }
        sources.extend(self.files.into_iter().map(JobSource::File));
        let run = FioRun {
            request: CompileRequest {
                dialect: Dialect::Fio,
                command: std::iter::once("fio".to_owned())
                    .chain(self.words.iter().cloned())
                    .collect(),
                sources,
                sets: self.sets,
                maps: self.maps,
                sections: self.sections,
                read_only: self.read_only,
            },
            options: self.options,
            notes: self.notes,
        };
        Ok(match self.mode {
            Mode::Run => Action::Run(run),
            Mode::ParseOnly => Action::ParseOnly(run),
            Mode::ShowCommand => Action::ShowCommand(run),
            Mode::ShowPlan => Action::ShowPlan(run),
        })
    }
}

/// Options alone are looked at as those of a job.
fn nameless_job() -> CommandWord {
    CommandWord {
        key: "name".to_owned(),
        value: Some("options".to_owned()),
        argument: 0,
        text: String::new(),
    }
}

fn refuse(message: impl Into<String>) -> Refusal {
    Refusal::new(1, message)
}

/// A name that is none, or short for several: told twice, as fio and the getopt in it tell it, with
/// the whole word.
fn unknown(name: &str, meant: &[&str], words: &[String], index: usize) -> Refusal {
    let said = words.get(index).map_or(name, |w| w.trim_start_matches('-'));
    let known = FLAGS.iter().map(|f| f.name);
    let options =
        option_records().flat_map(|r| std::iter::once(r.name).chain(r.aliases.iter().copied()));
    let hint = nearest(name, known.chain(options))
        .map_or(String::new(), |near| format!("\nDid you mean {near}?"));
    let sentence = format!("fio: unrecognized option '--{said}'");
    if meant.is_empty() {
        return refuse(format!("{sentence}\n{sentence}{hint}"));
    }
    let possible: Vec<String> = meant.iter().map(|m| format!("'--{m}'")).collect();
    refuse(format!(
        "fio: option '--{said}' is ambiguous; possibilities: {}\n{sentence}{hint}",
        possible.join(" ")
    ))
}

/// A time; seconds where no unit is given.
fn time(flag: &str, text: &str) -> Result<Nanos, Refusal> {
    weir_jobfile::duration(text).ok_or_else(|| {
        refuse(format!(
            "fio: bad time `{text}`: write for example 0.5, 500ms or 2m\nfio: failed parsing {flag}"
        ))
    })
}

fn eta_interval(text: &str) -> Result<Nanos, Refusal> {
    const LEAST: Nanos = Nanos(250_000_000);
    let every = time("eta-interval", text)?;
    if every < LEAST {
        return Err(refuse("fio: eta interval time too short (250msec min)"));
    }
    Ok(every)
}

fn status_interval(text: &str) -> Result<Nanos, Refusal> {
    const LEAST: Nanos = Nanos(1_000_000);
    let every = time("status-interval", text)?;
    if every < LEAST {
        return Err(refuse("fio: status interval too small"));
    }
    Ok(every)
}

/// The formats in the order in which fio writes them to one stream.
fn formats(list: &str) -> Result<Vec<FioFormat>, Refusal> {
    let mut formats = Vec::new();
    for word in list.split(',') {
        formats.push(match word.trim() {
            "normal" => FioFormat::Normal,
            "json" => FioFormat::Json,
            "json+" => FioFormat::JsonPlus,
            "terse" | "minimal" | "csv" => FioFormat::Terse,
            _ => {
                return Err(refuse(format!(
                    "fio: invalid output format {word}\nfio: failed parsing output-format"
                )));
            }
        });
    }
    formats.sort_unstable();
    formats.dedup();
    if formats.contains(&FioFormat::JsonPlus) {
        formats.retain(|f| *f != FioFormat::Json);
    }
    Ok(formats)
}

/// The checksums of a list by their names; all of them where there is none.
fn checksums(list: &str) -> Result<Vec<VerifyMethod>, Refusal> {
    let all = VerifyMethod::CHECKSUMS;
    if list.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |name: &str| {
        let found = all.into_iter().find(|m| m.name() == name);
        found.ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|m| m.name()).collect();
            let known = known.join("\n");
            refuse(if name == "help" {
                known
            } else {
                format!("fio: unknown hash `{name}`. Available:\n{known}")
            })
        })
    };
    list.split(',').map(|word| find(word.trim())).collect()
}
