//! Records of a worker: counters and histograms with a single writer that any thread may read at
//! any time, owned by the run so that they survive a worker that never comes back.
//!
//! In: completions. Out: relaxed reads of everything. Not here: intervals and estimates, which
//! the sampler derives from differences of two reads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weir_schema::{CpuUse, KindInfo, KindName, MOST_KINDS};

use weir_stats::Histogram;
use weir_sys::clock::Tick;

use crate::cpu_use::CpuReading;
use crate::engine::OpTarget;
use crate::findings::{FailureLimit, Findings};
use crate::live_target::LiveTarget;
pub use crate::stage_recorder::StageRecorder;
use crate::trace::TraceQueue;

/// Kinds that can be counted apart: a power of two, so that a mask keeps an index in its bounds.
pub const KINDS: usize = MOST_KINDS;
/// The bits of an index of a kind.
pub(crate) const KIND_MASK: usize = KINDS - 1;

const _: () = assert!(KINDS.is_power_of_two());

/// A counter with a single writer: a relaxed load and store instead of a locked addition.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; the writer's thread only.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0
            .store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    /// Takes back the last count; the writer's thread only.
    #[cold]
    pub(crate) fn take_back(&self) {
        self.set(self.get().saturating_sub(1));
    }

    /// The value, from any thread.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets; the writer's thread only.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }
}

/// Counters and histograms of one kind of operation.
#[derive(Debug, Default)]
pub struct LiveKind {
    /// Handed to the engine.
    pub issued: Counter,
    /// Completed without error.
    pub completed: Counter,
    /// Bytes that completed operations moved.
    pub bytes: Counter,
    /// Completed with fewer bytes than asked for, then continued.
    pub short: Counter,
    /// Failed.
    pub failed: Counter,
    /// Submission latency.
    pub slat: StageRecorder,
    /// Completion latency.
    pub clat: StageRecorder,
    /// Total latency; of engines that complete inline the completion latency too.
    pub lat: StageRecorder,
    /// Latency from the intended start.
    pub rlat: StageRecorder,
    /// Tick of the first issue, in jobs whose kinds take turns.
    pub first: Counter,
    /// Tick of the last completion, in jobs whose kinds take turns.
    pub last: Counter,
    /// Failed operations by errno, and their latencies.
    errors: Mutex<Errors>,
    /// Latencies of the classes that the operations are of, where these are told apart.
    classes: Option<Mutex<BTreeMap<u16, ClassLatencies>>>,
    /// By number of the target, where each has figures of its own; else none.
    pub targets: Box<[LiveTarget]>,
}

/// Completion and total latencies of the operations of one class.
#[derive(Clone, Debug)]
pub struct ClassLatencies {
    /// Acceptance to completion.
    pub clat: Histogram,
    /// Issue to completion.
    pub lat: Histogram,
}

#[derive(Debug, Default)]
struct Errors {
    by_code: BTreeMap<i32, u64>,
    latencies: Histogram,
}

/// Recording settings of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Measured {
    /// Submission and completion latency apart (queued engines).
    pub split: bool,
    /// Any latency.
    pub latency: bool,
    /// Latency from the intended start.
    pub response: bool,
    /// Exact squares.
    pub squares: bool,
    /// Latencies by class too.
    pub classes: bool,
    /// Number of targets with figures of their own.
    pub targets: u32,
}

impl LiveKind {
    fn new(m: Measured) -> Self {
        let stage = |on: bool| StageRecorder::new(on, m.squares);
        Self {
            slat: stage(m.latency && m.split),
            clat: stage(m.latency && m.split),
            lat: stage(m.latency),
            rlat: stage(m.response),
            classes: (m.latency && m.classes).then(Mutex::default),
            targets: (0..m.targets)
                .map(|_| LiveTarget::new(m.response))
                .collect(),
            ..Self::default()
        }
    }

    /// From the first issue to the last completion, in jobs whose kinds take turns.
    pub fn active(&self) -> Option<(Tick, Tick)> {
        (self.first.get() > 0).then(|| (Tick(self.first.get()), Tick(self.last.get())))
    }

    /// Notes that an operation was in flight between these; the writer's thread only.
    pub fn note_active(&self, from: Tick, to: Tick) {
        if self.first.get() == 0 {
            self.first.set(from.0);
        }
        self.last.set(to.0);
    }

    /// The figures of a target that has some of its own.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the hot path")]
    pub(crate) fn target(&self, on: OpTarget) -> Option<&LiveTarget> {
        self.targets.get(on.number as usize)
    }

