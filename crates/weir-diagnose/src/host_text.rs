//! A report of the host as text: the form that the reference's script writes, with weir's figures in it.
//!
//! In: [`HostMeasurement`]. Out: lines that [`crate::HostReport`] reads. A figure that there is none of is
//! `unavailable (reason)`, never 0. Not here: measuring.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::inputs::{IoRates, SocketCounts};
use crate::reading::Reading;

/// The version of a measurement as JSON.
pub const HOST_SCHEMA: &str = "weir.host.v1";

/// Measurement of a monitor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostMeasurement {
    /// [`HOST_SCHEMA`].
    pub schema: &'static str,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Busy share of each CPU, 0 to 1, by its number.
    pub cpus: BTreeMap<u32, f64>,
    /// Figures of the processes and of the whole host, by label.
    pub figures: Vec<HostFigure>,
    /// Cache misses of devices' accesses, by socket.
    pub sockets: BTreeMap<u32, IoRates>,
    /// The accesses themselves, where they were counted.
    pub io_counts: BTreeMap<u32, SocketCounts>,
    /// Megabytes (10^6) a second of each memory node.
    pub nodes_mb_per_s: BTreeMap<u32, Reading>,
    /// Of these what was read and what was written, where it was counted apart.
    pub node_parts: BTreeMap<u32, NodeParts>,
    /// Counts of events, as perf calls them.
    pub events: Vec<HostFigure>,
    /// Source of each quantity, or the reason that there is none.
    pub sources: BTreeMap<&'static str, String>,
}

/// Read and write rates of a memory node, in megabytes (10^6) a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NodeParts {
    /// Read.
    pub read: f64,
    /// Written.
    pub written: f64,
}

/// A figure with its label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostFigure {
    /// Name of the figure.
    pub name: String,
    /// The figure, or why there is none.
    #[serde(flatten)]
    pub reading: Reading,
}

impl HostFigure {
    /// A figure with its label.
    pub fn new(name: impl Into<String>, reading: Reading) -> Self {
        Self {
            name: name.into(),
            reading,
        }
    }
}

/// Label of the share of the time that the process waited for a CPU.
pub const RUN_DELAY: &str = "run_delay_share";
/// Label of the share of the CPUs' time that the hypervisor took.
pub const STEAL: &str = "steal_share";
/// Label of the packets that interfaces dropped or had no room for.
pub const INTERFACE_DROPS: &str = "interface_drops";

/// Events in the order of the report; behind those of a line the rate of two of them: label, misses, all.
const EVENTS: [(&[&str], Option<[&str; 3]>); 5] = [
    (&["cycles", "instructions"], None),
    (
        &[
            "L1-dcache-loads",
            "L1-dcache-load-misses",
            "L1-dcache-stores",
        ],
        Some([
            "L1-dcache-load-misses-rate",
            "L1-dcache-load-misses",
            "L1-dcache-loads",
        ]),
    ),
    (
        &["LLC-loads", "LLC-load-misses"],
        Some(["LLC-load-misses-rate", "LLC-load-misses", "LLC-loads"]),
    ),
    (
        &["LLC-stores", "LLC-store-misses"],
        Some(["LLC-store-misses-rate", "LLC-store-misses", "LLC-stores"]),
    ),
    (
        &["cache-references", "cache-misses"],
        Some(["cache-misses-rate", "cache-misses", "cache-references"]),
    ),
];

impl HostMeasurement {
    /// Its lines.
    pub fn text(&self) -> String {
        let mut out = String::new();
        title(&mut out, 20, "begin all measurement");
        title(&mut out, 20, "cpu performance");
        for (cpu, busy) in &self.cpus {
            push!(out, "core {cpu} : {:.2}%\n", busy * 100.0);
        }
        let busy: f64 = self.cpus.values().sum();
        if !self.cpus.is_empty() {
            push!(
                out,
                "avg_cpu_util: {:.2}%\n",
                busy / self.cpus.len() as f64 * 100.0
            );
        }
        for figure in &self.figures {
            push!(out, "{}: {}\n", figure.name, figure.reading.printed());
        }
        title(&mut out, 18, "pcie performance");
        for (socket, rates) in &self.sockets {
            title(&mut out, 6, &format!("Socket {socket}"));
            self.io_counts(&mut out, *socket);
            for (what, rate) in [("Read", &rates.read_miss), ("Write", &rates.write_miss)] {
                push!(out, "IO {what} Miss Rate: {}\n", fixed(rate, 2));
            }
        }
        title(&mut out, 20, "mem performance");
        push!(out, "metric       bandwidth(MB/s)\n");
        for (node, reading) in &self.nodes_mb_per_s {
            if let Some(parts) = self.node_parts.get(node) {
                push!(out, "Node{node}_rd_bw:  {:.6}\n", parts.read);
                push!(out, "Node{node}_wr_bw:  {:.6}\n", parts.written);
            }
            push!(out, "Node{node}_total_bw:  {}\n", fixed(reading, 6));
        }
        title(&mut out, 20, "llc performance");
        self.events(&mut out);
        for (quantity, source) in &self.sources {
            push!(out, "source {quantity}: {source}\n");
        }
        out
    }

