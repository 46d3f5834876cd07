//! The worker loop against a device whose every latency is scripted: expected statistics are
//! worked out by hand.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use weir_run::generate::arrivals::{Arrivals, Even, Rate};
use weir_run::sim::{Script, SimInline, SimOp, SimQueued, SimResult, SimSetup};
use weir_run::{
    Completed, Engine, KINDS, LoopContext, LoopPlan, LoopStop, Measured, OpFault, OpTarget,
    Operation, PacerPlan, Pause, Source, Submit, Wait, WorkerLive, drive,
};
use weir_schema::BLOCK_KINDS;
use weir_stats::Histogram;
use weir_sys::clock::{Scale, SharedScale, SimClock, Tick};
use weir_units::Nanos;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A number of reads of 4 KiB, one after the other.
struct Reads(u64);

impl Source for Reads {
    type Op = SimOp;
    fn next(&mut self, _slot: u32) -> Option<SimOp> {
        self.0 = self.0.checked_sub(1)?;
        Some(SimOp {
            length: 4096,
            offset: self.0 * 4096,
            ..SimOp::default()
        })
    }
}

/// The same from a source that says that they are of one kind.
struct ReadsOnly(Reads);

impl Source for ReadsOnly {
    type Op = SimOp;
    const ONE_KIND: bool = true;
    fn next(&mut self, slot: u32) -> Option<SimOp> {
        self.0.next(slot)
    }
}

/// Both loops of queued engines: whether the latency from intended starts is recorded, which only
/// the general one does.
const LOOPS: [bool; 2] = [false, true];

struct Bench {
    plan: LoopPlan,
    pacing: PacerPlan,
    operations: u64,
    servers: usize,
    script: Script,
    /// Limit of the depth, set by the run from outside, or a request to measure anew.
    limit: u32,
    anew: bool,
}

impl Bench {
    fn new(operations: u64, script: impl FnMut(u64, Tick) -> SimResult + Send + 'static) -> Self {
        Self {
            plan: LoopPlan {
                response: true,
                ..LoopPlan::default()
            },
            pacing: PacerPlan::default(),
            operations,
            servers: 0,
            script: Box::new(script),
            limit: u32::MAX,
            anew: false,
        }
    }

    fn run<E: Engine<Op = SimOp, Setup = SimSetup>>(self) -> Outcome {
        self.run_with_stop::<E>(&AtomicU32::new(0))
    }

    fn run_with_stop<E: Engine<Op = SimOp, Setup = SimSetup>>(self, stop: &AtomicU32) -> Outcome {
        let reads = ReadsOnly(Reads(self.operations));
        self.run_source::<E, _>(reads, stop)
    }

    fn run_source<E, S>(self, mut source: S, stop: &AtomicU32) -> Outcome
    where
        E: Engine<Setup = SimSetup>,
        S: Source<Op = E::Op>,
    {
        let clock = SimClock::default();
        let m = Measured {
            latency: true,
            split: !E::INLINE,
            response: true,
            squares: true,
            classes: false,
            targets: 0,
        };
        let live = WorkerLive::new(BLOCK_KINDS, [Some(m); KINDS]);
        live.depth_limit.store(self.limit, Ordering::Relaxed);
        live.anew.store(self.anew, Ordering::Relaxed);
        let setup = SimSetup {
            clock: clock.clone(),
            servers: self.servers,
            script: self.script,
        };
        let mut engine = E::attach(setup).expect("a simulated device attaches");
        let worker = LoopContext {
            clock: &clock,
            scale: Arc::new(SharedScale::new(Scale::IDENTITY)),
            stop,
            live: &live,
            release: Tick(0),
            pacing: self.pacing,
        };
        let ended = drive(&mut engine, &mut source, &self.plan, worker);
        Outcome { live, ended }
    }
}

struct Outcome {
    live: WorkerLive,
    ended: LoopStop,
}

impl Outcome {
    fn completed(&self) -> u64 {
        self.live.kinds[0].completed.get()
    }

    fn lat(&self) -> Histogram {
        self.live.kinds[0].lat.snapshot().expect("lat is recorded")
    }

    fn rlat(&self) -> Histogram {
        self.live.kinds[0]
            .rlat
            .snapshot()
            .expect("rlat is recorded")
    }

    fn elapsed(&self) -> u64 {
        self.live.last_done.get() - self.live.started.get()
    }
}

fn per_second(rate: u64) -> PacerPlan {
    let even = Even::new(Rate::Operations(rate.try_into().expect("not zero")));
    PacerPlan {
        arrivals: vec![Some(Arrivals::Even(even))],
        ..PacerPlan::default()
    }
}

/// Within the histogram's stated error.
fn assert_close(value: Option<u64>, expected: u64) {
    let value = value.expect("there are samples");
    assert!(
        value.abs_diff(expected) <= expected / 128 + 1,
        "{value} is not near {expected}"
    );
}

