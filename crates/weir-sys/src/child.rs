//! Resources that one child process used until its end.
//!
//! In: a child that was started. Out: how it ended, when, its CPU time and its most memory, with what
//! its own children used that it waited for. Not here: starting it.

#![expect(
    unsafe_code,
    reason = "wait4, for what one child has used, which std and rustix do not wrap"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Instant;

use weir_units::{Bytes, Nanos};

/// A child that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedChild {
    /// Exit status.
    pub status: ExitStatus,
    /// Time at which the end was seen.
    pub at: Instant,
    /// Time in user code.
    pub user: Nanos,
    /// Time in the kernel.
    pub system: Nanos,
    /// The most memory that it, or one of its own children, had at once.
    pub peak_memory: Bytes,
}

/// Waits until the child of this number ends.
///
/// # Errors
/// It is no child of this process any more.
pub fn wait(child: u32) -> io::Result<EndedChild> {
    let pid = libc::pid_t::try_from(child).map_err(io::Error::other)?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to writable memory of their types, valid for the call.
        let reaped = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if reaped == pid {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let at = Instant::now();
    // SAFETY: zeroed above, and all-zero bytes are a valid `rusage` of integers.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| {
        let (seconds, micros) = (u64::try_from(t.tv_sec), u64::try_from(t.tv_usec));
        Nanos(seconds.unwrap_or(0) * 1_000_000_000 + micros.unwrap_or(0) * 1_000)
    };
    Ok(EndedChild {
        status: ExitStatus::from_raw(status),
        at,
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_memory: Bytes(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10),
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_child_has_its_own_time_memory_and_exit_code() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let ended = wait(child.id()).unwrap();
        assert_eq!(ended.status.code(), Some(7));
        assert!(ended.peak_memory.0 > 100 << 10, "{ended:?}");
        // It is gone: nobody can wait for it again.
        assert!(wait(child.id()).is_err() && child.wait().is_err());
    }

    #[test]
    fn a_child_has_the_time_of_its_own_code_and_no_more_than_has_passed() {
        let begin = Instant::now();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let mut child = Command::new("sh").args(["-c", busy]).spawn().unwrap();
        let ended = wait(child.id()).unwrap();
        assert!(child.wait().is_err());
        let passed = Nanos(u64::try_from(ended.at.duration_since(begin).as_nanos()).unwrap());
        // The loop asks nothing of the kernel. A time is known to the microsecond.
        assert!(ended.user > ended.system, "{ended:?}");
        let used = ended.user.0 + ended.system.0;
        assert!(used <= passed.0 + 2_000, "{ended:?} of {passed}");
        assert!(used >= passed.0 / 1000, "{ended:?} of {passed}");
    }
}
