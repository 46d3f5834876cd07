//! The I/O priority of a thread.
//!
//! In: class and level. Out: it holds for the calling thread's later I/O. Not here: priorities
//! of single operations, which an engine gives along.

#![expect(unsafe_code, reason = "neither libc nor rustix wraps ioprio_set")]

use crate::error::SysError;
use std::io;

/// `IOPRIO_WHO_PROCESS`: a thread.
const WHO_PROCESS: libc::c_int = 1;
/// Class of those that name none.
const BEST_EFFORT: u8 = 2;

/// Class and level as one number, in the form of system calls and of operations.
pub const fn io_priority(class: u8, level: u8) -> u16 {
    let class = if class == 0 { BEST_EFFORT } else { class };
    (class as u16) << 13 | level as u16
}

/// Sets the I/O priority of the calling thread; a class of 0 is best effort.
///
/// # Errors
/// [`SysError::Refused`] where the kernel refuses, as it does for the real-time class without
/// privilege.
pub fn set_io_priority(class: u8, level: u8) -> Result<(), SysError> {
    let value = libc::c_int::from(io_priority(class, level));
    // SAFETY: the call takes three numbers and touches no memory of ours; 0 is the caller.
    let result = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    if result == 0 {
        return Ok(());
    }
    Err(SysError::Refused {
        what: format!("set I/O priority {level} of class {class}"),
        source: io::Error::last_os_error(),
        remedy: Some("the real-time class needs privilege; the best-effort class does not"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_and_level_are_packed_as_the_kernel_wants_them() {
        assert_eq!(io_priority(1, 4), 0x2004);
        assert_eq!(io_priority(0, 7), io_priority(2, 7));
    }

    #[test]
    fn the_best_effort_class_is_everybodys() {
        std::thread::spawn(|| set_io_priority(2, 5).unwrap())
            .join()
            .unwrap();
    }
}
