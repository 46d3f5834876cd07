//! Interrupts a thread that waits in the kernel: a signal whose handler does nothing, so that
//! the system call it sits in returns with EINTR and its loop looks at the stop flag.
#![expect(
    unsafe_code,
    reason = "signals to a thread have no safe wrapper among our dependencies"
)]

use std::sync::Once;

/// The signal: ignored by default everywhere, so that a stray one harms nobody.
const SIGNAL: libc::c_int = libc::SIGURG;

extern "C" fn do_nothing(_: libc::c_int) {}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all-zero bytes are a valid sigaction without flags (no SA_RESTART, on purpose).
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = do_nothing as *const () as libc::sighandler_t;
        // SAFETY: the handler touches nothing; the pointers are valid for the call.
        let result = unsafe { libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) };
        debug_assert_eq!(result, 0, "sigaction fails only on a bad signal or pointer");
    });
}

/// Interrupts the system call that a thread of this process sits in.
pub(super) fn interrupt(thread_id: u32) {
    install();
    let pid = std::process::id();
    // SAFETY: plain numbers; a thread that is gone is answered with ESRCH, which is fine.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, thread_id, SIGNAL) };
}
