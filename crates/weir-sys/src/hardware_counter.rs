//! Counters of the processor: cycles, instructions, caches; those of its units outside the cores.
//!
//! In: an event, a thread or a CPU; or a unit's settings. Out: an open counter, to be read twice and subtracted; or the kernel's
//! reason why there is none, as in most virtual machines. Not here: which events matter.

#![expect(unsafe_code, reason = "perf_event_open has no safe wrapper")]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The kernel's structure up to its third word of settings, which every kernel takes.
const WORDS: usize = 9;
const SIZE: u64 = 72;
/// Words of settings.
const CONFIGS: [usize; 3] = [1, 7, 8];
const HARDWARE: u64 = 0;
const SOFTWARE: u64 = 1;
const CACHE: u64 = 3;
/// Of caches: operation, then result.
const READ: u64 = 0;
const WRITE: u64 = 1 << 8;
const MISS: u64 = 1 << 16;
const L1D: u64 = 0;
const LLC: u64 = 2;
/// Times enabled and running follow the count.
const WITH_TIMES: u64 = 3;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;

/// Events that a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HardwareEvent {
    /// Cycles of a core.
    Cycles,
    /// Instructions that were completed.
    Instructions,
    /// Loads from the first cache.
    L1Loads,
    /// Of these, misses.
    L1LoadMisses,
    /// Stores to the first cache.
    L1Stores,
    /// Loads from the last cache.
    LlcLoads,
    /// Of these, misses.
    LlcLoadMisses,
    /// Stores to the last cache.
    LlcStores,
    /// Of these, misses.
    LlcStoreMisses,
    /// Accesses of the last cache, of any kind.
    CacheReferences,
    /// Of these, misses.
    CacheMisses,
    /// Moves to another CPU, which the kernel counts itself.
    CpuMigrations,
}

impl HardwareEvent {
    /// As perf calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::L1Loads => "L1-dcache-loads",
            Self::L1LoadMisses => "L1-dcache-load-misses",
            Self::L1Stores => "L1-dcache-stores",
            Self::LlcLoads => "LLC-loads",
            Self::LlcLoadMisses => "LLC-load-misses",
            Self::LlcStores => "LLC-stores",
            Self::LlcStoreMisses => "LLC-store-misses",
            Self::CacheReferences => "cache-references",
            Self::CacheMisses => "cache-misses",
            Self::CpuMigrations => "cpu-migrations",
        }
    }

    /// Kind and number, as the kernel has them.
    fn code(self) -> (u64, u64) {
        match self {
            Self::Cycles => (HARDWARE, 0),
            Self::Instructions => (HARDWARE, 1),
            Self::L1Loads => (CACHE, L1D | READ),
            Self::L1LoadMisses => (CACHE, L1D | READ | MISS),
            Self::L1Stores => (CACHE, L1D | WRITE),
            Self::LlcLoads => (CACHE, LLC | READ),
            Self::LlcLoadMisses => (CACHE, LLC | READ | MISS),
            Self::LlcStores => (CACHE, LLC | WRITE),
            Self::LlcStoreMisses => (CACHE, LLC | WRITE | MISS),
            Self::CacheReferences => (HARDWARE, 2),
            Self::CacheMisses => (HARDWARE, 3),
            Self::CpuMigrations => (SOFTWARE, 4),
        }
    }
}

/// The thread or CPU that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedBy {
    /// A thread, on any CPU.
    Thread(u32),
    /// A CPU, whatever runs on it.
    Cpu(u32),
}

/// A counter that counts from its opening on.
#[derive(Debug)]
pub struct HardwareCounter(File);

/// Reading of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HardwareCount {
    /// Events while it was counting.
    pub events: u64,
    /// Nanoseconds since its opening in which there was something to count.
    pub enabled_ns: u64,
    /// Of these, nanoseconds in which it was counting: fewer where events share a counter.
    pub running_ns: u64,
}

