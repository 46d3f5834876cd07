//! Bench `same`: equal runs of weir, judged as two that are compared.
//!
//! In: pairs of equal jobs, each run five times in turns by `--repeat`. Out: in how many pairs the
//! 95 % interval of the ratio of their rates holds 1, as it should. Not here: how the interval comes
//! about (`weir-stats`).

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;
use weir_stats::BetweenRuns;

use super::side;
use super::table::Row;
use super::{Case, FOLDER, Metric, Target, child};

pub(super) fn cases() -> Vec<Case> {
    vec![Case {
        name: "null".to_owned(),
        run: Box::new(measure),
    }]
}

fn measure(pairs: usize) -> Result<Vec<Row>> {
    let argv = argv()?;
    println!("$ {}", argv.join(" "));
    let mut held = 0;
    for _ in 0..pairs {
        let ratios: Vec<_> = ratios(&argv)?.map(|ratio| (ratio, None)).collect();
        let between = BetweenRuns::of(&ratios).and_then(|ratio| ratio.interval());
        let (low, high) = between.context("runs without an interval")?;
        held += usize::from(low <= 1.0 && 1.0 <= high);
    }
    let holds = Metric {
        name: "the interval of the ratio holds 1",
        unit: "pairs",
        target: Target::AtLeast(0.9),
    };
    Ok(vec![Row::share("null", &holds, held, pairs)])
}

/// Writes the job twice; the command that runs both in turns.
fn argv() -> Result<Vec<String>> {
    let cpu = side::cpu();
    let job = format!(
        "[bench]\nioengine=null\nrw=randread\nbs=4k\nsize=4g\nnorandommap=1\ntime_based=1\n\
         runtime=300ms\ncpus_allowed={cpu}\n"
    );
    let mut argv = vec![side::text(&side::weir())?];
    argv.extend(["run", "--repeat", "5", "--format", "json"].map(str::to_owned));
    for name in ["a", "b"] {
        let path = format!("{FOLDER}/same-{name}.fio");
        fs::write(&path, &job)?;
        argv.push(path);
    }
    Ok(argv)
}

/// Ratio of each run of the first job to the run of the second that follows it.
fn ratios(argv: &[String]) -> Result<impl Iterator<Item = f64>> {
    let result: Value = serde_json::from_str(&child::run(argv)?.stdout)?;
    let rates = |series: usize| -> Result<Vec<f64>> {
        let runs = result.pointer(&format!("/series/{series}/runs"));
        let runs = runs.and_then(Value::as_array).context("no runs")?;
        let rate = |run: &Value| {
            run.pointer("/groups/0/rates/0/ops_per_s")
                .and_then(Value::as_f64)
        };
        runs.iter()
            .map(|run| rate(run).context("a run without a rate"))
            .collect()
    };
    let (first, second) = (rates(0)?, rates(1)?);
    Ok(first
        .into_iter()
        .zip(second)
        .map(|(one, other)| one / other))
}
