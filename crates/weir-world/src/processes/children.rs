//! The processes of the other ranks, as rank 0 keeps them: how they ended, and the word to end for
//! those that run.
//!
//! In: how many. Out: a [`RankProcesses`], which any thread may ask. A thread of its own sleeps until a
//! process ends; one that did not end well is lost, as the [`RankMonitor`] hears, and the others are
//! told to end, as without it they would wait in vain. That word is a signal which nobody else sends, so that it is never
//! taken for a second wish of a user; a signal of a user that another rank gets goes to rank 0.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::link;
use super::rank_identity::RankIdentity;
use crate::{RankMonitor, WorldError};

/// Interval between two looks for an ended process.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Time that a process started by somebody else is left to whoever waits for it.
const FOREIGN_WAIT: Duration = Duration::from_millis(10);

/// Signals by which rank 0 tells the others to end: in order, and at once.
pub const STOP_SIGNALS: [i32; 2] = [Signal::USR1.as_raw(), Signal::USR2.as_raw()];

/// The processes of a world, as one of them sees the others: rank 0 those that it has started, these
/// rank 0.
#[derive(Clone, Debug, Default)]
pub struct RankProcesses(Arc<RankChildren>);

#[derive(Debug, Default)]
struct RankChildren {
    /// This is another rank than 0.
    is_started: bool,
    /// By rank, from 1.
    children: Mutex<Vec<Child>>,
    /// Hears of those that end before their time.
    monitor: RankMonitor,
}

