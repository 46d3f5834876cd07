//! A connection to a peer: reads receive, writes send, whole blocks at a time.
//!
//! In: blocks. Out: blocks that were sent, or received in full however the network cut them. Two
//! jobs of one run, two runs or two programs make a pair; fio's engine of this name is such a
//! program. A peer that closes early fails the job, unless the job ends with its time. Not here: addresses and sockets ([`link`]).

mod link;

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use weir_run::{Engine, LoopStop, OpFailure, Submit, failure};
use weir_schema::catalogue::{ActsOn, EngineInfo, SettingInfo, SettingKind};
use weir_schema::{BlockWorkload, Failure, Job, Kind, Workload};
use weir_sys::Availability;

use self::link::{NetSocket, Received, SocketSettings};
use super::calls::memory;
use super::{EngineEntry, EngineRun, Opens, number, run_varied, switch, varied_source};
use crate::op::BlockOp;

/// Its name.
pub(crate) const NAME: &str = "net";

const fn text(name: &'static str, value: SettingKind, help: &'static str) -> SettingInfo {
    SettingInfo {
        name,
        value,
        default: "",
        help,
    }
}

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: NAME,
        summary: "sends blocks to a peer or receives them, by TCP, UDP or a Unix socket",
        settings: &[
            text(
                "host",
                SettingKind::Text,
                "name or address of the peer; the path of a Unix socket",
            ),
            number(
                "port",
                (1, 65_535),
                "",
                "port; each further clone takes the next one",
            ),
            SettingInfo {
                default: "tcp",
                ..text("protocol", SettingKind::Word(link::PROTOCOLS), "transport")
            },
            switch("listen", "false", "waits for the peer's connection"),
            switch("no_delay", "false", "small segments are sent at once"),
            switch(
                "ping_pong",
                "false",
                "each block comes back before the next one is sent",
            ),
            text(
                "interface",
                SettingKind::Text,
                "address of the interface for multicast",
            ),
            number(
                "ttl",
                (1, 255),
                "1",
                "hops that a multicast datagram may take",
            ),
            number(
                "window_bytes",
                (0, i32::MAX as i64),
                "0",
                "buffers of the socket; 0: the kernel's choice",
            ),
            number(
                "segment_bytes",
                (0, 65_535),
                "0",
                "largest TCP segment; 0: the kernel's choice",
            ),
        ],
        synchronous: true,
        acts_on: ActsOn::Size,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive,
};

/// Role of a worker: it sends blocks or receives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Send,
    Receive,
}

fn refused(message: impl Into<String>) -> Failure {
    failure("engine", Some(libc::EINVAL), message)
}

fn role(workload: &BlockWorkload) -> Result<Role, Failure> {
    let mix = &workload.mix;
    if mix.has(Kind::Trim) {
        return Err(refused("net: a connection has nothing to discard"));
    }
    if workload.access.random {
        return Err(refused("net: network I/O cannot be random"));
    }
    match (mix.has(Kind::Read), mix.has(Kind::Write)) {
        (true, true) => Err(refused(
            "net: a connection is read or written, not both (one job for each)",
        )),
        (false, true) => Ok(Role::Send),
        _ => Ok(Role::Receive),
    }
}

/// Contradictions in the job's settings that show before anything is opened.
pub(crate) fn check(job: &Job, workload: &BlockWorkload) -> Option<Failure> {
    let of_clone = |clone| {
        let sends = role(workload)? == Role::Send;
        let settings = SocketSettings::read(&job.engine, clone, sends)?;
        settings.check_block(workload.sizes.size.of(Kind::Write).max().0)
    };
    [0, job.clones.saturating_sub(1)]
        .into_iter()
        .find_map(|clone| of_clone(clone).err())
}

