//! Cost of the worker loop beside a bare loop of the same reads and updates.
//!
//! The bare loop draws the same offsets, reads the clock as often, and updates the same counters,
//! slots and histograms; it has no engine, queue, bounds, pacing or faults.
//! Without arguments: nanoseconds per operation of both, for the inline loop (depth 1), the
//! queued loop (depth 32) and the inline loop with a random map, in turns, the median of rounds.
//! With `weir|bare 1|32|map CPU`: the rate of one of them, pinned, once.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a program that prints"
)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_block::generate::offsets::{Offsets, Uniform, UniformMapped};
use weir_block::op::BlockOp;
use weir_run::generate::Streams;
use weir_run::{
    Completed, Engine, KINDS, LoopContext, LoopPlan, Measured, OpTarget, Operation, PacerPlan,
    Source, Submit, Wait, WorkerLive, drive,
};
use weir_sys::CpuList;
use weir_sys::clock::{Clock, Scale, SharedScale, Tick};
use weir_sys::pin::set_affinity;

const BLOCKS: u64 = 1 << 20;
const DEPTH: u32 = 32;
const LENGTH: u32 = 4096;

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
    const QUICK: bool = true;
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
    const ONE_KIND: bool = true;
    #[inline]
    fn next(&mut self, _slot: u32) -> Option<BlockOp> {
        self.left = self.left.checked_sub(1)?;
        let block = self.offsets.next_block().or_else(|| {
            self.offsets.restart();
            self.offsets.next_block()
        })?;
        Some(BlockOp {
            offset: block << 12,
            length: LENGTH,
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
    let live = recorders(!E::INLINE);
    let stop = AtomicU32::new(0);
    let release = clock.now();
    let worker = LoopContext {
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

/// The recorders of the loops.
fn recorders(split: bool) -> WorkerLive {
    let mut kinds = [None; KINDS];
    kinds[0] = Some(Measured {
        latency: true,
        split,
        ..Measured::default()
    });
    WorkerLive::new(weir_schema::BLOCK_KINDS, kinds)
}

/// Issues an operation as both bare loops do.
#[inline]
fn issue<G: Offsets>(live: &WorkerLive, offsets: &mut G) {
    let block = offsets.next_block().or_else(|| {
        offsets.restart();
        offsets.next_block()
    });
    live.last_issued.set(OpTarget {
        number: 0,
        offset: Some(block.unwrap_or(0) << 12),
    });
    live.kinds[0].issued.add(1);
}

fn bare_inline<G: Offsets>(clock: &Clock, mut offsets: G, operations: u64) -> f64 {
    let live = recorders(false);
    let kind = &live.kinds[0];
    let scale = clock.scale();
    let start = clock.now();
    let mut last = start;
    for _ in 0..operations {
        issue(&live, &mut offsets);
        let now = clock.now();
        kind.completed.add(1);
        kind.bytes.add(LENGTH.into());
        kind.lat.record(scale.to_nanos(now.since(last)));
        last = now;
    }
    per_operation(scale, start, last, operations)
}

fn bare_queued<G: Offsets>(clock: &Clock, mut offsets: G, operations: u64) -> f64 {
    let live = recorders(true);
    let kind = &live.kinds[0];
    let scale = clock.scale();
    let mut slots = [(Tick(0), Tick(0)); DEPTH as usize];
    let start = clock.now();
    let mut now = start;
    for _ in 0..operations / u64::from(DEPTH) {
        for (depth, slot) in (1u32..).zip(&mut slots) {
            issue(&live, &mut offsets);
            live.depth[depth.ilog2().min(6) as usize].add(1);
            slot.0 = now;
            now = clock.now();
            live.submitted[1].add(1);
            slot.1 = now;
        }
        now = clock.now();
        for (started, accepted) in std::hint::black_box(&slots) {
            let slat = scale.to_nanos(accepted.since(*started));
            let clat = scale.to_nanos(now.since(*accepted));
            kind.completed.add(1);
            kind.bytes.add(LENGTH.into());
            kind.slat.record(slat);
            kind.clat.record(clat);
            kind.lat.record(slat + clat);
        }
        live.harvested[5].add(1);
    }
    per_operation(scale, start, now, operations)
}

fn per_operation(scale: Scale, start: Tick, end: Tick, operations: u64) -> f64 {
    scale.to_nanos(end.since(start)) as f64 / operations as f64
}

/// Nanoseconds per operation of one loop in one situation.
fn measure(clock: &Clock, which: &str, situation: &str, operations: u64) -> Option<f64> {
    let blocks = BLOCKS.try_into().ok()?;
    let uniform = || Uniform::new(blocks, Streams::new(1, 0).offsets());
    let mapped = || UniformMapped::new(blocks, Streams::new(1, 0).offsets()).expect("memory");
    Some(match (which, situation) {
        ("weir", "1") => weir::<Inline, _>(clock, uniform(), 1, operations),
        ("weir", "32") => weir::<Queued, _>(clock, uniform(), DEPTH, operations),
        ("weir", "map") => weir::<Inline, _>(clock, mapped(), 1, operations),
        ("bare", "1") => bare_inline(clock, uniform(), operations),
        ("bare", "32") => bare_queued(clock, uniform(), operations),
        ("bare", "map") => bare_inline(clock, mapped(), operations),
        _ => return None,
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(clock: &Clock) {
    for (situation, name) in [
        ("1", "depth 1 inline"),
        ("32", "depth 32 queued"),
        ("map", "depth 1 with map"),
    ] {
        let (mut bare, mut weir) = (Vec::new(), Vec::new());
        for _ in 0..9 {
            bare.extend(measure(clock, "bare", situation, 1 << 21));
            weir.extend(measure(clock, "weir", situation, 1 << 21));
        }
        let (bare, weir) = (median(bare), median(weir));
        println!(
            "{name:18} bare {bare:6.2} ns  weir {weir:6.2} ns  rate ratio {:.2}",
            bare / weir
        );
    }
}

fn main() {
    let (clock, _) = Clock::detect();
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.as_slice() {
        [] => compare(&clock),
        [which, situation, cpu] => {
            let cpu: CpuList = cpu.parse().expect("a CPU's number");
            set_affinity(&cpu).expect("pins");
            let nanos = measure(&clock, which, situation, 1 << 24).expect("weir|bare 1|32|map");
            println!("{}", 1e9 / nanos);
        }
        _ => println!("usage: loop_cost [weir|bare 1|32|map CPU]"),
    }
}
