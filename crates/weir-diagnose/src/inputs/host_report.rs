//! The report of the host: I/O accesses, memory, caches, CPUs.
//!
//! In: the text of a report, recorded by the reference's script or by weir. Out: a [`HostReport`]; each
//! socket keeps its own rates. What a program could not count is a [`Reading`] with its reason. Not here:
//! which socket counts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::host_text::{INTERFACE_DROPS, RUN_DELAY, STEAL};
use crate::inputs::InputError;
use crate::reading::Reading;

const HELP: &str = "the report is what the host monitor wrote, with its sections unchanged";

/// Cache misses of the device's accesses, on a socket.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoRates {
    /// Share of its reads, 0 to 1.
    pub read_miss: Reading,
    /// Share of its writes.
    pub write_miss: Reading,
}

/// A report of the host.
#[derive(Clone, Debug, PartialEq)]
pub struct HostReport {
    /// By number of the socket.
    pub sockets: BTreeMap<u32, IoRates>,
    /// Megabytes (10^6) a second of each memory node.
    pub nodes_mb_per_s: BTreeMap<u32, Reading>,
    /// Share of loads that missed the last cache, 0 to 1.
    pub llc_load_miss: Reading,
    /// The same of stores.
    pub llc_store_miss: Reading,
    /// Share of the time in which who was ready had no CPU, or the hypervisor had it.
    pub lost_cpu_share: Reading,
    /// Packets that interfaces dropped or had no room for.
    pub interface_drops: Reading,
}

impl HostReport {
    /// A report that says nothing, for this reason.
    pub fn empty(reason: &str) -> Self {
        Self {
            sockets: BTreeMap::new(),
            nodes_mb_per_s: BTreeMap::new(),
            llc_load_miss: Reading::missing(reason),
            llc_store_miss: Reading::missing(reason),
            lost_cpu_share: Reading::missing(reason),
            interface_drops: Reading::missing(reason),
        }
    }

    /// Reads a report.
    ///
    /// # Errors
    /// There is no section, or a line belongs to none.
    pub fn read(text: &str) -> Result<Self, InputError> {
        let mut reader = ReportReader::default();
        let mut last = 1;
        for (at, line) in text.lines().enumerate() {
            last = at + 1;
            reader.line(line.trim(), last)?;
        }
        if !reader.has_begun {
            let message = "no section of a host report in it";
            return Err(InputError::new(last, message, HELP));
        }
        Ok(reader.report())
    }

    /// The rates of a socket.
    pub(crate) fn socket(&self, socket: u32) -> IoRates {
        let known: Vec<String> = self.sockets.keys().map(u32::to_string).collect();
        self.sockets.get(&socket).cloned().unwrap_or_else(|| {
            let reason = if known.is_empty() {
                "the report has no rates of a socket".to_owned()
            } else {
                format!("the report has sockets {}, none {socket}", known.join(", "))
            };
            IoRates {
                read_miss: Reading::missing(&reason),
                write_miss: Reading::missing(reason),
            }
        })
    }
}

#[derive(Debug, Default)]
struct ReportReader {
    has_begun: bool,
    socket: Option<u32>,
    sockets: BTreeMap<u32, IoRates>,
    nodes: BTreeMap<u32, Reading>,
    /// Rates and counts by label.
    others: BTreeMap<String, Reading>,
}

/// Words of the titles of sections.
const SECTIONS: [&str; 5] = [
    "all measurement",
    "pcie performance",
    "mem performance",
    "llc performance",
    "cpu performance",
];

