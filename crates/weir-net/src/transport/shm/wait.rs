//! Waiting for a word to change: spin, yield, sleep.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use weir_sys::pin;
use weir_sys::topology::Topology;

use crate::error::Halt;
use weir_world::Watchdog;

/// Time to spin before the processor is offered to others.
const SPIN: Duration = Duration::from_micros(2);
/// Looks before the processor is told that this is a wait, which takes longer than a look.
const EAGER: u32 = 64;
/// Offers before sleeping.
const YIELDS: u32 = 200;
/// A sleep: what a wake-up that was just missed costs.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Wait that fits this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitPolicy {
    /// Looks that take about [`SPIN`].
    spins: u32,
}

impl WaitPolicy {
    /// Measures what a look costs, so that no clock has to be read while waiting. With more ranks
    /// than processors the one that is waited for may need this one's: it gets it soon.
    pub(super) fn new(ranks: u32) -> Self {
        const LOOKS: u32 = 200;
        let word = AtomicU32::new(0);
        let round = || {
            let begun = Instant::now();
            for _ in 0..LOOKS {
                std::hint::black_box(word.load(Ordering::Acquire));
                std::hint::spin_loop();
            }
            begun.elapsed()
        };
        let fastest = (0..5).map(|_| round()).min().unwrap_or(SPIN);
        let processors = processors();
        let spin = if ranks as usize > processors {
            SPIN / 20
        } else {
            SPIN
        };
        let spins = spin.as_nanos() * u128::from(LOOKS) / fastest.as_nanos().max(1);
        Self {
            spins: u32::try_from(spins).unwrap_or(u32::MAX).clamp(1, 100_000),
        }
    }

    /// Returns once the word is as wanted. `asleep` tells the writer of the word to wake this
    /// rank; `left` is set when `peer`, who writes it, will not any more.
    #[inline]
    pub(super) fn wait(
        self,
        word: &AtomicU32,
        wanted: impl Fn(u32) -> bool,
        asleep: &AtomicU32,
        left: &AtomicU32,
        peer: u32,
        watchdog: &Watchdog,
    ) -> Result<(), Halt> {
        for _ in 0..EAGER {
            if wanted(word.load(Ordering::Acquire)) {
                return Ok(());
            }
        }
        for _ in 0..self.spins {
            if wanted(word.load(Ordering::Acquire)) {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        slowly(word, &wanted, asleep, left, peer, watchdog)
    }
}

/// Those that this rank may use; all of the machine where it is pinned to one, as the others then
/// are to theirs.
fn processors() -> usize {
    match pin::affinity().map(|cpus| cpus.len()) {
        Ok(several) if several > 1 => several,
        _ => Topology::of_this_machine().online().len().max(1),
    }
}

#[cold]
fn slowly(
    word: &AtomicU32,
    wanted: &dyn Fn(u32) -> bool,
    asleep: &AtomicU32,
    left: &AtomicU32,
    peer: u32,
    watchdog: &Watchdog,
) -> Result<(), Halt> {
    for _ in 0..YIELDS {
        std::thread::yield_now();
        if wanted(word.load(Ordering::Acquire)) {
            return Ok(());
        }
    }
    let nap = futex::Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(LONGEST_SLEEP.subsec_nanos()),
    };
    loop {
        watchdog.check()?;
        // What the peer wrote before it left counts.
        let has_left = left.load(Ordering::Acquire) != 0;
        asleep.store(1, Ordering::SeqCst);
        let seen = word.load(Ordering::SeqCst);
        if wanted(seen) {
            asleep.store(0, Ordering::Relaxed);
            return Ok(());
        }
        if has_left {
            return Err(Halt::Left { peer });
        }
        // Woken, changed meanwhile, or long enough: look again in any case.
        let _ = futex::wait(word, futex::Flags::empty(), seen, Some(&nap));
        asleep.store(0, Ordering::Relaxed);
    }
}

/// Wakes whoever sleeps on a word that was just changed. The look may come before the change is
/// seen elsewhere: then the sleeper's nap ends by itself.
#[inline]
pub(super) fn wake(word: &AtomicU32, asleep: &AtomicU32) {
    if asleep.load(Ordering::Relaxed) != 0 {
        rouse(word);
    }
}

#[cold]
fn rouse(word: &AtomicU32) {
    // Nobody there is fine.
    let _ = futex::wake(word, futex::Flags::empty(), u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_pinned_to_one_processor_does_not_take_it_for_the_only_one() {
        let machine = Topology::of_this_machine().online().len();
        let seen = std::thread::spawn(|| {
            let first = pin::affinity().unwrap().as_slice()[0];
            pin::set_affinity(&[first].into_iter().collect()).unwrap();
            processors()
        });
        assert_eq!(seen.join().unwrap(), machine);
    }

    #[test]
    fn a_change_is_seen_by_whoever_spins_yields_or_sleeps() {
        let [word, asleep, left] = [const { AtomicU32::new(0) }; 3];
        let watchdog = Watchdog::new(Duration::from_secs(30));
        let wait_policy = WaitPolicy::new(2);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                (1..=200).all(|number| {
                    let here = |n: u32| n >= number;
                    wait_policy
                        .wait(&word, here, &asleep, &left, 1, &watchdog)
                        .is_ok()
                })
            });
            for number in 1..=200 {
                if number % 20 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                word.store(number, Ordering::Release);
                wake(&word, &asleep);
            }
            assert!(waiter.join().unwrap());
        });
        left.store(1, Ordering::Release);
        let end = wait_policy.wait(&word, |n| n > 200, &asleep, &left, 1, &watchdog);
        assert!(matches!(end, Err(Halt::Left { peer: 1 })));
    }
}
