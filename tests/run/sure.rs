//! Intervals of a run's figures, as a user sees them: on real engines, in an open loop, on several
//! ranks, and where nothing was measured.

mod slow;

use weir_schema::{Confidence, JobResult, RunResult, Stage as LatencyStage};
use weir_stats::Estimate;

use crate::stage::{Said, Stage};
use crate::{SMALL, result};

/// Every interval that a confidence has.
fn intervals(sure: &Confidence) -> Vec<Estimate> {
    let rates = [Some(sure.ops_per_s), sure.bytes_per_s, sure.mean_latency_ns];
    let percentiles = sure.percentiles.iter().map(|p| p.value_ns);
    rates.into_iter().flatten().chain(percentiles).collect()
}

/// Every figure has an interval that holds it; how many.
#[track_caller]
fn is_sure(said: &Said, result: &RunResult) -> usize {
    let all: Vec<Estimate> = result
        .jobs()
        .flat_map(JobResult::confidence)
        .flat_map(intervals)
        .collect();
    for estimate in &all {
        let (Some(low), Some(high)) = (estimate.low, estimate.high) else {
            panic!("{estimate:?} {said}");
        };
        let holds = low <= estimate.value && estimate.value <= high;
        assert!(
            holds && high.is_finite() && estimate.absent.is_none(),
            "{estimate:?}"
        );
    }
    all.len()
}

#[test]
fn a_fifth_of_a_second_is_enough() {
    let stage = Stage::new();
    let job = "[a]\nioengine=null\nsize=1m\nrw=read\ntime_based\nruntime=SPAN\n";
    // A machine that lends the run no processor for most of the time sees fewer stretches.
    let is_enough = |span: &str| {
        let file = stage.file("j.fio", job.replace("SPAN", span));
        let said = stage.say(&["run", "--format=json", &file]).code(0);
        result(&said)
            .jobs()
            .all(|j| j.confidence()[0].ops_per_s.low.is_some())
    };
    assert!((0..20).any(|_| is_enough("200ms")));
    assert!((0..20).any(|_| !is_enough("90ms")));
}

#[test]
fn the_mean_of_an_open_loop_has_the_interval_of_its_own_stage() {
    let stage = Stage::new();
    let file = stage.file(
        "j.fio",
        "[a]\nioengine=null\nsize=1m\nrw=read\ntime_based\nruntime=1s\nopen_loop=1\nrate_iops=2000\n",
    );
    let said = stage.say(&["run", "--format=json", &file]).code(0);
    let result = result(&said);
    assert!(is_sure(&said, &result) > 0);
    let job = result.jobs().next().unwrap();
    let (sure, kind) = (&job.confidence()[0], &job.workers()[0].kinds[0]);
    assert_eq!(sure.latency_stage, Some(LatencyStage::Rlat));
    let response = kind.stage(LatencyStage::Rlat).unwrap().mean();
    assert_eq!(sure.mean_latency_ns.map(|e| e.value), response);
    // The mean below the response has it, that below the latency has none.
    let text = stage.say(&["run", &file]).code(0).out;
    let means: Vec<&str> = text
        .lines()
        .filter(|l| l.trim_start().starts_with("mean"))
        .collect();
    assert_eq!(means.len(), 2, "{text}");
    assert!(means[0].contains('±') && !means[1].contains('±'), "{text}");
}

#[test]
fn four_ranks_are_sure_of_what_they_did_together() {
    let stage = Stage::new();
    let file = stage.file(
        "j.fio",
        "[a]\nioengine=null\nsize=1m\nrw=read\ntime_based\nruntime=1s\n",
    );
    let said = stage
        .say(&["run", "--ranks=4", "--format=json", &file])
        .code(0);
    let result = result(&said);
    assert_eq!(result.ranks.len(), 4);
    assert_eq!(is_sure(&said, &result), 7, "{said}");
    assert!(
        !said.out.contains("\"batches\""),
        "what ranks send each other is no result"
    );
}

#[test]
fn a_job_that_ends_within_its_ramp_says_so() {
    let stage = Stage::new();
    let ramp = "[a]\nioengine=null\nsize=1m\nrw=read\nramp_time=10\n";
    let said = stage.say(&["run", &stage.file("j.fio", ramp)]).code(0);
    said.out("! ramp ")
        .out("It ended within its ramp of 10.0 s");
    let said = stage.say(&["run", &stage.file("small.fio", SMALL)]).code(0);
    assert!(!said.out.contains("! ramp"), "{said}");
}

#[test]
fn jobs_that_ran_together_are_judged_together() {
    let stage = Stage::in_memory();
    let jobs = "[global]\nbs=4k\ntime_based\nruntime=500ms\nsize=8m\nioengine=null\n\
                rate_iops=2000\nrw=read\n[a]\n[b]\n";
    let apart = stage.file("apart.fio", jobs);
    let one = stage.file("one.fio", jobs.replace("size", "group_reporting\nsize"));
    let said = stage.say(&["run", "--width=120", &apart]).code(0);
    let (_, together) = said.out.split_once("all 2 jobs").unwrap();
    assert!(together.contains(" % in this run"), "{said}");
    let said = stage.say(&["run", "--width=120", &one]).code(0);
    assert!(said.out.contains("2 jobs as one"), "{said}");
    assert_eq!(said.out.matches(" % in this run").count(), 1, "{said}");
    // One after the other they are no figure together.
    let in_turn = jobs.replace("size", "group_reporting\nsize");
    let in_turn = in_turn.replace("[b]", "[b]\nwait_for=a");
    let in_turn = stage.file("turn.fio", in_turn);
    let said = stage.say(&["run", "--width=120", &in_turn]).code(0);
    assert!(said.out.contains("2 jobs as one"), "{said}");
    assert!(!said.out.contains("in this run"), "{said}");
}