    fn io_counts(&self, out: &mut String, socket: u32) {
        let Some(counts) = self.io_counts.get(&socket) else {
            return;
        };
        let both = [
            ("Read", counts.reads, counts.read_misses),
            ("Write", counts.writes, counts.write_misses),
        ];
        for (what, all, misses) in both {
            push!(out, "IO {what}_cnt: {all:.0}\n");
            push!(out, "IO {what}_miss: {misses:.0}\n");
            push!(out, "IO {what}_hit: {:.0}\n", (all - misses).max(0.0));
        }
    }

    fn events(&self, out: &mut String) {
        let find = |event: &str| self.events.iter().find(|known| known.name == event);
        for (events, rate) in EVENTS {
            let known: Vec<&HostFigure> = events.iter().filter_map(|event| find(event)).collect();
            for HostFigure { name, reading } in &known {
                push!(out, "{name}: {}\n", fixed(reading, 0));
            }
            let Some([label, misses, all]) = rate.filter(|_| !known.is_empty()) else {
                continue;
            };
            let rate = ratio(find(misses), find(all));
            push!(out, "{label}: {}\n", fixed(&rate, 2));
        }
    }
}

/// One count over another.
fn ratio(part: Option<&HostFigure>, whole: Option<&HostFigure>) -> Reading {
    let (Some(part), Some(whole)) = (part, whole) else {
        return Reading::missing("not counted");
    };
    if whole.reading.value == Some(0.0) {
        return Reading::missing("0 were counted");
    }
    part.reading
        .with(&whole.reading, |part, whole| part / whole)
}

/// With so many decimals, or why there is none.
fn fixed(reading: &Reading, decimals: usize) -> String {
    let printed = || reading.printed();
    reading
        .value
        .map_or_else(printed, |value| format!("{value:.decimals$}"))
}

fn title(out: &mut String, dashes: usize, text: &str) {
    let dashes = "-".repeat(dashes);
    push!(out, "{dashes}{text}{dashes}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::HostReport;

    fn measured() -> HostMeasurement {
        let none = || Reading::missing("perf_event_open LLC-loads: ENOENT");
        HostMeasurement {
            schema: HOST_SCHEMA,
            seconds: 3.0,
            cpus: BTreeMap::from([(0, 0.25), (1, 0.75)]),
            figures: vec![
                HostFigure::new(RUN_DELAY, Reading::known(0.02)),
                HostFigure::new(STEAL, Reading::known(0.01)),
                HostFigure::new(INTERFACE_DROPS, Reading::known(7.0)),
            ],
            sockets: BTreeMap::from([(
                0,
                IoRates {
                    read_miss: Reading::known(0.0),
                    write_miss: Reading::missing("no uncore_iio"),
                },
            )]),
            io_counts: BTreeMap::from([(
                0,
                SocketCounts {
                    reads: 8.0,
                    read_misses: 0.0,
                    writes: 10.0,
                    write_misses: 9.0,
                },
            )]),
            nodes_mb_per_s: BTreeMap::from([(0, Reading::missing("no resctrl"))]),
            node_parts: BTreeMap::from([(
                0,
                NodeParts {
                    read: 2.5,
                    written: 1.0,
                },
            )]),
            events: vec![
                HostFigure::new("L1-dcache-loads", Reading::known(200.0)),
                HostFigure::new("L1-dcache-load-misses", Reading::known(50.0)),
                HostFigure::new("LLC-loads", none()),
            ],
            sources: BTreeMap::from([("drops", "/proc/net/dev".to_owned())]),
        }
    }

    #[test]
    fn the_report_reads_back_and_has_a_reason_for_all_that_is_missing() {
        let measured = measured();
        let text = measured.text();
        assert!(
            text.contains("core 1 : 75.00%\navg_cpu_util: 50.00%\n"),
            "{text}"
        );
        assert!(
            text.contains("L1-dcache-load-misses-rate: 0.25\n"),
            "{text}"
        );
        assert!(
            text.contains("LLC-load-misses-rate: unavailable (not counted)\n"),
            "{text}"
        );
        for part in [
            "IO Read_hit: 8\nIO Write_cnt: 10\nIO Write_miss: 9\nIO Write_hit: 1\nIO Read Miss Rate: 0.00\n",
            "Node0_rd_bw:  2.500000\nNode0_wr_bw:  1.000000\nNode0_total_bw:  unavailable (no resctrl)\n",
            "source drops: /proc/net/dev\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
        let report = HostReport::read(&text).unwrap();
        assert_eq!(report.lost_cpu_share.value, Some(0.03));
        assert_eq!(report.interface_drops.value, Some(7.0));
        assert_eq!(
            report.llc_load_miss.reason(),
            "LLC-loads: perf_event_open LLC-loads: ENOENT"
        );
        assert_eq!(report.nodes_mb_per_s[&0].reason(), "no resctrl");
        assert_eq!(report.sockets[&0].read_miss.value, Some(0.0));
        assert_eq!(report.sockets[&0].write_miss.reason(), "no uncore_iio");
        let json = serde_json::to_value(&measured).unwrap();
        assert_eq!(json["events"][2]["value"], serde_json::Value::Null);
        assert_eq!(
            json["events"][2]["unavailable"],
            "perf_event_open LLC-loads: ENOENT"
        );
    }
}