#[test]
fn percentiles_are_those_of_the_script() {
    // Operation i of 1000 takes (i + 1) µs: percentile p is 10·p µs.
    let outcome =
        Bench::new(1000, |i, _| SimResult::after(Nanos((i + 1) * US))).run::<SimInline<_>>();
    assert_eq!(outcome.ended, LoopStop::WorkDone);
    let lat = outcome.lat();
    for p in [1.0, 50.0, 90.0, 99.0, 99.9] {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole"
        )]
        assert_close(lat.percentile(p), (p * 10.0) as u64 * US);
    }
    assert_eq!((lat.min(), lat.max()), (Some(US), Some(MS)));
    // 1 + … + 1000 µs.
    assert_eq!(lat.sum(), u128::from(500_500 * US));
    assert_eq!(outcome.elapsed(), 500_500 * US);
    let squares: u128 = (1..=1000_u128).map(|i| (i * 1000).pow(2)).sum();
    assert_eq!(lat.sum_of_squares(), Some(squares));
}

#[test]
fn a_queue_of_32_on_one_server_waits_its_turn() {
    for response in LOOPS {
        let mut bench = Bench::new(3200, |_, _| SimResult::after(Nanos(10 * US)));
        bench.plan.response = response;
        bench.plan.depth = 32;
        bench.servers = 1;
        let outcome = bench.run::<SimQueued<_>>();
        assert_eq!(outcome.completed(), 3200);
        assert_eq!(outcome.elapsed(), 32_000 * US);
        // From the 32nd on each operation finds 31 before it.
        assert_close(outcome.lat().percentile(50.0), 320 * US);
        assert_eq!(outcome.lat().min(), Some(10 * US));
        assert_eq!(outcome.lat().max(), Some(320 * US));
    }
}

#[test]
fn queue_depth_never_exceeds_the_plan() {
    for response in LOOPS {
        for depth in [1, 2, 7, 64] {
            let mut bench = Bench::new(1000, |i, _| SimResult::after(Nanos(1 + i % 5)));
            bench.plan.response = response;
            bench.plan.depth = depth;
            let outcome = bench.run::<SimQueued<_>>();
            let levels: Vec<u64> = outcome
                .live
                .depth
                .iter()
                .map(weir_run::Counter::get)
                .collect();
            let deepest = levels
                .iter()
                .rposition(|&n| n > 0)
                .expect("some were issued");
            assert!(1_u32 << deepest <= depth, "depth {depth}: {levels:?}");
            assert_eq!(levels.iter().sum::<u64>(), 1000);
            assert_eq!(outcome.live.in_flight(), 0);
        }
    }
}

#[test]
fn a_limit_from_outside_keeps_the_depth_below_the_plans() {
    for response in LOOPS {
        let mut bench = Bench::new(100, |_, _| SimResult::after(Nanos(US)));
        bench.plan.response = response;
        bench.plan.depth = 16;
        bench.limit = 3;
        let outcome = bench.run::<SimQueued<_>>();
        assert_eq!(outcome.completed(), 100);
        let levels = outcome.live.depth.each_ref().map(weir_run::Counter::get);
        assert_eq!(levels[0] + levels[1], 100, "1, or 2 to 3: {levels:?}");
        assert!(levels[1] > 50, "{levels:?}");
    }
}

#[test]
fn a_loop_that_is_asked_to_measure_anew_forgets_what_came_before() {
    let mut bench = Bench::new(300, |_, _| SimResult::after(Nanos(MS)));
    bench.anew = true;
    let outcome = bench.run::<SimInline<_>>();
    // It looks after a tenth of a second.
    assert_eq!(outcome.live.started.get(), 100 * MS);
    assert_eq!(outcome.live.resets(), 1);
    assert_eq!(outcome.completed(), 201);
    assert_eq!(outcome.elapsed(), 200 * MS);
}

#[test]
fn latency_is_always_slat_plus_clat() {
    for response in LOOPS {
        let mut bench = Bench::new(500, |i, _| SimResult::after(Nanos(100 + i)));
        bench.plan.response = response;
        bench.plan.depth = 8;
        bench.plan.batch = 4;
        let outcome = bench.run::<SimQueued<_>>();
        let kind = &outcome.live.kinds[0];
        let sum = |stage: &weir_run::StageRecorder| stage.snapshot().map_or(0, |h| h.sum());
        assert_eq!(sum(&kind.lat), sum(&kind.slat) + sum(&kind.clat));
        assert_eq!(kind.slat.snapshot().map(|h| h.count()), Some(500));
    }
}

#[test]
fn an_open_loop_counts_what_a_stall_does_to_later_operations() {
    // 1000 per second; service 100 µs, but operation 10 takes 10 ms.
    let script = |i, _| SimResult::after(Nanos(if i == 10 { 10 * MS } else { 100 * US }));
    let mut bench = Bench::new(30, script);
    bench.pacing = per_second(1000);
    let outcome = bench.run::<SimInline<_>>();
    let mut expected = Histogram::new();
    let mut free = 0;
    for i in 0..30 {
        let intended = i * MS;
        let start = intended.max(free);
        free = start + if i == 10 { 10 * MS } else { 100 * US };
        expected.record(free - intended);
    }
    let rlat = outcome.rlat();
    assert_eq!(rlat.sum(), expected.sum());
    assert_eq!(rlat.max(), Some(10 * MS));
    for p in [10.0, 50.0, 80.0, 90.0, 99.0] {
        assert_eq!(rlat.percentile(p), expected.percentile(p), "p{p}");
    }
    // Service alone hides it: only one operation was slow.
    assert_close(outcome.lat().percentile(90.0), 100 * US);
    assert_eq!(outcome.live.late.get(), 0);
}

