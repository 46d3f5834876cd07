//! Sleeping without missing the call: a word that says "I sleep", and the kernel's wait on it.
//!
//! Who is about to sleep writes 1 and looks again for work; who made work looks for the 1. A barrier
//! stands between the two steps on either side, so that at least one of the two sees what the other
//! did. Who finds the 1 makes it 0 and wakes; a sleeper that comes after finds the 0 and does not
//! sleep. Work is made far more often than anybody sleeps, and a barrier waits until all that was
//! written has reached the other processor: so the sleeper has the kernel put a barrier into every
//! process that makes work (`membarrier`), and those need none of their own. Where the kernel
//! refuses that, both sides have one, and sleeps are short in case that the other side's kernel did
//! not refuse. Not here: what is looked for.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};

/// Before the last look for work.
pub(super) fn announce(word: &AtomicU32) {
    word.store(1, Ordering::Relaxed);
    // Pairs with the fence in `has_to_be_woken`.
    fence(Ordering::SeqCst);
    #[cfg(not(loom))]
    kernel::put_barriers();
}

/// After work was made: whether the other end sleeps. True for one caller per announcement.
/// `barrier` is [`needs_barrier`] of this process.
#[inline]
pub(super) fn has_to_be_woken(word: &AtomicU32, barrier: bool) -> bool {
    if barrier {
        // Pairs with the fence in `announce`.
        fence(Ordering::SeqCst);
    } else {
        #[cfg(not(loom))]
        compiler_fence(Ordering::SeqCst);
    }
    // Almost always 0, on a line that nobody writes meanwhile.
    word.load(Ordering::Relaxed) != 0 && word.swap(0, Ordering::Relaxed) != 0
}

#[cfg(loom)]
pub(super) fn needs_barrier() -> bool {
    true
}

#[cfg(not(loom))]
mod kernel {
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicU32;
    use std::time::Duration;

    use rustix::thread::{MembarrierCommand, futex, membarrier};

    /// Longest sleep where a wake-up can be missed.
    const NAP: Duration = Duration::from_millis(1);

    /// True if this process needs barriers of its own where it makes work, since the kernel puts
    /// none into it. Asked before the first work is made.
    pub(in super::super) fn needs_barrier() -> bool {
        static REFUSED: OnceLock<bool> = OnceLock::new();
        let register = || membarrier(MembarrierCommand::RegisterGlobalExpedited);
        // Miri knows no such call.
        *REFUSED.get_or_init(|| cfg!(miri) || register().is_err())
    }

    /// Puts a barrier into every thread of the processes that asked for it.
    pub(super) fn put_barriers() {
        if !needs_barrier() {
            // It was granted when this process asked for it.
            let _ = membarrier(MembarrierCommand::GlobalExpedited);
        }
    }

    /// Longest sleep that may be announced.
    pub(in super::super) fn longest(wait: Option<Duration>) -> Option<Duration> {
        if needs_barrier() {
            Some(wait.map_or(NAP, |wait| wait.min(NAP)))
        } else {
            wait
        }
    }

    /// Sleeps while the word says so, at most so long.
    pub(in super::super) fn sleep(word: &AtomicU32, at_most: Option<Duration>) {
        // A time beyond what the kernel counts is no limit.
        let at_most = longest(at_most).and_then(|time| futex::Timespec::try_from(time).ok());
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
pub(super) use kernel::{longest, needs_barrier, sleep, wake};