    /// Counts a failed operation.
    #[cold]
    pub fn fail(&self, errno: i32, lat_ns: u64, on: OpTarget) {
        if let Some(target) = self.target(on) {
            target.fail(errno);
        }
        self.failed.add(1);
        let mut errors = lock(&self.errors);
        *errors.by_code.entry(errno).or_default() += 1;
        errors.latencies.record(lat_ns);
    }

    /// Sets the number of failed operations by errno, for an engine with a loop of its own that times no
    /// operation; the writer's thread only.
    #[cold]
    pub fn set_failed(&self, by_code: impl IntoIterator<Item = (i32, u64)>) {
        let mut errors = lock(&self.errors);
        errors.by_code.clear();
        for (errno, count) in by_code.into_iter().filter(|(_, count)| *count > 0) {
            *errors.by_code.entry(errno).or_default() += count;
        }
        self.failed.set(errors.by_code.values().sum());
    }

    /// Adds failed operations of an engine with a loop of its own.
    #[cold]
    pub fn add_failed(&self, number: i32, count: u64) {
        self.failed.add(count);
        *lock(&self.errors).by_code.entry(number).or_default() += count;
    }

    /// Counts completion and total latency of an operation of a class, where classes are told
    /// apart.
    pub(crate) fn record_class(&self, class: u16, (clat_ns, lat_ns): (u64, u64)) {
        let Some(classes) = &self.classes else { return };
        let mut classes = lock(classes);
        let of_class = classes.entry(class).or_insert_with(|| ClassLatencies {
            clat: Histogram::new().with_squares(),
            lat: Histogram::new().with_squares(),
        });
        of_class.clat.record(clat_ns);
        of_class.lat.record(lat_ns);
    }

    /// Latencies by class; none where classes are not told apart.
    pub fn classes(&self) -> BTreeMap<u16, ClassLatencies> {
        let classes = self.classes.as_ref().map(lock);
        classes.map(|classes| classes.clone()).unwrap_or_default()
    }

    /// Failed operations by errno, with the histogram of their latencies.
    pub fn errors(&self) -> (BTreeMap<i32, u64>, Histogram) {
        let errors = lock(&self.errors);
        (errors.by_code.clone(), errors.latencies.clone())
    }

    /// Forgets what was measured; the writer's thread only. What is in flight stays issued.
    fn reset(&self) {
        // By name, so that a new one does not compile before it is forgotten here.
        let Self {
            issued,
            completed,
            bytes,
            short,
            failed,
            slat,
            clat,
            lat,
            rlat,
            first,
            last,
            errors,
            classes,
            targets,
        } = self;
        let in_flight = issued.get().saturating_sub(completed.get() + failed.get());
        issued.set(in_flight);
        for counter in [completed, bytes, short, failed, first, last] {
            counter.set(0);
        }
        for stage in [slat, clat, lat, rlat] {
            stage.reset();
        }
        *lock(errors) = Errors::default();
        targets.iter().for_each(LiveTarget::reset);
        if let Some(classes) = classes {
            lock(classes).clear();
        }
    }
}

/// A poisoned lock still holds whole values: its writer panicked between two of them.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Target of the last operation issued.
#[derive(Debug, Default)]
pub struct LastIssued {
    number: Counter,
    /// [`NO_OFFSET`] for none.
    offset: Counter,
}

/// No target is that long.
const NO_OFFSET: u64 = u64::MAX;

impl LastIssued {
    /// Notes it; the worker's thread only.
    #[inline]
    pub fn set(&self, target: OpTarget) {
        self.offset.set(target.offset.unwrap_or(NO_OFFSET));
        self.number.set(u64::from(target.number));
    }

    /// The target noted last.
    pub fn get(&self) -> OpTarget {
        OpTarget {
            number: u32::try_from(self.number.get()).unwrap_or(0),
            offset: Some(self.offset.get()).filter(|offset| *offset != NO_OFFSET),
        }
    }
}

