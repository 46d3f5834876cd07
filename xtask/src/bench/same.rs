//! Bench `same`: equal runs of weir, judged as two that are compared.
//!
//! In: pairs of runs of one stored plan. Out: in how many pairs the 95 %
//! interval of the difference of their rates holds 0, as it should.
//! The plan is a null job whose intervals are short, so that short runs have
//! batches enough. Not here: how the interval comes about (`weir-stats`).

use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_stats::significance::difference;
use weir_stats::{NoInterval, Series, SeriesMean};

use super::side;
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, child};

const INTERVAL_NS: u64 = 10_000_000;
/// Pairs tried for one that has an interval, before giving up.
const MOST_TRIES: usize = 3;

pub(super) fn cases() -> Vec<Case> {
    vec![Case {
        name: "null".to_owned(),
        run: Box::new(measure),
    }]
}

fn measure(pairs: usize) -> Result<Vec<Row>> {
    let words = plan()?;
    println!("$ {}", words.join(" "));
    let (mut held, mut judged, mut tried) = (0, 0, 0);
    while judged < pairs && tried < pairs * MOST_TRIES {
        tried += 1;
        let (a, b) = (run(&words)?, run(&words)?);
        let (Ok(a), Ok(b)) = (a, b) else { continue };
        let apart = difference(&a, &b);
        judged += 1;
        held += usize::from(apart.low <= Some(0.0) && apart.high >= Some(0.0));
    }
    let metric = |name, target| Metric {
        name,
        unit: "pairs",
        target,
    };
    let holds = metric(
        "the interval of the difference holds 0",
        Target::AtLeast(0.9),
    );
    let has = metric("both runs have an interval", Target::None);
    let verdict = if judged == pairs {
        Row::share("null", &holds, held, judged)
    } else {
        let why = format!("{held} of {judged}, but {pairs} pairs with an interval are needed");
        Row::not_measured("null", &holds, &why)
    };
    Ok(vec![verdict, Row::share("null", &has, judged, tried)])
}

/// Stores the plan; the words that run it.
fn plan() -> Result<Vec<String>> {
    let weir = side::text(&side::weir())?;
    let job = "--name=bench --ioengine=null --rw=randread --bs=4k --size=4g --norandommap=1 \
               --time_based=1 --runtime=300ms --show-plan";
    let mut words = vec![weir.clone(), "fio".to_owned()];
    words.extend(job.split_whitespace().map(str::to_owned));
    words.push(format!("--cpus_allowed={}", side::cpu()));
    println!("$ {}", words.join(" "));
    let mut plan: Value = serde_json::from_str(&child::run(&words)?.stdout)?;
    let recording = plan
        .pointer_mut("/groups/0/jobs/0/workload/load/recording")
        .context("a plan without recording")?;
    recording["interval_ns"] = json!(INTERVAL_NS);
    let path = format!("{FOLDER}/same.json");
    fs::write(&path, plan.to_string())?;
    let run = ["run", &path, "--format", "json"];
    Ok([weir].into_iter().chain(run.map(str::to_owned)).collect())
}

/// The mean rate of a run with its interval, or why there is none.
fn run(words: &[String]) -> Result<Result<SeriesMean, NoInterval>> {
    let result: Value = serde_json::from_str(&child::run(words)?.stdout)?;
    let series = result
        .pointer("/groups/0/jobs/0/outcome/workers/0/kinds/0/series")
        .context("a result without a series")?;
    let series: Series = serde_json::from_value(series.clone())?;
    let whole = series.len() - usize::from(series.ends_partial());
    let rates: Vec<f64> = series
        .points()
        .take(whole)
        .map(|point| point.operations as f64 / (point.length.0 as f64 / 1e9))
        .collect();
    Ok(SeriesMean::of(&rates))
}
