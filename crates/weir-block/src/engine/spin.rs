//! Load for the processors: an operation keeps its thread busy for a while and moves nothing.
//!
//! In: the length of a round and what fills it. Out: operations of no bytes, each as long as a
//! round. Not here: the pauses between rounds, which are the job's thinktime.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_run::generate::rng::Rng;
use weir_run::{Engine, LoopStop, Source, Submit};
use weir_schema::Failure;
use weir_schema::catalogue::{ActsOn, EngineInfo, SettingInfo, SettingKind};
use weir_sys::Availability;

use super::{EngineEntry, EngineRun, Opens, number};
use crate::op::{BlockOp, Verb};

const DEFAULT_US: u64 = 50_000;
/// Numbers that a round of sorting sorts at once: a few milliseconds of work.
const SORTED: usize = 1 << 16;
/// Turns of an empty loop between two looks at the clock.
const TURNS: u32 = 1000;

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "cpuio",
        summary: "keeps a processor busy; moves no data",
        settings: &[
            number(
                "round_us",
                (1, 3_600_000_000),
                "50000",
                "microseconds of work in a round; a pause may follow it",
            ),
            SettingInfo {
                name: "work",
                value: SettingKind::Word(&["noop", "qsort"]),
                default: "noop",
                help: "what fills a round: an empty loop, or sorting",
            },
        ],
        synchronous: true,
        acts_on: ActsOn::Nothing,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive,
};

#[expect(
    clippy::unnecessary_wraps,
    reason = "the form of every engine's way in"
)]
fn drive(ride: EngineRun<'_, '_>) -> Result<LoopStop, Failure> {
    let EngineRun {
        worker,
        plan,
        setup,
        ..
    } = ride;
    let micros = setup.choice.number("round_us");
    let micros = micros.and_then(|n| n.try_into().ok()).unwrap_or(DEFAULT_US);
    let mut engine = Spin {
        round: Duration::from_micros(micros),
        sorts: setup.choice.text("work") == Some("qsort"),
        rng: Rng::new(worker.seed),
        numbers: Vec::new(),
        stop: worker.stop,
    };
    let mut rounds = SpinRounds {
        left: worker.job.load().bounds.operations.unwrap_or(u64::MAX),
    };
    Ok(worker.drive(&mut engine, &mut rounds, &plan))
}

/// Operations without an object.
#[derive(Debug)]
pub(super) struct SpinRounds {
    pub(super) left: u64,
}

impl Source for SpinRounds {
    type Op = BlockOp;

    fn next(&mut self, _slot: u32) -> Option<BlockOp> {
        self.left = self.left.checked_sub(1)?;
        Some(BlockOp {
            verb: Verb::Read,
            ..BlockOp::default()
        })
    }

    fn prepare(&mut self, _slot: u32, _op: &BlockOp) {}
}

/// Keeps its thread busy.
#[derive(Debug)]
struct Spin<'a> {
    round: Duration,
    sorts: bool,
    rng: Rng,
    numbers: Vec<u64>,
    stop: &'a AtomicU32,
}

impl Spin<'_> {
    fn work(&mut self) {
        if self.sorts {
            self.numbers.clear();
            let rng = &mut self.rng;
            self.numbers.extend((0..SORTED).map(|_| rng.next_u64()));
            self.numbers.sort_unstable();
            std::hint::black_box(&self.numbers);
        } else {
            for turn in 0..TURNS {
                std::hint::black_box(turn);
            }
        }
    }
}

impl<'a> Engine for Spin<'a> {
    type Op = BlockOp;
    type Setup = Spin<'a>;
    const INLINE: bool = true;

    fn attach(setup: Spin<'a>) -> io::Result<Self> {
        Ok(setup)
    }

    fn submit(&mut self, _slot: u32, _op: &BlockOp) -> Submit {
        let start = Instant::now();
        while start.elapsed() < self.round && self.stop.load(Ordering::Relaxed) == 0 {
            self.work();
        }
        Submit::Done(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin(stop: &AtomicU32, sorts: bool) -> Spin<'_> {
        Spin {
            round: Duration::from_millis(5),
            sorts,
            rng: Rng::new(1),
            numbers: Vec::new(),
            stop,
        }
    }

    #[test]
    fn a_round_lasts_as_long_as_it_shall_and_moves_nothing() {
        let stop = AtomicU32::new(0);
        for sorts in [false, true] {
            let mut engine = spin(&stop, sorts);
            let start = Instant::now();
            assert_eq!(engine.submit(0, &BlockOp::default()), Submit::Done(0));
            assert!(start.elapsed() >= engine.round);
        }
    }

    #[test]
    fn a_stop_ends_a_round() {
        let stop = AtomicU32::new(1);
        let mut engine = spin(&stop, false);
        engine.round = Duration::from_secs(3600);
        assert_eq!(engine.submit(0, &BlockOp::default()), Submit::Done(0));
    }

    #[test]
    fn the_rounds_end_with_their_number() {
        let mut rounds = SpinRounds { left: 2 };
        assert_eq!(rounds.next(0).map(|op| op.length), Some(0));
        assert!(rounds.next(0).is_some());
        assert!(rounds.next(0).is_none());
    }
}
