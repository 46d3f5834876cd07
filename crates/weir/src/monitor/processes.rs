//! Use of resources by processes, as the kernel counts it.
//!
//! In: a process, or none for the whole machine. Out: counters, to be read twice and subtracted; nothing
//! where the kernel does not count. Not here: the calling thread (`weir-sys`).

use std::collections::BTreeMap;

use weir_doors::Refusal;
use weir_sys::Tree;

/// Counters until now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessCounts {
    /// Scheduler's counts of each thread.
    scheduled: BTreeMap<u32, Scheduled>,
    pub(super) switches: Option<u64>,
    /// The same by thread, of one process.
    switches_of: BTreeMap<u32, u64>,
    pub(super) faults: Option<u64>,
    /// Threads of a process, or CPUs of a machine: the most that may wait at once.
    pub(super) runs_on: usize,
}

/// Scheduler's counts of a thread, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// Time on a CPU.
    pub(super) ran: u64,
    /// Ready, without a CPU.
    pub(super) waited: u64,
}

impl ProcessCounts {
    /// Keeps the counts of threads that have ended since.
    pub(super) fn keep_ended(&mut self, earlier: &Self) {
        for (thread, counts) in &earlier.scheduled {
            self.scheduled.entry(*thread).or_insert(*counts);
        }
        let sum = |one: &Self| one.switches_of.values().sum::<u64>();
        for (thread, count) in &earlier.switches_of {
            self.switches_of.entry(*thread).or_insert(*count);
        }
        if !self.switches_of.is_empty() {
            self.switches = Some(sum(self));
        }
    }

    /// Time that threads ran and waited since then, without threads that have ended. `None` where the kernel
    /// does not count it.
    pub(super) fn scheduled_since(&self, earlier: &Self) -> Option<Scheduled> {
        let since = |(thread, now): (&u32, &Scheduled)| {
            let then = earlier.scheduled.get(thread).copied().unwrap_or_default();
            // Less than before is another thread of the same number.
            let ran = now.ran.checked_sub(then.ran).unwrap_or(now.ran);
            let waited = now.waited.checked_sub(then.waited).unwrap_or(now.waited);
            Scheduled { ran, waited }
        };
        let all = self.scheduled.iter().map(since);
        all.reduce(|one, other| Scheduled {
            ran: one.ran + other.ran,
            waited: one.waited + other.waited,
        })
    }
}

/// Refusal of a process that does not exist.
pub(super) fn no_process(process: u32) -> Refusal {
    Refusal::lacks(format!("--pid {process}: there is no such process"))
}

/// The threads of a process; nothing where there is no such process.
pub(super) fn threads(tree: &Tree, process: u32) -> Option<Vec<u32>> {
    let threads = tree.numbered(format!("proc/{process}/task"), "");
    (!threads.is_empty()).then_some(threads)
}

/// Reads the scheduler's counts of each thread of a process.
fn scheduled(tree: &Tree, process: u32) -> BTreeMap<u32, Scheduled> {
    let of = |thread: u32| {
        let line = tree.text(format!("proc/{process}/task/{thread}/schedstat"))?;
        let mut fields = line
            .split_ascii_whitespace()
            .map_while(|field| field.parse().ok());
        let (ran, waited) = (fields.next()?, fields.next()?);
        Some((thread, Scheduled { ran, waited }))
    };
    let threads = threads(tree, process).unwrap_or_default();
    threads.into_iter().filter_map(of).collect()
}

/// Those of a process, over its threads.
pub(super) fn counts_of_process(tree: &Tree, process: u32) -> Option<ProcessCounts> {
    let threads = threads(tree, process)?;
    let switches = |thread: &u32| {
        let status = tree.text(format!("proc/{process}/task/{thread}/status"))?;
        let count = |name: &str| counted(&status, name);
        let all = count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?;
        Some((*thread, all))
    };
    let stat = tree.text(format!("proc/{process}/stat"));
    let faults = stat.and_then(|stat| {
        // The name before the last bracket may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(field(10)? + field(12)?)
    });
    let switches_of: BTreeMap<u32, u64> = threads.iter().filter_map(switches).collect();
    Some(ProcessCounts {
        scheduled: scheduled(tree, process),
        switches: switches_of.values().copied().reduce(|a, b| a + b),
        switches_of,
        faults,
        runs_on: threads.len(),
    })
}

/// Those of all processes.
pub(super) fn counts_of_machine(tree: &Tree) -> ProcessCounts {
    let count = |file: &str, name: &str| counted(&tree.text(file)?, name);
    let processes = tree.numbered("proc", "").into_iter();
    ProcessCounts {
        scheduled: processes
            .flat_map(|process| scheduled(tree, process))
            .collect(),
        switches: count("proc/stat", "ctxt "),
        switches_of: BTreeMap::new(),
        faults: count("proc/vmstat", "pgfault "),
        runs_on: tree.numbered("sys/devices/system/cpu", "cpu").len(),
    }
}

/// The number behind a word at the start of a line.
fn counted(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_the_machine_have_counters_that_grow() {
        let tree = Tree::real();
        let own = std::process::id();
        let before = counts_of_process(&tree, own).unwrap();
        let pages = vec![1_u8; 1 << 22];
        std::hint::black_box(&pages);
        let after = counts_of_process(&tree, own).unwrap();
        assert!(
            after.faults.unwrap() >= before.faults.unwrap() + 1000,
            "{after:?}"
        );
        assert!(after.runs_on >= 1 && after.switches.is_some());
        assert_eq!(counts_of_process(&tree, u32::MAX), None);
        let machine = counts_of_machine(&tree);
        assert!(machine.switches.unwrap() > after.switches.unwrap());
        assert!(machine.faults.unwrap() > after.faults.unwrap());
    }
}