#[test]
fn an_open_loop_with_a_queue_does_not_wait_for_the_stalled_operation() {
    let script = |i, _| SimResult::after(Nanos(if i == 10 { 10 * MS } else { 100 * US }));
    let mut bench = Bench::new(30, script);
    bench.pacing = per_second(1000);
    bench.plan.depth = 4;
    let outcome = bench.run::<SimQueued<_>>();
    // Every server is free: only operation 10 is late.
    assert_eq!(outcome.rlat().count(), 30);
    assert_close(outcome.rlat().percentile(96.0), 100 * US);
    assert_eq!(outcome.rlat().max(), Some(10 * MS));
    assert_eq!(outcome.elapsed(), 29 * MS + 100 * US);
}

#[test]
fn rates_are_kept_within_a_thousandth() {
    for (rate, depth) in [(1_000, 1), (77, 1), (250_000, 16)] {
        let operations = rate * 2;
        let mut bench = Bench::new(operations, |_, _| SimResult::after(Nanos(US)));
        bench.pacing = per_second(rate);
        bench.plan.depth = depth;
        let outcome = if depth == 1 {
            bench.run::<SimInline<_>>()
        } else {
            bench.run::<SimQueued<_>>()
        };
        assert_eq!(outcome.completed(), operations);
        // The last of n operations starts at (n − 1) / rate.
        let due = (operations - 1) * 1_000_000_000 / rate + US;
        let off = outcome.elapsed().abs_diff(due);
        assert!(
            off * 1000 <= due,
            "{rate}/s: {} ns instead of {due}",
            outcome.elapsed()
        );
    }
}

#[test]
fn pauses_come_after_every_so_many_operations() {
    let mut bench = Bench::new(20, |_, _| SimResult::after(Nanos(US)));
    bench.pacing.pause = Some(Pause {
        pause: MS,
        spin: 0,
        every: 5,
        completed: false,
        after: None,
    });
    let outcome = bench.run::<SimInline<_>>();
    assert_eq!(outcome.elapsed(), 20 * US + 3 * MS);
    assert_eq!(outcome.lat().max(), Some(US));
}

#[test]
fn pauses_by_issued_operations_are_more_than_pauses_by_completed_ones_in_a_deep_queue() {
    let elapsed = |completed| {
        let mut bench = Bench::new(16, |_, _| SimResult::after(Nanos(US)));
        bench.plan.depth = 8;
        bench.plan.batch = 8;
        bench.pacing.pause = Some(Pause {
            pause: MS,
            spin: 0,
            every: 2,
            completed,
            after: None,
        });
        bench.run::<SimQueued<_>>().elapsed()
    };
    // After each two of sixteen but the last; by completions, once eight were issued and done.
    assert_eq!(elapsed(false) / MS, 7);
    assert_eq!(elapsed(true) / MS, 1);
}

#[test]
fn ramp_time_is_excluded_from_counts_and_percentiles() {
    // 1 ms each in the first 100 ms, then 10 µs.
    let script =
        |_, now: Tick| SimResult::after(Nanos(if now.0 < 100 * MS { MS } else { 10 * US }));
    let mut bench = Bench::new(1 << 40, script);
    bench.plan.ramp = Nanos(100 * MS);
    bench.plan.runtime = Some(Nanos(50 * MS));
    let outcome = bench.run::<SimInline<_>>();
    assert_eq!(outcome.ended, LoopStop::TimeUp);
    assert_eq!(outcome.live.started.get(), 100 * MS);
    // The operation that ends right at the cut counts to the measured side.
    assert_eq!(outcome.completed(), 5001);
    assert_close(outcome.lat().percentile(99.0), 10 * US);
    assert_eq!(outcome.elapsed(), 50 * MS);
}

#[test]
fn a_queued_loop_forgets_its_ramp_too() {
    for (response, batch) in LOOPS.into_iter().flat_map(|r| [(r, 1), (r, 4)]) {
        let script = |_, now: Tick| {
            SimResult::after(Nanos(match now.0 {
                0..50_000_000 => 5 * MS,
                50_000_000..100_000_000 => MS,
                _ => 10 * US,
            }))
        };
        let mut bench = Bench::new(1 << 40, script);
        bench.plan.response = response;
        bench.plan.depth = 4;
        bench.plan.batch = batch;
        bench.plan.ramp = Nanos(100 * MS);
        bench.plan.runtime = Some(Nanos(50 * MS));
        let outcome = bench.run::<SimQueued<_>>();
        assert_eq!(outcome.ended, LoopStop::TimeUp);
        assert_eq!(outcome.live.started.get(), 100 * MS);
        assert_eq!(outcome.completed(), 4 * 5001);
        assert_eq!(outcome.lat().count(), 4 * 5001);
        assert_close(outcome.lat().percentile(99.0), 10 * US);
        // The last operations of the ramp end with it, and count.
        let extremes = (outcome.lat().min(), outcome.lat().max());
        assert_eq!(extremes, (Some(10 * US), Some(MS)));
        assert_eq!(outcome.elapsed(), 50 * MS);
        assert_eq!(outcome.live.in_flight(), 0);
    }
}

