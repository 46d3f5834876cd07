//! Output of Intel PCM: `pcm-pcie -e -csv`, `pcm-memory` as text or with `-csv`.
//!
//! In: the recorded output, of one interval or more. Out: [`PcieCounts`], summed over the intervals;
//! the bandwidth of each memory node, as a mean over them. Not here: the other tools of PCM.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::inputs::{InputError, IoRates};
use crate::reading::Reading;

const PCIE_HELP: &str = "record it with `pcm-pcie -e -csv`";
const MEMORY_HELP: &str = "record it with `pcm-memory`, as text or with -csv";

/// Accesses of devices to memory, in cache lines, by socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PcieCounts {
    sockets: BTreeMap<u32, SocketCounts>,
}

/// Those of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SocketCounts {
    /// Reads.
    pub reads: f64,
    /// Of these, misses.
    pub read_misses: f64,
    /// Writes.
    pub writes: f64,
    /// Of these, misses.
    pub write_misses: f64,
}

impl PcieCounts {
    /// Reads a recorded output.
    ///
    /// # Errors
    /// The line that cannot be read; no counts, or none of misses.
    pub fn read(text: &str) -> Result<Self, InputError> {
        let mut head: Option<[usize; 2]> = None;
        let mut all = Self::default();
        let mut has_misses = false;
        let mut last = 1;
        for (at, line) in text.lines().enumerate() {
            last = at + 1;
            let cells: Vec<&str> = line.trim().split(',').map(str::trim).collect();
            if cells[0] == "Skt" {
                head = Some(places(&cells, last)?);
            } else if let (Some(head), Ok(socket)) = (head, cells[0].parse()) {
                has_misses |= all.add(socket, &cells, head, last)?;
            }
        }
        if all.sockets.is_empty() || !has_misses {
            let what = if all.sockets.is_empty() {
                "no counts of pcm-pcie in it"
            } else {
                "it does not say what missed the cache"
            };
            return Err(InputError::new(last, what, PCIE_HELP));
        }
        Ok(all)
    }

    /// Adds a row; whether it is one of misses.
    fn add(
        &mut self,
        socket: u32,
        cells: &[&str],
        [reads, writes]: [usize; 2],
        number: usize,
    ) -> Result<bool, InputError> {
        // The filter follows the last number without a separator.
        let filter = cells.last().and_then(|cell| cell.split_once('('));
        let filter = filter.map_or("", |(_, filter)| filter);
        let count = |at: usize| {
            let text = cells.get(at).copied().unwrap_or_default();
            let text = text.split('(').next().unwrap_or(text);
            let reading = Reading::of_text(text).and_then(|reading| reading.value);
            reading.ok_or_else(|| {
                let message = format!("column {}: `{text}` is no number", at + 1);
                InputError::new(number, message, PCIE_HELP)
            })
        };
        let (read, written) = (count(reads)?, count(writes)?);
        let counts = self.sockets.entry(socket).or_default();
        match filter {
            "Miss)" => {
                counts.read_misses += read;
                counts.write_misses += written;
            }
            "Hit)" => {}
            _ => {
                counts.reads += read;
                counts.writes += written;
            }
        }
        Ok(filter == "Miss)")
    }

    /// The counts of a socket.
    pub fn counts(&self, socket: u32) -> Option<SocketCounts> {
        self.sockets.get(&socket).copied()
    }

    /// The rates of a socket.
    pub fn rates(&self, socket: u32) -> IoRates {
        let Some(counts) = self.sockets.get(&socket) else {
            let none = || Reading::missing(format!("pcm-pcie saw no socket {socket}"));
            return IoRates {
                read_miss: none(),
                write_miss: none(),
            };
        };
        let rate = |misses: f64, all: f64, what: &str| {
            if all == 0.0 {
                Reading::missing(format!("the device {what} nothing"))
            } else {
                Reading::known(misses / all)
            }
        };
        IoRates {
            read_miss: rate(counts.read_misses, counts.reads, "read"),
            write_miss: rate(counts.write_misses, counts.writes, "wrote"),
        }
    }
}

/// The columns of reads and writes.
fn places(head: &[&str], number: usize) -> Result<[usize; 2], InputError> {
    let find = |name: &str| {
        let at = head.iter().position(|cell| *cell == name);
        at.ok_or_else(|| InputError::new(number, format!("no column `{name}`"), PCIE_HELP))
    };
    Ok([find("PCIRdCur")?, find("ItoM")?])
}

/// Bandwidth of a memory node, in megabytes (10^6) a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeBandwidth {
    /// Both ways.
    pub total: f64,
    /// Read, where it was printed.
    pub read: Option<f64>,
    /// Written, where it was printed.
    pub written: Option<f64>,
}

