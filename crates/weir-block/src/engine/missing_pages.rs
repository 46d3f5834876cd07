//! Copies from and to a mapping whose pages the kernel may be unable to provide: an I/O error
//! behind them, a file that was cut, a file system without room.
//!
//! In: a copy, and the mapping that it touches. Out: whether every page was there. The kernel
//! reports a page that it cannot provide by SIGBUS, which ends the process. The handler here puts
//! an empty page in its place and makes a note for the copy, which goes on to its end; who
//! copied then puts the file's own pages back. A SIGBUS of anything else goes to whoever had the
//! signal before. Cost: two stores per copy.

#![expect(
    unsafe_code,
    reason = "a signal's handler, and a page mapped at an address that the kernel names"
)]

use std::cell::Cell;
use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// The earlier handler of the signal.
static EARLIER: OnceLock<sigaction> = OnceLock::new();

// Without destructors and made by constants: the handler reads them like plain memory.
thread_local! {
    /// The mapping that a copy of this thread touches: first address, and the one behind it.
    static MAPPED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    /// A page was missing.
    static MISSED: Cell<bool> = const { Cell::new(false) };
}

/// Expects missing pages from now on.
///
/// # Errors
/// The kernel's answer.
pub(super) fn expect() -> io::Result<()> {
    if EARLIER.get().is_some() {
        return Ok(());
    }
    // Copies of a mapping come long after: no SIGBUS of one meets a half-set handler.
    let earlier = set(None)?;
    if EARLIER.set(earlier).is_err() {
        return Ok(());
    }
    // SAFETY: all-zero bytes are a valid sigaction with an empty mask.
    let mut action: sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_missing_page as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    set(Some(&action)).map(drop)
}

/// Sets who gets the signal, if that is to change; who had it.
fn set(action: Option<&sigaction>) -> io::Result<sigaction> {
    // SAFETY: all-zero bytes are a valid sigaction.
    let mut earlier: sigaction = unsafe { std::mem::zeroed() };
    let new = action.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the kernel reads one action, if there is one, and writes another; both are there.
    match unsafe { sigaction(libc::SIGBUS, new, &raw mut earlier) } {
        0 => Ok(earlier),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs in the thread that touched the page. Calls nothing but the kernel.
extern "C" fn on_missing_page(_signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes the signal's facts, which are there while the handler runs.
    let facts = unsafe { &*info };
    // SAFETY: of SIGBUS they hold an address.
    let address = unsafe { facts.si_addr() }.addr();
    let (start, end) = MAPPED.get();
    if (start..end).contains(&address) && put_empty_page(address) {
        MISSED.set(true);
        return;
    }
    // The instruction is carried out again, and the signal comes again. What was set before can be
    // set again, and nobody could be told here of a failure.
    if let Some(earlier) = EARLIER.get() {
        let _ = set(Some(earlier));
    }
}

/// Puts an empty page where there is none; huge pages of a pool cannot be replaced.
fn put_empty_page(address: usize) -> bool {
    let size = rustix::param::page_size();
    let page = ptr::without_provenance_mut::<c_void>(address / size * size);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the page is part of a mapping that the copy's thread alone uses, and only by address.
    let mapped = unsafe { libc::mmap(page, size, access, flags, -1, 0) };
    mapped == page
}

/// Copies so many bytes of which either side lies in the mapping that `mapped` begins and ends;
/// whether all of its pages were there.
///
/// # Safety
/// As of [`ptr::copy_nonoverlapping`], but for the pages of the mapping; [`expect`] was called, and
/// no other thread uses the mapping.
pub(super) unsafe fn copy(
    from: *const u8,
    to: *mut u8,
    length: usize,
    mapped: (usize, usize),
) -> bool {
    MAPPED.set(mapped);
    // The handler interrupts this very thread: the order of the instructions is all it needs.
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the caller's promise; a missing page is replaced by the handler.
    unsafe { ptr::copy_nonoverlapping(from, to, length) };
    compiler_fence(Ordering::SeqCst);
    MAPPED.set((0, 0));
    !MISSED.take()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    use super::*;

    /// Set in the process that is to end.
    const ENDS: &str = "WEIR_TEST_ENDS_BY_SIGBUS";

    /// Touches a page that a file no longer has, outside any copy.
    fn touch_a_missing_page() -> u8 {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let behind = file.metadata().unwrap().len().next_multiple_of(1 << 20);
        let behind = libc::off_t::try_from(behind).unwrap();
        let page = rustix::param::page_size();
        let (access, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        // SAFETY: without MAP_FIXED a new mapping replaces nothing.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), page, access, flags, fd, behind) };
        assert_ne!(mapped, libc::MAP_FAILED);
        // SAFETY: the process ends here: the mapping has no page of the file.
        unsafe { ptr::read_volatile(mapped.cast()) }
    }

    #[test]
    fn a_signal_of_anything_else_ends_the_process_as_before() {
        let name = "a_signal_of_anything_else_ends_the_process_as_before";
        if std::env::var_os(ENDS).is_some() {
            expect().unwrap();
            // SAFETY: sets a timer of this process: one that hangs is ended by another signal.
            unsafe { libc::alarm(20) };
            touch_a_missing_page();
            return;
        }
        let this = std::env::current_exe().unwrap();
        let child = Command::new(this)
            .arg(name)
            .env(ENDS, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGBUS), "{child:?}");
    }
}
