//! Bench `same`: equal runs of weir, judged as two that are compared.
//!
//! In: pairs of runs of one stored plan. Out: in how many pairs the 95 %
//! interval of the difference of their rates holds 0, as it should.
//! The plan is a null job whose intervals are short, so that short runs have
//! batches enough. Not here: how the interval comes about (`weir-stats`).

use std::fs;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};
use weir_stats::significance::difference;
use weir_stats::{Series, SeriesMean};

use super::side;
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, child};

const INTERVAL_NS: u64 = 10_000_000;

pub(super) fn cases() -> Vec<Case> {
    vec![Case {
        name: "null".to_owned(),
        run: Box::new(measure),
    }]
}

fn measure(pairs: usize) -> Result<Vec<Row>> {
    let words = plan()?;
    println!("$ {}", words.join(" "));
    let mut held = 0;
    for _ in 0..pairs {
        let apart = difference(&run(&words)?, &run(&words)?);
        held += usize::from(apart.low <= Some(0.0) && apart.high >= Some(0.0));
    }
    let holds = Metric {
        name: "the interval of the difference holds 0",
        unit: "pairs",
        target: Target::AtLeast(0.9),
    };
    Ok(vec![Row::share("null", &holds, held, pairs)])
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

/// The mean rate of a run with its interval.
fn run(words: &[String]) -> Result<SeriesMean> {
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
    SeriesMean::of(&rates).map_err(|_| anyhow!("a run of fewer than ten stretches"))
}
