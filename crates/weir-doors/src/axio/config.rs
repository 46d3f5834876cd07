//! Configuration files: `key : value` lines, and a line for each workload.
//!
//! In: the text of a file, `key=value` arguments. Out: values by key with the line of each, workloads; or
//! everything that is wrong, each with its line. Not here: what the keys mean together (`verify`), what
//! becomes of them (`plan`).

use std::collections::BTreeMap;

use weir_schema::{MOST_PATH_THREADS, PathStage};

use super::keys::{KEYS, Key};
use crate::flags::nearest;

/// Source of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigPlace {
    /// The file, or `--set`.
    pub file: String,
    /// Line, from 1; 0 where there is none.
    pub line: usize,
}

impl ConfigPlace {
    /// A flag.
    fn of_flag(flag: &str) -> Self {
        Self {
            file: flag.to_owned(),
            line: 0,
        }
    }

    /// True if this is the flag of the key, so that it states the key's name already.
    fn is_flag_of(&self, key: &str) -> bool {
        let flag = self.file.strip_prefix("--");
        self.line == 0 && flag.is_some_and(|flag| flag.replace('-', "_") == key)
    }
}

impl std::fmt::Display for ConfigPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 {
            return f.write_str(&self.file);
        }
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A value with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigValue {
    /// Text as written.
    pub text: String,
    /// Source of the value.
    pub place: ConfigPlace,
}

/// A workload line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadLine {
    /// Number of the workload.
    pub id: u8,
    /// Stages that its workspaces carry out.
    pub stages: Vec<PathStage>,
    /// Remote dispatchers.
    pub remote: Vec<u8>,
    /// Workspaces that run the application.
    pub apps: Vec<Vec<u8>>,
    /// Dispatchers of the groups. More than one per group is an error that the verifier reports.
    pub dispatchers: Vec<Vec<u8>>,
    /// Source of the line.
    pub place: ConfigPlace,
}

impl std::fmt::Display for WorkloadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids = |all: &[u8]| {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            all.join(",")
        };
        let groups = |all: &[Vec<u8>]| {
            let all: Vec<String> = all.iter().map(|group| ids(group)).collect();
            all.join("|")
        };
        let name = |stage: &PathStage| PHASES.iter().find(|(_, known)| known == stage);
        let phases = self.stages.iter().filter_map(name);
        let phases: Vec<&str> = phases.map(|(name, _)| *name).collect();
        write!(
            f,
            "{} : {} : {} : {} : {}",
            self.id,
            phases.join(","),
            ids(&self.remote),
            groups(&self.apps),
            groups(&self.dispatchers)
        )
    }
}

/// A configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AxioConfig {
    /// Values by key.
    pub values: BTreeMap<&'static str, ConfigValue>,
    /// Workload lines in the order of the file.
    pub workloads: Vec<WorkloadLine>,
    /// Notes for standard error about accepted variants of spelling.
    pub notes: Vec<String>,
}

/// Treatment of an unknown key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Reported as an error.
    Refused,
    /// Skipped with a note.
    Skipped,
}

/// Names of the phases, in the order in which a packet passes them.
pub(super) const PHASES: [(&str, PathStage); 6] = [
    ("TxApplication", PathStage::ApplicationTx),
    ("TxDispatcher", PathStage::DispatchTx),
    ("TxNIC", PathStage::LinkTx),
    ("RXNIC", PathStage::LinkRx),
    ("RXDispatcher", PathStage::DispatchRx),
    ("RxApplication", PathStage::ApplicationRx),
];