#[test]
fn a_failed_operation_ends_the_loop_with_its_place() {
    let script = |i, _| SimResult {
        service: Nanos(US),
        result: (i == 7).then_some(-5),
    };
    let outcome = Bench::new(100, script).run::<SimInline<_>>();
    let LoopStop::Failed(at) = &outcome.ended else {
        panic!("ended with {:?}", outcome.ended)
    };
    assert_eq!((at.fault, at.kind), (OpFault::Errno(5), 0));
    assert_eq!(at.acts_on.offset, Some(92 * 4096));
    assert_eq!(outcome.completed(), 7);
    assert_eq!(outcome.live.kinds[0].errors().0.get(&5), Some(&1));
}

#[test]
fn failures_that_may_be_passed_over_are_counted_by_code() {
    for response in LOOPS {
        let script = |i: u64, _| SimResult {
            service: Nanos(US),
            result: i
                .is_multiple_of(10)
                .then_some(if i < 50 { -5 } else { -28 }),
        };
        for queued in [false, true] {
            let mut bench = Bench::new(100, script);
            bench.plan.response = response;
            bench.plan.go_on = [true; KINDS];
            bench.plan.report_errors = queued;
            bench.plan.depth = if queued { 8 } else { 1 };
            let outcome = if queued {
                bench.run::<SimQueued<_>>()
            } else {
                bench.run::<SimInline<_>>()
            };
            assert_eq!(outcome.ended, LoopStop::WorkDone);
            assert_eq!(outcome.completed(), 90);
            let (by_code, latencies) = outcome.live.kinds[0].errors();
            assert_eq!(by_code.into_iter().collect::<Vec<_>>(), [(5, 5), (28, 5)]);
            assert_eq!(latencies.count(), 10);
            let failed = outcome.live.findings.failed();
            assert_eq!(failed.len(), if queued { 10 } else { 0 });
            let mut codes: Vec<_> = failed.iter().map(|at| at.fault.errno()).collect();
            codes.dedup();
            assert_eq!(codes, if queued { vec![5, 28] } else { vec![] });
            assert_eq!(outcome.lat().count(), 90);
        }
    }
}

#[test]
fn short_operations_are_continued_until_they_are_whole() {
    for response in LOOPS {
        // Every transfer moves at most 1 KiB: four calls for each operation.
        for queued in [false, true] {
            let script = |_, _| SimResult {
                service: Nanos(US),
                result: Some(1024),
            };
            let mut bench = Bench::new(10, script);
            bench.plan.response = response;
            let outcome = if queued {
                bench.run::<SimQueued<_>>()
            } else {
                bench.run::<SimInline<_>>()
            };
            let kind = &outcome.live.kinds[0];
            assert_eq!((outcome.completed(), kind.short.get()), (10, 30));
            assert_eq!(kind.bytes.get(), 40_960);
            assert_eq!(outcome.elapsed(), 40 * US, "queued: {queued}");
        }
    }
}

/// An operation without parts or place, as a request to a service is.
#[derive(Clone, Copy, Debug, Default)]
struct Request;

impl Operation for Request {
    fn kind_index(&self) -> usize {
        0
    }

    fn length(&self) -> u32 {
        100
    }
}

struct Requests(u64);

impl Source for Requests {
    type Op = Request;
    fn next(&mut self, _slot: u32) -> Option<Request> {
        self.0 = self.0.checked_sub(1)?;
        Some(Request)
    }
}

#[test]
fn an_operation_without_parts_that_moves_less_has_failed() {
    for response in LOOPS {
        for queued in [false, true] {
            // Interrupted ones are carried out again; the sixth result is short.
            let script = |i, _| SimResult {
                service: Nanos(US),
                result: [(2, -4), (5, 99)]
                    .into_iter()
                    .find_map(|(n, result)| (i == n).then_some(result)),
            };
            let mut bench = Bench::new(10, script);
            bench.plan.response = response;
            let requests = Requests(10);
            let stop = AtomicU32::new(0);
            let outcome = if queued {
                bench.run_source::<SimQueued<_>, _>(requests, &stop)
            } else {
                bench.run_source::<SimInline<_>, _>(requests, &stop)
            };
            let LoopStop::Failed(at) = &outcome.ended else {
                panic!("ended with {:?}", outcome.ended)
            };
            assert_eq!((at.fault, at.moved), (OpFault::EndOfTarget, 99));
            assert_eq!(at.acts_on, OpTarget::default());
            assert_eq!(outcome.live.last_issued.get(), OpTarget::default());
            assert_eq!(outcome.completed(), 4, "queued: {queued}");
        }
    }
}

#[test]
fn the_end_of_a_target_is_a_failure() {
    for response in LOOPS {
        let script = |i, _| SimResult {
            service: Nanos(US),
            result: (i == 3).then_some(0),
        };
        let mut bench = Bench::new(10, script);
        bench.plan.response = response;
        let outcome = bench.run::<SimQueued<_>>();
        assert!(
            matches!(&outcome.ended, LoopStop::Failed(at) if at.fault == OpFault::EndOfTarget),
            "{:?}",
            outcome.ended
        );
    }
}

