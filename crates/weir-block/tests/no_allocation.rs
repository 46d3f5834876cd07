//! The worker loop allocates nothing per operation: a run of a hundred times as many operations
//! makes exactly as many allocations. Marking and checking good blocks makes none.
//!
//! A program of its own: its allocator counts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_block::generate::payload::Payload;
#[allow(dead_code, reason = "the workload is all that is needed of it")]
use weir_block::op::BlockOp;
use weir_block::source::{
    AnySource, BetweenPasses, Extent, Recipe, SlotBuffers, VariedSource, WorkLimits, build,
    payload_rule,
};
use weir_block::verify::{Expected, Marker, Stamp};
use weir_run::generate::Streams;
use weir_run::generate::arrivals::{Arrivals, Poisson, Rate};
use weir_run::{
    Completed, Engine, KINDS, LoopContext, LoopPlan, LoopStop, Measured, Operation, PacerPlan,
    Source, Submit, Wait, WorkerLive, drive,
};
use weir_schema::BLOCK_KINDS;
use weir_schema::{
    BlockSize, BlockWorkload, Distribution, Flush, Generator, Mix, PerKind, Verify, VerifyMethod,
    VerifyPattern,
};
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_sys::clock::{Clock, SharedScale};
use weir_units::Bytes;

thread_local! {
    /// Allocations of this thread.
    static MADE: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting.
struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged; the counter is a plain cell
// of the calling thread that needs no allocation of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MADE.set(MADE.get() + 1);
        // SAFETY: this trait asks of its callers what `System` asks: a layout that is not empty.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller names a pointer of `alloc` above, which is one of `System`, and its layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Completes inside the call.
struct Inline;

impl Engine for Inline {
    type Op = BlockOp;
    type Setup = ();
    const INLINE: bool = true;

    fn attach((): ()) -> io::Result<Self> {
        Ok(Self)
    }

    fn submit(&mut self, _slot: u32, op: &BlockOp) -> Submit {
        Submit::Done(op.length().into())
    }
}

/// Completes what was handed over, last come, first served.
struct Queued {
    slots: Vec<(u32, i64)>,
    handed_over: usize,
}

impl Engine for Queued {
    type Op = BlockOp;
    type Setup = ();
    const QUICK: bool = true;

    fn attach((): ()) -> io::Result<Self> {
        Ok(Self {
            slots: Vec::with_capacity(64),
            handed_over: 0,
        })
    }

    fn submit(&mut self, slot: u32, op: &BlockOp) -> Submit {
        self.slots.push((slot, op.length().into()));
        Submit::Queued
    }

    fn commit(&mut self) -> io::Result<u32> {
        let fresh = self.slots.len() - self.handed_over;
        self.handed_over = self.slots.len();
        Ok(u32::try_from(fresh).unwrap())
    }

    fn reap(&mut self, _wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        let mut taken = 0;
        while let Some((slot, result)) = self.slots.pop() {
            done(Completed { slot, result });
            taken += 1;
        }
        self.handed_over = 0;
        Ok(taken)
    }
}

const REGION: u64 = 64 << 20;
const SLOTS: u32 = 16;
const LARGEST: u32 = 64 << 10;

fn source(workload: &BlockWorkload, operations: u64) -> AnySource {
    let stride = LARGEST;
    let memory = AlignedBuf::new(&BufferSpec::private(Bytes((stride * SLOTS).into()))).unwrap();
    let rule = payload_rule(&workload.content, u64::from(stride), 1 << 20);
    let payload = Payload::new(rule, Streams::new(7, 0).payload()).unwrap();
    build(Recipe {
        rates: None,
        workload,
        extents: &[Extent {
            start: 0,
            length: REGION,
        }],
        seed: 7,
        worker: 0,
        limits: WorkLimits {
            bytes: u64::MAX,
            pass_bytes: None,
            operations,
        },
        buffers: SlotBuffers::new(memory, stride, Some(payload), workload.content.refill),
        passes: BetweenPasses::default(),
        verification: None,
        recorded: None,
        priorities: None,
        findings: None,
    })
    .unwrap()
}

/// Allocations that the loop makes over so many operations.
fn allocations<E: Engine<Op = BlockOp, Setup = ()>>(
    workload: &BlockWorkload,
    paced: bool,
    operations: u64,
) -> u64 {
    match source(workload, operations) {
        AnySource::Sequential(s) => in_loop::<E, _>(s, paced, operations),
        AnySource::Mapped(s) => in_loop::<E, _>(s, paced, operations),
        AnySource::Uniform(s) => in_loop::<E, _>(s, paced, operations),
        AnySource::Varied(VariedSource::General(s)) => in_loop::<E, _>(*s, paced, operations),
        AnySource::Varied(VariedSource::Verified(s)) => in_loop::<E, _>(*s, paced, operations),
        AnySource::Varied(VariedSource::Bursts(s)) => in_loop::<E, _>(*s, paced, operations),
        AnySource::Varied(VariedSource::Watched(s)) => in_loop::<E, _>(*s, paced, operations),
    }
}

fn in_loop<E, S>(mut source: S, paced: bool, operations: u64) -> u64
where
    E: Engine<Op = BlockOp, Setup = ()>,
    S: Source<Op = BlockOp>,
{
    let (clock, _) = Clock::detect();
    let m = Measured {
        latency: true,
        split: !E::INLINE,
        response: paced,
        squares: true,
        classes: false,
        targets: 0,
    };
    let live = WorkerLive::new(BLOCK_KINDS, [Some(m); KINDS]);
    let stop = AtomicU32::new(0);
    let plan = LoopPlan {
        depth: if E::INLINE { 1 } else { SLOTS },
        batch: 4,
        response: paced,
        ..LoopPlan::default()
    };
    let rate = Rate::Operations(NonZeroU64::new(100_000_000).unwrap());
    let one = || Arrivals::Poisson(Poisson::new(rate, Streams::new(7, 0).arrivals()));
    let arrivals = (0..KINDS).map(|_| paced.then(one)).collect();
    let mut engine = E::attach(()).unwrap();
    let before = MADE.get();
    let worker = LoopContext {
        clock: &clock,
        scale: Arc::new(SharedScale::new(clock.scale())),
        stop: &stop,
        live: &live,
        release: clock.now(),
        pacing: PacerPlan {
            arrivals,
            ..PacerPlan::default()
        },
    };
    let ended = drive(&mut engine, &mut source, &plan, worker);
    let made = MADE.get() - before;
    assert_eq!(ended, LoopStop::WorkDone);
    let done: u64 = live.kinds[..3].iter().map(|k| k.completed.get()).sum();
    assert_eq!(done, operations);
    made
}

fn workloads() -> Vec<(&'static str, BlockWorkload)> {
    let plain = BlockWorkload::default;
    let random = |change: fn(&mut BlockWorkload)| {
        let mut workload = plain();
        workload.access.random = true;
        change(&mut workload);
        workload
    };
    vec![
        ("sequential reads", plain()),
        ("random reads with a map", random(|_| {})),
        ("random reads", random(|w| w.access.map = false)),
        (
            "a shift register",
            random(|w| w.access.generator = Generator::Lfsr),
        ),
        (
            "zipf",
            random(|w| {
                w.access.distribution = Distribution::Zipf {
                    theta: 1.1,
                    center: None,
                };
            }),
        ),
        (
            "a mix of sizes with payload and flushes",
            random(|w| {
                w.mix = Mix {
                    read_percent: 50,
                    write_percent: 50,
                    trim_percent: 0,
                    trim_then_write: false,
                };
                w.access.map = false;
                w.sizes.size = PerKind::all(BlockSize::Range {
                    min_bytes: Bytes(4096),
                    max_bytes: Bytes(LARGEST.into()),
                    unaligned: false,
                });
                w.content.refill = true;
                w.content.compress_percent = 30;
                w.content.dedupe_percent = 20;
                w.flush = Flush {
                    fsync_every: Some(7),
                    ..Flush::default()
                };
            }),
        ),
    ]
}

#[test]
fn the_loop_allocates_nothing_per_operation() {
    for (name, workload) in workloads() {
        for paced in [false, true] {
            let inline = [100, 10_000].map(|n| allocations::<Inline>(&workload, paced, n));
            assert_eq!(inline[0], inline[1], "{name}, inline, paced: {paced}");
            let queued = [100, 10_000].map(|n| allocations::<Queued>(&workload, paced, n));
            assert_eq!(queued[0], queued[1], "{name}, queued, paced: {paced}");
            assert!(queued[0] > 0, "the queue itself is not counted");
        }
    }
}

#[test]
fn marking_and_checking_good_blocks_allocate_nothing() {
    for method in [
        VerifyMethod::Crc7,
        VerifyMethod::Crc32c,
        VerifyMethod::Md5,
        VerifyMethod::Sha3_512,
        VerifyMethod::Xxhash,
        VerifyMethod::Pattern,
        VerifyMethod::PatternHeader,
    ] {
        let verify = Verify {
            pattern: Some(VerifyPattern {
                bytes: b"weir".repeat(4),
                offsets_at: vec![2],
            }),
            header_at_bytes: Bytes(2048),
            ..Verify::by(method)
        };
        let marker = Marker::new(&verify, 4096, 1, None).unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut round = || {
            marker.write(&mut buffer, Stamp::default());
            assert!(marker.check(&buffer, Expected::default()).is_ok());
        };
        // Tables are made once.
        round();
        let before = MADE.get();
        round();
        round();
        assert_eq!(MADE.get(), before, "{method:?}");
    }
}
