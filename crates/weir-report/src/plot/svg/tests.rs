//! Tests of still pictures, byte for byte, and of their size.

use insta::assert_snapshot;
use weir_schema::RunResult;

use super::*;
use crate::sample;

fn labelled(result: &RunResult) -> [LabelledResult<'_>; 1] {
    [LabelledResult {
        label: "r".into(),
        result,
    }]
}

/// One element a line, so that a difference is seen.
fn drawn(result: &RunResult, name: &str) -> String {
    let choice = PlotChoice {
        name: Some(name.into()),
        job: None,
    };
    svg(&labelled(result), &choice)
        .unwrap()
        .replace("><", ">\n<")
}

#[test]
fn a_stall_is_a_gap_in_the_line_and_a_shade_behind_it() {
    let text = drawn(&sample::open_loop(), "throughput");
    let line = text.lines().find(|l| l.starts_with("<path class=\"line"));
    assert_eq!(line.unwrap().matches('M').count(), 2, "{line:?}");
    assert_eq!(text.matches("<path class=\"shade\"").count(), 1);
    assert_snapshot!("stall", text);
}

#[test]
fn percentiles_over_time_are_lines() {
    assert_snapshot!("latency", drawn(&sample::open_loop(), "latency"));
}

#[test]
fn a_heat_map_has_a_panel_for_each_kind() {
    assert_snapshot!("heat_map", drawn(&sample::two_kinds(), "heat-map"));
}

#[test]
fn a_heat_map_of_many_cells_is_small() {
    let mut result = sample::single();
    let histogram = |i: u64| {
        let mut histogram = weir_stats::Histogram::new();
        for j in 0..300_u64 {
            histogram.record_n(100 + j * j * j, 1 + (i * 31 + j * 17) % 1999);
        }
        histogram
    };
    let interval = weir_units::Nanos::from_millis(50);
    let intervals: Vec<_> = (0..600).map(|i| (interval, histogram(i))).collect();
    let over_time = weir_schema::sample::latency_over_time(weir_schema::Kind::Read, &intervals);
    let job = &mut result.groups[0].jobs[0];
    *job = weir_schema::sample::over_time(job.clone(), vec![over_time]);
    let text = drawn(&result, "heat-map");
    assert!((10_000..60_000).contains(&text.len()), "{}", text.len());
}

#[test]
fn a_sweep_has_its_knee() {
    assert_snapshot!("sweep", drawn(&sample::sweep(), "sweep"));
}

#[test]
fn latencies_are_steps_over_nines() {
    assert_snapshot!("distribution", drawn(&sample::two_kinds(), "distribution"));
}

#[test]
fn figures_over_size_and_figures_alone_are_drawn() {
    assert_snapshot!("by_size", drawn(&sample::message_sizes(), "by-size"));
    assert_snapshot!("figures", drawn(&sample::message_sizes(), "figures-s"));
}

#[test]
fn every_picture_is_small_and_says_what_it_shows() {
    let mut seen = 0;
    for result in [
        sample::single(),
        sample::open_loop(),
        sample::workers(),
        sample::together(),
        sample::sweep(),
        sample::message_sizes(),
    ] {
        let results = labelled(&result);
        let runs = PlottedRun::all(&results);
        let of_jobs = jobs_across(&runs)
            .iter()
            .flat_map(of_job)
            .collect::<Vec<_>>();
        for plot in of_jobs.into_iter().chain(of_runs(&runs)) {
            let text = alone(&plot, "job");
            assert!(text.len() < 30_000, "{}", text.len());
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            assert!(!text.contains("aria-label=\"\""));
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn a_plot_that_there_is_not_is_refused_with_those_that_there_are() {
    let result = sample::together();
    let of = |name: &str, job: Option<&str>| {
        let choice = PlotChoice {
            name: Some(name.into()),
            job: job.map(str::to_owned),
        };
        svg(&labelled(&result), &choice)
    };
    let message = of("heat", None).unwrap_err();
    assert!(
        message.contains("no plot `heat`") && message.contains("throughput"),
        "{message}"
    );
    let message = of("throughput", None).unwrap_err();
    assert!(
        message.contains("choose one of reader, writer"),
        "{message}"
    );
    let message = of("throughput", Some("redaer")).unwrap_err();
    assert!(message.contains("there are reader, writer"), "{message}");
    assert!(
        of("throughput", Some("writer"))
            .unwrap()
            .contains("writer: Throughput")
    );
}

#[test]
fn jobs_of_one_name_are_told_apart_by_a_number() {
    let mut result = sample::together();
    for job in result.groups.iter_mut().flat_map(|group| &mut group.jobs) {
        job.name = "x".to_owned();
    }
    let of = |job: Option<&str>| {
        let choice = PlotChoice {
            name: Some("throughput".into()),
            job: job.map(str::to_owned),
        };
        svg(&labelled(&result), &choice)
    };
    for job in [None, Some("x")] {
        let message = of(job).unwrap_err();
        assert!(message.contains("choose one of x#1, x#2"), "{message}");
    }
    let (first, second) = (of(Some("x#1")).unwrap(), of(Some("x#2")).unwrap());
    assert_ne!(first, second);
    assert_eq!(of(Some("1")).unwrap(), first);
    assert_eq!(of(Some("2")).unwrap(), second);
    for job in ["0", "3", "x#3", "y"] {
        let message = of(Some(job)).unwrap_err();
        assert!(message.contains("there are x#1, x#2"), "{message}");
    }
}

#[test]
fn names_are_escaped() {
    assert_eq!(
        escaped("</text><script a='b\"&\u{1b}\u{202e}"),
        "&lt;/text&gt;&lt;script a=&#39;b&quot;&amp;\\u{1b}\\u{202e}"
    );
}