#[test]
fn an_operation_slower_than_allowed_ends_the_loop() {
    let script = |i, _| SimResult::after(Nanos(if i == 5 { 3 * MS } else { US }));
    let mut bench = Bench::new(10, script);
    bench.plan.max_latency = Some(Nanos(2 * MS));
    let outcome = bench.run::<SimInline<_>>();
    let LoopStop::Failed(at) = &outcome.ended else {
        panic!("ended with {:?}", outcome.ended)
    };
    assert_eq!(
        at.fault,
        OpFault::TooSlow {
            took: Nanos(3 * MS),
            limit: Nanos(2 * MS)
        }
    );
}

#[test]
fn an_operation_whose_rest_is_slower_than_allowed_ends_the_loop() {
    for queued in [false, true] {
        // 1 µs for the first half, 3 ms for the second.
        let script = |i, _| SimResult {
            service: Nanos(if i == 5 { 3 * MS } else { US }),
            result: [(4, 1024), (5, 3072)]
                .into_iter()
                .find_map(|(n, result)| (i == n).then_some(result)),
        };
        let mut bench = Bench::new(10, script);
        bench.plan.max_latency = Some(Nanos(2 * MS));
        let outcome = if queued {
            bench.run::<SimQueued<_>>()
        } else {
            bench.run::<SimInline<_>>()
        };
        let LoopStop::Failed(at) = &outcome.ended else {
            panic!("ended with {:?}", outcome.ended)
        };
        let took = Nanos(3 * MS + US);
        let limit = Nanos(2 * MS);
        assert_eq!(at.fault, OpFault::TooSlow { took, limit });
        assert_eq!(outcome.completed(), 5, "queued: {queued}");
    }
}

#[test]
fn a_failed_operation_is_never_too_slow() {
    for queued in [false, true] {
        let script = |i, _| SimResult {
            service: Nanos(if i == 5 { 3 * MS } else { US }),
            result: (i == 5).then_some(-5),
        };
        let mut bench = Bench::new(10, script);
        bench.plan.go_on = [true; KINDS];
        bench.plan.max_latency = Some(Nanos(2 * MS));
        let outcome = if queued {
            bench.run::<SimQueued<_>>()
        } else {
            bench.run::<SimInline<_>>()
        };
        assert_eq!(outcome.ended, LoopStop::WorkDone, "queued: {queued}");
        assert_eq!(outcome.completed(), 9);
    }
}

#[test]
fn the_rest_of_a_short_operation_is_part_of_its_clat() {
    for response in LOOPS {
        // Twice 100 µs, each for half of the operation.
        let script = |_, _| SimResult {
            service: Nanos(100 * US),
            result: Some(2048),
        };
        let mut bench = Bench::new(1, script);
        bench.plan.response = response;
        let outcome = bench.run::<SimQueued<_>>();
        let kind = &outcome.live.kinds[0];
        let sum = |stage: &weir_run::StageRecorder| stage.snapshot().map(|h| h.sum());
        assert_eq!(sum(&kind.slat), Some(0), "response: {response}");
        assert_eq!(sum(&kind.clat), Some(u128::from(200 * US)));
        assert_eq!(sum(&kind.lat), Some(u128::from(200 * US)));
    }
}

#[test]
fn a_full_device_is_the_end_of_the_work_where_the_plan_says_so() {
    let script = |i, _| SimResult {
        service: Nanos(US),
        result: (i == 6).then_some(-28),
    };
    let mut bench = Bench::new(10, script);
    bench.plan.until_full = true;
    let outcome = bench.run::<SimInline<_>>();
    assert_eq!(
        (outcome.ended.clone(), outcome.completed()),
        (LoopStop::WorkDone, 6)
    );
}

#[test]
fn a_stop_drains_what_is_in_flight_and_keeps_it() {
    for response in LOOPS {
        let stop = Arc::new(AtomicU32::new(0));
        let at_50 = Arc::clone(&stop);
        let script = move |i, _| {
            if i == 50 {
                at_50.store(1, Ordering::Relaxed);
            }
            SimResult::after(Nanos(10 * US))
        };
        let mut bench = Bench::new(1000, script);
        bench.plan.response = response;
        bench.plan.depth = 16;
        let outcome = bench.run_with_stop::<SimQueued<_>>(&stop);
        assert_eq!(outcome.ended, LoopStop::Asked);
        assert_eq!(outcome.live.in_flight(), 0);
        assert_eq!(outcome.completed(), outcome.live.kinds[0].issued.get());
        assert!(outcome.completed() < 100);
    }
}

#[test]
fn batches_are_handed_over_whole() {
    for response in LOOPS {
        let mut bench = Bench::new(640, |_, _| SimResult::after(Nanos(US)));
        bench.plan.response = response;
        bench.plan.depth = 32;
        bench.plan.batch = 16;
        bench.plan.reap_min = 16;
        let outcome = bench.run::<SimQueued<_>>();
        let sizes: Vec<u64> = outcome
            .live
            .submitted
            .iter()
            .map(weir_run::Counter::get)
            .collect();
        assert_eq!(sizes, [0, 0, 0, 40, 0, 0, 0]);
    }
}