fn drive(ride: EngineRun<'_, '_>) -> Result<LoopStop, Failure> {
    let EngineRun {
        worker,
        recipe,
        plan,
        setup,
    } = ride;
    let mut source = varied_source(recipe)?;
    let Workload::Block(workload) = &worker.job.workload else {
        return Err(refused("net: this workload is no block I/O"));
    };
    let role = role(workload)?;
    let settings = SocketSettings::read(&setup.choice, worker.clone, role == Role::Send)?;
    let largest = workload.sizes.size.of(Kind::Write).max().0;
    settings.check_block(largest)?;
    let opening = settings.open()?;
    let met = if worker.wait_for_release() {
        opening.meet(&settings, worker.stop)
    } else {
        Ok(None)
    };
    settings.tidy();
    let Some(link) = met? else {
        return Ok(LoopStop::Asked);
    };
    worker.begin_now();
    let span = plan.runtime.map(|runtime| runtime.0 + plan.ramp.0);
    let mut engine = Net {
        link,
        role,
        echoes: setup.choice.flag("ping_pong", false),
        stop: worker.stop,
        end: span.map(|ns| Instant::now() + Duration::from_nanos(ns)),
        received: 0,
        is_closed: false,
    };
    let stop = run_varied(worker, &mut engine, &mut source, &plan);
    engine.link.close(&settings);
    match stop {
        // Both ends of a timed pair end by their own clocks.
        LoopStop::WorkDone if engine.is_closed && span.is_none() => {
            Err(closed(engine.received, &settings))
        }
        LoopStop::Failed(at) => Err(of_peer(&at, &settings, role)),
        stop => Ok(stop),
    }
}

/// A failed operation, told with the peer's address.
fn of_peer(at: &OpFailure, settings: &SocketSettings, role: Role) -> Failure {
    let errno = at.fault.errno();
    let what = match role {
        Role::Send => "sending",
        Role::Receive => "receiving",
    };
    let text = io::Error::from_raw_os_error(errno);
    let peer = settings.shown();
    Failure {
        target: Some(peer.clone()),
        ..failure(
            "io",
            Some(errno),
            format!("{peer}: {what} a block of {} bytes: {text}", at.length),
        )
    }
}

/// The peer has gone before everything that was asked for had come.
fn closed(received: u64, settings: &SocketSettings) -> Failure {
    let peer = settings.shown();
    let message = format!("{peer}: the peer closed the connection after {received} bytes");
    Failure {
        target: Some(peer),
        ..failure("closed", Some(libc::ECONNRESET), message)
    }
}

/// A connection in use.
#[derive(Debug)]
struct Net<'a> {
    link: NetSocket,
    role: Role,
    /// Each block goes both ways.
    echoes: bool,
    stop: &'a AtomicU32,
    /// End of the worker's time: a peer that falls silent must not hold it.
    end: Option<Instant>,
    /// Bytes that came from the peer.
    received: u64,
    /// The peer closed a connection from which more was to come; datagrams may be lost.
    is_closed: bool,
}

impl Net<'_> {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) != 0 || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Sends all of it; fewer bytes only where the end came in between.
    fn send(&self, block: &[u8]) -> Result<usize, Errno> {
        let mut sent = 0;
        while sent < block.len() {
            match self.link.send(&block[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(Errno::INTR) if self.is_over() => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(sent)
    }

    /// Fills the block; fewer bytes only where the peer closed or the end came in between.
    fn receive(&mut self, block: &mut [u8]) -> Result<usize, Errno> {
        let mut filled = 0;
        while filled < block.len() {
            match self.link.receive(&mut block[filled..]) {
                Ok(Received::Bytes(bytes)) => {
                    filled += bytes;
                    self.received += bytes as u64;
                }
                Ok(Received::Closed) => {
                    self.is_closed = self.link.is_connection();
                    break;
                }
                Err(Errno::INTR) if self.is_over() => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(filled)
    }

    fn exchange(&mut self, block: &mut [u8]) -> Result<usize, Errno> {
        let moved = match self.role {
            Role::Send => self.send(block)?,
            Role::Receive => self.receive(block)?,
        };
        if !self.echoes || moved < block.len() {
            return Ok(moved);
        }
        match self.role {
            Role::Send => self.receive(block),
            Role::Receive => self.send(block),
        }
    }
}

impl<'a> Engine for Net<'a> {
    type Op = BlockOp;
    type Setup = Net<'a>;
    const INLINE: bool = true;

    fn attach(setup: Net<'a>) -> io::Result<Self> {
        Ok(setup)
    }

    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        match self.exchange(memory(*op)) {
            Ok(0) => Submit::Over,
            Ok(moved) => Submit::Done(i64::try_from(moved).unwrap_or(i64::MAX)),
            Err(errno) => Submit::Done(-i64::from(errno.raw_os_error())),
        }
    }
}

#[cfg(test)]
mod tests;