impl AxioConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// Everything that is wrong, a line for each.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<String>> {
        let (config, wrong) = Self::read_all(file, text, Unknown::Refused);
        if wrong.is_empty() {
            Ok(config)
        } else {
            Err(wrong)
        }
    }

    /// Reads a file, and returns all that could be read together with the errors.
    pub(super) fn read_all(file: &str, text: &str, unknown: Unknown) -> (Self, Vec<String>) {
        let mut config = Self::default();
        let mut wrong = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = without_comment(line);
            if line.is_empty() {
                continue;
            }
            let place = ConfigPlace {
                file: file.to_owned(),
                line: number,
            };
            if let Err(all) = config.take(line, &place, unknown) {
                wrong.extend(all.iter().map(|why| format!("{place}: {why}")));
            }
        }
        (config, wrong)
    }

    /// The configuration as lines, without comments.
    pub fn lines(&self) -> String {
        let mut out = String::new();
        for (key, value) in &self.values {
            push!(out, "{key} : {}\n", value.text);
        }
        for workload in &self.workloads {
            push!(out, "workload : {workload}\n");
        }
        out
    }

    /// Takes a `key=value` argument, which overrides the file.
    ///
    /// # Errors
    /// The error in the argument.
    pub fn set(&mut self, word: &str) -> Result<(), String> {
        let place = ConfigPlace::of_flag("--set");
        let Some((key, value)) = word.split_once('=') else {
            return Err(format!("--set {word}: expected KEY=VALUE"));
        };
        self.take(&format!("{key} : {value}"), &place, Unknown::Refused)
            .map_err(|all| format!("--set {word}: {}", all.join("; ")))
    }

    /// Takes the value of a flag for a key, which overrides the file.
    ///
    /// # Errors
    /// The error in the value.
    pub(super) fn set_by_flag(&mut self, flag: &str, key: &str, value: &str) -> Result<(), String> {
        let place = ConfigPlace::of_flag(&format!("--{flag}"));
        self.add_value(key, value, &place, Unknown::Refused)
            .map_err(|why| format!("{place}: {why}"))
    }

    /// The text of a value.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|value| value.text.as_str())
    }

    /// Source of a key, for messages: `FILE:LINE: KEY`, the flag with its name, or the key alone.
    pub fn place_of(&self, key: &str) -> String {
        match self.values.get(key) {
            Some(value) if value.place.is_flag_of(key) => value.place.to_string(),
            Some(value) => format!("{}: {key}", value.place),
            None => key.to_owned(),
        }
    }

    /// Takes a line; everything that is wrong with it.
    fn take(
        &mut self,
        line: &str,
        place: &ConfigPlace,
        unknown: Unknown,
    ) -> Result<(), Vec<String>> {
        let Some((key, value)) = line.split_once(':') else {
            return Err(vec![format!("`{line}`: expected `key : value`")]);
        };
        let (key, value) = (key.trim(), value.trim());
        if key == "workload" {
            return self.workload(value, place);
        }
        self.add_value(key, value, place, unknown)
            .map_err(|why| vec![why])
    }

    /// The error in a number that another workload of the file has already.
    fn repeated(&self, id: u8, place: &ConfigPlace) -> Option<String> {
        let earlier = self.workloads.iter().find(|one| one.id == id);
        let earlier = earlier.filter(|_| place.line > 0)?;
        Some(format!(
            "workload: {id} is there already, in line {}",
            earlier.place.line
        ))
    }

    /// Adds a workload that is not there yet; one of an argument replaces that of a file.
    fn add_workload(&mut self, workload: WorkloadLine) {
        let earlier = self.workloads.iter().position(|one| one.id == workload.id);
        match earlier {
            Some(at) => self.workloads[at] = workload,
            None => self.workloads.push(workload),
        }
    }

    /// Adds a value; one of an argument replaces that of a file.
    fn add_value(
        &mut self,
        key: &str,
        value: &str,
        place: &ConfigPlace,
        unknown: Unknown,
    ) -> Result<(), String> {
        let known = match known(key) {
            Ok(known) => known,
            Err(why) if unknown == Unknown::Skipped => {
                self.notes.push(format!("{place}: {why}; it is left out"));
                return Ok(());
            }
            Err(why) => return Err(why),
        };
        if value.is_empty() {
            return Err(format!(
                "{key}: a value is missing (valid: {})",
                known.takes()
            ));
        }
        let earlier = self.values.get(known.name);
        if let Some(earlier) = earlier.filter(|_| place.line > 0) {
            return Err(format!(
                "{key}: it is there already, in line {}",
                earlier.place.line
            ));
        }
        let value = ConfigValue {
            text: value.to_owned(),
            place: place.clone(),
        };
        self.values.insert(known.name, value);
        Ok(())
    }

    fn workload(&mut self, text: &str, place: &ConfigPlace) -> Result<(), Vec<String>> {
        const FORM: &str = "ID : PHASES : REMOTE : APPS : DISPATCHERS";
        let fields: Vec<&str> = text.split(':').map(str::trim).collect();
        let [id, phases, remote, apps, dispatchers] = fields.as_slice() else {
            return Err(vec![format!(
                "workload: it has {} fields (valid: {FORM})",
                fields.len()
            )]);
        };
        let mut line = WorkloadLine {
            place: place.clone(),
            ..WorkloadLine::default()
        };
        let mut wrong = Vec::new();
        match id.parse::<u8>().ok().filter(|id| *id < MOST_PATH_THREADS) {
            Some(id) => {
                line.id = id;
                wrong.extend(self.repeated(id, place));
            }
            None => wrong.push("workload: its number is not from 0 to 15".to_owned()),
        }
        for word in phases.split(',').map(str::trim) {
            match self.phase(word, place) {
                Ok(stage) => line.stages.push(stage),
                Err(why) => wrong.push(why),
            }
        }
        line.remote = ids_or_none(remote, &mut wrong);
        let mut groups = |text: &str| -> Vec<Vec<u8>> {
            let all = text.split('|');
            all.map(|group| ids_or_none(group, &mut wrong)).collect()
        };
        line.apps = groups(apps);
        line.dispatchers = groups(dispatchers);
        if wrong.is_empty() {
            self.add_workload(line);
            return Ok(());
        }
        Err(wrong)
    }

    /// The phase of a name.
    fn phase(&mut self, word: &str, place: &ConfigPlace) -> Result<PathStage, String> {
        let exact = PHASES.iter().find(|(name, _)| *name == word);
        if let Some((_, stage)) = exact {
            return Ok(*stage);
        }
        let alike = PHASES
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(word));
        if let Some((name, stage)) = alike {
            self.notes
                .push(format!("{place}: workload: `{word}` is read as {name}"));
            return Ok(*stage);
        }
        let all = PHASES.map(|(name, _)| name);
        let near = nearest(word, all.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        Err(format!(
            "workload: no phase `{word}` (valid: {}){near}",
            all.join(", ")
        ))
    }
}