#[test]
fn kinds_are_kept_apart() {
    struct Alternate(u64);
    impl Source for Alternate {
        type Op = SimOp;
        fn next(&mut self, _slot: u32) -> Option<SimOp> {
            self.0 = self.0.checked_sub(1)?;
            let kind = usize::from(self.0.is_multiple_of(2));
            Some(SimOp {
                length: 512,
                kind,
                ..SimOp::default()
            })
        }
    }
    let clock = SimClock::default();
    let live = WorkerLive::new(
        BLOCK_KINDS,
        [Some(Measured {
            latency: true,
            ..Measured::default()
        }); KINDS],
    );
    let script: Script =
        Box::new(|i: u64, _| SimResult::after(Nanos(if i.is_multiple_of(2) { US } else { MS })));
    let setup = SimSetup {
        clock: clock.clone(),
        servers: 0,
        script,
    };
    let mut engine = SimInline::attach(setup).expect("attaches");
    let worker = LoopContext {
        clock: &clock,
        scale: Arc::new(SharedScale::new(Scale::IDENTITY)),
        stop: &AtomicU32::new(0),
        live: &live,
        release: Tick(0),
        pacing: PacerPlan::default(),
    };
    drive(
        &mut engine,
        &mut Alternate(100),
        &LoopPlan::default(),
        worker,
    );
    let max = |k: usize| live.kinds[k].lat.snapshot().and_then(|h| h.max());
    assert_eq!((max(0), max(1)), (Some(US), Some(MS)));
    assert_eq!(live.kinds[1].bytes.get(), 50 * 512);
}

/// A queue that takes what it is told to take at each hand-over, all of it once nothing more is
/// told; an operation fails or moves all of its bytes.
struct Picky {
    takes: Vec<Result<u32, i32>>,
    results: Vec<i64>,
    queued: Vec<(u32, SimOp)>,
    taken: Vec<Completed>,
    looks: u32,
}

impl Picky {
    fn new(takes: &[Result<u32, i32>], results: &[i64]) -> Self {
        Self {
            takes: takes.iter().rev().copied().collect(),
            results: results.iter().rev().copied().collect(),
            queued: Vec::new(),
            taken: Vec::new(),
            looks: 0,
        }
    }
}

impl Engine for Picky {
    type Op = SimOp;
    type Setup = ();
    const QUICK: bool = true;

    fn attach((): ()) -> io::Result<Self> {
        Ok(Self::new(&[], &[]))
    }

    fn submit(&mut self, slot: u32, op: &SimOp) -> Submit {
        self.queued.push((slot, *op));
        Submit::Queued
    }

    fn commit(&mut self) -> io::Result<u32> {
        let all = u32::try_from(self.queued.len()).unwrap();
        let takes = self.takes.pop().unwrap_or(Ok(all));
        let takes = takes.map_err(io::Error::from_raw_os_error)?.min(all);
        for (slot, op) in self.queued.drain(..takes as usize) {
            let result = self.results.pop().unwrap_or(op.length.into());
            self.taken.push(Completed { slot, result });
        }
        Ok(takes)
    }

    fn reap(&mut self, wait: Wait, done: impl FnMut(Completed)) -> io::Result<u32> {
        let count = self.taken.len().min(wait.at_most as usize);
        // A loop that never ends looks for ever.
        self.looks = if count == 0 { self.looks + 1 } else { 0 };
        assert!(self.looks < 1000, "the loop does not end");
        self.taken.drain(..count).for_each(done);
        Ok(u32::try_from(count).unwrap())
    }
}

/// Drives reads through a queue of 8, handed over 8 at a time.
fn drive_picky<E: Engine<Op = SimOp>>(
    operations: u64,
    mut engine: E,
    change: impl FnOnce(&mut LoopPlan),
) -> Outcome {
    let clock = SimClock::default();
    let measured = Measured {
        latency: true,
        split: true,
        ..Measured::default()
    };
    let live = WorkerLive::new(BLOCK_KINDS, [Some(measured); KINDS]);
    let mut plan = LoopPlan {
        depth: 8,
        batch: 8,
        ..LoopPlan::default()
    };
    change(&mut plan);
    let worker = LoopContext {
        clock: &clock,
        scale: Arc::new(SharedScale::new(Scale::IDENTITY)),
        stop: &AtomicU32::new(0),
        live: &live,
        release: Tick(0),
        pacing: PacerPlan::default(),
    };
    let mut reads = Reads(operations);
    // Where operations are handed over one by one the stamps make no difference, but the loop records
    // those of one kind in another way.
    let ended = if plan.stamp_each {
        drive(&mut engine, &mut reads, &plan, worker)
    } else {
        drive(&mut engine, &mut ReadsOnly(reads), &plan, worker)
    };
    Outcome { live, ended }
}

fn figures(outcome: &Outcome) -> [u64; 4] {
    let kind = &outcome.live.kinds[0];
    let flying = outcome.live.in_flight();
    [
        kind.issued.get(),
        kind.completed.get(),
        kind.failed.get(),
        flying,
    ]
}

#[test]
fn a_hand_over_that_fails_ends_the_loop_without_the_operations_that_were_not_taken() {
    for response in LOOPS {
        let outcome = drive_picky(100, Picky::new(&[Ok(8), Err(5)], &[]), |plan| {
            plan.response = response;
        });
        let LoopStop::Failed(at) = &outcome.ended else {
            panic!("ended with {:?}", outcome.ended)
        };
        assert_eq!(at.fault, OpFault::Engine(5));
        assert_eq!(figures(&outcome), [8, 8, 0, 0]);
    }
}