/// Nobody panics while holding these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RankProcesses {
    /// Starts this program again, with the same arguments, once for each rank above 0. Its standard
    /// input is the socket on which it listens: so it listens from the start, and nobody else
    /// holds that socket.
    ///
    /// # Errors
    /// Which rank could not be started, and why.
    pub(super) fn start(
        place: &RankIdentity,
        monitor: &RankMonitor,
    ) -> Result<Self, (u32, io::Error)> {
        let (name, size) = (&place.name, place.size);
        let mut listeners = Vec::new();
        // All before the first process, which may turn to the last one at once.
        for rank in 1..size {
            let listener = link::listen(name, rank, size).map_err(|error| (rank, error))?;
            listeners.push((rank, listener));
        }
        let processes = Self(Arc::new(RankChildren {
            monitor: monitor.clone(),
            ..RankChildren::default()
        }));
        for (rank, listener) in listeners {
            let place = RankIdentity {
                rank,
                ..place.clone()
            };
            match start(&place, listener) {
                Ok(child) => lock(&processes.0.children).push(child),
                Err(error) => {
                    processes.end();
                    return Err((rank, error));
                }
            }
        }
        Ok(processes)
    }

    /// Of a rank that rank 0 has started.
    pub(super) fn of_started() -> Self {
        let kept = RankChildren {
            is_started: true,
            ..RankChildren::default()
        };
        Self(Arc::new(kept))
    }

    /// True if the parent ends this rank by [`STOP_SIGNALS`].
    pub fn is_started(&self) -> bool {
        self.0.is_started
    }

    /// Looks after them from now on.
    pub(super) fn watch(&self) -> io::Result<()> {
        let processes = self.clone();
        let thread = std::thread::Builder::new().name("weir-ranks".to_owned());
        thread.spawn(move || processes.keep()).map(|_| ())
    }

    /// Sleeps until a process ends, looks which, and again, as long as there are any.
    fn keep(&self) {
        let mut running = usize::MAX;
        loop {
            let any = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            if !matches!(waitid(WaitId::All, any), Ok(_) | Err(Errno::INTR)) {
                return;
            }
            match std::mem::replace(&mut running, self.count_running()) {
                _ if running == 0 => return,
                // It is the command of a job: who started it waits for it.
                before if before == running => std::thread::sleep(FOREIGN_WAIT),
                _ => {}
            }
        }
    }

    /// Number of running processes. Of those that have ended the first that did not end well is
    /// lost.
    fn count_running(&self) -> usize {
        let mut running = 0;
        let mut lost = None;
        let mut ended = Vec::new();
        for (rank, child) in (1..).zip(lock(&self.0.children).iter_mut()) {
            match child.try_wait() {
                Ok(None) => running += 1,
                Ok(Some(status)) if !status.success() && lost.is_none() => {
                    lost = Some((rank, gone(rank, child.id(), status)));
                }
                Ok(Some(_)) => ended.push(rank),
                Err(_) => {}
            }
        }
        for rank in ended {
            self.0.monitor.ended(rank);
        }
        if let Some((rank, lost)) = lost {
            self.0.monitor.report_loss(rank, &lost);
        }
        running
    }

    /// The first rank is lost: the others are told to end, as they would wait in vain. One that has
    /// fallen silent is killed.
    pub(super) fn end_after(&self, loss: &WorldError) {
        if let WorldError::Silent { peer, .. } = *loss {
            let index = (peer as usize).saturating_sub(1);
            if let Some(child) = lock(&self.0.children).get_mut(index) {
                // One that has ended by now needs none.
                let _ = child.kill();
            }
        }
        self.signal(STOP_SIGNALS[0]);
    }

    /// Passes a signal on that this process got, as the first or a later one: from rank 0 to all
    /// others as the word to end, from another rank to rank 0.
    pub fn pass_on(&self, number: i32, is_first: bool) {
        if !self.is_started() {
            return self.signal(STOP_SIGNALS[usize::from(!is_first)]);
        }
        // Rank 0 has not ended: this process would have ended with it.
        let signal = Signal::from_named_raw(number);
        if let Some((first, signal)) = rustix::process::getppid().zip(signal) {
            let _ = kill_process(first, signal);
        }
    }

    /// Sends a signal to those that run.
    fn signal(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        for child in lock(&self.0.children).iter_mut() {
            // Its number is its own until it has been asked for.
            if matches!(child.try_wait(), Ok(None)) {
                let _ = kill_process(Pid::from_child(child), signal);
            }
        }
    }

    /// Exit status of a rank's process, waiting for it until `until`.
    pub(super) fn exit_status(&self, rank: u32, until: Instant) -> Option<ExitStatus> {
        let index = rank.checked_sub(1)? as usize;
        loop {
            let asked = lock(&self.0.children).get_mut(index)?.try_wait();
            if let Ok(Some(status)) = asked {
                return Some(status);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits so long for the end of all.
    pub(super) fn await_all(&self, limit: Duration) {
        let until = Instant::now() + limit;
        let ranks = 1..=lock(&self.0.children).len();
        for rank in ranks {
            let _ = self.exit_status(u32::try_from(rank).unwrap_or(u32::MAX), until);
        }
    }

    /// Error for a rank that ended.
    pub(super) fn gone(&self, rank: u32, status: ExitStatus) -> WorldError {
        let index = (rank as usize).saturating_sub(1);
        let process = lock(&self.0.children).get(index).map_or(0, Child::id);
        gone(rank, process, status)
    }

    /// Kills those that still run. None is left after it.
    pub(super) fn end(&self) {
        let mut children = std::mem::take(&mut *lock(&self.0.children));
        for child in &mut children {
            // One that has ended and was asked for is not touched; others may have ended too.
            let _ = child.kill();
        }
        for child in &mut children {
            let _ = child.wait();
        }
    }
}

fn gone(peer: u32, process: u32, status: ExitStatus) -> WorldError {
    let detail = match (status.code(), status.signal()) {
        (Some(code), _) => format!("its process {process} ended with exit code {code}"),
        (None, Some(signal)) => format!("its process {process} was ended by signal {signal}"),
        (None, None) => format!("its process {process} ended"),
    };
    WorldError::Gone { peer, detail }
}

fn start(place: &RankIdentity, listener: UnixListener) -> io::Result<Child> {
    let mut args = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(program) = args.next() {
        command.arg0(program);
    }
    command
        .args(args)
        .envs(place.variables())
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .spawn()
}
