//! Messages about a result for standard error: warnings about its figures, failures.
//!
//! In: a result. Out: lines. Not here: the text of the result (`output`).

use weir_schema::{Gravity, RunResult, Warning};

/// All messages; failures of masters where no block has them.
pub(super) fn messages(result: &RunResult, has_blocks: bool) -> String {
    let mut out = String::new();
    for warning in disturbing(result) {
        let job = warning.job.as_ref().filter(|_| !is_of_way(warning));
        let job = job.map_or_else(String::new, |job| format!("{job}: "));
        push!(out, "warning: {job}{}\n", warning.cause);
    }
    failures(&mut out, result);
    if has_blocks {
        return out;
    }
    // Rows and metrics are of the masters that have measured.
    for job in result.jobs().filter(|job| job.failure.is_none()) {
        for master in job.rpc().iter().flat_map(|done| &done.masters) {
            if let Some(why) = &master.failure {
                let (name, endpoint, why) = (&job.name, master.endpoint, &why.message);
                push!(out, "error: {name}: master {endpoint} failed: {why}\n");
            }
        }
    }
    out
}

/// Why jobs failed; once where all pairs of sizes failed alike.
fn failures(out: &mut String, result: &RunResult) {
    let all = || {
        result
            .jobs()
            .map(|job| job.failure.as_ref().map(|why| &why.message))
    };
    match all().next().flatten() {
        Some(first) if all().all(|other| other == Some(first)) => push!(out, "error: {first}\n"),
        _ => {
            for (job, why) in result.jobs().zip(all()) {
                if let Some(why) = why {
                    push!(out, "error: {}: {why}\n", job.name);
                }
            }
        }
    }
}

/// Warnings of what took part in the figures beside what was measured, and of the way to the servers,
/// each kind once. The others are in the result.
fn disturbing(result: &RunResult) -> Vec<&Warning> {
    let mut all: Vec<&Warning> = Vec::new();
    for warning in &result.warnings {
        let of_way = is_of_way(warning);
        let is_known = all
            .iter()
            .any(|known| known.id == warning.id && (!of_way || known.cause == warning.cause));
        if (of_way || warning.gravity() < Gravity::Uncertain) && !is_known {
            all.push(warning);
        }
    }
    all.sort_by_key(|warning| warning.gravity());
    all
}

/// True for a warning about the way to the servers, which all pairs of sizes have in common.
fn is_of_way(warning: &Warning) -> bool {
    warning.id.starts_with("rpc-")
}
