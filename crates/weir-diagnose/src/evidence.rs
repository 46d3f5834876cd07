//! The figures that the rules ask for, from all that was recorded.
//!
//! In: the log, the table that counts, what was recorded of the host. Out: [`PathEvidence`], where every
//! figure that nothing says has its reason. Not here: the rules.

use weir_schema::PathStage;

use crate::counted::CountedFigures;
use crate::diagnosis::PathContext;
use crate::reading::Reading;
use crate::reference::{PathClass, ReferenceFinding};
use crate::stage_tables::{StageTable, StageTables};

/// Figures that the rules are about. Shares are 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct PathEvidence {
    /// The critical stage and what it does.
    pub critical: Option<(PathStage, PathClass)>,
    /// Counts of the run, or of its host where these are larger.
    pub counted: CountedFigures,
    /// Millions of packets a second from end to end.
    pub throughput_mpps: Reading,
    /// The same in the table before it, or behind it.
    pub other_throughput_mpps: Reading,
    /// Used share of the link's capacity.
    pub link_share: Reading,
    /// The part of its time that each of the first four stages waits.
    pub stall_shares: Vec<Reading>,
    /// Buffers in use.
    pub pool_use: Reading,
    /// Packets dropped at full rings between dispatchers and workers.
    pub ring_drops: Reading,
    /// Loads that missed the last cache.
    pub llc_miss: Reading,
    /// Instructions a cycle.
    pub instructions_per_cycle: Reading,
    /// The device's writes that missed the cache.
    pub io_write_miss: Reading,
    /// Memory bandwidth, of the most that was measured.
    pub memory_share: Reading,
    /// The most packets of a workspace over the fewest.
    pub workspace_spread: Reading,
}

const NO_REPORT: &str = "no host report was given";
/// Preamble, check sum and gap between two frames.
const BYTES_BETWEEN_FRAMES: f64 = 24.0;

impl PathContext {
    fn own_socket(&self) -> Result<u32, Reading> {
        let missing = || Reading::missing("nothing says which socket counts");
        self.socket.ok_or_else(missing)
    }

    fn io(&self, pick: impl Fn(crate::inputs::IoRates) -> Reading) -> Reading {
        let socket = match self.own_socket() {
            Ok(socket) => socket,
            Err(reason) => return reason,
        };
        let counted = self.pcie.as_ref().map(|pcie| pick(pcie.rates(socket)));
        let report = self
            .report
            .as_ref()
            .map(|report| pick(report.socket(socket)));
        first([counted, report])
    }

    pub(crate) fn io_read_miss(&self) -> Reading {
        self.io(|rates| rates.read_miss)
    }

    pub(crate) fn io_write_miss(&self) -> Reading {
        self.io(|rates| rates.write_miss)
    }

    pub(crate) fn llc_load_miss(&self) -> Reading {
        let perf = self.perf.as_ref();
        let counted = perf.map(|p| p.ratio("LLC-load-misses", "LLC-loads"));
        let report = self.report.as_ref();
        first([counted, report.map(|r| r.llc_load_miss.clone())])
    }

    pub(crate) fn llc_store_miss(&self) -> Reading {
        let perf = self.perf.as_ref();
        let counted = perf.map(|p| p.ratio("LLC-store-misses", "LLC-stores"));
        let report = self.report.as_ref();
        first([counted, report.map(|r| r.llc_store_miss.clone())])
    }

    fn memory_mb_per_s(&self) -> Reading {
        let socket = match self.own_socket() {
            Ok(socket) => socket,
            Err(reason) => return reason,
        };
        let none = || Reading::missing(format!("nothing says how much memory node {socket} moves"));
        let counted = self.memory.as_ref().map(|nodes| {
            let known = nodes.get(&socket).copied().map(Reading::known);
            known.unwrap_or_else(none)
        });
        let report = self.report.as_ref().map(|report| {
            let known = report.nodes_mb_per_s.get(&socket).cloned();
            known.unwrap_or_else(none)
        });
        first([counted, report])
    }

    fn memory_share(&self) -> Reading {
        let triad = self.triad_mb_per_s.map_or_else(
            || Reading::missing("no bandwidth of the memory itself was given"),
            Reading::known,
        );
        self.memory_mb_per_s()
            .with(&triad, |used, most| used / most)
    }

