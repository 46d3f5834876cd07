//! This machine, as reading a command line asks for it.
//!
//! In: questions of doors. Out: their answers, and the files that were read for them. Not here: which
//! questions there are (`weir-doors`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_doors::Machine;
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Plan, RunResult};
use weir_sys::Tree;
use weir_sys::clock::Detection;
use weir_sys::memory::MemoryFacts;
use weir_world::Launcher;

use crate::{environment, output, runners};

/// The machine that the program runs on.
#[derive(Debug, Default)]
pub(crate) struct ThisMachine {
    /// Paths with their texts.
    read: Mutex<Vec<(String, String)>>,
}

impl ThisMachine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Files that were read so far.
    pub(crate) fn files_read(&self) -> Vec<String> {
        self.read().iter().map(|(path, _)| path.clone()).collect()
    }

    /// Nobody panics while holding it.
    fn read(&self) -> MutexGuard<'_, Vec<(String, String)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine for ThisMachine {
    fn launcher(&self) -> Option<u32> {
        Launcher::of_this_process().map(|launcher| launcher.size)
    }

    fn transports(&self) -> TransportCatalogue {
        runners::transports()
    }

    fn memory_bytes(&self) -> Option<u64> {
        MemoryFacts::read(&Tree::real()).total.map(|bytes| bytes.0)
    }

    fn blank_result(&self, plan: &Plan) -> RunResult {
        let (_, clock) = Detection::begin().finish();
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        RunResult {
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns: started.map_or(0, |t| u64::try_from(t.as_nanos()).unwrap_or(0)),
            complete: true,
            clock: environment::clock_facts(clock),
            host: environment::host(),
            program: Some(environment::program()),
            ..RunResult::of(plan.clone())
        }
    }

    fn check_writable(&self, path: &str) -> Result<(), String> {
        output::check_writable(path)
            .map_err(|why| why.trim_start_matches("error: ").trim_end().to_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str, most: u64) -> Result<String, String> {
        let known = self.read().iter().find(|(known, _)| known == path).cloned();
        if let Some((_, text)) = known {
            return Ok(text);
        }
        let text = output::read_text(path, most)?;
        self.read().push((path.to_owned(), text.clone()));
        Ok(text)
    }
}
