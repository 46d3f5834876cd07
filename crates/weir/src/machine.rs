//! This machine, as reading a command line asks for it.
//!
//! In: questions of doors. Out: their answers, and the files that were read for them. Not here: which
//! questions there are (`weir-doors`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_doors::Machine;
use weir_schema::catalogue::TransportCatalogue;
use weir_world::Launcher;

use crate::{output, runners};

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
}
