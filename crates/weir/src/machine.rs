//! This machine, as reading a command line asks for it.
//!
//! In: questions of doors. Out: their answers, and the files that were read for them. Not here: which
//! questions there are (`weir-doors`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_doors::Machine;
use weir_doors::axio::MachineFacts;
use weir_doors::kio::{ModuleFacts, TargetFacts};
use weir_doors::rows::UnfitRows;
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Job, Kind};
use weir_world::Launcher;

use crate::{fio, held_input, kio, output, rows, runners};

/// The machine that the program runs on.
#[derive(Debug, Default)]
pub(crate) struct ThisMachine {
    read: Mutex<Vec<String>>,
    is_input_held: AtomicBool,
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

    fn standard_input(&self, most: u64) -> Result<String, String> {
        let (text, is_held) = held_input::read(most)?;
        self.is_input_held.store(is_held, Ordering::Relaxed);
        Ok(text)
    }

    fn is_input_held(&self) -> bool {
        self.is_input_held.load(Ordering::Relaxed)
    }

    fn path_facts(&self) -> MachineFacts {
        let cpus = weir_sys::pin::affinity().map(|cpus| cpus.as_slice().to_vec());
        let topology = weir_sys::topology::Topology::of_this_machine();
        let mut nodes = BTreeMap::new();
        for cpu in cpus.unwrap_or_default() {
            *nodes.entry(topology.node_of(cpu).unwrap_or(0)).or_default() += 1;
        }
        let memory = weir_sys::memory::MemoryFacts::read(&weir_sys::Tree::real());
        let free = |page: u64| {
            let pools = memory.huge_pages.iter();
            let pools = pools.filter(|pool| pool.page.0 == page);
            pools.map(|pool| pool.free).sum()
        };
        MachineFacts {
            nodes: nodes.into_iter().collect(),
            free_huge_pages: [free(2 << 20), free(1 << 30)],
        }
    }

    fn packet_links(&self) -> Vec<(&'static str, Option<String>)> {
        let states = weir_datapath::link_states().into_iter();
        states.map(|link| (link.name, link.lacks)).collect()
    }
}
