//! Ranks as processes of this machine: rank 0 starts the others, as copies of its own program.
//!
//! In: how many. Out: a [`ProcessWorld`] in each; a copy runs the same code up to the same call
//! and finds its place in its environment. Two ranks connect when one has something to tell the
//! other. Rank 0 ends or dies: so do the others. Another one dies: rank 0 learns it at once, with
//! the exit code or signal, whatever it does ([`RankProcesses`]), and the others are told to end; whoever
//! waits for it is told too. Not here: machines beyond this one (launchers have those).

mod children;
mod link;
mod rank_identity;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use weir_sys::socket::wait_ready;
use weir_sys::token;

use crate::deadline::Deadline;
use crate::heartbeat::Heartbeat;
use crate::rank_monitor::RankState;
use crate::{RankMonitor, World, WorldError};

pub use children::{RankProcesses, STOP_SIGNALS};

use link::{Inlet, Outlet, SendError, StreamRead};
use rank_identity::RankIdentity;

/// Looks for the end of another process.
const NAP: Duration = Duration::from_millis(10);

/// Ranks that were told to end when another was lost do so within this time.
const AFTER_LOSS: Duration = Duration::from_millis(500);

/// Longest wait for the exit code of a process after its sockets were closed.
const EXIT_CODE_WAIT: Duration = Duration::from_secs(1);

/// A rank that is a process.
///
/// Long messages wait until the receiver takes them. Dropped at rank 0 it kills the ranks that
/// still run; [`ProcessWorld::finish`] waits for them.
#[derive(Debug)]
pub struct ProcessWorld {
    rank: u32,
    size: u32,
    name: String,
    listener: UnixListener,
    links: RefCell<Links>,
    processes: RankProcesses,
    monitor: RankMonitor,
    /// Says in the end that it was in order.
    _heartbeat: Heartbeat,
}

#[derive(Debug, Default)]
struct Links {
    outlets: HashMap<u32, Outlet>,
    inlets: HashMap<u32, Inlet>,
    /// Connections whose sender has not told its rank yet.
    strangers: Vec<Inlet>,
}

impl ProcessWorld {
    /// Starts `ranks - 1` copies of this program, or takes the place that this copy was started
    /// for. Rank 0 calls it on a thread that lives as long as the world: the copies end with it.
    ///
    /// # Errors
    /// A process could not be started; this one was started by something else.
    pub fn enter(ranks: u32) -> Result<Self, WorldError> {
        match RankIdentity::of(|name| std::env::var(name).ok()) {
            Some(place) => Self::join(place),
            None => Self::start(ranks.max(1)),
        }
    }

