//! Idleness of the CPUs during a run: the kernel's counters before and after it.
//!
//! In: `/proc/stat`. Out: shares for the report, with a unit of work as fio measures it. fio
//! runs threads of the lowest priority and counts what they get; the kernel counts without
//! taking part.

#![expect(clippy::cast_precision_loss, reason = "shares and means for the eye")]

use std::hint::black_box;
use std::time::Instant;

use weir_doors::fio::output::Idleness;
use weir_stats::Moments;
use weir_sys::Tree;
use weir_sys::cpu_time::{CpuTimes, cpu_times};

/// The unit of work is measured so often.
const UNITS: u32 = 10;
/// A unit fills a page so often.
const FILLS: u32 = 1000;
const PAGE: usize = 4096;

/// The counters at the start of a run.
#[derive(Debug)]
pub(crate) struct IdlenessWatch {
    times: Vec<(u32, CpuTimes)>,
    unit: Idleness,
}

impl IdlenessWatch {
    pub(crate) fn start() -> Self {
        // The unit first: it is no part of the run.
        let unit = unit();
        Self {
            times: cpu_times(&Tree::real()),
            unit,
        }
    }

    /// Idleness since the start.
    pub(crate) fn idleness(&self) -> Idleness {
        let after = cpu_times(&Tree::real());
        let spans: Vec<(u32, CpuTimes)> = after
            .iter()
            .filter_map(|(number, now)| {
                let (_, then) = self.times.iter().find(|(n, _)| n == number)?;
                Some((*number, now.since(then)))
            })
            .collect();
        let sum = |of: fn(&CpuTimes) -> u64| spans.iter().map(|(_, t)| of(t)).sum();
        let cpus = spans.iter();
        Idleness {
            system: Some(share(sum(idle), sum(|t| t.total().0))),
            cpus: cpus
                .map(|(n, t)| (*n, share(idle(t), t.total().0)))
                .collect(),
            ..self.unit
        }
    }
}

fn idle(times: &CpuTimes) -> u64 {
    times.idle.0 + times.io_wait.0
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// Length of a unit of work.
pub(crate) fn unit() -> Idleness {
    let mut page = [0_u8; PAGE];
    let mut moments = Moments::default();
    for _ in 0..UNITS {
        let begun = Instant::now();
        for fill in 0..FILLS {
            black_box(&mut page).fill(fill.to_le_bytes()[0]);
        }
        moments.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Idleness {
        unit_mean_us: moments.mean,
        unit_deviation_us: moments.deviation().unwrap_or_default(),
        ..Idleness::default()
    }
}
