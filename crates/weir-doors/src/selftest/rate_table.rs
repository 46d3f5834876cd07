//! Output of `--find-max`: for each pair of sizes the block of the rate that was found, and a table of the
//! steps, each with why its rate is not kept.
//!
//! In: the result of all steps. Out: text. Not here: which rates are tried, and what keeps them
//! (`rate_search`).

use weir_schema::{RpcMaster, RunResult};

use super::rate_search::{DoneStep, RateGoal, RateMiss, best, steps};
use super::{SelfTestOptions, output};

/// The text of all pairs of sizes.
pub(super) fn text(result: &RunResult, goal: &RateGoal, options: &SelfTestOptions) -> String {
    let mut out = String::new();
    let name = output::ordinal(goal.percent);
    for (pair, steps) in steps(result) {
        let best = best(goal, &steps);
        if let Some(best) = best {
            out += &output::block(result, best.group, options);
        }
        let (words, limit) = (pair.words(), goal.below);
        push!(
            out,
            "+ Highest rate of {words} with {name} % below {limit}\n"
        );
        let column = format!("{name} % (us)");
        push!(
            out,
            "+ {:>14} {:>14} {column:>14}\n",
            "asked/sec",
            "RPCs/sec"
        );
        for step in &steps {
            row(&mut out, goal, step);
        }
        if steps.iter().any(|step| is_thin(goal, step)) {
            let least = goal.least_rpcs();
            push!(
                out,
                "+ Of fewer than {least} RPCs the {name} % is the longest latency: let steps take longer \
                 (--duration)\n"
            );
        }
        push!(out, "+ {}\n\n", found(goal, best, &steps));
    }
    out
}

/// The last line of a pair of sizes.
fn found(goal: &RateGoal, best: Option<&DoneStep<'_>>, steps: &[DoneStep<'_>]) -> String {
    let is_cut = steps.iter().any(|step| step.is_cut);
    let rate = best.and_then(|best| Some((best.rate?, best.work.masters.is_empty())));
    let Some((rate, is_own)) = rate else {
        return if is_cut {
            "Interrupted before a rate was found that keeps it".to_owned()
        } else if steps.iter().all(|step| step.rate.is_none()) {
            "No rate was tried, since no RPC succeeded without one".to_owned()
        } else {
            let none = "None of these rates keeps it";
            let least = steps.last().map_or(0.0, |step| goal.least_rate(step.work));
            if least > 0.0 {
                format!(
                    "{none}; below {least:.0} RPCs/sec --duration is too short for the percentile"
                )
            } else {
                none.to_owned()
            }
        };
    };
    let what = if is_cut {
        "Found so far, until it was interrupted"
    } else {
        "Found"
    };
    let whose = if is_own { "" } else { " of each master" };
    let same = steps
        .iter()
        .filter(|step| step.rate == best.and_then(|best| best.rate) && !step.is_cut);
    let (all, kept) = same.fold((0, 0), |(all, kept), step| {
        (all + 1, kept + u32::from(goal.misses(step).is_empty()))
    });
    let doubt = if kept < all {
        format!(", kept in {kept} of {all} steps")
    } else {
        String::new()
    };
    format!("{what}: {rate:.0} RPCs/sec{whose}{doubt}")
}

/// True if some master had too few RPCs for the percentile.
fn is_thin(goal: &RateGoal, step: &DoneStep<'_>) -> bool {
    let fewest = step.outcome.masters.iter().map(|one| one.succeeded).min();
    step.rate.is_some() && fewest.is_some_and(|fewest| fewest < goal.least_rpcs())
}

fn row(out: &mut String, goal: &RateGoal, step: &DoneStep<'_>) {
    let asked = match step.rate {
        Some(rate) => format!("{rate:.0}"),
        None => "any".to_owned(),
    };
    let masters = || step.outcome.masters.iter();
    let latency = masters().filter_map(|master| output::percentile(master, goal.percent));
    let latency = match latency.max() {
        Some(time) => format!("{}.{:03}", time.0 / 1000, time.0 % 1000),
        None => "NA".to_owned(),
    };
    let lowest = masters().map(RpcMaster::rate).min_by(f64::total_cmp);
    let mut remarks: Vec<String> = match step.rate {
        None => vec!["closed loop".to_owned()],
        Some(_) => goal.misses(step).iter().map(miss).collect(),
    };
    if remarks.is_empty() {
        remarks.push("kept".to_owned());
    }
    if is_thin(goal, step) {
        let fewest = masters().map(|one| one.succeeded).min().unwrap_or_default();
        remarks.push(format!("of {fewest} RPCs alone"));
    }
    push!(
        out,
        "+ {asked:>14} {:>14.0} {latency:>14} {}\n",
        lowest.unwrap_or(0.0),
        remarks.join(", ")
    );
}

fn miss(miss: &RateMiss) -> String {
    match miss {
        RateMiss::Interrupted => "interrupted".to_owned(),
        RateMiss::Failed(count) => format!("{count} RPCs failed"),
        RateMiss::NotSent(count) => format!("{count} RPCs not sent"),
        RateMiss::NoMaster => "a master measured nothing".to_owned(),
        // Cut off, so that what is not reached never looks as if it were.
        RateMiss::Rate(share) => format!(
            "{:.1} % of the rate",
            (1000.0 * share + 1e-6).floor() / 10.0
        ),
        RateMiss::Latency => "not below the limit".to_owned(),
    }
}
