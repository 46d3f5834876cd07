#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a program that prints"
)]
//! What the worker loop costs beside a bare loop of the same clock reads and updates.
//!
//! Prints nanoseconds per operation: bare and weir's, for the inline loop (depth 1), the queued
//! loop (depth 32) and the inline loop with a random map; alternating, the median of rounds.
//! An argument sets the operations of a round.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_run::block::BlockOp;
use weir_run::generate::Streams;
use weir_run::generate::offsets::{Offsets, Uniform, UniformMapped};
use weir_run::{
    Completed, Engine, KINDS, LoopPlan, Measured, Operation, PacerPlan, Source, Submit, Wait,
    Worker, WorkerLive, drive,
};
use weir_stats::Recorder;
use weir_sys::clock::{Clock, SharedScale, Tick};

const BLOCKS: u64 = 1 << 20;

/// Completes at once.
struct Inline;

impl Engine for Inline {
    type Op = BlockOp;
    type Setup = ();
    const INLINE: bool = true;
    fn attach((): ()) -> io::Result<Self> {
        Ok(Self)
    }
    #[inline]
    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        Submit::Done(op.length().into())
    }
}

/// Completes when it is asked.
struct Queued {
    slots: Vec<(u32, u32)>,
}

impl Engine for Queued {
    type Op = BlockOp;
    type Setup = ();
    fn attach((): ()) -> io::Result<Self> {
        Ok(Self {
            slots: Vec::with_capacity(64),
        })
    }
    #[inline]
    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        self.slots.push((slot, op.length()));
        Submit::Queued
    }
    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        Ok(u32::MAX)
    }
    #[inline]
    fn reap(&mut self, _wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        for (slot, length) in self.slots.drain(..) {
            done(Completed {
                slot,
                result: length.into(),
            });
        }
        Ok(0)
    }
}

struct Draws<G> {
    offsets: G,
    left: u64,
}

impl<G: Offsets> Source for Draws<G> {
    type Op = BlockOp;
    #[inline]
    fn next(&mut self, _slot: u32) -> Option<BlockOp> {
        self.left = self.left.checked_sub(1)?;
        let block = match self.offsets.next_block() {
            Some(block) => block,
            None => {
                self.offsets.restart();
                self.offsets.next_block()?
            }
        };
        Some(BlockOp {
            offset: block << 12,
            length: 4096,
            ..BlockOp::default()
        })
    }
}

fn weir<E: Engine<Op = BlockOp, Setup = ()>, G: Offsets>(
    clock: &Clock,
    offsets: G,
    depth: u32,
    operations: u64,
) -> f64 {
    let measured = Measured {
        latency: true,
        split: !E::INLINE,
        ..Measured::default()
    };
    let mut kinds = [None; KINDS];
    kinds[0] = Some(measured);
    let live = WorkerLive::new(kinds);
    let stop = AtomicU32::new(0);
    let release = clock.now();
    let worker = Worker {
        clock,
        scale: Arc::new(SharedScale::new(clock.scale())),
        stop: &stop,
        live: &live,
        release,
        pacing: PacerPlan::default(),
    };
    let plan = LoopPlan {
        depth,
        ..LoopPlan::default()
    };
    let mut engine = E::attach(()).expect("attaches");
    drive(
        &mut engine,
        &mut Draws {
            offsets,
            left: operations,
        },
        &plan,
        worker,
    );
    clock
        .scale()
        .to_nanos(Tick(live.last_done.get()).since(release)) as f64
        / operations as f64
}

/// The same clock reads, random numbers and histogram updates, and nothing else.
fn bare<G: Offsets>(clock: &Clock, mut offsets: G, histograms: usize, operations: u64) -> f64 {
    let recorders: Vec<Recorder> = (0..histograms).map(|_| Recorder::new()).collect();
    let scale = clock.scale();
    let start = clock.now();
    let mut last = start;
    for _ in 0..operations {
        if std::hint::black_box(offsets.next_block()).is_none() {
            offsets.restart();
        }
        let now = clock.now();
        let nanos = scale.to_nanos(now.since(last));
        for recorder in &recorders {
            recorder.record(nanos);
        }
        last = now;
    }
    scale.to_nanos(last.since(start)) as f64 / operations as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let wanted = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let operations = wanted.unwrap_or(2_000_000);
    let (clock, _) = Clock::detect();
    let blocks = BLOCKS.try_into().expect("not zero");
    let uniform = || Uniform::new(blocks, Streams::new(1, 0).offsets());
    let mapped = || UniformMapped::new(blocks, Streams::new(1, 0).offsets()).expect("memory");
    let mut rounds = [const { Vec::new() }; 6];
    for _ in 0..9 {
        rounds[0].push(bare(&clock, uniform(), 1, operations));
        rounds[1].push(weir::<Inline, _>(&clock, uniform(), 1, operations));
        rounds[2].push(bare(&clock, uniform(), 3, operations));
        rounds[3].push(weir::<Queued, _>(&clock, uniform(), 32, operations));
        rounds[4].push(bare(&clock, mapped(), 1, operations));
        rounds[5].push(weir::<Inline, _>(&clock, mapped(), 1, operations));
    }
    let [a, b, c, d, e, f] = rounds.map(median);
    for (name, bare, weir) in [
        ("depth 1 inline", a, b),
        ("depth 32 queued", c, d),
        ("depth 1 with map", e, f),
    ] {
        println!(
            "{name:18} bare {bare:6.2} ns  weir {weir:6.2} ns  rate ratio {:.2}",
            bare / weir
        );
    }
}
