//! State that the threads of a packet path share: when it began, that it ends, what each has counted.
//!
//! Nothing of it is touched per packet.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_schema::{Failure, PathIteration, PathThread};
use weir_sys::clock::Clock;

/// State that all threads see.
#[derive(Debug)]
pub(crate) struct PathShared {
    /// The tick at which the first iteration began; 0 before.
    began: AtomicU64,
    /// Threads may begin: the other side, where it is a run of its own, is ready too.
    pub(crate) is_open: AtomicBool,
    /// That side has ended.
    pub(crate) other_ended: AtomicBool,
    /// All threads are to end at once.
    pub(crate) ends: AtomicBool,
    /// Clients that still wait for answers, or have not begun.
    pub(crate) waiting_clients: AtomicU32,
    /// Threads that have come to each of the steps at the end.
    steps: [AtomicU32; 2],
    threads: u32,
    counted: Mutex<PathCounts>,
}

/// Counts of all threads.
#[derive(Debug, Default)]
struct PathCounts {
    iterations: Vec<PathIteration>,
    in_use: Option<u64>,
    failure: Option<Failure>,
}

impl PathShared {
    /// For so many threads, which go on at the end until so many clients wait no more.
    pub(crate) fn new(threads: u32, clients: u32, is_open: bool) -> Self {
        Self {
            began: AtomicU64::new(0),
            is_open: AtomicBool::new(is_open),
            other_ended: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            waiting_clients: AtomicU32::new(clients),
            steps: Default::default(),
            threads,
            counted: Mutex::default(),
        }
    }

    /// The common beginning: the first thread that asks says when it is.
    pub(crate) fn begin(&self, now: u64) -> u64 {
        let now = now.max(1);
        let set = self
            .began
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        set.map_or_else(|earlier| earlier, |_| now)
    }

    /// Takes what a thread counted in an iteration.
    pub(crate) fn count(&self, iteration: usize, thread: PathThread) {
        let mut counted = self.lock();
        if counted.iterations.len() <= iteration {
            counted
                .iterations
                .resize_with(iteration + 1, PathIteration::default);
        }
        let threads = &mut counted.iterations[iteration].threads;
        let order = |one: &PathThread| (one.side as u8, one.thread);
        let at = threads.partition_point(|one| order(one) < order(&thread));
        threads.insert(at, thread);
    }

    /// Iterations that all threads have counted; of a run that is over, all there are.
    pub(crate) fn iterations(&self) -> Vec<PathIteration> {
        let counted = self.lock();
        let is_over = self.have_all_come(1);
        let is_whole = |one: &&PathIteration| is_over || one.threads.len() >= self.threads as usize;
        let whole = counted.iterations.iter().take_while(is_whole);
        whole.cloned().collect()
    }

    /// Adds to the buffers that never came home.
    pub(crate) fn add_in_use(&self, buffers: u64) {
        let mut counted = self.lock();
        counted.in_use = Some(counted.in_use.unwrap_or(0) + buffers);
    }

    /// Buffers that never came home, once that is known.
    pub(crate) fn in_use(&self) -> Option<u64> {
        self.lock().in_use
    }

    /// Why all end early; the first reason counts.
    pub(crate) fn fail(&self, failure: Failure) {
        self.lock().failure.get_or_insert(failure);
        self.ends.store(true, Ordering::Relaxed);
    }

    /// Why all end early, where that is known and not the other side's doing.
    pub(crate) fn own_failure(&self) -> Option<String> {
        let counted = self.lock();
        let own = counted.failure.as_ref().filter(|one| one.cause != "peer");
        own.map(|one| one.message.clone())
    }

    /// Why all ended early: one thread says so.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.lock().failure.take()
    }

    /// Waits until all threads have come to a step at the end, or for so many ticks: one that failed
    /// never comes.
    pub(crate) fn meet(&self, step: usize, clock: &Clock, patience: u64) -> bool {
        // Pairs with the Acquire in `have_all_come`: what was done before is seen.
        self.steps[step].fetch_add(1, Ordering::Release);
        let start = clock.now();
        while !self.have_all_come(step) {
            if clock.now().since(start) > patience {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    fn have_all_come(&self, step: usize) -> bool {
        self.steps[step].load(Ordering::Acquire) >= self.threads
    }

    fn lock(&self) -> MutexGuard<'_, PathCounts> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