/// Everything a worker records.
#[derive(Debug)]
#[repr(align(128))]
pub struct WorkerLive {
    /// By kind, as declared.
    pub kinds: [LiveKind; KINDS],
    /// Declaration of the kinds.
    pub declared: &'static [KindInfo],
    /// Operations issued at a depth of 1, 2–3, 4–7 … 64 and more.
    pub depth: [Counter; 7],
    /// Hand-overs by size.
    pub submitted: [Counter; 7],
    /// Harvests by size.
    pub harvested: [Counter; 7],
    /// Filling buffers before operations and checking them after, in nanoseconds.
    pub prepare_ns: Counter,
    /// Operations issued late although a slot was free.
    pub late: Counter,
    /// Tick of the start of measuring (release, or end of ramp).
    pub started: Counter,
    /// Tick of the last completion.
    pub last_done: Counter,
    /// Use of the worker's thread when measuring started.
    used_before: Mutex<Option<CpuReading>>,
    /// Target of the last operation issued.
    pub last_issued: LastIssued,
    /// Per-operation trace, if it is wanted.
    pub(crate) trace: Option<Arc<TraceQueue>>,
    /// Blocks that do not hold what they should.
    pub findings: Arc<Findings>,
    /// Number of times the measurement was reset.
    resets: AtomicU64,
    /// No more than this are to be in flight; the run may change it.
    pub depth_limit: AtomicU32,
    /// The run asks for another reset; the worker looks now and then.
    pub anew: AtomicBool,
}

impl WorkerLive {
    /// Recorders for the kinds that occur of those that the workload declares.
    pub fn new(declared: &'static [KindInfo], kinds: [Option<Measured>; KINDS]) -> Self {
        Self {
            declared,
            kinds: kinds.map(|k| k.map_or_else(LiveKind::default, LiveKind::new)),
            depth: Default::default(),
            submitted: Default::default(),
            harvested: Default::default(),
            prepare_ns: Counter::default(),
            late: Counter::default(),
            started: Counter::default(),
            last_done: Counter::default(),
            used_before: Mutex::default(),
            last_issued: LastIssued::default(),
            resets: AtomicU64::new(0),
            depth_limit: AtomicU32::new(u32::MAX),
            anew: AtomicBool::new(false),
            trace: None,
            findings: Arc::default(),
        }
    }

    /// Counts failures towards this limit.
    pub(crate) fn limited(mut self, limit: FailureLimit) -> Self {
        self.findings = Arc::new(Findings::limited(limit));
        self
    }

    /// Traces every operation, with room for so many.
    pub(crate) fn traced(mut self, room: u32) -> Self {
        self.trace = Some(Arc::new(TraceQueue::new(room)));
        self
    }

    /// Each operation is looked at when it has come back, for the trace or for its class.
    pub(crate) fn is_seen_alone(&self) -> bool {
        self.trace.is_some() || self.kinds.iter().any(|kind| kind.classes.is_some())
    }

    /// The end of ramp: forgets everything so far; the writer's thread only.
    #[cold]
    pub fn reset(&self) {
        let Self {
            kinds,
            depth,
            submitted,
            harvested,
            prepare_ns,
            late,
            used_before,
            resets,
            // The worker sets them anew, or they are about the whole run.
            declared: _,
            started: _,
            last_done: _,
            last_issued: _,
            trace: _,
            findings: _,
            depth_limit: _,
            anew: _,
        } = self;
        kinds.iter().for_each(LiveKind::reset);
        let counters = [depth, submitted, harvested].into_iter().flatten();
        for counter in counters.chain([prepare_ns, late]) {
            counter.set(0);
        }
        *lock(used_before) = Some(CpuReading::read());
        // Pairs with the load in `resets`: who sees the number sees no count of before.
        resets.fetch_add(1, Ordering::Release);
    }

    /// Starts to measure the use of the worker's thread, unless it is measured already; that thread
    /// only.
    pub(crate) fn begin_use(&self) {
        lock(&self.used_before).get_or_insert_with(CpuReading::read);
    }

    /// Use of the worker's thread while it was measured, if it was; that thread only.
    pub(crate) fn cpu_use(&self) -> Option<CpuUse> {
        let before = lock(&self.used_before);
        before
            .as_ref()
            .map(|before| CpuReading::read().since(before))
    }

    /// The same of a thread that still runs, as far as others can see it.
    pub(crate) fn cpu_use_of(&self, thread_id: u32) -> CpuUse {
        let before = lock(&self.used_before);
        let used = before.as_ref().and_then(|b| b.used_by(thread_id));
        used.unwrap_or_default()
    }

    /// Number of resets of the measurement: at the end of ramp, and when the run asked. Counters
    /// that are read after it hold nothing of before that reset.
    pub fn resets(&self) -> u64 {
        // Pairs with the addition in `reset`.
        self.resets.load(Ordering::Acquire)
    }

    /// The kind with this index.
    #[inline]
    pub(crate) fn kind(&self, index: usize) -> &LiveKind {
        &self.kinds[index & KIND_MASK]
    }