impl HardwareCounter {
    /// Opens a counter.
    ///
    /// # Errors
    /// The kernel's reason: `ENOENT` without such a counter, `EACCES` or `EPERM` without the right.
    pub fn open(event: HardwareEvent, who: CountedBy) -> io::Result<Self> {
        let (kind, number) = event.code();
        let id = |id: u32| libc::c_long::from(id);
        let (thread, cpu) = match who {
            CountedBy::Thread(thread) => (id(thread), -1),
            CountedBy::Cpu(cpu) => (-1, id(cpu)),
        };
        Self::open_at(kind, [number, 0, 0], EXCLUDE_HYPERVISOR, (thread, cpu))
    }

    /// Opens a counter of a unit outside the cores, by its number, its settings and a CPU of its socket.
    ///
    /// # Errors
    /// As [`HardwareCounter::open`].
    pub fn open_of_unit(kind: u32, config: [u64; 3], cpu: u32) -> io::Result<Self> {
        // Such units know no modes that could be left out.
        Self::open_at(u64::from(kind), config, 0, (-1, libc::c_long::from(cpu)))
    }

    fn open_at(
        kind: u64,
        config: [u64; 3],
        excluded: u64,
        (thread, cpu): (libc::c_long, libc::c_long),
    ) -> io::Result<Self> {
        let mut attributes = [0_u64; WORDS];
        // Kind and size share a word, the kind in its lower half.
        attributes[0] = kind | SIZE << 32;
        for (at, word) in CONFIGS.into_iter().zip(config) {
            attributes[at] = word;
        }
        attributes[4] = WITH_TIMES;
        attributes[5] = excluded;
        let no_group: libc::c_long = -1;
        let flags = CLOSE_ON_EXEC;
        // SAFETY: the first argument points to SIZE readable bytes, as its own size field says, for the
        // length of the call; all others are numbers.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                attributes.as_ptr(),
                thread,
                cpu,
                no_group,
                flags,
            )
        };
        if opened < 0 {
            return Err(io::Error::last_os_error());
        }
        let number = RawFd::try_from(opened).map_err(io::Error::other)?;
        // SAFETY: the kernel has just opened this descriptor, and nobody else has it.
        let owned = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Self(File::from(owned)))
    }

    /// The count so far.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn read(&self) -> io::Result<HardwareCount> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(word)
        };
        Ok(HardwareCount {
            events: word(0),
            enabled_ns: word(8),
            running_ns: word(16),
        })
    }
}

impl HardwareCount {
    /// Events since an earlier reading, scaled to all of the time; the share of the time that they were
    /// counted in. Nothing where they were never counted.
    #[expect(clippy::cast_precision_loss, reason = "counts of a sample")]
    pub fn since(&self, earlier: &Self) -> Option<(f64, f64)> {
        let running = self.running_ns.checked_sub(earlier.running_ns)?;
        let enabled = self.enabled_ns.checked_sub(earlier.enabled_ns)?;
        let events = self.events.checked_sub(earlier.events)?;
        let share = running as f64 / enabled as f64;
        (running > 0).then(|| (events as f64 / share, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts_or_the_kernel_says_why_not() {
        match HardwareCounter::open(HardwareEvent::Instructions, CountedBy::Thread(0)) {
            Ok(counter) => {
                let before = counter.read().unwrap();
                std::hint::black_box((0..100_000_u64).fold(0, |a, b| a ^ b));
                let after = counter.read().unwrap();
                assert!(after.events >= before.events);
            }
            Err(why) => {
                let known = [
                    libc::ENOENT,
                    libc::EACCES,
                    libc::EPERM,
                    libc::ENOSYS,
                    libc::EOPNOTSUPP,
                ];
                assert!(known.contains(&why.raw_os_error().unwrap()), "{why}");
            }
        }
        let nobody = HardwareCounter::open(HardwareEvent::Cycles, CountedBy::Thread(u32::MAX >> 1));
        assert!(nobody.is_err());
    }

    #[test]
    fn counts_of_a_part_of_the_time_are_scaled_to_all_of_it() {
        let at = |events, enabled_ns, running_ns| HardwareCount {
            events,
            enabled_ns,
            running_ns,
        };
        assert_eq!(at(150, 200, 110).since(&at(50, 0, 10)), Some((200.0, 0.5)));
        assert_eq!(at(50, 200, 10).since(&at(50, 0, 10)), None);
        assert_eq!(at(1, 1, 1).since(&at(2, 2, 2)), None);
    }
}
