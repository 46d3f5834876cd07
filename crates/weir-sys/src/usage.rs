//! Resources that one thread has used.
//!
//! In: the kernel's accounting of a thread. Out: counters, to be read twice and
//! subtracted. Not here: CPUs as a whole ([`crate::cpu_time`]).

#![expect(
    unsafe_code,
    reason = "getrusage has no safe wrapper among our dependencies"
)]

use std::mem::MaybeUninit;

use weir_units::Nanos;

use crate::tree::Tree;

/// Resources used by a thread since it started, or between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Time in user code.
    pub user: Nanos,
    /// Time in the kernel on the thread's behalf.
    pub system: Nanos,
    /// Page faults served without I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Times it gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
}

/// Time that the calling thread has waited so far for a CPU that others had; `None` without
/// scheduler statistics.
pub fn run_delay() -> Option<Nanos> {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    line.split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .map(Nanos)
}

impl ThreadUsage {
    /// The calling thread's use so far.
    pub fn current() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is to writable memory of the struct's size, valid for the call.
        let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        debug_assert_eq!(
            result, 0,
            "getrusage fails only on a bad pointer or selector"
        );
        // SAFETY: zeroed above, and all-zero bytes are a valid `rusage` of integers.
        let usage = unsafe { usage.assume_init() };
        let count = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
        let time = |t: libc::timeval| {
            let (seconds, micros) = (u64::try_from(t.tv_sec), u64::try_from(t.tv_usec));
            Nanos(seconds.unwrap_or(0) * 1_000_000_000 + micros.unwrap_or(0) * 1_000)
        };
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }

    /// Another thread's use so far, its times in hundredths of a second as the kernel tells them;
    /// `None` when it is gone.
    pub fn of_thread(tree: &Tree, thread_id: u32) -> Option<Self> {
        const HUNDREDTH: u64 = 10_000_000;
        let stat = tree.text(format!("proc/self/task/{thread_id}/stat"))?;
        // The name before the last bracket may hold anything.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<u64> = fields
            .split_ascii_whitespace()
            .map(|field| field.parse().unwrap_or(0))
            .collect();
        let status = tree.text(format!("proc/self/task/{thread_id}/status"))?;
        let switches = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            user: Nanos(field(14)? * HUNDREDTH),
            system: Nanos(field(15)? * HUNDREDTH),
            voluntary_switches: switches("voluntary_ctxt_switches:").unwrap_or(0),
            involuntary_switches: switches("nonvoluntary_ctxt_switches:").unwrap_or(0),
        })
    }

    /// Usage added since an earlier reading of the same thread.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: Nanos(self.user.0.saturating_sub(earlier.user.0)),
            system: Nanos(self.system.0.saturating_sub(earlier.system.0)),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_reads_of_itself_what_others_read_of_it() {
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let id = own.file_name().unwrap().to_string_lossy().parse().unwrap();
        let pages = vec![1u8; 1 << 22];
        std::hint::black_box(&pages);
        let own = ThreadUsage::current();
        let seen = ThreadUsage::of_thread(&Tree::real(), id).unwrap();
        assert!(own.minor_faults >= 1000 && seen.minor_faults >= own.minor_faults);
        assert_eq!(ThreadUsage::of_thread(&Tree::real(), u32::MAX), None);
    }

    #[test]
    fn usage_of_a_thread_only_grows() {
        let before = ThreadUsage::current();
        let pages = vec![1u8; 1 << 22];
        std::hint::black_box(&pages);
        let after = ThreadUsage::current();
        let used = after.since(&before);
        assert!(used.minor_faults > 0, "fresh pages fault: {used:?}");
        assert_eq!(before.since(&after).minor_faults, 0);
    }
}
