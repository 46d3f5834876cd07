//! Check for a standard output that was closed when the program began.
//!
//! Rust opens `/dev/null` in the place of a standard stream that is closed, so that no other file
//! gets its number. What is printed vanishes there without an error; and who started the program
//! with `/dev/null` on purpose has the same. So this looks before that, when the program is loaded.
#![expect(unsafe_code, reason = "a place in the table of what runs before main")]

use std::sync::atomic::{AtomicBool, Ordering};

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Only a system call and a store: nothing of the standard library is set up yet.
extern "C" fn check_stdout() {
    let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
    CLOSED.store(flags.is_err(), Ordering::Relaxed);
}

// SAFETY: entries of this section are functions without a result, which the loader calls before
// `main`; that it passes arguments is nothing to a C function that takes none.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = check_stdout;

/// True if this process began without a standard output.
pub fn stdout_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}
