//! Bounds and pacing that look at how jobs go, at the fio door: steady state, latency targets,
//! flows.

use super::json;
use super::stage::{Said, Stage};

fn say(stage: &Stage, words: &str) -> Said {
    stage.peer_says(&words.split_whitespace().collect::<Vec<_>>())
}

#[test]
fn a_job_whose_rate_is_steady_ends_before_its_time() {
    let stage = Stage::new();
    let said = say(
        &stage,
        "fio --name=a --ioengine=null --size=1g --bs=4k --rate_iops=1000 --runtime=20 --time_based \
         --ss=iops:40% --ss_dur=2 --output-format=json,normal --output=o",
    );
    said.code(0);
    let text = stage.read("o");
    // The banners come first.
    let text = &text[text.find('{').unwrap()..];
    let (document, normal) = text.split_once("\n}\n").unwrap();
    let report: serde_json::Value = serde_json::from_str(&format!("{document}\n}}")).unwrap();
    let job = &report["jobs"][0];
    let steady = &job["steadystate"];
    assert_eq!(steady["ss"], "iops:40.000000%");
    assert_eq!(
        (&steady["attained"], &steady["duration"]),
        (&1.into(), &2.into())
    );
    assert_eq!(steady["data"]["iops"].as_array().unwrap().len(), 2);
    assert!(job["read"]["runtime"].as_u64().unwrap() < 15_000);
    assert!(
        normal.contains("  steadystate  : attained=yes, bw="),
        "{normal}"
    );
    assert!(normal.contains(", iops mean dev="), "{normal}");
}

#[test]
fn jobs_of_one_entry_are_steady_together_and_a_short_run_tells_what_it_saw() {
    let stage = Stage::new();
    let said = say(
        &stage,
        "fio --name=a --ioengine=null --size=1g --bs=4k --rate_iops=500 --runtime=1200ms \
         --time_based --numjobs=2 --group_reporting --ss=bw_slope:1% --ss_dur=3 \
         --output-format=json",
    );
    let report = json(&said.code(0));
    let steady = &report["jobs"][0]["steadystate"];
    assert_eq!(steady["attained"], 0);
    assert_eq!(steady["criterion"], "0.000000%");
    let iops = steady["data"]["iops"].as_array().unwrap();
    assert_eq!((iops.len(), &iops[1]), (3, &0.into()));
    // Both workers of 500 together.
    assert!(iops[0].as_u64().unwrap() > 600, "{iops:?}");
}

#[test]
fn a_latency_that_is_always_kept_leads_to_the_whole_depth_and_a_last_window() {
    let stage = Stage::new();
    let said = say(
        &stage,
        "fio --name=a --ioengine=null --size=1g --bs=4k --rw=randread --norandommap --runtime=20 \
         --time_based --latency_target=10s --latency_window=100ms --output-format=json",
    );
    let report = json(&said.code(0));
    let job = &report["jobs"][0];
    assert_eq!(job["latency_depth"], 1);
    assert_eq!(job["latency_target"], 10_000_000_000_u64);
    assert_eq!(job["latency_window"], 100_000);
    assert!(
        job["read"]["runtime"].as_u64().unwrap() < 15_000,
        "it ended by itself"
    );
    assert!(job["read"]["total_ios"].as_u64().unwrap() > 0);
}

#[test]
fn a_latency_that_no_depth_keeps_fails_where_every_operation_counts() {
    let stage = Stage::new();
    let said = say(
        &stage,
        "fio --name=a --ioengine=null --size=1g --bs=4k --rate_iops=200 --runtime=20 --time_based \
         --latency_target=1ns --latency_window=50ms",
    );
    said.code(1).out("err=110");
}

#[test]
fn jobs_of_a_flow_keep_the_proportion_of_their_weights() {
    let stage = Stage::new();
    stage.file(
        "flow.fio",
        "[global]\nioengine=null\nsize=1g\nbs=4k\nrw=randread\nnorandommap\ntime_based\n\
         runtime=500ms\nflow_id=7\n[heavy]\nflow=3\n[light]\nflow=1\n",
    );
    let report = json(&say(&stage, "fio flow.fio --output-format=json").code(0));
    let done = |job: usize| report["jobs"][job]["read"]["total_ios"].as_f64().unwrap();
    assert!(done(1) > 100.0, "{report}");
    // The one that ends last is alone for a moment.
    let ratio = done(0) / done(1);
    assert!((2.0..4.5).contains(&ratio), "{ratio}");
}