#[test]
fn what_was_taken_before_a_hand_over_failed_is_waited_for() {
    for response in LOOPS {
        let takes = [Ok(3), Err(5)];
        let outcome = drive_picky(100, Picky::new(&takes, &[]), |plan| {
            plan.response = response;
        });
        assert!(matches!(outcome.ended, LoopStop::Failed(_)));
        assert_eq!(figures(&outcome), [3, 3, 0, 0]);
    }
}

#[test]
fn operations_that_were_not_taken_when_the_job_fails_are_handed_over_and_come_back() {
    for response in LOOPS {
        for takes in [&[Ok(1), Ok(0)][..], &[Ok(1), Ok(0), Ok(0), Ok(2), Ok(0)]] {
            let outcome = drive_picky(100, Picky::new(takes, &[-5]), |plan| {
                plan.response = response;
            });
            let LoopStop::Failed(at) = &outcome.ended else {
                panic!("ended with {:?}", outcome.ended)
            };
            assert_eq!(at.fault, OpFault::Errno(5));
            assert_eq!(figures(&outcome), [8, 7, 1, 0]);
        }
    }
}

#[test]
fn a_rest_that_comes_after_the_hand_over_failed_is_a_lost_operation() {
    for response in LOOPS {
        // Three are in flight when it fails; one of them comes back with half of its bytes.
        let takes = [Ok(3), Err(5)];
        let outcome = drive_picky(100, Picky::new(&takes, &[2048]), |plan| {
            plan.response = response;
        });
        assert!(matches!(outcome.ended, LoopStop::Failed(_)));
        assert_eq!(figures(&outcome), [3, 2, 0, 1]);
    }
}

#[test]
fn a_rest_that_is_not_taken_when_the_hand_over_fails_is_a_lost_operation() {
    for response in LOOPS {
        // The first moves half; its rest is never handed over.
        let takes = [Ok(8), Err(5)];
        let outcome = drive_picky(8, Picky::new(&takes, &[2048]), |plan| {
            plan.response = response;
        });
        assert!(matches!(outcome.ended, LoopStop::Failed(_)));
        assert_eq!(figures(&outcome), [8, 7, 0, 1]);
    }
}

#[test]
fn operations_that_were_not_taken_are_handed_over_while_the_queue_sinks() {
    let takes = [[Ok(1)].as_slice(), &[Ok(0); 8]].concat();
    let outcome = drive_picky(20, Picky::new(&takes, &[]), |plan| plan.refill_below = 1);
    assert_eq!(outcome.ended, LoopStop::WorkDone);
    assert_eq!(figures(&outcome), [20, 20, 0, 0]);
}

#[test]
fn short_operations_are_continued_while_the_queue_sinks_to_its_refill_mark() {
    let script = |i, _| SimResult {
        service: Nanos(US),
        result: (i < 2).then_some(2048),
    };
    let mut bench = Bench::new(20, script);
    bench.plan.depth = 8;
    bench.plan.refill_below = 1;
    let outcome = bench.run::<SimQueued<_>>();
    assert_eq!(outcome.ended, LoopStop::WorkDone);
    let kind = &outcome.live.kinds[0];
    assert_eq!((outcome.completed(), kind.short.get()), (20, 2));
    assert_eq!(kind.bytes.get(), 20 * 4096);
}

#[test]
fn a_queue_with_a_refill_mark_is_filled_again_only_below_it_whatever_is_short() {
    // All of the first fill are short: new operations come when no more than two are left.
    let results = [2048; 8];
    let outcome = drive_picky(20, Picky::new(&[], &results), |plan| plan.refill_below = 2);
    assert_eq!(outcome.ended, LoopStop::WorkDone);
    assert_eq!(figures(&outcome), [20, 20, 0, 0]);
    assert_eq!(outcome.live.kinds[0].short.get(), 8);
}

/// A queue that is full now and then, finishes some operations inside the call, takes a part of
/// what it is offered, and moves some of them in parts: every n-th of each, none for 0.
struct Fickle {
    picky: Picky,
    full: u64,
    inside: u64,
    part: u64,
    short: u64,
    submits: u64,
    commits: u64,
    results: u64,
    fails_at: u64,
}

/// True at each n-th turn.
fn turn(counter: &mut u64, n: u64) -> bool {
    *counter += 1;
    n > 0 && counter.is_multiple_of(n)
}

impl Fickle {
    fn new([full, inside, part, short]: [u64; 4], fails_at: u64) -> Self {
        Self {
            picky: Picky::new(&[], &[]),
            full,
            inside,
            part,
            short,
            submits: 0,
            commits: 0,
            results: 0,
            fails_at,
        }
    }

    /// All of an operation, half of it, or an interruption.
    fn result(&mut self, op: &SimOp) -> i64 {
        if op.length > 1024 && turn(&mut self.results, self.short) {
            return if self.results.is_multiple_of(2) {
                i64::from(op.length / 2)
            } else {
                -4
            };
        }
        op.length.into()
    }
}

impl Engine for Fickle {
    type Op = SimOp;
    type Setup = ();
    const QUICK: bool = true;

    fn attach((): ()) -> io::Result<Self> {
        Ok(Self::new([0; 4], 0))
    }

    fn submit(&mut self, slot: u32, op: &SimOp) -> Submit {
        let is_inside = turn(&mut self.submits, self.inside);
        if self.full > 0 && self.submits.is_multiple_of(self.full) {
            return Submit::Full;
        }
        if is_inside {
            return Submit::Done(self.result(op));
        }
        self.picky.submit(slot, op)
    }

