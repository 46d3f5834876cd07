//! Test of the clock: whether it runs forward over all CPUs.
//!
//! In: nothing. Out: lines on standard output, the exit code.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use weir_doors::{Refusal, USAGE};
use weir_sys::clock::{Clock, Tick};
use weir_sys::pin;
use weir_sys::{CpuList, SysError};

use crate::{Outcome, output};

/// Each CPU looks at the clock so often.
const LOOKS: usize = 100_000;

/// A look at the clock: its place in the order of all looks, and what it showed.
type Look = (u32, Tick);

/// Threads on all CPUs look at the clock in turns; what a later look shows must not be earlier.
pub(crate) fn run() -> Outcome {
    let cpus = pin::affinity().map_err(|e| refuse(&e))?;
    let (clock, facts) = Clock::detect();
    let (source, count) = (clock.source().name(), cpus.len());
    let head = format!(
        "cs: {source} ({})\ncs: Testing {count} CPUs\n",
        facts.reason
    );
    let mut good = output::print(&head);
    let mut all = Vec::new();
    for (cpu, looks) in cpus.as_slice().iter().zip(gather(&cpus, clock)) {
        let looks = looks.map_err(|e| refuse(&e))?;
        let first = looks.first().map_or(0, |l| l.1.0);
        let count = looks.len();
        good &= output::print(&format!(
            "cs: cpu {cpu:2}: {count} clocks seen, first {first}\n"
        ));
        all.extend(looks);
    }
    let end = match step_back(all) {
        None => "cs: Pass!\n".to_owned(),
        Some((at, ticks)) => {
            good = false;
            format!("cs: CPU clock mismatch at look {at}: {ticks} ticks back\ncs: Failed\n")
        }
    };
    good &= output::print(&end);
    Ok(u8::from(!good))
}

fn refuse(error: &SysError) -> Refusal {
    Refusal::new(USAGE, format!("cs: {error}"))
}

/// The looks of each CPU, all at the same time.
fn gather(cpus: &CpuList, clock: Clock) -> Vec<Result<Vec<Look>, SysError>> {
    let (turn, start) = (AtomicU32::new(0), Barrier::new(cpus.len()));
    let (turn, start) = (&turn, &start);
    thread::scope(|scope| {
        let look = |cpu: &u32| {
            let cpu: CpuList = [*cpu].into_iter().collect();
            scope.spawn(move || {
                let pinned = pin::set_affinity(&cpu);
                start.wait();
                pinned.map(|()| looks(turn, clock))
            })
        };
        let threads: Vec<_> = cpus.as_slice().iter().map(look).collect();
        // A thread that panicked saw nothing.
        let join = |t: thread::ScopedJoinHandle<'_, _>| t.join().unwrap_or_else(|_| Ok(Vec::new()));
        threads.into_iter().map(join).collect()
    })
}

fn looks(turn: &AtomicU32, clock: Clock) -> Vec<Look> {
    let mut looks = Vec::with_capacity(LOOKS);
    while looks.len() < LOOKS {
        let place = turn.load(Ordering::SeqCst);
        // The CPU may read its counter ahead of the load; the kernel's clock is read in order,
        // and what follows it stays behind.
        black_box(Instant::now());
        let tick = clock.now();
        // Where another thread was in between, the look has no place and is not counted.
        let taken = turn.compare_exchange(place, place + 1, Ordering::SeqCst, Ordering::SeqCst);
        if taken.is_ok() {
            looks.push((place, tick));
        }
    }
    looks
}

/// The first look that shows less than the one before it, and how much less.
fn step_back(mut looks: Vec<Look>) -> Option<(u32, u64)> {
    looks.sort_unstable();
    looks
        .windows(2)
        .find(|pair| pair[1].1.0 < pair[0].1.0)
        .map(|pair| (pair[1].0, pair[0].1.0 - pair[1].1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_back_is_found_whatever_the_order_of_threads() {
        let forward = [(2, Tick(9)), (0, Tick(5)), (1, Tick(5))];
        assert_eq!(step_back(forward.to_vec()), None);
        let back = [(2, Tick(4)), (0, Tick(5)), (1, Tick(7))];
        assert_eq!(step_back(back.to_vec()), Some((2, 3)));
    }
}
