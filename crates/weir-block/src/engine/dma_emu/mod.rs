//! An emulated card with DMA channels: memory behind channels of known latency and bandwidth,
//! each for one direction or both, and with the faults that are asked for.
//!
//! In: operations on channels, named as a job names files; no file is touched. Out: completions
//! when the model says so, never earlier, with the data that the card's memory holds. Channels of
//! one card share its memory over the jobs of a run. A channel that stalls hangs as a driver's
//! interruptible wait does: a signal ends it.

mod card;
mod fault;
mod transfer;

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::Timespec;
use weir_run::{Completed, Engine, Submit, Wait};
use weir_schema::EngineChoice;
use weir_schema::catalogue::{ActsOn, EngineInfo, SettingInfo, SettingKind};
use weir_sys::Availability;

use super::calls::answer;
use super::{EngineEntry, EngineSetup, Opens, number, run_engine};
use crate::op::{BlockOp, Verb};
pub(crate) use card::EmulatedCards;
use card::{Channel, EmulatedCard, Owner};
pub(super) use fault::bytes;
use fault::{EmulatedFault, FaultEffect, faults};

/// The engine's name.
pub(crate) const NAME: &str = "dma-emu";
const DEFAULT_SIZE: u64 = 64 << 30;
/// The kernel wakes a sleeper about this late; the rest of a wait is spent awake.
const WAKE_UP: Duration = Duration::from_micros(60);

const fn text(
    name: &'static str,
    default: &'static str,
    help: &'static str,
    check: fn(&str) -> Result<(), String>,
) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Checked(check),
        default,
        help,
    }
}

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: NAME,
        summary: "an emulated card with DMA channels: latency, bandwidth, directions, faults",
        settings: &[
            number(
                "emu_size",
                (1, 1 << 50),
                "64g",
                "bytes of the card's memory",
            ),
            text(
                "emu_dir",
                "both",
                "h2c takes writes, c2h reads, both both",
                |v| Direction::of(v).map(|_| ()),
            ),
            number(
                "emu_latency",
                (0, 60_000_000),
                "0",
                "microseconds added to each operation",
            ),
            number(
                "emu_bw",
                (0, i64::MAX),
                "0",
                "bytes per second of a channel; 0: no limit",
            ),
            text(
                "emu_shared",
                "",
                "name of the card: its channels share one memory",
                |v| {
                    (!v.is_empty())
                        .then_some(())
                        .ok_or_else(|| "expected a name".to_owned())
                },
            ),
            text(
                "emu_fault",
                "",
                "faults, for example flip@2m,eio@3,stall@8m:5000",
                |v| faults(v).map(|_| ()),
            ),
        ],
        synchronous: false,
        acts_on: ActsOn::Memory,
    },
    availability: || Availability::Ready,
    is_inline: |_| false,
    opens: Opens::AsNeeded,
    drive: run_engine::<DmaEmu>,
};

/// Faults of a job that have struck nothing, once all jobs have ended.
pub(crate) fn idle_faults(
    choice: &EngineChoice,
    names: &[String],
    cards: &EmulatedCards,
) -> Vec<String> {
    let Ok(all) = faults(choice.text("emu_fault").unwrap_or_default()) else {
        return Vec::new();
    };
    let struck = |fault: &EmulatedFault| {
        names
            .iter()
            .filter_map(|name| cards.has_struck(&owner(choice, name), &fault.text))
            .any(|struck| struck)
    };
    let idle = all.into_iter().filter(|fault| !struck(fault));
    idle.map(|fault| fault.text).collect()
}

fn owner(choice: &EngineChoice, channel: &str) -> Owner {
    match choice.text("emu_shared") {
        Some(card) => Owner::Card(card.to_owned()),
        None => Owner::Channel(channel.to_owned()),
    }
}

/// Direction in which a channel moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    HostToCard,
    CardToHost,
    Both,
}

impl Direction {
    fn of(word: &str) -> Result<Self, String> {
        match word {
            "h2c" => Ok(Self::HostToCard),
            "c2h" => Ok(Self::CardToHost),
            "both" => Ok(Self::Both),
            _ => Err(format!("`{word}` is none of h2c, c2h, both")),
        }
    }

    fn takes(self, verb: Verb) -> bool {
        match verb {
            Verb::Read => self != Self::HostToCard,
            Verb::Write => self != Self::CardToHost,
            _ => true,
        }
    }
}

/// Behaviour of a job's channels.
#[derive(Debug)]
struct ChannelSettings {
    direction: Direction,
    latency: Duration,
    /// 0: as fast as memory is.
    bytes_per_s: u64,
    faults: Vec<EmulatedFault>,
}

