//! The processes of the other ranks, as rank 0 keeps them.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::link;
use super::place::Place;

/// How often an ended process is asked for.
const NAP: Duration = Duration::from_millis(1);

/// By rank, from 1. None of them outlives this.
#[derive(Debug, Default)]
pub(super) struct Children(Vec<Child>);

impl Children {
    /// Starts this program again, with the same words, once for each rank above 0. Its standard
    /// input is the socket on which it listens: so it listens from the start, and nobody else
    /// holds that socket.
    ///
    /// # Errors
    /// Which rank could not be started, and why.
    pub(super) fn start(name: &str, size: u32) -> Result<Self, (u32, io::Error)> {
        let mut listeners = Vec::new();
        // All before the first process, which may turn to the last one at once.
        for rank in 1..size {
            let listener = link::listen(name, rank, size).map_err(|error| (rank, error))?;
            listeners.push((rank, listener));
        }
        let mut children = Self::default();
        for (rank, listener) in listeners {
            let place = Place {
                rank,
                size,
                name: name.to_owned(),
                parent: std::process::id(),
            };
            let child = start(&place, listener).map_err(|error| (rank, error))?;
            children.0.push(child);
        }
        Ok(children)
    }

    fn of(&mut self, rank: u32) -> Option<&mut Child> {
        let index = rank.checked_sub(1)?;
        self.0.get_mut(index as usize)
    }

    /// How the process of a rank ended, waiting for it until `until`.
    pub(super) fn fate(&mut self, rank: u32, until: Instant) -> Option<ExitStatus> {
        let child = self.of(rank)?;
        loop {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= until {
                return None;
            }
            std::thread::sleep(NAP);
        }
    }

    /// What is to be told of a rank that ended.
    pub(super) fn story(&mut self, rank: u32, status: ExitStatus) -> String {
        let process = self.of(rank).map_or(0, |child| child.id());
        match (status.code(), status.signal()) {
            (Some(code), _) => format!("its process {process} ended with exit code {code}"),
            (None, Some(signal)) => format!("its process {process} was ended by signal {signal}"),
            (None, None) => format!("its process {process} ended"),
        }
    }
}

fn start(place: &Place, listener: UnixListener) -> io::Result<Child> {
    let mut words = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(program) = words.next() {
        command.arg0(program);
    }
    command
        .args(words)
        .envs(place.variables())
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .spawn()
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended and was asked for is not touched; others may have ended too.
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}
