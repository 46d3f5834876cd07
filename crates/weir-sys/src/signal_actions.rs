//! Signal actions of the process, kept over calls into a library that changes them, and signals held back
//! while actions change.
//!
//! In: nothing. Out: actions and the mask as they were before. Not here: how signals are caught (the
//! binary).

#![expect(
    unsafe_code,
    reason = "sigaction and pthread_sigmask, which rustix does not wrap"
)]

use std::mem::MaybeUninit;

/// Those that end a process, politely or not.
const KEPT: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGTERM,
];

/// The actions of signals that end a process; they hold again once this is gone.
pub struct KeptSignalActions {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl KeptSignalActions {
    /// As they are now.
    pub fn now() -> Self {
        let action = |signal: libc::c_int| {
            let mut action = MaybeUninit::uninit();
            // SAFETY: nothing is set, and the place for what holds is as large as it.
            let got = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) };
            // SAFETY: the call wrote it, as it says by its answer.
            (got == 0).then(|| (signal, unsafe { action.assume_init() }))
        };
        Self {
            before: KEPT.into_iter().filter_map(action).collect(),
        }
    }
}

impl Drop for KeptSignalActions {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: the action was in force before, and its function is still there.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
    }
}

impl std::fmt::Debug for KeptSignalActions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signals: Vec<_> = self.before.iter().map(|(signal, _)| signal).collect();
        f.debug_struct("KeptSignalActions")
            .field("signals", &signals)
            .finish()
    }
}

/// Signals held back from this thread; those that came meanwhile arrive once this is gone.
///
/// Between the exchange of an action and the note of what it was, a library loses a signal.
pub struct HeldSignals {
    before: libc::sigset_t,
}

impl HeldSignals {
    /// All that can be held back.
    pub fn all() -> Self {
        let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the place is as large as what is written.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        // SAFETY: the call before wrote the set, and the other place is as large as what is written.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) };
        Self {
            // SAFETY: the call wrote it; with these arguments it does not fail.
            before: unsafe { before.assume_init() },
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: the mask was in force before.
        unsafe {
            libc::pthread_sigmask(
                libc::SIG_SETMASK,
                &raw const self.before,
                std::ptr::null_mut(),
            )
        };
    }
}

impl std::fmt::Debug for HeldSignals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldSignals").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    static ARRIVED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn counts(_: libc::c_int) {
        ARRIVED.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn a_held_signal_arrives_once_it_is_held_no_longer() {
        // SAFETY: the function only counts.
        unsafe { libc::signal(libc::SIGUSR2, counts as *const () as libc::sighandler_t) };
        let held = HeldSignals::all();
        // SAFETY: a signal to this thread, which is caught.
        unsafe { libc::raise(libc::SIGUSR2) };
        assert_eq!(ARRIVED.load(Ordering::Relaxed), 0);
        drop(held);
        assert_eq!(ARRIVED.load(Ordering::Relaxed), 1);
    }

    extern "C" fn nothing(_: libc::c_int) {}

    fn handler() -> libc::sighandler_t {
        let mut action = MaybeUninit::uninit();
        // SAFETY: as above.
        unsafe { libc::sigaction(libc::SIGQUIT, std::ptr::null(), action.as_mut_ptr()) };
        // SAFETY: as above.
        unsafe { action.assume_init_ref() }.sa_sigaction
    }

    #[test]
    fn an_action_that_was_changed_meanwhile_holds_again() {
        let before = handler();
        let kept = KeptSignalActions::now();
        // SAFETY: the function does nothing.
        unsafe { libc::signal(libc::SIGQUIT, nothing as *const () as libc::sighandler_t) };
        assert_ne!(handler(), before);
        drop(kept);
        assert_eq!(handler(), before);
    }
}
