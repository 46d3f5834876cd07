//! CPU time that a worker's thread has used.
//!
//! In: the calling thread, or a thread by its number. Out: [`CpuUse`] since a reading. Not here: what it means.

use weir_schema::CpuUse;
use weir_sys::Tree;
use weir_sys::usage::{self, ThreadUsage};
use weir_units::Nanos;

/// Use of the calling thread at an instant.
#[derive(Debug)]
pub(crate) struct CpuReading {
    used: ThreadUsage,
    run_delay: Option<Nanos>,
    cpu: Option<u32>,
}

impl CpuReading {
    pub(crate) fn read() -> Self {
        Self {
            used: ThreadUsage::current(),
            run_delay: usage::run_delay(),
            cpu: u32::try_from(rustix::thread::sched_getcpu()).ok(),
        }
    }

    /// Use since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> CpuUse {
        let delays = self.run_delay.zip(earlier.run_delay);
        CpuUse {
            run_delay_ns: delays.map(|(now, then)| Nanos(now.0.saturating_sub(then.0))),
            first_cpu: earlier.cpu,
            last_cpu: self.cpu,
            ..cpu_use(&self.used.since(&earlier.used))
        }
    }

    /// Use since this reading by its thread, which still runs.
    pub(crate) fn used_by(&self, thread_id: u32) -> Option<CpuUse> {
        let used = ThreadUsage::of_thread(&Tree::real(), thread_id)?;
        Some(cpu_use(&used.since(&self.used)))
    }
}

fn cpu_use(used: &ThreadUsage) -> CpuUse {
    CpuUse {
        user_ns: used.user,
        system_ns: used.system,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        minor_faults: used.minor_faults,
        major_faults: used.major_faults,
        ..CpuUse::default()
    }
}