    fn commit(&mut self) -> io::Result<u32> {
        let all = self.picky.queued.len();
        let takes_part = turn(&mut self.commits, self.part);
        let takes = if takes_part { all / 2 } else { all };
        if self.commits == self.fails_at {
            return Err(io::Error::from_raw_os_error(5));
        }
        for (slot, op) in self.picky.queued.drain(..takes).collect::<Vec<_>>() {
            let result = self.result(&op);
            self.picky.taken.push(Completed { slot, result });
        }
        Ok(u32::try_from(takes).unwrap())
    }

    fn reap(&mut self, wait: Wait, done: impl FnMut(Completed)) -> io::Result<u32> {
        self.picky.reap(wait, done)
    }
}

/// Asserts the properties of every loop that ended.
fn assert_sound(outcome: &Outcome, case: &str) {
    let kind = &outcome.live.kinds[0];
    let completed = kind.completed.get();
    assert_eq!(kind.bytes.get(), completed * 4096, "{case}");
    let count = |stage: &weir_run::StageRecorder| stage.snapshot().map(|h| h.count());
    for stage in [&kind.slat, &kind.clat, &kind.lat] {
        assert_eq!(count(stage), Some(completed), "{case}");
    }
    let depths = outcome.live.depth.iter().map(weir_run::Counter::get);
    assert_eq!(depths.sum::<u64>(), kind.issued.get(), "{case}");
}

#[test]
fn whatever_an_engine_does_every_operation_ends_once() {
    let every = [0, 1, 2, 3, 5, 7];
    let mut tried = 0;
    for full in every.map(|n| n + u64::from(n == 1)) {
        for inside in every {
            for part in every.map(|n| n + u64::from(n == 1)) {
                for short in every.map(|n| n + u64::from(n == 1)) {
                    for response in LOOPS {
                        let case = format!("{full} {inside} {part} {short} {response}");
                        let engine = Fickle::new([full, inside, part, short], 0);
                        let shape = |plan: &mut LoopPlan| {
                            plan.response = response;
                            plan.batch = [1, 3, 8][tried % 3];
                            plan.reap_min = [1, 4][tried % 2];
                            plan.stamp_each = tried % 4 < 2;
                        };
                        let outcome = drive_picky(50, engine, shape);
                        assert_eq!(outcome.ended, LoopStop::WorkDone, "{case}");
                        assert_eq!(figures(&outcome), [50, 50, 0, 0], "{case}");
                        assert_sound(&outcome, &case);
                        tried += 1;
                    }
                }
            }
        }
    }
}

#[test]
fn whatever_an_engine_did_a_hand_over_that_fails_ends_the_loop() {
    for fails_at in [1, 2, 9] {
        for faults in [
            [0; 4],
            [3, 0, 0, 0],
            [0, 3, 0, 0],
            [0, 0, 2, 0],
            [0, 0, 2, 3],
            [5, 7, 2, 3],
        ] {
            for (response, batch) in LOOPS.into_iter().flat_map(|r| [(r, 1), (r, 4), (r, 8)]) {
                let case = format!("{fails_at} {faults:?} {response} {batch}");
                let shape = |plan: &mut LoopPlan| {
                    plan.response = response;
                    plan.batch = batch;
                };
                let outcome = drive_picky(500, Fickle::new(faults, fails_at), shape);
                let LoopStop::Failed(at) = &outcome.ended else {
                    panic!("{case}: ended with {:?}", outcome.ended)
                };
                assert_eq!(at.fault, OpFault::Engine(5), "{case}");
                let [issued, completed, failed, lost] = figures(&outcome);
                assert_eq!(issued, completed + failed + lost, "{case}");
                assert!(lost == 0 || faults[3] > 0, "{case}: {lost} are lost");
                assert_sound(&outcome, &case);
            }
        }
    }
}

#[test]
fn time_goes_on_where_every_operation_ends_inside_the_call() {
    struct Inside(SimClock);
    impl Engine for Inside {
        type Op = SimOp;
        type Setup = SimSetup;
        const QUICK: bool = true;

        fn attach(setup: SimSetup) -> io::Result<Self> {
            Ok(Self(setup.clock))
        }

        fn submit(&mut self, _slot: u32, op: &SimOp) -> Submit {
            self.0.advance(Nanos(10 * US));
            Submit::Done(op.length.into())
        }
    }
    for response in LOOPS {
        let mut bench = Bench::new(10, |_, _| SimResult::after(Nanos(0)));
        bench.plan.response = response;
        bench.plan.depth = 4;
        let outcome = bench.run::<Inside>();
        assert_eq!(outcome.completed(), 10);
        assert_eq!(outcome.elapsed(), 100 * US, "response: {response}");
        let mut bench = Bench::new(100_000, |_, _| SimResult::after(Nanos(0)));
        bench.plan.response = response;
        bench.plan.depth = 4;
        bench.plan.runtime = Some(Nanos(MS));
        let outcome = bench.run::<Inside>();
        assert_eq!(outcome.ended, LoopStop::TimeUp, "response: {response}");
        assert_eq!(outcome.elapsed(), MS);
    }
}
