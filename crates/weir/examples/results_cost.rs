//! Cost of showing, comparing and keeping results: a line for each, with the median in milliseconds. `cargo
//! xtask bench results` compares these with their limits.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench"
)]

use std::hint::black_box;
use std::time::Instant;

use weir_compare::{Rule, Side, Sides, compare};
use weir_history::{Entry, History, ListFilter, new_id};
use weir_report::{Flags, LabelledResult, Style, Terminal, html, text};
use weir_schema::sample::{self, JobSample};
use weir_schema::{Kind, RunResult, Stage};
use weir_stats::{Estimate, Histogram};
use weir_units::Nanos;

const SECOND: Nanos = Nanos(1_000_000_000);

/// Result of this many jobs of four workers, each with a series of a minute and latencies.
fn result(jobs: u32, operations: u64) -> RunResult {
    let worker = |number: u32| {
        let mut latencies = Histogram::new();
        for at in 0..2000 {
            latencies.record(60_000 + at * 37 * u64::from(number + 1) % 90_000);
        }
        let mut kind = sample::kind(Kind::Read, operations, SECOND, &[(Stage::Lat, latencies)]);
        kind.series = sample::series(Nanos(100_000_000), &[operations / 600; 600], 4096);
        sample::worker(number, Nanos(60 * SECOND.0), vec![kind])
    };
    let job = |number: u32| {
        let name = format!("job{number}");
        let result = sample::job_result(&name, (0..4).map(worker).collect());
        let rate = Estimate::about(operations as f64 / 60.0, Ok(operations as f64 / 6000.0));
        let sure = sample::confidence(Kind::Read, rate, Estimate::about(80_000.0, Ok(300.0)));
        let mut result = sample::sure(result, vec![sure]);
        result.conclude();
        (
            sample::random_job(&name, &[Kind::Read], 4096).recorded(|_| ()),
            result,
        )
    };
    let mut all = sample::run(vec![(0..jobs).map(job).collect()]);
    all.groups
        .iter_mut()
        .for_each(weir_schema::GroupResult::conclude);
    all
}

/// Prints the median of some times.
fn median(name: &str, times: usize, mut work: impl FnMut()) {
    let mut all: Vec<f64> = (0..times)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    all.sort_by(f64::total_cmp);
    println!("{name} {:.3}", all[times / 2]);
}

fn main() {
    let sixteen = result(16, 600_000);
    let style = Style::detect(
        &Flags::default(),
        &std::collections::BTreeMap::new(),
        Terminal::default(),
    );
    median("text", 21, || drop(black_box(text(&sixteen, &style))));
    let labelled = [LabelledResult {
        label: "a".to_owned(),
        result: &sixteen,
    }];
    median("html", 11, || drop(black_box(html(&labelled, &[]))));
    let side = |name: &str, step: u64| Side {
        name: name.to_owned(),
        runs: (0..30)
            .map(|round| result(1, 600_000 + round * step))
            .collect(),
        spreads: Vec::new(),
    };
    let sides = Sides {
        sides: vec![side("a", 701), side("b", 907)],
        in_turns: true,
        is_varied: true,
    };
    median("compare", 11, || {
        drop(black_box(compare(&sides, &Rule::default()).unwrap()));
    });
    history();
}

fn entry(run: &RunResult) -> Entry {
    Entry::of_result(&new_id(run.started_unix_ns), run, None).unwrap()
}

/// One of many runs of a plan, with rates that differ by a few percent.
fn run_of_a_day(number: u64) -> RunResult {
    let mut run = result(1, 600_000 + number * 7919 % 1009 * 12);
    run.started_unix_ns = 1_700_000_000_000_000_000 + number * SECOND.0;
    run
}

fn history() {
    let folder = std::env::temp_dir().join(format!("weir-results-cost-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let mut kept = History::open(&folder.join("history.db")).unwrap();
    let all = (0..10_000).map(|number| entry(&run_of_a_day(number)));
    kept.insert_all(&all.collect::<Vec<_>>()).unwrap();
    drop(kept);
    let mut kept = History::open(&folder.join("history.db")).unwrap();
    let mut further: Vec<RunResult> = (10_000..10_021).map(run_of_a_day).collect();
    median("insert", 21, || {
        kept.insert(&entry(&further.pop().unwrap())).unwrap();
    });
    median("list", 11, || {
        drop(black_box(kept.list(&ListFilter::default()).unwrap()));
    });
    let newest = ListFilter {
        limit: Some(1),
        ..ListFilter::default()
    };
    let last = kept.runs(&newest).unwrap().remove(0);
    median("trend", 5, || {
        drop(black_box(kept.trends(&last, None, 0.01).unwrap()));
    });
    std::fs::remove_dir_all(&folder).unwrap();
}
