//! The whole report on fixed results, at every width that changes its shape.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;
use weir_schema::{Kind, RUNS_SCHEMA, RankSummary, RunResult, RunSeries, Runs, Warning};
use weir_units::Percent;

use super::{runs_text, text};
use crate::entry::entries;
use crate::plot::LabelledResult;
use crate::sample::{self, Shape};
use crate::style::Style;

fn all_samples() -> Vec<(&'static str, RunResult)> {
    vec![
        ("single", sample::single()),
        ("two_kinds", sample::two_kinds()),
        ("open_loop", sample::open_loop()),
        ("workers", sample::workers()),
        ("together", sample::together()),
        ("sweep", sample::sweep()),
        ("many", sample::many()),
        ("failed", sample::failed()),
        ("interrupted", sample::interrupted()),
        ("short", sample::short()),
    ]
}

fn style(width: usize) -> Style {
    Style {
        width,
        ..Style::default()
    }
}

fn assert_fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(
            line.width() <= width,
            "{} > {width}: {line}\n{text}",
            line.width()
        );
        assert_eq!(line.trim_end(), line, "blanks at the end");
    }
    assert!(text.ends_with('\n') && !text.contains("\n\n\n"), "{text}");
}

#[test]
fn every_sample_looks_as_agreed_at_every_width() {
    for (name, result) in all_samples() {
        let mut all = String::new();
        for width in [120, 80, 60, 40] {
            let text = text(&result, &style(width));
            assert_fits(&text, width);
            all.extend([format!("=== {width} columns\n"), text]);
        }
        insta::assert_snapshot!(name, all);
    }
}

#[test]
fn each_rank_has_the_workers_of_the_title_and_their_limit_in_flight() {
    let limit = |result: &RunResult| entries(result)[0].depth_limit();
    let mut result = sample::single();
    let alone = limit(&result).unwrap();
    result.ranks = [0, 1, 2].map(|rank| RankSummary::of(rank, &result)).into();
    assert_eq!(limit(&result), Some(3 * alone));
    let on_ranks = "on each of 3 ranks";
    let page = text(&result, &style(90));
    assert!(page.contains(on_ranks), "{page}");
    assert!(!text(&sample::single(), &style(90)).contains("ranks"));
}

#[test]
fn an_ascii_report_has_only_ascii() {
    for (name, result) in all_samples() {
        let style = Style {
            ascii: true,
            ..style(80)
        };
        let text = text(&result, &style);
        assert!(text.is_ascii() && !text.contains("\\u{"), "{text}");
        assert_fits(&text, 80);
        if name == "open_loop" {
            insta::assert_snapshot!("ascii", text);
        }
    }
}

#[test]
fn raw_numbers_are_whole_and_in_the_smallest_unit() {
    let style = Style {
        raw: true,
        ..style(100)
    };
    let mut all = String::new();
    for result in [sample::single(), sample::workers(), sample::sweep()] {
        all += &text(&result, &style);
    }
    insta::assert_snapshot!("raw", all);
}

#[test]
fn colour_only_adds_codes() {
    for (_, result) in all_samples() {
        let plain = text(&result, &style(80));
        assert!(!plain.contains('\x1b'));
        let painted = text(
            &result,
            &Style {
                color: true,
                ..style(80)
            },
        );
        let mut bare = painted.clone();
        for code in ["0", "1", "2", "31", "33"] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        let bare: Vec<&str> = bare.lines().map(str::trim_end).collect();
        assert_eq!(bare, plain.lines().collect::<Vec<_>>());
        assert!(painted.contains("\x1b[1m"));
    }
    let failed = text(
        &sample::failed(),
        &Style {
            color: true,
            ..style(80)
        },
    );
    assert!(failed.contains("\x1b[31m  FAILED"), "{failed}");
}

#[test]
fn the_percentiles_asked_for_are_shown() {
    let asked = Some([1.0, 75.0, 99.999].map(Percent).to_vec());
    let style = Style {
        percentiles: asked,
        ..style(80)
    };
    let text = text(&sample::single(), &style);
    for percentile in ["p1 ", "p75 ", "p99.999 "] {
        assert!(text.contains(percentile), "{text}");
    }
    assert!(!text.contains("p99.9 "), "{text}");
}