impl ChannelSettings {
    fn of(choice: &EngineChoice) -> Result<Self, String> {
        let size = |name| choice.number(name).and_then(|n| u64::try_from(n).ok());
        let list = choice.text("emu_fault");
        Ok(Self {
            direction: Direction::of(choice.text("emu_dir").unwrap_or("both"))?,
            latency: Duration::from_micros(size("emu_latency").unwrap_or(0)),
            bytes_per_s: size("emu_bw").unwrap_or(0),
            faults: list.map_or(Ok(Vec::new()), faults)?,
        })
    }

    /// Time that a transfer of so many bytes occupies a channel.
    fn passage(&self, bytes: u32) -> Duration {
        let nanos = (u128::from(bytes) * 1_000_000_000).checked_div(self.bytes_per_s.into());
        Duration::from_nanos(u64::try_from(nanos.unwrap_or(0)).unwrap_or(u64::MAX))
    }
}

/// A channel of a card, as one of the worker's targets.
#[derive(Debug)]
struct Port {
    card: Arc<EmulatedCard>,
    channel: Arc<Channel>,
}

/// An operation that was handed over.
#[derive(Clone, Copy, Debug)]
struct Given {
    slot: u32,
    op: BlockOp,
    due: Instant,
    is_stalled: bool,
    meets: Option<FaultEffect>,
}

/// An operation whose data has moved, until it is due. Equal times keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moved {
    due: Instant,
    turn: u64,
    is_stalled: bool,
    completed: Completed,
}

impl Ord for Moved {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.turn).cmp(&(other.due, other.turn))
    }
}

impl PartialOrd for Moved {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The channels that a worker uses.
#[derive(Debug)]
pub(super) struct DmaEmu {
    ports: Vec<Port>,
    settings: ChannelSettings,
    depth: usize,
    /// Submitted, and not handed over yet.
    fresh: Vec<(u32, BlockOp)>,
    /// Handed over; no data has moved.
    given: Vec<Given>,
    /// By when they are due.
    moved: BinaryHeap<Reverse<Moved>>,
    /// Over, and not told yet; keeps its room.
    over: Vec<Completed>,
    turn: u64,
    /// The rest of a short operation, by target and offset: no more comes.
    cut: Option<(u32, u64)>,
}

impl DmaEmu {
    /// Gives an operation its place in its channel's time.
    fn give(&self, now: Instant, slot: u32, op: BlockOp) -> Given {
        let mut given = Given {
            slot,
            op,
            due: now,
            is_stalled: false,
            meets: None,
        };
        let Some(port) = self.ports.get(op.target as usize) else {
            return given;
        };
        if !self.settings.direction.takes(op.verb) {
            return given;
        }
        let takes = if matches!(op.verb, Verb::Read | Verb::Write) {
            given.meets = self.meets(port, &op);
            self.settings.passage(op.length)
        } else {
            Duration::ZERO
        };
        if let Some(FaultEffect::Stall(pause)) = given.meets {
            port.channel.stall(now, pause);
        }
        let passage = port.channel.pass(now, takes);
        given.due = passage.end + self.settings.latency;
        given.is_stalled = passage.is_stalled;
        given
    }

    /// The fault that an operation meets. Each strikes a card once.
    fn meets(&self, port: &Port, op: &BlockOp) -> Option<FaultEffect> {
        let nth = port.channel.count();
        let mut met = self.settings.faults.iter().filter(|f| f.is_met(op, nth));
        met.find(|fault| port.card.strikes(&fault.text) || fault.is_by_number())
            .map(|fault| fault.wrong)
    }

    /// Moves the data of everything that was handed over.
    fn move_given(&mut self) {
        for index in 0..self.given.len() {
            let given = self.given[index];
            let result = self.carry_out(&given);
            self.turn += 1;
            self.moved.push(Reverse(Moved {
                due: given.due,
                turn: self.turn,
                is_stalled: given.is_stalled,
                completed: Completed {
                    slot: given.slot,
                    result,
                },
            }));
        }
        self.given.clear();
    }

