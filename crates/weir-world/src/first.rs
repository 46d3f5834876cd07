//! The process of rank 0, as a rank that a launcher started sees it: where a signal is passed on.
//!
//! In: what rank 0 says of itself. Out: a handle on its process, where both see the same processes.
//! Not here: ranks that weir has started itself ([`crate::RankProcesses`]).

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Rank 0's process. Its number may be another's once it has ended; this is its own for ever.
#[derive(Debug)]
pub struct First(OwnedFd);

impl First {
    /// Message of rank 0 to the others: the processes it sees, and its own number among them.
    pub fn word() -> Vec<u8> {
        let word = here().map(|here| format!("{here} {}", std::process::id()));
        word.unwrap_or_default().into_bytes()
    }

    /// The process that has said this; nothing where it cannot be seen from here, such as on
    /// another machine.
    pub fn of(word: &[u8]) -> Option<Self> {
        let (there, process) = std::str::from_utf8(word).ok()?.rsplit_once(' ')?;
        let process = Pid::from_raw(process.parse().ok()?)?;
        if here()? != there {
            return None;
        }
        pidfd_open(process, PidfdFlags::empty()).map(Self).ok()
    }

    /// Passes a signal on. False where it has ended.
    pub fn pass_on(&self, number: i32) -> bool {
        let signal = Signal::from_named_raw(number);
        signal.is_none_or(|signal| pidfd_send_signal(&self.0, signal) != Err(Errno::SRCH))
    }
}

/// This start of the machine, the numbers of processes that are seen from here, and the network.
pub(crate) fn here() -> Option<String> {
    let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let numbers = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let network = std::fs::read_link("/proc/self/ns/net").ok()?;
    let (numbers, network) = (numbers.display(), network.display());
    Some(format!("{} {numbers} {network}", start.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_found_where_it_is_seen() {
        let word = First::word();
        assert!(First::of(&word).is_some());
        let elsewhere = [b"another-machine ".as_slice(), &word].concat();
        for nobody in [elsewhere.as_slice(), b"", b"x", b"\xff 1"] {
            assert!(First::of(nobody).is_none(), "{nobody:?}");
        }
    }
}