#[test]
fn a_percentile_with_few_samples_beyond_it_is_marked() {
    let text = text(&sample::short(), &style(80));
    assert!(text.contains("µs~"), "{text}");
    assert!(text.contains("± unknown (short run)"), "{text}");
}

#[test]
fn names_cannot_move_the_cursor() {
    let mut result = sample::single();
    result.groups[0].jobs[0].name = "a\x1b[2Jb\nc\u{202e}d".into();
    let text = text(&result, &style(80));
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
    assert!(text.contains("a\\u{1b}[2Jb\\nc\\u{202e}d"), "{text}");
}

#[test]
fn jobs_reported_as_one_add_up() {
    let mut result = sample::together();
    for job in &mut result.plan.groups[0].jobs {
        job.report.merge = true;
    }
    let warning = Warning::new("cpu-steal", Some("writer"), "3.1 % steal.");
    result.warnings.push(warning);
    let text = text(&result, &style(80));
    assert!(text.contains("2 jobs as one"), "{text}");
    assert!(!text.contains("writer"), "{text}");
    assert!(text.contains("  ! cpu-steal  3.1 % steal."), "{text}");
    assert!(text.contains("while all workers ran"), "{text}");
}

#[test]
fn the_three_gravest_warnings_of_a_job_are_said_and_the_others_named() {
    let mut result = sample::single();
    result.warnings.clear();
    let ids = [
        "short-run",
        "cpu-shared",
        "instrument-cost",
        "few-samples",
        "never-written",
    ];
    for id in ids {
        let warning = Warning::new(id, Some("rand-read"), format!("{id} here."));
        result.warnings.push(warning);
    }
    let again = Warning::new("cpu-shared", Some("rand-read"), "cpu-shared there.");
    result.warnings.push(again);
    let few = text(&result, &style(100));
    let said: Vec<&str> = few
        .lines()
        .filter(|line| line.starts_with("  ! "))
        .collect();
    let starts = [
        "  ! never-written  never-written here. Write all of the file first",
        "  ! cpu-shared  cpu-shared here. And 1 more of this kind. Stop",
        "  ! instrument-cost  instrument-cost here. ",
        "  ! 2 more  short-run, few-samples (--warnings all)",
    ];
    assert_eq!(said.len(), starts.len(), "{few}");
    for (line, start) in said.iter().zip(starts) {
        assert!(line.starts_with(start), "{few}");
    }
    let style = Style {
        all_warnings: true,
        ..style(100)
    };
    let all = text(&result, &style);
    let said = all.lines().filter(|line| line.starts_with("  ! "));
    assert_eq!(said.count(), 6, "{all}");
    for rest in ["more of this kind", "! 2 more"] {
        assert!(!all.contains(rest), "{all}");
    }
}

#[test]
fn what_several_jobs_share_is_said_once() {
    let mut result = sample::together();
    let warn = |job, cause| Warning::new("page-cache", Some(job), cause);
    result.warnings = vec![warn("reader", "So it is."), warn("writer", "So it is.")];
    let alike = text(&result, &style(80));
    assert_eq!(alike.matches("page-cache").count(), 1, "{alike}");
    assert!(
        alike.contains("\n  ! page-cache  reader, writer: So it is. Read with"),
        "{alike}"
    );
    result.warnings[1].cause = "So is this.".to_owned();
    let unlike = text(&result, &style(80));
    let words = unlike.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("! page-cache reader: So it is. Likewise writer. Read with"),
        "{unlike}"
    );
    // Jobs of one name are as one: the first of them says it.
    for group in &mut result.groups {
        group
            .jobs
            .iter_mut()
            .for_each(|job| job.name = "reader".to_owned());
    }
    result
        .warnings
        .iter_mut()
        .for_each(|w| w.job = Some("reader".to_owned()));
    let named_alike = text(&result, &style(80));
    assert_eq!(
        named_alike.matches("page-cache").count(),
        1,
        "{named_alike}"
    );
    assert!(
        named_alike.contains("And 1 more of this kind."),
        "{named_alike}"
    );
}