    fn link_share(&self, throughput_mpps: &Reading) -> Reading {
        let (Some(link), Some(frame)) = (self.link_bits_per_s, self.frame_bytes) else {
            return Reading::missing("the speed of the link or the size of frames was not given");
        };
        let bits = (f64::from(frame) + BYTES_BETWEEN_FRAMES) * 8.0;
        throughput_mpps.with(&Reading::known(bits), |mpps, bits| mpps * 1e6 * bits / link)
    }
}

/// The first that has a figure; else why not.
fn first(sources: [Option<Reading>; 2]) -> Reading {
    let given = sources.into_iter().flatten();
    given
        .reduce(Reading::or)
        .unwrap_or_else(|| Reading::missing(NO_REPORT))
}

/// All that was recorded, for the rules.
pub(crate) fn evidence(
    path: &StageTables,
    at: usize,
    finding: &ReferenceFinding,
    host: &PathContext,
) -> PathEvidence {
    let table = &path.tables[at];
    let counted = &table.counted;
    let report = host.report.as_ref();
    let other = if at > 0 { at - 1 } else { at + 1 };
    let one_table = || Reading::missing("the log has one table");
    let shares = finding.completion_us.iter().zip(&finding.stall_us);
    let instructions = host.perf.as_ref().map_or_else(
        || Reading::missing("no counters of perf were given"),
        |perf| perf.ratio("instructions", "cycles"),
    );
    PathEvidence {
        critical: finding.critical,
        counted: CountedFigures {
            missed_packets: larger(report.map(|r| &r.interface_drops), &counted.missed_packets),
            lost_cpu_share: larger(report.map(|r| &r.lost_cpu_share), &counted.lost_cpu_share),
            ..counted.clone()
        },
        throughput_mpps: table.throughput_mpps.clone(),
        other_throughput_mpps: path
            .tables
            .get(other)
            .map_or_else(one_table, |table| table.throughput_mpps.clone()),
        link_share: host.link_share(&table.throughput_mpps),
        stall_shares: shares
            .map(|(time, stall)| time.with(stall, share))
            .collect(),
        pool_use: table.pool_use.clone(),
        ring_drops: drops(table),
        llc_miss: host.llc_load_miss(),
        instructions_per_cycle: instructions,
        io_write_miss: host.io_write_miss(),
        memory_share: host.memory_share(),
        workspace_spread: spread(table),
    }
}

/// The larger one of what the host reports and what the run counted: either may see what the other
/// does not.
pub(crate) fn larger(report: Option<&Reading>, counted: &Reading) -> Reading {
    let Some(report) = report else {
        return counted.clone();
    };
    match (report.value, counted.value) {
        (Some(one), Some(two)) if two > one => counted.clone(),
        _ => report.clone().or(counted.clone()),
    }
}

/// Waiting share of a stage's time; a stage that does nothing waits for nothing.
fn share(time: f64, stall: f64) -> f64 {
    if time > 0.0 { stall / time } else { 0.0 }
}

fn drops(table: &StageTable) -> Reading {
    let mut all = table
        .workspaces
        .iter()
        .flat_map(|w| [&w.app_tx_drops, &w.disp_rx_drops]);
    let first = all.next().cloned();
    let sum = |sum: Reading, next: &Reading| sum.with(next, |a, b| a + b);
    let none = || Reading::missing("no drops of workspaces in the log");
    first.map_or_else(none, |first| all.fold(first, sum))
}

/// The most packets of a worker over the fewest; a workspace without any is no worker.
fn spread(table: &StageTable) -> Reading {
    let handled = table.workspaces.iter().filter_map(|w| w.handled_mpps.value);
    let workers: Vec<f64> = handled.filter(|mpps| *mpps > 0.0).collect();
    if workers.len() < 2 {
        return Reading::missing("fewer than two workers with packets in the log");
    }
    let most = workers.iter().copied().fold(0.0, f64::max);
    let fewest = workers.iter().copied().fold(f64::INFINITY, f64::min);
    Reading::known(most / fewest)
}