impl ReportReader {
    fn line(&mut self, line: &str, number: usize) -> Result<(), InputError> {
        if line.is_empty() || line.starts_with("metric") || line.starts_with("source ") {
            return Ok(());
        }
        if line.starts_with("---") {
            return self.title(line.trim_matches('-').trim(), number);
        }
        let wrong = |what: String| InputError::new(number, what, HELP);
        let Some((label, value)) = line.split_once(':').filter(|_| self.has_begun) else {
            return Err(wrong(format!(
                "`{}` is no line of a host report",
                shown(line)
            )));
        };
        let label = label.trim();
        let reading = Reading::of_text(value);
        let reading = reading
            .ok_or_else(|| wrong(format!("{label}: `{}` is no number", shown(value.trim()))))?;
        if reading.is_negative() {
            return Err(wrong(format!(
                "{label}: `{}` is below 0",
                shown(value.trim())
            )));
        }
        let node = label.strip_prefix("Node");
        let node = node.and_then(|node| node.strip_suffix("_total_bw")?.parse().ok());
        if let Some(node) = node {
            self.nodes.insert(node, reading);
        } else if let (Some(socket), true) = (self.socket, label.starts_with("IO ")) {
            self.rate_of(socket, label, reading);
        } else {
            self.others.insert(label.to_owned(), reading);
        }
        Ok(())
    }

    fn title(&mut self, title: &str, number: usize) -> Result<(), InputError> {
        let socket = title.strip_prefix("Socket ");
        self.has_begun = true;
        self.socket = None;
        if let Some(socket) = socket.and_then(|text| text.trim().parse().ok()) {
            self.socket = Some(socket);
            let none = || Reading::missing("the report has no such rate of this socket");
            self.sockets.entry(socket).or_insert_with(|| IoRates {
                read_miss: none(),
                write_miss: none(),
            });
        } else if !SECTIONS.iter().any(|section| title.contains(section)) {
            let message = format!("`{}` is no section of a host report", shown(title));
            return Err(InputError::new(number, message, HELP));
        }
        Ok(())
    }

    fn rate_of(&mut self, socket: u32, label: &str, reading: Reading) {
        let counted = label.strip_suffix("_cnt");
        self.others
            .insert(format!("{socket} {label}"), reading.clone());
        let nothing = |what: &str| self.others.get(&format!("{socket} IO {what}_cnt"));
        let is_idle = |what: &str| nothing(what).is_some_and(|count| count.value == Some(0.0));
        let (idle_reads, idle_writes) = (is_idle("Read"), is_idle("Write"));
        let Some(rates) = self.sockets.get_mut(&socket).filter(|_| counted.is_none()) else {
            return;
        };
        // Of nothing no share can miss, whatever the script printed.
        match label {
            "IO Read Miss Rate" if idle_reads => {
                rates.read_miss = Reading::missing("the device read nothing");
            }
            "IO Write Miss Rate" if idle_writes => {
                rates.write_miss = Reading::missing("the device wrote nothing");
            }
            "IO Read Miss Rate" => rates.read_miss = reading,
            "IO Write Miss Rate" => rates.write_miss = reading,
            _ => {}
        }
    }

    fn report(self) -> HostReport {
        let rate = |rate: &str, count: &str| {
            let unsupported = |label: &str| {
                let reading = self.others.get(label)?;
                let reason = reading.unavailable.as_ref()?;
                Some(Reading::missing(format!("{label}: {reason}")))
            };
            match self.others.get(rate) {
                Some(reading) if reading.value.is_some() => reading.clone(),
                Some(reading) => unsupported(count).unwrap_or_else(|| reading.clone()),
                None => Reading::missing(format!("the report has no {rate}")),
            }
        };
        let figure = |label: &str| {
            let missing = || Reading::missing(format!("the report has no {label}"));
            self.others.get(label).cloned().unwrap_or_else(missing)
        };
        HostReport {
            lost_cpu_share: figure(RUN_DELAY).with(&figure(STEAL), |delay, steal| delay + steal),
            interface_drops: figure(INTERFACE_DROPS),
            llc_load_miss: match (
                rate("LLC-load-misses-rate", "LLC-loads"),
                self.others.get("cache-misses-rate"),
            ) {
                // Loads and stores together, where the processor counts them no finer.
                (loads, Some(all)) if loads.value.is_none() && all.value.is_some() => all.clone(),
                (loads, _) => loads,
            },
            llc_store_miss: rate("LLC-store-misses-rate", "LLC-stores"),
            sockets: self.sockets,
            nodes_mb_per_s: self.nodes,
        }
    }
}

/// The beginning of a text, for a message.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}