#[test]
fn several_runs_say_how_much_they_differ() {
    let rated = |rate| {
        let mut run = sample::run(&[Shape {
            kinds: vec![(Kind::Read, rate)],
            tenths: 20,
            ..Shape::default()
        }]);
        run.groups[0].jobs[0].conclude();
        run
    };
    let mut runs = Runs {
        comparison: None,
        schema: RUNS_SCHEMA.to_owned(),
        weir_version: "1.2.3".to_owned(),
        command: Vec::new(),
        asked: 3,
        pause_ns: weir_units::Nanos::ZERO,
        complete: true,
        series: vec![RunSeries::new(
            "p",
            [100_000, 200_000, 400_000].map(rated).to_vec(),
        )],
    };
    let page = runs_text(&runs, &style(100));
    assert_fits(&page, 100);
    let rate = "  rate      200 k ops/s ± 172 % between 3 runs (99.9 k … 400 k), within a run ± ";
    assert!(page.contains(rate), "{page}");
    assert!(
        page.contains("  latency   p50 ") && page.contains("  pooled    p50 "),
        "{page}"
    );
    assert!(page.contains("  ! runs-differ  "), "{page}");
    // A warning of some of the runs says of how many.
    let short = |job: &str| Warning::new("short-run", Some(job), "It was too short.");
    let job = runs.series[0].runs[0].groups[0].jobs[0].name.clone();
    for (count, says) in [
        (1, "It was too short: 1 of 3 runs."),
        (3, "It was too short. "),
    ] {
        let mut warned = runs.clone();
        for run in warned.series[0].runs.iter_mut().take(count) {
            run.warnings.push(short(&job));
        }
        let page = runs_text(&warned, &style(100));
        assert!(page.contains(says), "{page}");
        let page = html_of(&warned);
        assert_eq!(page.matches("It was too short.").count(), 1, "{page}");
    }
    let figures = "<td>read rate</td><td>200 k ops/s</td><td>± 172 %</td><td>99.9 k";
    let page = html_of(&runs);
    assert!(page.contains("<h1>p: 3 runs</h1>"), "{page}");
    assert!(page.contains(figures), "{page}");
    runs.asked = 5;
    let cut = runs_text(&runs, &style(100));
    assert!(cut.contains("  INCOMPLETE (3 of 5 runs)"), "{cut}");
    assert!(html_of(&runs).contains("<h1>p: 3 of 5 runs</h1>"));
    for width in [20, 40, 60, 80] {
        assert_fits(&runs_text(&runs, &style(width)), width);
    }
}

/// The page of several runs of one plan.
fn html_of(runs: &Runs) -> String {
    let labelled = (1..)
        .zip(&runs.series[0].runs)
        .map(|(n, result)| LabelledResult {
            label: format!("run {n}"),
            result,
        });
    crate::html(&labelled.collect::<Vec<_>>(), &[crate::runs_section(runs)])
}

#[test]
fn what_failed_in_a_run_stands_below_its_job() {
    let mut run = sample::together();
    let mut failure = weir_schema::sample::failure();
    failure.message = "it broke".to_owned();
    run.groups[0].jobs[0].failure = Some(failure);
    let last = run.groups[0].jobs[1].name.clone();
    let runs = Runs {
        comparison: None,
        schema: RUNS_SCHEMA.to_owned(),
        weir_version: "1.2.3".to_owned(),
        command: Vec::new(),
        asked: 2,
        pause_ns: weir_units::Nanos::ZERO,
        complete: true,
        series: vec![RunSeries::new("p", vec![run.clone(), run])],
    };
    let page = runs_text(&runs, &style(100));
    let failed = page.rfind("  FAILED    run 2: it broke").unwrap();
    let last = page.rfind(&format!("\n{last} ")).unwrap();
    assert!(failed < last, "{page}");
    // Equal runs; their percentiles are known as well as a bucket is narrow.
    let mut latencies = page.lines().filter(|l| l.starts_with("  latency   p50 "));
    assert!(latencies.all(|l| !l.contains("± 0.0 %")), "{page}");
}

#[test]
fn the_knee_is_the_first_point_with_95_percent_of_the_best_rate() {
    let text = text(&sample::sweep(), &style(80));
    let marked: Vec<&str> = text.lines().filter(|l| l.starts_with('>')).collect();
    assert_eq!(marked.len(), 1, "{text}");
    assert!(
        marked[0]
            .trim_start_matches('>')
            .trim_start()
            .starts_with("64 "),
        "{text}"
    );
}

#[test]
fn points_that_ran_together_are_no_sweep() {
    let mut result = sample::sweep();
    let first = result.groups[0].jobs[0].span;
    result.groups[0].jobs[1].span = first;
    let text = text(&result, &style(80));
    assert!(!text.contains("knee"), "{text}");
    assert!(text.contains("9 jobs"), "{text}");
}

