//! This machine, as reading a command line asks for it.
//!
//! In: questions of doors. Out: their answers, and the files that were read for them. Not here: which
//! questions there are (`weir-doors`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_doors::Machine;
use weir_doors::kio::{ModuleFacts, TargetFacts};
use weir_doors::rows::UnfitRows;
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Job, Kind};
use weir_world::Launcher;

use crate::{fio, kio, output, rows, runners};

/// The machine that the program runs on.
#[derive(Debug, Default)]
pub(crate) struct ThisMachine {
    read: Mutex<Vec<String>>,
}

impl ThisMachine {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Files that were read so far.
    pub(crate) fn files_read(&self) -> Vec<String> {
        self.read().clone()
    }

    /// Nobody panics while holding it.
    fn read(&self) -> MutexGuard<'_, Vec<String>> {
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

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &str, most: u64) -> Result<String, String> {
        let text = output::read_text(path, most)?;
        self.read().push(path.to_owned());
        Ok(text)
    }

    fn check_rows(&self, path: &str, head: &str) -> Result<(), UnfitRows> {
        rows::check_rows(path, head)
    }

    fn utc_offset_s(&self) -> i64 {
        fio::utc_offset_s().into()
    }

    fn kernel_module(&self) -> ModuleFacts {
        kio::module_facts()
    }

    fn target(&self, path: &str) -> Result<TargetFacts, String> {
        kio::target(path)
    }

    fn held_data(&self, path: &str) -> Option<&'static str> {
        kio::held_data(path)
    }

    fn first_operations(&self, job: &Job, worker: u32, count: u32) -> Vec<(Kind, u64)> {
        runners::first_operations(job, worker, count)
    }
}
