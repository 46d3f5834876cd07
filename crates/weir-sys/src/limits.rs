//! Limits that the system sets this process, and an engine's report that it cannot run here.
//!
//! In: resource limits and `/proc/sys`. Out: numbers, `None` for unlimited or unknown as each
//! field says. Not here: control groups ([`crate::cgroup`]).

use crate::tree::Tree;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use weir_units::Bytes;

/// Availability of something on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Ready,
    /// It cannot.
    Missing {
        /// The missing thing, as a noun phrase.
        what: String,
        /// Instruction that makes it available.
        remedy: String,
    },
}

impl Availability {
    /// Builds [`Availability::Missing`].
    pub fn missing(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing {
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// True if it can be used.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// Limits that engines run into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Memory that may be locked; `None` is unlimited.
    pub locked_memory: Option<Bytes>,
    /// Files that may be open; `None` is unlimited.
    pub open_files: Option<u64>,
    /// libaio requests in flight, all processes together; `None` if the kernel has no libaio.
    pub aio_max: Option<u64>,
    /// libaio requests reserved now; `None` if the kernel has no libaio.
    pub aio_used: Option<u64>,
    /// Access to io_uring.
    pub io_uring: IoUringAccess,
}

/// The kernel's switch for io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoUringAccess {
    /// Everybody, or the kernel (before 6.6) has no switch.
    #[default]
    Everybody,
    /// Only privileged processes and members of one group.
    Privileged,
    /// Nobody.
    Nobody,
}

impl Limits {
    /// Reads the limits of this process.
    pub fn read(tree: &Tree) -> Self {
        Self {
            locked_memory: getrlimit(Resource::Memlock).current.map(Bytes),
            open_files: getrlimit(Resource::Nofile).current,
            aio_max: tree.number("proc/sys/fs/aio-max-nr"),
            aio_used: tree.number("proc/sys/fs/aio-nr"),
            io_uring: match tree.number("proc/sys/kernel/io_uring_disabled") {
                Some(2) => IoUringAccess::Nobody,
                Some(1) => IoUringAccess::Privileged,
                _ => IoUringAccess::Everybody,
            },
        }
    }
}

/// Files that this process may open at most, once [`raise_open_files`] was called; `None` is
/// unlimited.
pub fn most_open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Lets this process open as many files as it may allow itself.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it is refused, opening a file says so.
    let _ = setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    #[test]
    fn kernel_switches_are_read() {
        let fake = FakeTree::with(&[
            ("proc/sys/fs/aio-max-nr", "65536\n"),
            ("proc/sys/fs/aio-nr", "128\n"),
            ("proc/sys/kernel/io_uring_disabled", "2\n"),
        ]);
        let limits = Limits::read(&fake.tree());
        assert_eq!((limits.aio_max, limits.aio_used), (Some(65_536), Some(128)));
        assert_eq!(limits.io_uring, IoUringAccess::Nobody);
        fake.write("proc/sys/kernel/io_uring_disabled", "1\n");
        assert_eq!(
            Limits::read(&fake.tree()).io_uring,
            IoUringAccess::Privileged
        );
    }

    #[test]
    fn an_old_kernel_without_the_switches_lets_everybody() {
        let fake = FakeTree::new();
        let limits = Limits::read(&fake.tree());
        assert_eq!(limits.io_uring, IoUringAccess::Everybody);
        assert_eq!(limits.aio_max, None);
    }

    #[test]
    fn missing_says_what_and_how_to_get_it() {
        let missing = Availability::missing("libaio in the kernel", "use a kernel with CONFIG_AIO");
        assert!(!missing.is_ready());
        assert!(Availability::Ready.is_ready());
    }
}