/// The record of a key.
fn known(key: &str) -> Result<&'static Key, String> {
    let found = KEYS.iter().find(|known| known.name == key);
    found.ok_or_else(|| {
        let near = nearest(key, KEYS.iter().map(|known| known.name));
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        format!("no key `{key}`{near}")
    })
}

/// The line without its comment, which begins at a `#` in first place or after a space.
fn without_comment(line: &str) -> &str {
    let mut before = ' ';
    for (at, letter) in line.char_indices() {
        if letter == '#' && before.is_whitespace() {
            return line[..at].trim();
        }
        before = letter;
    }
    line.trim()
}

/// Numbers of a text; or none, and why.
fn ids_or_none(text: &str, wrong: &mut Vec<String>) -> Vec<u8> {
    ids(text.trim()).unwrap_or_else(|why| {
        wrong.push(why);
        Vec::new()
    })
}

/// `0,1`, `0-3`, `0-1,3`.
fn ids(text: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("workload: `{text}`: expected numbers from 0 to 15 (valid: 0,1 or 0-3)");
    let id = |text: &str| {
        let id = text.trim().parse::<u8>().ok();
        id.filter(|id| *id < MOST_PATH_THREADS).ok_or_else(wrong)
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => all.push(id(part)?),
            Some((first, last)) => {
                let (first, last) = (id(first)?, id(last)?);
                if first > last {
                    return Err(wrong());
                }
                all.extend(first..=last);
            }
        }
    }
    match repeated_id(&all) {
        Some(id) => Err(format!("workload: `{text}`: {id} is there twice")),
        None => Ok(all),
    }
}

/// A number that a list has more than once.
fn repeated_id(all: &[u8]) -> Option<u8> {
    let is_later = |(at, id): &(usize, &u8)| all[..*at].contains(*id);
    all.iter().enumerate().find(is_later).map(|(_, id)| *id)
}