    /// Moves an operation's data; the bytes, or the negative errno.
    fn carry_out(&mut self, given: &Given) -> i64 {
        let op = given.op;
        let failed = |errno: i32| -i64::from(errno);
        let Some(port) = self.ports.get(op.target as usize) else {
            return failed(libc::EBADF);
        };
        match op.verb {
            verb if !self.settings.direction.takes(verb) => return failed(libc::EINVAL),
            Verb::Sync | Verb::DataSync | Verb::RangeSync => return 0,
            Verb::Trim => return failed(libc::EOPNOTSUPP),
            Verb::Read | Verb::Write => {}
        }
        if self.cut == Some((op.target, op.offset)) {
            self.cut = None;
            return 0;
        }
        match given.meets {
            Some(FaultEffect::Failed) => failed(libc::EIO),
            Some(FaultEffect::Stale) => i64::from(op.length),
            Some(FaultEffect::Short) => {
                let half = (op.length / 2).max(1);
                self.cut = Some((op.target, op.offset + u64::from(half)));
                answer(port.card.transfer(&BlockOp { length: half, ..op }))
            }
            Some(FaultEffect::Misplaced) => answer(port.card.transfer_from_neighbour(&op)),
            Some(FaultEffect::Flip(byte)) => answer(port.card.transfer_with_flip(&op, byte)),
            Some(FaultEffect::Stall(_)) | None => answer(port.card.transfer(&op)),
        }
    }

    /// Gives up what waits for a stalled channel, as a driver does whose wait a signal ends.
    fn give_up_stalled(&mut self, now: Instant) {
        let given_up = |Reverse(mut moved): Reverse<Moved>| {
            if moved.is_stalled {
                moved.due = now;
                moved.completed.result = -i64::from(libc::EINTR);
            }
            Reverse(moved)
        };
        self.moved = self.moved.drain().map(given_up).collect();
    }

    /// Waits for operations that are due, a signal or the end of the time.
    fn wait_until_due(&mut self, wait: Wait) {
        let mut now = Instant::now();
        let patience = wait
            .timeout_ns
            .map(|nanos| now + Duration::from_nanos(nanos));
        let mut interrupted = false;
        loop {
            while self.over.len() < wait.at_most as usize
                && let Some(Reverse(next)) = self.moved.peek()
                && next.due <= now
            {
                self.over.push(next.completed);
                self.moved.pop();
            }
            if self.over.len() >= wait.at_least.min(wait.at_most) as usize || interrupted {
                return;
            }
            let Some(Reverse(next)) = self.moved.peek() else {
                return;
            };
            let until = patience.map_or(next.due, |end| end.min(next.due));
            if until <= now {
                return;
            }
            interrupted = !pause(until - now);
            now = Instant::now();
            if interrupted {
                self.give_up_stalled(now);
            }
        }
    }
}

impl Engine for DmaEmu {
    type Op = BlockOp;
    type Setup = EngineSetup;

    fn attach(setup: EngineSetup) -> io::Result<Self> {
        let choice = &setup.choice;
        let size = choice
            .number("emu_size")
            .and_then(|n| u64::try_from(n).ok());
        let port = |name: &String| {
            let card = setup
                .cards
                .card(owner(choice, name), size.unwrap_or(DEFAULT_SIZE))?;
            let channel = card.channel(name);
            Ok(Port { card, channel })
        };
        let depth = setup.depth as usize;
        Ok(Self {
            ports: setup.names.iter().map(port).collect::<io::Result<_>>()?,
            settings: ChannelSettings::of(choice).map_err(io::Error::other)?,
            depth,
            fresh: Vec::with_capacity(depth),
            given: Vec::with_capacity(depth),
            moved: BinaryHeap::with_capacity(depth),
            over: Vec::with_capacity(depth),
            turn: 0,
            cut: None,
        })
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        if self.fresh.len() + self.given.len() + self.moved.len() == self.depth {
            return Submit::Full;
        }
        self.fresh.push((slot, *op));
        Submit::Queued
    }

    fn commit(&mut self) -> io::Result<u32> {
        let now = Instant::now();
        for index in 0..self.fresh.len() {
            let (slot, op) = self.fresh[index];
            let given = self.give(now, slot, op);
            self.given.push(given);
        }
        let taken = self.fresh.len();
        self.fresh.clear();
        Ok(u32::try_from(taken).unwrap_or(u32::MAX))
    }

    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        self.move_given();
        self.wait_until_due(wait);
        let count = u32::try_from(self.over.len()).unwrap_or(u32::MAX);
        self.over.drain(..).for_each(&mut done);
        Ok(count)
    }
}

/// Sleeps most of the time that is left; false if a signal ended it.
fn pause(left: Duration) -> bool {
    let Some(sleep) = left.checked_sub(WAKE_UP) else {
        std::thread::yield_now();
        return true;
    };
    let slept = Timespec::try_from(sleep).map(|sleep| nanosleep(&sleep));
    !matches!(slept, Ok(NanosleepRelativeResult::Interrupted(_)))
}

#[cfg(test)]
mod tests;
