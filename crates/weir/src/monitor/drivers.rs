//! Pauses and drops that drivers of network interfaces count, besides the kernel's counts.
//!
//! In: names of interfaces. Out: the counts at one moment; from two of them figures by interface and counter. Not
//! here: asking a driver (`weir-sys`), counters of the kernel (`sample`).

#![expect(
    clippy::cast_precision_loss,
    reason = "counts of a while become floating point where their error is far below noise"
)]

use std::collections::BTreeMap;

use weir_diagnose::{HostFigure, Reading};
use weir_sys::Tree;
use weir_sys::driver_counters::driver_counters;

/// Label of pauses on a wire that drivers counted.
const PAUSES: &str = "pauses";
/// Label of packets that drivers dropped.
const DRIVER_DROPS: &str = "driver_drops";

/// Parts of names of counters of pauses, and of those among them that count no pauses.
const OF_PAUSES: (&[&str], &[&str]) = (
    &["pause", "xoff", "xon", "pfc"],
    &["duration", "time", "_us", "transition", "storm"],
);
/// The same of drops. What a queue drops is counted again in the sum of all queues.
const OF_DROPS: (&[&str], &[&str]) = (
    &[
        "drop",
        "discard",
        "missed",
        "no_buf",
        "out_of_buffer",
        "overrun",
        "overflow",
        "fifo_err",
    ],
    &[],
);

/// Counts of drivers, by interface and counter.
#[derive(Debug, Default)]
pub(super) struct DriverCounts {
    pauses: BTreeMap<(String, String), u64>,
    drops: BTreeMap<(String, String), u64>,
    /// True if a driver was asked.
    is_asked: bool,
}

impl DriverCounts {
    /// Reads the counts of these interfaces, which have to be in this process' network.
    pub(super) fn of<'a>(interfaces: impl Iterator<Item = &'a String>) -> Self {
        let mut counts = Self {
            is_asked: true,
            ..Self::default()
        };
        for interface in interfaces {
            // An interface without a driver counts nothing; one that is gone neither.
            for (name, count) in driver_counters(interface).unwrap_or_default() {
                counts.add(interface, name, count);
            }
        }
        counts
    }

    fn add(&mut self, interface: &str, name: String, count: u64) {
        let has = |(parts, others): (&[&str], &[&str])| {
            let is_in = |part: &&str| name.contains(*part);
            parts.iter().any(is_in) && !others.iter().any(is_in)
        };
        let kind = if has(OF_PAUSES) {
            &mut self.pauses
        } else if has(OF_DROPS) {
            &mut self.drops
        } else {
            return;
        };
        kind.insert((interface.to_owned(), name), count);
    }

    pub(super) fn has_pauses(&self) -> bool {
        !self.pauses.is_empty()
    }

    pub(super) fn has_drops(&self) -> bool {
        !self.drops.is_empty()
    }

    /// Reason why there are no pauses.
    pub(super) fn no_pauses(&self) -> &'static str {
        if self.is_asked {
            "no driver of an interface counts pauses"
        } else {
            "the process is in another network namespace"
        }
    }

    /// Pauses since, in all and by counter, then drops by counter.
    pub(super) fn figures_since(&self, earlier: &Self) -> Vec<HostFigure> {
        let pauses = changed(PAUSES, &self.pauses, &earlier.pauses);
        let all = if self.has_pauses() {
            let sum = pauses.iter().filter_map(|figure| figure.reading.value);
            Reading::known(sum.sum())
        } else {
            Reading::missing(self.no_pauses())
        };
        let drops = changed(DRIVER_DROPS, &self.drops, &earlier.drops);
        let all = std::iter::once(HostFigure::new(PAUSES, all));
        all.chain(pauses).chain(drops).collect()
    }
}

/// The counters that counted any.
fn changed(
    label: &str,
    now: &BTreeMap<(String, String), u64>,
    then: &BTreeMap<(String, String), u64>,
) -> Vec<HostFigure> {
    let of = |(key, count): (&(String, String), &u64)| {
        let since = count.saturating_sub(*then.get(key).unwrap_or(count));
        let name = format!("{label} {} {}", key.0, key.1);
        (since > 0).then(|| HostFigure::new(name, Reading::known(since as f64)))
    };
    now.iter().filter_map(of).collect()
}

/// True if a process has the same interfaces as this one.
pub(super) fn is_same_network(tree: &Tree, process: Option<u32>) -> bool {
    let of = |who: &str| std::fs::read_link(tree.path(format!("proc/{who}/ns/net"))).ok();
    process.is_none_or(|process| of(&process.to_string()) == of("self"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(&str, u64)]) -> DriverCounts {
        let mut all = DriverCounts {
            is_asked: true,
            ..DriverCounts::default()
        };
        for (name, count) in counts {
            all.add("a0", (*name).to_owned(), *count);
        }
        all
    }

    #[test]
    fn pauses_and_drops_are_found_by_the_names_that_drivers_give_them() {
        let then = of(&[
            ("rx_prio3_pause", 10),
            ("rx_prio3_pause_duration", 5),
            ("rx_flow_control_xoff", 1),
            ("rx_out_of_buffer", 7),
            ("rx_packets", 100),
        ]);
        let now = of(&[
            ("rx_prio3_pause", 12),
            ("rx_prio3_pause_duration", 900),
            ("rx_flow_control_xoff", 4),
            ("rx_out_of_buffer", 8),
            ("rx_packets", 300),
        ]);
        let figures: Vec<(String, Option<f64>)> = now
            .figures_since(&then)
            .into_iter()
            .map(|figure| (figure.name, figure.reading.value))
            .collect();
        let expected = [
            ("pauses", 5.0),
            ("pauses a0 rx_flow_control_xoff", 3.0),
            ("pauses a0 rx_prio3_pause", 2.0),
            ("driver_drops a0 rx_out_of_buffer", 1.0),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), Some(value)));
        assert_eq!(figures, expected);
    }

    #[test]
    fn what_no_driver_counts_is_unavailable_with_the_reason() {
        let none = of(&[("rx_packets", 3)]);
        let figures = none.figures_since(&none);
        assert_eq!(figures.len(), 1);
        let reason = "no driver of an interface counts pauses";
        assert_eq!(figures[0].reading.reason(), reason);
        let elsewhere = DriverCounts::default();
        assert!(elsewhere.no_pauses().contains("another network namespace"));
        // Counted, and none since.
        let some = of(&[("tx_pause", 3)]);
        assert_eq!(some.figures_since(&some)[0].reading.value, Some(0.0));
    }
}