    /// The kinds that are part of the rates.
    pub fn rated(&self) -> impl Iterator<Item = &LiveKind> {
        let kinds = self.declared.iter().zip(&self.kinds);
        kinds
            .filter(|(info, _)| !info.is_aside)
            .map(|(_, kind)| kind)
    }

    /// The name of a kind.
    pub fn kind_name(&self, kind: usize) -> Option<KindName> {
        self.declared.get(kind).map(KindName::from)
    }

    /// Operations of the kinds that are part of the rates, handed over so far.
    pub fn issued(&self) -> u64 {
        self.rated().map(|kind| kind.issued.get()).sum()
    }

    /// Operations handed over and not yet seen again.
    pub fn in_flight(&self) -> u64 {
        let issued: u64 = self.kinds.iter().map(|k| k.issued.get()).sum();
        let ended: u64 = self
            .kinds
            .iter()
            .map(|k| k.completed.get() + k.failed.get())
            .sum();
        issued.saturating_sub(ended)
    }
}

/// Position of a depth in tables by powers of two: 1, 2–3, 4–7, … 64 and more.
#[inline]
pub(crate) fn depth_level(depth: u32) -> usize {
    (depth.max(1).ilog2() as usize).min(6)
}

/// Position of a batch in tables by size: 0, 1–4, 5–8, 9–16, 17–32, 33–64, more.
#[inline]
pub(crate) fn batch_level(batch: u32) -> usize {
    match batch {
        0 => 0,
        1..=4 => 1,
        n => ((n - 1).ilog2() as usize).min(6),
    }
}

#[cfg(test)]
mod tests {
    use weir_schema::BLOCK_KINDS;

    use super::*;

    #[test]
    fn levels_follow_powers_of_two() {
        let depths: Vec<usize> = [1, 2, 3, 4, 32, 63, 64, 1000].map(depth_level).to_vec();
        assert_eq!(depths, [0, 1, 1, 2, 5, 5, 6, 6]);
        let batches: Vec<usize> = [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 5000]
            .map(batch_level)
            .to_vec();
        assert_eq!(batches, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
    }

    #[test]
    fn latencies_of_classes_are_kept_apart_and_forgotten_at_the_end_of_ramp() {
        let measured = |classes| {
            [Some(Measured {
                latency: true,
                classes,
                ..Measured::default()
            }); KINDS]
        };
        let live = WorkerLive::new(BLOCK_KINDS, measured(true));
        for (class, clat) in [(0, 10), (7, 20), (7, 30)] {
            live.kinds[0].record_class(class, (clat, clat + 1));
        }
        let classes = live.kinds[0].classes();
        let sums = |class| (classes[&class].clat.sum(), classes[&class].lat.sum());
        assert_eq!((sums(0), sums(7)), ((10, 11), (50, 52)));
        assert!(live.is_seen_alone());
        live.reset();
        assert!(live.kinds[0].classes().is_empty());
        let without = WorkerLive::new(BLOCK_KINDS, measured(false));
        without.kinds[0].record_class(7, (1, 1));
        assert!(without.kinds[0].classes().is_empty() && !without.is_seen_alone());
    }

    #[test]
    fn what_the_thread_used_in_the_ramp_is_forgotten() {
        let live = WorkerLive::new(BLOCK_KINDS, [None; KINDS]);
        assert_eq!(live.cpu_use(), None);
        live.begin_use();
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let ramp = live.cpu_use().unwrap();
        assert!(ramp.voluntary_switches >= 20, "{ramp:?}");
        live.reset();
        // Another pass begins: the first one's beginning counts.
        live.begin_use();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let after = live.cpu_use().unwrap();
        assert!((1..20).contains(&after.voluntary_switches), "{after:?}");
        let id = u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
        let seen = live.cpu_use_of(id);
        assert!((1..20).contains(&seen.voluntary_switches), "{seen:?}");
    }

    #[test]
    fn what_is_in_flight_survives_the_end_of_ramp() {
        let live = WorkerLive::new(
            BLOCK_KINDS,
            [Some(Measured {
                latency: true,
                ..Measured::default()
            }); KINDS],
        );
        live.kinds[0].issued.add(5);
        live.kinds[0].completed.add(2);
        live.kinds[0].fail(5, 100, OpTarget::default());
        live.reset();
        assert_eq!(live.in_flight(), 2);
        assert_eq!(live.kinds[0].completed.get(), 0);
        assert!(live.kinds[0].errors().0.is_empty());
    }
}
