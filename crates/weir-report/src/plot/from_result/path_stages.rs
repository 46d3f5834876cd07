//! Plot of the time per packet in each stage of a packet path.
//!
//! In: the first result that has some. Out: a bar for each stage that had packets.

use weir_schema::Outcome;

use super::JobAcross;
use crate::path_stages::{StageTime, stage_times};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{Bar, Bars, Detail, Plot, PlotBody, PlotTable};

pub(super) fn times(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let outcomes = job.runs.iter().flat_map(|(_, entry)| &entry.jobs);
    let done = outcomes.into_iter().find_map(|one| match &one.outcome {
        Outcome::PacketPath(done) => Some(done.as_ref()),
        _ => None,
    })?;
    plot(&stage_times(done))
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
    use weir_schema::{PacketPathOutcome, PathIteration, PathSide, PathThread, StageFigures};
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
        let times = stage_times(&done);
        let of = |name: &str| times.iter().find(|time| time.name == name);
        let made = of("client app_tx").unwrap();
        // 8 µs over 200 packets, of which 2 µs were waited.
        assert!((made.work - 30e-9).abs() < 1e-15 && (made.stall - 10e-9).abs() < 1e-15);
        assert!(of("server disp_rx").is_none());
        let plot = plot(&times).unwrap();
        assert!(
            plot.caption
                .contains("the longest is server app_rx with 900 ns, of which 0"),
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
