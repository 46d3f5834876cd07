//! What Intel PCM prints: `pcm-pcie -e -csv`, `pcm-memory`.
//!
//! In: the recorded output, of one interval or more. Out: [`PcieCounts`], summed over the intervals;
//! the bandwidth of each memory node, as a mean over them. Not here: the other tools of PCM.

use std::collections::BTreeMap;

use crate::inputs::{InputError, IoRates};
use crate::reading::Reading;

const PCIE_HELP: &str = "record it with `pcm-pcie -e -csv`";
const MEMORY_HELP: &str = "record it with `pcm-memory`, as text";

/// Accesses of devices to memory, in cache lines, by socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PcieCounts {
    sockets: BTreeMap<u32, SocketCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SocketCounts {
    reads: f64,
    read_misses: f64,
    writes: f64,
    write_misses: f64,
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

/// Megabytes (10^6) a second of each memory node: the mean of the intervals that `pcm-memory` printed.
///
/// # Errors
/// No node is in it, or a number of one cannot be read.
pub fn node_bandwidths(text: &str) -> Result<BTreeMap<u32, f64>, InputError> {
    let mut sums: BTreeMap<u32, (f64, u32)> = BTreeMap::new();
    let mut last = 1;
    for (at, line) in text.lines().enumerate() {
        last = at + 1;
        for part in line.split('|') {
            let part = part.trim().trim_matches('-').trim();
            let Some((node, value)) = memory_of_node(part) else {
                continue;
            };
            let wrong = |what: &str| {
                InputError::new(last, format!("{part}: `{what}` is no number"), MEMORY_HELP)
            };
            let node: u32 = node.parse().map_err(|_| wrong(node))?;
            let reading = Reading::of_text(value).and_then(|reading| reading.value);
            let (sum, intervals) = sums.entry(node).or_default();
            *sum += reading.ok_or_else(|| wrong(value))?;
            *intervals += 1;
        }
    }
    if sums.is_empty() {
        let message = "no memory node of pcm-memory in it";
        return Err(InputError::new(last, message, MEMORY_HELP));
    }
    let mean = |(node, (sum, intervals)): (u32, (f64, u32))| (node, sum / f64::from(intervals));
    Ok(sums.into_iter().map(mean).collect())
}

/// Node and number of `NODE 0 Memory (MB/s):  1802.45`.
fn memory_of_node(part: &str) -> Option<(&str, &str)> {
    let rest = part.strip_prefix("NODE")?.trim_start();
    let (node, value) = rest.split_once("Memory (MB/s)")?;
    Some((node.trim(), value.trim_start().strip_prefix(':')?.trim()))
}