    fn start(size: u32) -> Result<Self, WorldError> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let moment = now.map_or(0, |d| d.as_nanos());
        let name = format!("weir-{}-{moment:x}", std::process::id());
        let listener = link::listen(&name, 0, size).map_err(|e| not_started(0, &e))?;
        let monitor = RankMonitor::default();
        let place = RankIdentity {
            rank: 0,
            size,
            name,
            parent: std::process::id(),
            token: token::number(),
        };
        // Before the others, which speak to it at once.
        let heartbeat = heartbeat(&place, &monitor)?;
        let processes =
            RankProcesses::start(&place, &monitor).map_err(|(rank, e)| not_started(rank, &e))?;
        // One that stops before it has said a word is missed as well.
        monitor.expect(1..size);
        let world = Self {
            rank: 0,
            size,
            name: place.name,
            listener,
            links: RefCell::default(),
            processes,
            monitor,
            _heartbeat: heartbeat,
        };
        let processes = world.processes.clone();
        world.monitor.at_loss(move |loss| processes.end_after(loss));
        world.processes.watch().map_err(|e| not_started(0, &e))?;
        Ok(world)
    }

    fn join(place: RankIdentity) -> Result<Self, WorldError> {
        let failed = |e: io::Error| not_started(place.rank, &e);
        let listener = listener_of(&place).map_err(failed)?;
        // The parent's end is this one's; it may have come before the kernel was told.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|e| failed(e.into()))?;
        let parent = rustix::process::getppid().map(|p| p.as_raw_nonzero().get().unsigned_abs());
        if parent != Some(place.parent) {
            let detail = "its process has ended".to_owned();
            return Err(WorldError::Gone { peer: 0, detail });
        }
        let monitor = RankMonitor::default();
        let heartbeat = heartbeat(&place, &monitor)?;
        // It has just started this process.
        monitor.heard(0, RankState::Runs);
        Ok(Self {
            rank: place.rank,
            size: place.size,
            name: place.name,
            listener,
            links: RefCell::default(),
            processes: RankProcesses::of_started(),
            monitor,
            _heartbeat: heartbeat,
        })
    }

    /// Waits until the other ranks have ended by themselves; elsewhere than at rank 0 there is
    /// nothing to wait for.
    ///
    /// # Errors
    /// A rank did not end well, or not in time: it is killed then.
    pub fn finish(self, limit: Duration) -> Result<(), WorldError> {
        if self.rank != 0 {
            return Ok(());
        }
        let until = Instant::now() + limit;
        for peer in 1..self.size {
            let mut wait = Deadline::new(peer, until, Some(&self.monitor));
            let status = loop {
                let now = Instant::now();
                if let Some(status) = self.processes.exit_status(peer, now + NAP) {
                    break status;
                }
                if let Some(loss) = self.monitor.lost() {
                    // The others were told to end; what does not is killed.
                    self.processes.await_all(AFTER_LOSS);
                    return Err(loss);
                }
                wait.left()?;
            };
            if !status.success() {
                return Err(self.ended(peer, status));
            }
        }
        Ok(())
    }

    fn known(&self, rank: u32) -> Result<(), WorldError> {
        let size = self.size;
        (rank < size)
            .then_some(())
            .ok_or(WorldError::NoSuchRank { rank, size })
    }

    fn gone(&self, peer: u32, until: Instant) -> WorldError {
        if let Some(loss) = self.monitor.loss_of(peer) {
            return loss;
        }
        let exit_status = self
            .processes
            .exit_status(peer, until.min(Instant::now() + EXIT_CODE_WAIT));
        let unknown = || WorldError::Gone {
            peer,
            detail: "its process has ended".to_owned(),
        };
        exit_status.map_or_else(unknown, |status| self.ended(peer, status))
    }

    /// Error for a rank that did not end well: the loss before it, after which the others were asked to end.
    fn ended(&self, peer: u32, status: ExitStatus) -> WorldError {
        let before = self.monitor.lost();
        before.unwrap_or_else(|| self.processes.gone(peer, status))
    }

    /// Makes sure that there is a connection to a rank; whether that rank is there.
    fn reach(
        &self,
        links: &mut Links,
        to: u32,
        wait: &mut Deadline<'_>,
    ) -> Result<bool, WorldError> {
        if links.outlets.contains_key(&to) {
            return Ok(true);
        }
        match Outlet::connect(&self.name, self.rank, to, wait) {
            Ok(outlet) => Ok(links.outlets.insert(to, outlet).is_none()),
            Err(SendError::Wait(error)) => Err(error),
            Err(SendError::Broken) => Ok(false),
        }
    }

    /// Takes all connections that wait, and all introductions that have come.
    fn accept(&self, links: &mut Links) {
        links
            .strangers
            .extend(std::iter::from_fn(|| Inlet::accept(&self.listener)));
        for mut stranger in std::mem::take(&mut links.strangers) {
            let is_good = stranger.introduce();
            match stranger.from {
                Some(rank) if rank < self.size => drop(links.inlets.insert(rank, stranger)),
                None if is_good => links.strangers.push(stranger),
                _ => {}
            }
        }
    }

    /// Waits for a first connection of a rank, or for its end; whether it may still come.
    fn await_first(
        &self,
        links: &mut Links,
        from: u32,
        until: Instant,
    ) -> Result<bool, WorldError> {
        let mut wait = Deadline::new(from, until, Some(&self.monitor));
        // Who has no room for a connection yet is there.
        let is_there = self.reach(links, from, &mut wait).unwrap_or(true)
            && !links.outlets.get(&from).is_some_and(Outlet::is_closed);
        // What it sent before its end counts: look once more after the end was seen.
        self.accept(links);
        if links.inlets.contains_key(&from) {
            return Ok(true);
        }
        if is_there {
            let streams = links.strangers.iter().map(AsFd::as_fd);
            let mut waited: Vec<_> = std::iter::once(self.listener.as_fd())
                .chain(streams)
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let outlet = links.outlets.get(&from);
            waited.extend(outlet.map(|outlet| PollFd::new(outlet, PollFlags::empty())));
            let left = until.saturating_duration_since(Instant::now());
            wait_ready(&mut waited, left).map_err(|e| broken(from, e))?;
        }
        Ok(is_there)
    }
}

