//! Tests of the plots of results: a value that was not measured has no plot.

use weir_schema::RunResult;
use weir_units::Nanos;

use super::*;
use crate::plot::{Chart, LineShape, PlotBody};
use crate::sample;

fn labelled<'a>(results: &[&'a RunResult]) -> Vec<LabelledResult<'a>> {
    let numbered = results.iter().zip(["old", "new"]);
    numbered
        .map(|(result, label)| LabelledResult {
            label: label.into(),
            result,
        })
        .collect()
}

/// The plots of the first job.
fn plots(results: &[&RunResult]) -> Vec<Plot> {
    let results = labelled(results);
    let runs = PlottedRun::all(&results);
    of_job(&jobs_across(&runs)[0])
}

fn named<'a>(plots: &'a [Plot], name: &str) -> &'a Plot {
    let found = plots.iter().find(|plot| plot.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {plots:?}"))
}

fn chart(plot: &Plot) -> &Chart {
    match &plot.body {
        PlotBody::Chart(chart) => chart,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_that_stops_for_three_seconds_is_seen_and_said() {
    let plots = plots(&[&sample::open_loop()]);
    let plot = named(&plots, "throughput");
    let [shade] = chart(plot).shades.as_slice() else {
        panic!("{:?}", chart(plot).shades)
    };
    assert!((shade.from - 12.0).abs() < 1e-9 && (shade.to - 15.0).abs() < 1e-9);
    let gaps = chart(plot).lines[0].points.iter().filter(|p| p.y.is_none());
    assert!(gaps.clone().count() == 30 && gaps.clone().all(|p| p.x > 12.0 && p.x < 15.0));
    assert!(
        plot.caption
            .contains("Nothing completed for 3.00 s from 12.0 s"),
        "{}",
        plot.caption
    );
    // It is part of the mean, and of the table as nothing.
    assert!(
        plot.table.rows.iter().any(|row| row[1] == "0 ops/s"),
        "{:?}",
        plot.table
    );
}

#[test]
fn few_operations_with_pauses_between_them_are_no_stall() {
    let mut result = sample::open_loop();
    let worker = &mut result.groups[0].jobs[0].workers_mut()[0];
    let mut counts = vec![0; 300];
    (0..10).for_each(|i| counts[30 * i] = 1);
    worker.kinds[0].series = weir_schema::sample::series(Nanos::from_millis(100), &counts, 4096);
    let plots = plots(&[&result]);
    assert_eq!(chart(named(&plots, "throughput")).shades, []);
}

#[test]
fn percentiles_of_each_interval_are_lines_with_a_gap_where_nothing_completed() {
    let result = sample::open_loop();
    let plots = plots(&[&result]);
    let plot = named(&plots, "latency");
    let lines = &chart(plot).lines;
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["p50", "p99", "p99.9", "max"]);
    let intervals = &result.groups[0].jobs[0].latency_over_time()[0].intervals;
    for line in lines {
        assert_eq!(line.points.len(), intervals.len());
        let gaps = line.points.iter().filter(|p| p.y.is_none());
        assert!(gaps.clone().count() == 6 && gaps.clone().all(|p| p.x > 12.0 && p.x < 15.0));
    }
    let last = lines[0].points.last().unwrap();
    let p50 = intervals.last().unwrap().p50_ns.unwrap();
    assert!((last.y.unwrap() * 1e9 / crate::plot::real(p50.0) - 1.0).abs() < 1e-9);
    assert!((last.x - 29.75).abs() < 1e-9);
    let [shade] = chart(plot).shades.as_slice() else {
        panic!("{:?}", chart(plot).shades)
    };
    assert!((shade.from - 12.0).abs() < 1e-9 && (shade.to - 15.0).abs() < 1e-9);
    let said = "intervals of about 500 ms: p50 74.2 µs to 96.8 µs, p99 ";
    assert!(plot.caption.contains(said), "{}", plot.caption);
    let said = "Nothing completed for 3.00 s from 12.0 s";
    assert!(plot.caption.contains(said), "{}", plot.caption);
}

#[test]
fn percentiles_of_too_few_operations_are_no_lines() {
    let of = |per_s| {
        let result = sample::run(&[sample::Shape {
            kinds: vec![(weir_schema::Kind::Read, per_s)],
            ..sample::Shape::default()
        }]);
        let plots = plots(&[&result]);
        let lines = chart(named(&plots, "latency")).lines.iter();
        lines.map(|line| line.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(2000), ["p50", "p99", "p99.9", "max"]);
    assert_eq!(of(1998), ["p50", "p99", "max"]);
    assert_eq!(of(198), ["p50", "max"]);
}

#[test]
fn a_heat_map_has_every_operation_in_the_row_of_its_latency() {
    let result = sample::two_kinds();
    let plots = plots(&[&result]);
    let plot = named(&plots, "heat-map");
    let PlotBody::Heat(map) = &plot.body else {
        panic!("{plot:?}")
    };
    let over_time = result.groups[0].jobs[0].latency_over_time();
    assert_eq!(map.panels.len(), 2);
    for (panel, over_time) in map.panels.iter().zip(over_time) {
        assert_eq!(panel.name, over_time.kind.as_str());
        assert_eq!(panel.columns.len(), over_time.intervals.len());
        for (column, (begin, interval)) in panel.columns.iter().zip(over_time.spans()) {
            assert!((column.from - begin.as_secs_f64()).abs() < 1e-9);
            let all: u64 = column.cells.iter().map(|(_, n)| n).sum();
            assert_eq!(all, interval.rows.count());
            let (last, _) = column.cells.last().unwrap();
            let max = crate::plot::real(interval.max_ns.unwrap().0) / 1e9;
            assert!(map.edges[*last] <= max && max < map.edges[last + 1]);
        }
    }
    let cells = map.panels.iter().flat_map(|panel| &panel.columns);
    let cells = cells.flat_map(|column| &column.cells);
    assert_eq!(cells.map(|(_, n)| *n).max(), Some(map.most()));
    assert!(map.edges.len() <= 257);
}

#[test]
fn several_results_have_a_panel_each_and_few_lines() {
    let one = sample::single();
    let plots = plots(&[&one, &one]);
    let PlotBody::Heat(map) = &named(&plots, "heat-map").body else {
        panic!("no heat map")
    };
    let names: Vec<&str> = map.panels.iter().map(|panel| panel.name.as_str()).collect();
    assert_eq!(names, ["old", "new"]);
    let lines = &chart(named(&plots, "latency")).lines;
    assert!(lines.len() == 8 && lines[4].name == "new p50", "{lines:?}");
    let two = sample::two_kinds();
    let plots = self::plots(&[&two, &two]);
    let lines = &chart(named(&plots, "latency")).lines;
    assert!(
        lines.len() == 8 && lines[1].name == "old: read p99",
        "{lines:?}"
    );
}

#[test]
fn latencies_that_no_clock_could_have_measured_are_drawn() {
    let mut result = sample::single();
    let text = result.to_json().unwrap();
    let begin = text.find("\"latency_over_time\":[{").unwrap();
    let end = begin + text[begin..].find("]}]}]").unwrap() + 5;
    let hostile = "\"latency_over_time\":[{\"kind\":\"read\",\"stage\":\"lat\",\"intervals\":[\
        {\"end_ns\":4611686018427387904,\"sum_ns\":0,\"p50_ns\":0,\"max_ns\":0,\
        \"rows\":[[0,1152921504606846976],[471,1152921504606846976],[9999,1]]},\
        {\"end_ns\":7,\"sum_ns\":1,\"max_ns\":1152921504606846976,\"rows\":[[]]}]}]";
    let text = text[..begin].to_owned() + hostile + &text[end..];
    result = RunResult::from_json(&text).unwrap();
    let plots = plots(&[&result]);
    for name in ["latency", "heat-map"] {
        let drawn = crate::plot::inline(named(&plots, name));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}

#[test]
fn the_distribution_ends_at_the_greatest_latency_and_one_over_the_count() {
    let result = sample::single();
    let plots = plots(&[&result]);
    let chart = chart(named(&plots, "distribution"));
    let histogram = result.groups[0].jobs[0].workers()[0].kinds[0]
        .stage(Stage::Lat)
        .unwrap();
    let points = &chart.lines[0].points;
    assert_eq!(chart.lines[0].shape, LineShape::Steps);
    let last = points.last().unwrap();
    let count = crate::plot::real(histogram.count());
    assert!((last.y.unwrap() - count.log10()).abs() < 1e-9);
    assert!((last.x * 1e9 / crate::plot::real(histogram.max().unwrap()) - 1.0).abs() < 1e-9);
    assert!(
        points
            .windows(2)
            .all(|two| two[0].x <= two[1].x && two[0].y <= two[1].y)
    );
}

#[test]
fn of_an_open_loop_response_and_latency_stand_beside_each_other() {
    let plots = plots(&[&sample::open_loop()]);
    let lines = &chart(named(&plots, "distribution")).lines;
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["response", "latency"]);
}

#[test]
fn the_slowest_worker_is_first_and_named() {
    let plots = plots(&[&sample::workers()]);
    let plot = named(&plots, "workers");
    let points = &chart(plot).lines[0].points;
    assert!(points.len() == 16 && points[0].y < points[15].y);
    assert!(
        plot.caption.contains("the slowest of 16 is worker 15"),
        "{}",
        plot.caption
    );
    assert_eq!(plot.table.rows.len(), 16);
}

#[test]
fn what_the_hypervisor_took_is_a_part_of_the_bars_of_processors() {
    let mut result = sample::single();
    let bars = |result: &RunResult| {
        let plot = named(&plots(&[result]), "cpu").clone();
        match plot.body {
            PlotBody::Bars(bars) => (bars.parts, bars.rows[0].parts.clone(), plot.caption),
            other => panic!("{other:?}"),
        }
    };
    let (parts, bar, _) = bars(&result);
    assert_eq!((parts.len(), bar.len()), (2, 2));
    let worker = &mut result.groups[0].jobs[0].workers_mut()[0];
    worker.cpu.stolen_ns = Some(Nanos::from_secs(3));
    let (parts, bar, caption) = bars(&result);
    assert_eq!((parts.len(), bar.len()), (3, 3));
    assert!((bar[2].1 - 0.1).abs() < 1e-9, "{bar:?}");
    assert!(
        caption.ends_with("The hypervisor took 0.100 of their processors."),
        "{caption}"
    );
}

#[test]
fn a_ramp_that_is_left_out_is_said() {
    let mut result = sample::single();
    let load = result.plan.groups[0].jobs[0].workload.load_mut().unwrap();
    load.bounds.ramp_ns = Nanos::from_secs(5);
    let plots = plots(&[&result]);
    let caption = &named(&plots, "throughput").caption;
    assert!(
        caption.contains("The ramp of 5.00 s before is left out."),
        "{caption}"
    );
}

#[test]
fn a_sweep_is_a_line_with_its_knee_and_no_sweep_is_none() {
    let of = |result: &RunResult| {
        let results = labelled(&[result]);
        of_runs(&PlottedRun::all(&results))
    };
    let plots = of(&sample::sweep());
    let chart = chart(named(&plots, "sweep"));
    assert_eq!((chart.lines[0].points.len(), chart.rules[0].at), (9, 64.0));
    assert_eq!(named(&plots, "sweep-latency").table.rows.len(), 9);
    assert_eq!(of(&sample::many()), []);
}

#[test]
fn the_best_rate_is_that_of_all_results() {
    let (mut part, whole) = (sample::sweep(), sample::sweep());
    part.groups.pop();
    part.plan.groups.pop();
    let results = labelled(&[&part, &whole]);
    let plots = of_runs(&PlottedRun::all(&results));
    let caption = &named(&plots, "rate-latency").caption;
    assert!(caption.contains(" of new, 99 % take at most "), "{caption}");
}

#[test]
fn two_results_are_two_lines_with_their_labels() {
    let (old, mut new) = (sample::single(), sample::single());
    new.groups[0].jobs[0].name = "renamed".into();
    // Each has one job alone, so they are the same whatever they are called.
    let plots = plots(&[&old, &new]);
    for name in ["throughput", "distribution"] {
        let lines = &chart(named(&plots, name)).lines;
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["old", "new"]);
        assert_ne!(lines[0].slot, lines[1].slot);
    }
}

#[test]
fn jobs_of_one_name_in_one_result_are_not_one() {
    let mut result = sample::together();
    result.groups[0].jobs[1].name = "reader".into();
    let across = |results: &[&RunResult]| {
        let results = labelled(results);
        let runs = PlottedRun::all(&results);
        let jobs = jobs_across(&runs);
        jobs.iter().map(|job| job.runs.len()).collect::<Vec<_>>()
    };
    assert_eq!(across(&[&result]), [1, 1]);
    assert_eq!(across(&[&result, &result]), [2, 2]);
}

#[test]
fn named_figures_of_any_workload_have_pictures() {
    let plots = plots(&[&sample::message_sizes()]);
    let sizes = chart(named(&plots, "by-size"));
    assert_eq!(sizes.lines[0].points.len(), 5);
    assert_eq!(sizes.rules[0].name, "b_eff 1.50 GB/s");
    match &named(&plots, "figures-s").body {
        PlotBody::Bars(bars) => assert_eq!(bars.rows.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_not_measured_has_no_plot() {
    let mut result = sample::single();
    let job = &mut result.groups[0].jobs[0];
    let worker = &mut job.workers_mut()[0];
    worker.kinds[0].stages.clear();
    worker.kinds[0].series = weir_stats::Series::new(Nanos::from_millis(100));
    *job = weir_schema::sample::over_time(job.clone(), Vec::new());
    let names: Vec<String> = plots(&[&result])
        .into_iter()
        .map(|plot| plot.name)
        .collect();
    assert_eq!(names, ["cpu"]);
}
