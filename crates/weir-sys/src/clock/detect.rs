//! Choice of the clock, its reason, and the length of its tick.
//!
//! In: the CPU's flags and the kernel's current clock source. Out: a calibrated [`Clock`] and the
//! facts for the result. Not here: keeping it right for the length of a run ([`super::timeline`]).

use super::{Anchor, Clock, Scale, TickSource, Ticks, counter, counter_anchor};
use crate::tree::Tree;
use std::time::{Duration, Instant};
use weir_units::Nanos;

/// Facts about the clock for the result.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectedClock {
    /// The source that is read.
    pub source: TickSource,
    /// Reason for this source.
    pub reason: String,
    /// Ticks per second.
    pub frequency_hz: f64,
    /// Cost of one read in nanoseconds.
    pub read_cost_ns: f64,
    /// The kernel's own clock source.
    pub kernel_clocksource: Option<String>,
}

/// A clock on its way to being calibrated. Other start-up work fits between
/// [`Detection::begin`] and [`Detection::finish`], which waits only for what is left.
#[derive(Debug)]
pub struct Detection {
    begun: Instant,
    kernel_clocksource: Option<String>,
    /// The first anchor if the counter may be trusted, and the reason either way.
    choice: (Option<Anchor>, String),
}

impl Detection {
    /// The distance of the two anchors that give the first scale: two errors of some 20 ns over
    /// 5 ms are below 10 ppm, and the first sampling tick replaces it.
    pub const SPAN: Duration = Duration::from_millis(5);

    /// Looks at this machine and takes the first anchor.
    pub fn begin() -> Self {
        Self::begin_in(&Tree::real())
    }

    /// As [`Detection::begin`], with the kernel's files below `tree`.
    pub fn begin_in(tree: &Tree) -> Self {
        let clocksource = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let kernel_clocksource = tree.word(clocksource);
        let choice = match trust(tree, kernel_clocksource.as_deref()) {
            Ok(reason) => (Some(counter_anchor()), reason),
            Err(reason) => (None, reason),
        };
        Self {
            begun: Instant::now(),
            kernel_clocksource,
            choice,
        }
    }

    /// Calibrates.
    pub fn finish(self) -> (Clock, DetectedClock) {
        let (first, reason) = self.choice;
        let scale = first.and_then(|first| {
            std::thread::sleep(Self::SPAN.saturating_sub(self.begun.elapsed()));
            slope(first, counter_anchor())
        });
        let (source, scale) = match scale {
            Some(scale) => (TickSource::Counter, scale),
            None => (TickSource::Monotonic, Scale::IDENTITY),
        };
        let reason = if first.is_some() && source == TickSource::Monotonic {
            "the counter stood still while it was calibrated".to_owned()
        } else {
            reason
        };
        let clock = Clock { source, scale };
        let facts = DetectedClock {
            source: clock.source,
            reason,
            frequency_hz: Ticks::scale(&clock).frequency_hz(),
            read_cost_ns: clock.read_cost_ns(),
            kernel_clocksource: self.kernel_clocksource,
        };
        (clock, facts)
    }
}

/// Nanoseconds per tick between two anchors.
pub(super) fn slope(first: Anchor, last: Anchor) -> Option<Scale> {
    let nanos = Nanos(last.mono.0.saturating_sub(first.mono.0));
    Scale::from_slope(last.tick.since(first.tick), nanos)
}

/// Decides if the counter may be used: the reason for it, or the reason against it.
fn trust(tree: &Tree, kernel: Option<&str>) -> Result<String, String> {
    let Some(wanted) = counter::KERNEL_NAME else {
        return Err("this architecture has no counter that weir reads".to_owned());
    };
    if cfg!(target_arch = "x86_64") {
        let cpuinfo = tree.cpuinfo();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
        let has = |flag| flags.is_some_and(|line| line.split_whitespace().any(|f| f == flag));
        for flag in ["constant_tsc", "nonstop_tsc"] {
            if !has(flag) {
                return Err(format!("the CPU does not report {flag}"));
            }
        }
    }
    match kernel {
        Some(name) if name == wanted => Ok(format!(
            "the counter is invariant, and the kernel keeps time by it ({wanted})"
        )),
        Some(name) => Err(format!("the kernel keeps time by {name}, not by {wanted}")),
        None => Err("the kernel does not tell its clock source".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

    fn reason(cpuinfo: &str, clocksource: &str) -> (TickSource, String) {
        let fake = FakeTree::with(&[("proc/cpuinfo", cpuinfo), (CLOCKSOURCE, clocksource)]);
        let (clock, facts) = Detection::begin_in(&fake.tree()).finish();
        assert_eq!(clock.source(), facts.source);
        (facts.source, facts.reason)
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_counter_is_refused_unless_constant_nonstop_and_trusted_by_the_kernel() {
        let (source, why) = reason("flags\t\t: fpu tsc constant_tsc\n", "tsc\n");
        assert_eq!(source, TickSource::Monotonic);
        assert!(why.contains("nonstop_tsc"), "{why}");

        let (source, why) = reason("flags\t\t: constant_tsc nonstop_tsc\n", "kvm-clock\n");
        assert_eq!(source, TickSource::Monotonic);
        assert!(why.contains("kvm-clock"), "{why}");

        let (source, why) = reason("flags\t\t: constant_tsc nonstop_tsc\n", "tsc\n");
        assert_eq!(source, TickSource::Counter);
        assert!(why.contains("keeps time by it"), "{why}");
    }

    #[test]
    fn a_machine_without_facts_gets_the_kernels_clock() {
        let fake = FakeTree::new();
        let (clock, facts) = Detection::begin_in(&fake.tree()).finish();
        assert_eq!(clock.source(), TickSource::Monotonic);
        assert_eq!(Ticks::scale(&clock), Scale::IDENTITY);
        assert_eq!(facts.kernel_clocksource, None);
    }

    #[test]
    fn the_machines_clock_moves_forward_at_about_a_second_per_second() {
        let (clock, facts) = Clock::detect();
        let (start, before) = (clock.now(), clock.anchor());
        let after = loop {
            let anchor = clock.anchor();
            if anchor.mono.0 - before.mono.0 > 2_000_000 {
                break anchor;
            }
        };
        assert!(clock.now() > start);
        assert!(facts.frequency_hz > 1e6 && facts.read_cost_ns > 0.0);
        let by_ticks = clock.scale().to_nanos(after.tick.since(before.tick));
        let by_kernel = after.mono.0 - before.mono.0;
        // Not a timing threshold: both sides span the same two instants. A tenth catches a scale
        // that is wrong in kind.
        assert!(by_ticks.abs_diff(by_kernel) < by_kernel / 10);
    }
}
