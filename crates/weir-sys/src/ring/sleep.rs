//! Sleeping without missing the call: a word that says "I sleep", and the kernel's wait on it.
//!
//! Who is about to sleep writes 1 and looks again for work; who made work looks for the 1. A full
//! fence stands between the two steps on either side, so that at least one of the two sees what the
//! other did. Who finds the 1 makes it 0 and wakes; a sleeper that comes after finds the 0 and does
//! not sleep. Not here: what is looked for.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// Before the last look for work.
pub(super) fn announce(word: &AtomicU32) {
    word.store(1, Ordering::Relaxed);
    // Pairs with the fence in `has_to_be_woken`.
    fence(Ordering::SeqCst);
}

/// After work was made: whether the other end sleeps. True for one caller per announcement.
#[inline]
pub(super) fn has_to_be_woken(word: &AtomicU32) -> bool {
    // Pairs with the fence in `announce`.
    fence(Ordering::SeqCst);
    // Almost always 0, on a line that nobody writes meanwhile.
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0
}

#[cfg(not(loom))]
mod kernel {
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::thread::futex;

    /// Sleeps while the word says so, at most so long.
    pub(in super::super) fn sleep(word: &AtomicU32, at_most: Option<Duration>) {
        // A time beyond what the kernel counts is no limit.
        let at_most = at_most.and_then(|time| futex::Timespec::try_from(time).ok());
        // Woken, changed meanwhile, long enough, interrupted: the caller looks again in any case.
        let _ = futex::wait(word, futex::Flags::empty(), 1, at_most.as_ref());
    }

    /// Wakes who sleeps on the word, in whichever process.
    #[cold]
    pub(in super::super) fn wake(word: &AtomicU32) {
        // Nobody there is fine.
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

#[cfg(not(loom))]
pub(super) use kernel::{sleep, wake};
