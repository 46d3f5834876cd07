//! Processes as the kernel shows them: their children, their CPU time, their signals.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::until;

/// Processes that a process has started, and those that these have.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    let pid = of.as_raw_nonzero();
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = list.split_whitespace().filter_map(|n| n.parse().ok());
    let children = children.filter_map(Pid::from_raw);
    children
        .flat_map(|child| std::iter::once(child).chain(descendants(child)))
        .collect()
}

/// Waits until a process has worked for so many hundredths of a second more: a handshake takes less than a few.
#[track_caller]
pub(crate) fn works_for(process: u32, ticks: u64) {
    let used = || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        let (_, behind) = stat.rsplit_once(')').unwrap();
        let fields: Vec<&str> = behind.split_whitespace().collect();
        let [user, system] = [11, 12].map(|at: usize| fields[at].parse::<u64>().unwrap());
        user + system
    };
    let before = used();
    until("the process works", || used() >= before + ticks);
}

/// Sends a process a signal; one that stops it has done so then.
pub(crate) fn send(process: Pid, signal: Signal) {
    kill_process(process, signal).unwrap();
    if signal == Signal::STOP {
        // A starved process runs on for a while.
        until("it is stopped", || is_stopped(process));
    }
}

/// True if all threads of a process are stopped.
pub(crate) fn is_stopped(process: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_pid())).unwrap();
    let mut stats = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("stat")));
    stats.all(|stat| stat.is_ok_and(|stat| stat.rsplit_once(") ").unwrap().1.starts_with('T')))
}

/// True if signals end a process in order by now.
pub(crate) fn catches_signals(process: Pid) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.as_raw_pid()));
    let mut tasks = tasks.into_iter().flatten().flatten();
    tasks.any(|task| {
        let name = fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.trim() == "weir-signals")
    })
}
