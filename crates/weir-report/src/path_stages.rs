//! Time per packet in each stage of a packet path, of each side: the work, and apart from it the stall.
//!
//! In: the timed passes of all threads and iterations. Out: the time of each stage that had packets, the way of
//! a request first.

use weir_schema::{PacketPathOutcome, PathSide, StageFigures};

use crate::plot::real;

/// Stages as the tables of `weir axio` name them, in the order of a packet. A link is within `disp_tx`.
const STAGES: [(&str, &str); 4] = [
    ("app_tx", "application_tx"),
    ("disp_tx", "dispatch_tx"),
    ("disp_rx", "dispatch_rx"),
    ("app_rx", "application_rx"),
];

/// Time of a stage of a side, in seconds per packet.
pub(crate) struct StageTime {
    pub(crate) name: String,
    pub(crate) work: f64,
    pub(crate) stall: f64,
    /// Packets of timed passes.
    pub(crate) packets: u64,
}

/// Times of all stages of a path.
pub(crate) fn stage_times(done: &PacketPathOutcome) -> Vec<StageTime> {
    let sides = [(PathSide::Client, "client"), (PathSide::Server, "server")];
    let of_side = |(side, word)| {
        let of =
            move |(short, name): (&str, &str)| stage(done, side, name, format!("{word} {short}"));
        STAGES.into_iter().filter_map(of)
    };
    sides.into_iter().flat_map(of_side).collect()
}

/// A stage over all threads and iterations; nothing where no packet was timed.
fn stage(done: &PacketPathOutcome, side: PathSide, stage: &str, name: String) -> Option<StageTime> {
    let sum = |of: fn(&StageFigures) -> u64| {
        done.sum(side, |thread| {
            let stages = thread.stages();
            let found = stages.iter().find(|(known, _)| *known == stage);
            found.map_or(0, |(_, figures)| of(figures))
        })
    };
    let packets = sum(|figures| figures.timed_packets);
    let (busy, stall) = (sum(|f| f.busy_ns.0), sum(|f| f.stall_ns.0));
    (packets > 0).then(|| StageTime {
        name,
        work: real(busy.saturating_sub(stall)) / real(packets) / 1e9,
        stall: real(stall.min(busy)) / real(packets) / 1e9,
        packets,
    })
}