/// Without blanks, which differ with the width, and without what the layout adds.
#[test]
fn jobs_without_workers_show_their_metrics_beside_jobs_with_some() {
    let mut result = sample::beside_ranks(1);
    let text = text(&result, &style(80));
    let lines = [
        "exchanges   exchange, null",
        "  b_eff               1.50 GB/s",
        "  bandwidth at 8 B    20.0 MB/s  ± 5.0 %",
        "  ping-pong latency  250 ns",
        "  score              12.5 GiB",
    ];
    for line in lines.map(|line| line.split_whitespace().collect::<Vec<_>>()) {
        let has = |l: &str| {
            l.split_whitespace()
                .take(line.len())
                .eq(line.iter().copied())
        };
        assert!(text.lines().any(has), "{line:?}\n{text}");
    }
    assert!(
        text.contains("rand-read") && text.contains("± 0.6 %"),
        "{text}"
    );
    for width in [120, 60, 40] {
        assert_fits(&super::text(&result, &style(width)), width);
    }
    // As a table too.
    result = sample::beside_ranks(4);
    let text = super::text(&result, &style(80));
    assert!(
        text.contains("5 jobs") && text.contains("1.50 GB/s"),
        "{text}"
    );
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_wider_than_the_width_and_nothing_is_cut(
        names in prop::collection::vec("\\PC{1,60}", 1..7),
        rate in 1_u64..5_000_000,
        p50 in 1_u64..20_000_000_000,
        workers in 1_u32..4,
        width in 20_usize..140,
        ascii: bool,
        cause in "[a-z ]{0,90}",
        raw: bool,
    ) {
        let shapes: Vec<Shape> = names.iter().enumerate().map(|(i, name)| Shape {
            name: name.clone(),
            kinds: vec![(Kind::Read, rate), (Kind::Write, rate / 3)][..=i % 2].to_vec(),
            workers,
            block: 1 << (9 + i),
            p50_ns: p50,
            tenths: 20,
            open_loop: i % 2 == 0,
            ..Shape::default()
        }).collect();
        let mut result = sample::run(&shapes);
        let job = Some(names[0].as_str());
        result.warnings.push(Warning::new("cpu-steal", job, &cause));
        let style = Style { width, ascii, raw, ..Style::default() };
        let text = text(&result, &style);
        for line in text.lines() {
            prop_assert!(line.width() <= width, "{} > {width}: {line}\n{text}", line.width());
        }
        prop_assert!(!ascii || text.is_ascii());
        prop_assert!(!text.contains('\x1b'));
        let squeezed_text = squeezed(&text);
        prop_assert!(squeezed_text.contains(&squeezed(&cause)));
        for name in &names {
            let name = squeezed(&crate::color::clean(name, ascii));
            prop_assert!(squeezed_text.contains(&name), "{name}\n{text}");
        }
    }
}

#[test]
fn a_phase_has_lines_of_its_own_below_its_job() {
    let mut result = sample::two_kinds();
    let job = &mut result.groups[0].jobs[0];
    let span = job.span.unwrap();
    let part = weir_schema::PartSpan {
        name: "open".to_owned(),
        span,
    };
    let mut measured = job.clone();
    measured.name = "job write #2".to_owned();
    let rank = |rank| weir_schema::RankSpan {
        rank,
        span,
        parts: vec![part.clone()],
    };
    job.outcome = weir_schema::Outcome::None;
    job.metrics.clear();
    job.phases = vec![weir_schema::PhaseResult {
        name: "write".to_owned(),
        repetition: 1,
        ranks: vec![rank(0), rank(1)],
        measured: Some(Box::new(measured)),
    }];
    job.conclude();
    let text = text(&result, &style(100));
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}:\n{text}"));
    assert!(at("\njob write #2") < at("\n  read ") && at("\n  read ") < at("open "));
    assert_eq!(text.matches("\n  read ").count(), 1, "{text}");
    let labelled = [LabelledResult {
        label: "r".into(),
        result: &result,
    }];
    let csv = crate::csv::csv(&labelled);
    assert!(csv.contains(",job write #2,read,"), "{csv}");
    let page = crate::markdown::markdown(&labelled);
    assert!(page.contains(r"job write \#2"), "{page}");
}