impl Drop for ProcessWorld {
    fn drop(&mut self) {
        self.processes.end();
    }
}

impl World for ProcessWorld {
    fn processes(&self) -> Option<&RankProcesses> {
        Some(&self.processes)
    }

    fn monitor(&self) -> Option<&RankMonitor> {
        Some(&self.monitor)
    }

    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn send(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError> {
        self.known(to)?;
        let mut wait = Deadline::new(to, until, Some(&self.monitor));
        let mut links = self.links.borrow_mut();
        if !self.reach(&mut links, to, &mut wait)? {
            return Err(self.gone(to, until));
        }
        let Err(error) = links.outlets[&to].send(bytes, &mut wait) else {
            return Ok(());
        };
        // A part may have gone out: nothing can follow it on this connection.
        links.outlets.remove(&to);
        match error {
            SendError::Wait(error) => Err(error),
            SendError::Broken => Err(self.gone(to, until)),
        }
    }

    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        self.known(from)?;
        let mut wait = Deadline::new(from, until, Some(&self.monitor));
        let mut links = self.links.borrow_mut();
        loop {
            // What has come counts, whatever became of the sender.
            let left = wait.left();
            if let Some(inlet) = links.inlets.get_mut(&from) {
                match inlet.take() {
                    StreamRead::Message(bytes) => return Ok(bytes),
                    StreamRead::Ended | StreamRead::Torn => return Err(self.gone(from, until)),
                    StreamRead::Early => {
                        let mut waited = [PollFd::new(inlet, PollFlags::IN)];
                        wait_ready(&mut waited, left?).map_err(|e| broken(from, e))?;
                    }
                }
                continue;
            }
            let until = Instant::now() + left.clone().unwrap_or_default();
            let may_come = self.await_first(&mut links, from, until)?;
            if links.inlets.contains_key(&from) {
                continue;
            }
            left?;
            if !may_come {
                return Err(self.gone(from, until));
            }
        }
    }
}

/// The rank that another process of weir started this one for.
pub fn started_rank() -> Option<u32> {
    RankIdentity::of(|name| std::env::var(name).ok()).map(|place| place.rank)
}

/// The listener that rank 0 left as standard input, whose place an empty one takes.
fn listener_of(place: &RankIdentity) -> io::Result<UnixListener> {
    let input = io::stdin().as_fd().try_clone_to_owned()?;
    let listener = UnixListener::from(input);
    if !link::is_listener(&listener, &place.name, place.rank) {
        return Err(io::Error::other(
            "WEIR_WORLD_RANK is set, but no weir started this process",
        ));
    }
    let nothing = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn heartbeat(place: &RankIdentity, monitor: &RankMonitor) -> Result<Heartbeat, WorldError> {
    let ranks = (place.rank, place.size);
    Heartbeat::of_process(&place.name, place.token, ranks, monitor)
        .map_err(|e| not_started(place.rank, &e))
}

fn not_started(rank: u32, error: &io::Error) -> WorldError {
    WorldError::NotStarted {
        rank,
        detail: error.to_string(),
    }
}

fn broken(peer: u32, errno: Errno) -> WorldError {
    WorldError::Gone {
        peer,
        detail: io::Error::from(errno).to_string(),
    }
}