/// Megabytes (10^6) a second of each memory node: the mean of the intervals that `pcm-memory` printed.
///
/// # Errors
/// No node is in it, or a number of one cannot be read.
pub fn node_bandwidths(text: &str) -> Result<BTreeMap<u32, f64>, InputError> {
    let nodes = node_traffic(text)?.into_iter();
    Ok(nodes.map(|(node, all)| (node, all.total)).collect())
}

/// The same with its parts.
///
/// # Errors
/// As [`node_bandwidths`].
pub fn node_traffic(text: &str) -> Result<BTreeMap<u32, NodeBandwidth>, InputError> {
    let mut sums = MemorySums::default();
    let mut before = Vec::new();
    let mut columns: Vec<(usize, u32, MemoryPart)> = Vec::new();
    let mut last = 1;
    for (at, line) in text.lines().enumerate() {
        last = at + 1;
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let own = columns_of(&before, &cells);
        if !own.is_empty() {
            columns = own;
        } else if cells.len() > 1 {
            for (at, node, part) in &columns {
                let value = cells.get(*at).copied().unwrap_or_default();
                sums.add(*node, *part, value, last)?;
            }
        }
        before = cells;
        for part in line.split('|') {
            let text = part.trim().trim_matches('-').trim();
            if let Some((node, part, value)) = part_of_node(text) {
                let node = node.parse().map_err(|_| wrong_number(node, last))?;
                sums.add(node, part, value, last)?;
            }
        }
    }
    sums.means().ok_or_else(|| {
        let message = "no memory node of pcm-memory in it";
        InputError::new(last, message, MEMORY_HELP)
    })
}

/// Part of a node's bandwidth that a figure gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MemoryPart {
    Read,
    Written,
    Total,
}

/// Their labels; a longer one first.
const MEMORY_PARTS: [(&str, MemoryPart); 3] = [
    ("Mem Read (MB/s)", MemoryPart::Read),
    ("Mem Write", MemoryPart::Written),
    ("Memory (MB/s)", MemoryPart::Total),
];

/// Sums and numbers of intervals, by node and part.
#[derive(Debug, Default)]
struct MemorySums(BTreeMap<(u32, MemoryPart), (f64, u32)>);

impl MemorySums {
    fn add(
        &mut self,
        node: u32,
        part: MemoryPart,
        text: &str,
        line: usize,
    ) -> Result<(), InputError> {
        let reading = Reading::of_text(text).and_then(|reading| reading.value);
        let (sum, intervals) = self.0.entry((node, part)).or_default();
        *sum += reading.ok_or_else(|| wrong_number(text, line))?;
        *intervals += 1;
        Ok(())
    }

    /// The means of all nodes that have a total; nothing where none has.
    fn means(&self) -> Option<BTreeMap<u32, NodeBandwidth>> {
        let mean = |node: u32, part: MemoryPart| {
            let (sum, intervals) = self.0.get(&(node, part))?;
            Some(sum / f64::from(*intervals))
        };
        let nodes = self.0.keys().filter_map(|(node, _)| {
            let bandwidth = NodeBandwidth {
                total: mean(*node, MemoryPart::Total)?,
                read: mean(*node, MemoryPart::Read),
                written: mean(*node, MemoryPart::Written),
            };
            Some((*node, bandwidth))
        });
        let nodes: BTreeMap<u32, NodeBandwidth> = nodes.collect();
        (!nodes.is_empty()).then_some(nodes)
    }
}

fn wrong_number(text: &str, line: usize) -> InputError {
    InputError::new(line, format!("`{text}` is no number"), MEMORY_HELP)
}

/// Node, part and number of `NODE 0 Memory (MB/s):  1802.45`.
fn part_of_node(text: &str) -> Option<(&str, MemoryPart, &str)> {
    let rest = text.strip_prefix("NODE")?.trim_start();
    MEMORY_PARTS.iter().find_map(|(label, part)| {
        let (node, value) = rest.split_once(label)?;
        let value = value.trim_start().trim_start_matches("(MB/s)").trim_start();
        Some((node.trim(), *part, value.strip_prefix(':')?.trim()))
    })
}

/// Columns of nodes in a head of two lines: sockets above, labels below.
fn columns_of(above: &[&str], labels: &[&str]) -> Vec<(usize, u32, MemoryPart)> {
    let column = |(at, label): (usize, &&str)| {
        let node = above.get(at)?.strip_prefix("SKT")?.trim().parse().ok()?;
        let known = MEMORY_PARTS
            .iter()
            .find(|(name, _)| label.starts_with(name));
        known.map(|(_, part)| (at, node, *part))
    };
    labels.iter().enumerate().filter_map(column).collect()
}
