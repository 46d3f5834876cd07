//! Ranks that are processes: which is which, stopping one of them, and what is left of them.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Running, Said, catches_signals, until};

/// Longest silence of ranks in the tests.
pub(crate) const TIMEOUT: &str = "2";
/// Far beyond that, and far below the time-outs that ran one after the other before.
const BOUND: Duration = Duration::from_secs(12);

/// The processes of all ranks of a run.
pub(crate) struct RankProcesses {
    running: Running,
    by_rank: Vec<Pid>,
}

/// The number of a process's rank, under whatever started it.
pub(crate) fn rank_of(process: Pid) -> Option<usize> {
    let path = format!("/proc/{}/environ", process.as_raw_pid());
    let all = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
    let names = ["WEIR_WORLD_RANK=", "PMI_RANK=", "OMPI_COMM_WORLD_RANK="];
    let mut found = all.split('\0');
    let number = |word: &str| {
        let mut values = names.iter().filter_map(|name| word.strip_prefix(name));
        values.next().and_then(|value| value.parse().ok())
    };
    Some(found.find_map(number).unwrap_or(0))
}

/// True if a process is still there; one that waits for its parent is not.
pub(crate) fn is_left(process: Pid) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim().starts_with('Z'))
}

impl RankProcesses {
    /// Waits until so many ranks catch signals.
    #[track_caller]
    pub(crate) fn of(running: Running, ranks: usize) -> Self {
        let catching = || {
            let all = std::iter::once(running.process()).chain(running.children());
            all.filter(|p| catches_signals(*p)).collect::<Vec<_>>()
        };
        let has_ended = || !is_left(running.process());
        until("all ranks catch signals", || {
            catching().len() == ranks || has_ended()
        });
        assert!(
            !has_ended(),
            "it ended before its ranks could be stopped: {}",
            running.end()
        );
        let mut by_rank = catching();
        by_rank.sort_by_key(|process| rank_of(*process));
        Self { running, by_rank }
    }

    /// Stops a rank, and waits for the end of all: what was said until then. Nothing is left of
    /// them.
    #[track_caller]
    pub(crate) fn end_without(self, rank: usize) -> Said {
        let begun = Instant::now();
        let stopped = self.by_rank[rank];
        kill_process(stopped, Signal::STOP).unwrap();
        let others = || self.by_rank.iter().filter(|p| **p != stopped);
        if stopped == self.running.process() {
            until("the others have ended by themselves", || {
                !others().copied().any(is_left)
            });
            kill_process(stopped, Signal::KILL).unwrap();
        }
        let (said, has_ended) = self.running.end_within(BOUND);
        let took = begun.elapsed();
        assert!(has_ended && took < BOUND, "it took {took:?}: {said}");
        until("no process is left", || {
            !self.by_rank.iter().copied().any(is_left)
        });
        said
    }

    /// Stops all for longer than the time-out, as Ctrl-Z does, and goes on.
    pub(crate) fn pause_all(self, pause: Duration) -> Running {
        self.running.signal_all(Signal::STOP);
        std::thread::sleep(pause);
        self.running.signal_all(Signal::CONT);
        self.running
    }
}

/// Message about a rank that was stopped.
pub(crate) fn silence_of(rank: usize) -> String {
    format!("rank {rank} does not answer: no heartbeat for ")
}
