//! Options that were given and cannot act, since what they need was not given with them.
//!
//! In: each finished draft and the words that made it. Out: a sentence for each such option, once.
//! A word that is given for all jobs is idle where it acts in none of them. Not here: what an option
//! needs, which its record says.

use std::collections::{BTreeMap, BTreeSet};

use weir_schema::Word;
use weir_schema::catalogue::EngineInfo;

use crate::diagnostic::printable;
use crate::draft::Draft;
use crate::options::{Need, OptionRecord, find_option};

/// Jobs that a sentence names.
const NAMED: usize = 3;

/// Options that were given and could not act so far.
#[derive(Debug, Default)]
pub(crate) struct IdleOptions {
    /// Options that jobs give themselves.
    of_jobs: BTreeMap<&'static str, IdleJobs>,
    /// Options given for all jobs of the present file, and whether each could act in one; absent as
    /// long as there is none.
    of_all: BTreeMap<&'static str, Option<bool>>,
    /// Those that acted in no job of their file.
    in_no_job: BTreeSet<&'static str>,
}

/// Jobs in which an option is idle.
#[derive(Debug, Default)]
struct IdleJobs {
    names: Vec<String>,
    more: usize,
}

/// The option of a word that needs others. One that asks for what holds anyway needs nothing.
fn needing(word: &Word) -> Option<(&'static OptionRecord, Need)> {
    let record = find_option(&word.key)?;
    let asks = word.value.as_deref() != Some(record.default);
    record.needs.filter(|_| asks).map(|need| (record, need))
}

impl IdleOptions {
    /// Words that hold for the jobs that follow.
    pub(crate) fn for_all(&mut self, words: &[Word]) {
        for (record, _) in words.iter().filter_map(needing) {
            self.of_all.entry(record.name).or_default();
        }
    }

    /// A job and its own words.
    pub(crate) fn job(&mut self, draft: &Draft, engine: &EngineInfo, words: &[Word]) {
        for (record, need) in words.iter().filter_map(needing) {
            if !need.is_met(draft, engine) {
                self.of_jobs
                    .entry(record.name)
                    .or_default()
                    .add(&draft.name);
            }
        }
        for (name, acts) in &mut self.of_all {
            if *acts != Some(true) {
                let need = find_option(name).and_then(|record| record.needs);
                *acts = Some(need.is_none_or(|need| need.is_met(draft, engine)));
            }
        }
    }

    /// Ends the reach of options for all jobs.
    pub(crate) fn next_file(&mut self) {
        let given = std::mem::take(&mut self.of_all).into_iter();
        let idle = given.filter(|(_, acts)| *acts == Some(false));
        self.in_no_job.extend(idle.map(|(name, _)| name));
    }

    /// A sentence for each option that is idle.
    pub(crate) fn sentences(mut self) -> impl Iterator<Item = String> {
        self.next_file();
        let everywhere = self.in_no_job.into_iter().map(|name| (name, String::new()));
        let in_jobs = self.of_jobs.into_iter();
        let in_jobs = in_jobs.map(|(name, jobs)| (name, jobs.text()));
        everywhere.chain(in_jobs).filter_map(|(name, place)| {
            let when = find_option(name)?.needs?.when;
            Some(format!(
                "`{name}` has no effect{place}: it acts only {when}"
            ))
        })
    }
}

impl IdleJobs {
    fn add(&mut self, name: &str) {
        if self.names.iter().any(|known| known == name) {
            return;
        }
        if self.names.len() < NAMED {
            self.names.push(name.to_owned());
        } else {
            self.more += 1;
        }
    }

    fn text(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|name| printable(name)).collect();
        let names = names.join(", ");
        match self.more {
            0 => format!(" in {names}"),
            1 => format!(" in {names} and one more job"),
            more => format!(" in {names} and {more} more jobs"),
        }
    }
}
