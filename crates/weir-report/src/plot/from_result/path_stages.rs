//! Time per packet in each stage of a packet path, of each side: the work, and apart from it the stall.
//!
//! In: the timed passes of all threads and iterations of the first result that has some. Out: a bar for each
//! stage that had packets, the way of a request first.

use weir_schema::{Outcome, PacketPathOutcome, PathSide, StageFigures};

use super::JobAcross;
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{Bar, Bars, Detail, Plot, PlotBody, PlotTable, real};

/// Stages as the tables of `weir axio` name them, in the order of a packet. A link is within `disp_tx`.
const STAGES: [(&str, &str); 4] = [
    ("app_tx", "application_tx"),
    ("disp_tx", "dispatch_tx"),
    ("disp_rx", "dispatch_rx"),
    ("app_rx", "application_rx"),
];

/// Time of a stage of a side, in seconds per packet.
struct StageTime {
    name: String,
    work: f64,
    stall: f64,
    packets: u64,
}

pub(super) fn times(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let outcomes = job.runs.iter().flat_map(|(_, entry)| &entry.jobs);
    let done = outcomes.into_iter().find_map(|one| match &one.outcome {
        Outcome::PacketPath(done) => Some(done.as_ref()),
        _ => None,
    })?;
    let times: Vec<StageTime> = [(PathSide::Client, "client"), (PathSide::Server, "server")]
        .into_iter()
        .flat_map(|(side, word)| {
            let of = move |(short, name): (&str, &str)| {
                stage(done, side, name, format!("{word} {short}"))
            };
            STAGES.into_iter().filter_map(of)
        })
        .collect();
    plot(&times)
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

fn plot(times: &[StageTime]) -> Option<Plot> {
    let whole = |one: &StageTime| one.work + one.stall;
    let longest = times.iter().max_by(|a, b| whole(a).total_cmp(&whole(b)))?;
    let unit = AxisUnit::Seconds;
    let bar = |one: &StageTime| Bar {
        name: one.name.clone(),
        parts: vec![(0, one.work), (1, one.stall)],
        range: None,
        text: unit.print(whole(one)),
    };
    let row = |one: &StageTime| {
        let times = [one.work, one.stall, whole(one)].map(|time| unit.print(time));
        let cells = [one.name.clone()].into_iter().chain(times);
        cells.chain([one.packets.to_string()]).collect()
    };
    let caption = format!(
        "Time per packet by stage: the longest is {} with {}, of which {} is stall.",
        longest.name,
        unit.print(whole(longest)),
        unit.print(longest.stall)
    );
    let ends = [0.0].into_iter().chain(times.iter().map(whole));
    Some(Plot {
        name: "path-stages".into(),
        title: "Time per packet by stage".to_owned(),
        caption,
        body: PlotBody::Bars(Bars {
            axis: PlotAxis::linear("time per packet", unit.clone(), ends),
            rows: times.iter().map(bar).collect(),
            parts: ["work", "stall"].map(str::to_owned).to_vec(),
        }),
        table: PlotTable {
            head: ["stage", "work", "stall", "together", "timed packets"]
                .map(str::to_owned)
                .to_vec(),
            rows: times.iter().map(row).collect(),
        },
        detail: Detail::Figures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_schema::{PathIteration, PathThread};
    use weir_units::Nanos;

    fn figures(packets: u64, busy: u64, stall: u64) -> StageFigures {
        StageFigures {
            packets: packets * 2,
            timed_packets: packets,
            busy_ns: Nanos(busy),
            stall_ns: Nanos(stall),
            ..StageFigures::default()
        }
    }

    #[test]
    fn stages_of_each_side_stand_with_their_stalls_apart_over_all_threads_and_iterations() {
        let client = |busy| PathThread {
            application_tx: figures(100, busy, 1_000),
            dispatch_rx: figures(100, 2_000, 1_500),
            ..PathThread::default()
        };
        let server = PathThread {
            side: PathSide::Server,
            application_rx: figures(10, 9_000, 0),
            ..PathThread::default()
        };
        let iteration = |threads| PathIteration { threads };
        let done = PacketPathOutcome {
            iterations: vec![
                iteration(vec![client(3_000), server]),
                iteration(vec![client(5_000)]),
            ],
            ..PacketPathOutcome::default()
        };
        let side = |side, name: &str| stage(&done, side, name, name.to_owned());
        let made = side(PathSide::Client, "application_tx").unwrap();
        // 8 µs over 200 packets, of which 2 µs were waited.
        assert!((made.work - 30e-9).abs() < 1e-15 && (made.stall - 10e-9).abs() < 1e-15);
        assert!(side(PathSide::Server, "dispatch_rx").is_none());
        let taken = side(PathSide::Server, "application_rx").unwrap();
        let plot = plot(&[made, taken]).unwrap();
        assert!(
            plot.caption
                .contains("the longest is application_rx with 900 ns, of which 0"),
            "{}",
            plot.caption
        );
        let PlotBody::Bars(bars) = &plot.body else {
            panic!("{plot:?}")
        };
        assert_eq!(bars.rows[0].parts.len(), 2);
        assert_eq!(plot.table.rows[0][4], "200");
        assert!(super::plot(&[]).is_none());
    }
}
