//! Fixtures of every format: their figures, and what becomes of them when they are cut.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use weir_schema::{JobResult, Kind, Metric, Stage, State};

use super::*;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The result of a fixture, which is found to be of this format.
fn import(format: &str, name: &str) -> RunResult {
    let text = fixture(name);
    let found = Format::of(&text).map(|found| found.name);
    assert_eq!(found, Some(format), "{name}");
    let result = Format::named(format).unwrap().import(&text, name);
    let result = result.unwrap_or_else(|e| panic!("{name}:{e}"));
    assert_eq!(result.source.as_ref().unwrap().format, format);
    assert!(result.complete);
    result
}

fn job(result: &RunResult, at: usize) -> &JobResult {
    result.jobs().nth(at).unwrap()
}

fn metric<'a>(job: &'a JobResult, name: &str) -> &'a Metric {
    let found = job.metrics.iter().find(|m| m.name == name);
    found.unwrap_or_else(|| {
        let names: Vec<&str> = job.metrics.iter().map(|m| &*m.name).collect();
        panic!("no {name} among {names:?}")
    })
}

#[track_caller]
fn is(job: &JobResult, name: &str, unit: &str, value: f64) {
    let metric = metric(job, name);
    assert_eq!(metric.unit, unit, "{name}");
    let error = (metric.value - value).abs();
    assert!(error <= value.abs() * 1e-12, "{name}: {}", metric.value);
}

#[test]
fn bins_of_fio_are_a_histogram_with_the_exact_figures() {
    let result = import("fio", "fio-plus.json");
    let job = job(&result, 0);
    assert_eq!(job.name, "rr");
    let reads = job.workers()[0].kind(Kind::Read).unwrap();
    let document: serde_json::Value = serde_json::from_str(&fixture("fio-plus.json")).unwrap();
    let read = &document["jobs"][0]["read"];
    assert_eq!(reads.operations, read["total_ios"].as_u64().unwrap());
    assert_eq!(reads.bytes.0, read["io_bytes"].as_u64().unwrap());
    let histogram = reads.stage(Stage::Clat).unwrap();
    let clat = &read["clat_ns"];
    assert_eq!(histogram.count(), clat["N"].as_u64().unwrap());
    assert_eq!(histogram.min(), clat["min"].as_u64());
    assert_eq!(histogram.max(), clat["max"].as_u64());
    let mean = clat["mean"].as_f64().unwrap();
    assert!((histogram.mean().unwrap() - mean).abs() < 0.01);
    let bins = clat["bins"].as_object().unwrap();
    for bucket in histogram.buckets() {
        let bin = bins.get(&bucket.middle.to_string());
        assert_eq!(bin.and_then(serde_json::Value::as_u64), Some(bucket.count));
    }
    assert_eq!(histogram.buckets().count(), bins.len());
    let ops = read["total_ios"].as_f64().unwrap();
    let seconds = read["runtime"].as_f64().unwrap() / 1e3;
    is(job, "read rate", "ops/s", ops / seconds);
    let p99 = clat["percentile"]["99.000000"].as_f64().unwrap();
    is(job, "read p99", "s", p99 / 1e9);
    is(job, "read mean", "s", mean / 1e9);
    assert!(job.own_metrics().is_empty(), "rows show all of them");
}

#[test]
fn points_of_fio_are_figures_and_text_around_the_document_is_passed_over() {
    let text = fixture("fio-points.txt");
    assert!(!text.starts_with('{') && !text.trim_end().ends_with('}'));
    let result = import("fio", "fio-points.txt");
    assert_eq!(
        result.source.as_ref().unwrap().program.as_deref(),
        Some("fio-3.33")
    );
    assert!(result.started_unix_ns > 1_700_000_000_000_000_000);
    let job = job(&result, 0);
    assert!(job.workers()[0].kind(Kind::Read).unwrap().stages.is_empty());
    for name in [
        "read p50",
        "read p99.99",
        "read min",
        "read max",
        "read mean",
    ] {
        assert_eq!(metric(job, name).unit, "s");
    }
    let own: Vec<&str> = job.own_metrics().iter().map(|m| &*m.name).collect();
    assert!(
        own.contains(&"read p50") && !own.contains(&"read rate"),
        "{own:?}"
    );
    let plan = result.plan.jobs().next().unwrap().1;
    assert_eq!(plan.workload.title(), "randread 4k depth 4");
    assert_eq!(plan.engine.name, "psync");
}

#[test]
fn clients_of_fio_are_jobs_and_global_options_stand_below_those_of_jobs() {
    let result = import("fio", "fio-clients.json");
    assert_eq!(job(&result, 0).name, "log on c0");
    assert_eq!(job(&result, 1).name, "All clients");
    is(job(&result, 0), "write rate", "ops/s", 4000.0);
    is(job(&result, 0), "write bandwidth", "B/s", 262_144_000.0);
    is(job(&result, 0), "write p50", "s", 2.48e-6);
    let plan = result.plan.jobs().next().unwrap().1;
    assert_eq!(plan.workload.title(), "write 64k");
    assert_eq!(plan.engine.name, "libaio");
}

#[test]
fn times_of_hyperfine_are_samples() {
    let result = import("hyperfine", "hyperfine.json");
    let good = job(&result, 0);
    assert_eq!(good.name, "sleep 0.01");
    is(good, "wall", "s", 0.0125);
    assert_eq!(metric(good, "wall").samples, [0.012, 0.0125, 0.013]);
    is(good, "user", "s", 0.0009);
    assert_eq!(metric(good, "memory").samples.len(), 3);
    let bad = job(&result, 1);
    assert_eq!(bad.state, State::Failed);
    assert!(bad.metrics.iter().all(|m| m.name != "wall median"));
}

#[test]
fn timings_of_hpcc_fpga_are_samples_of_the_slowest_rank() {
    let result = import("hpcc-fpga", "hpcc-fpga.json");
    let job = job(&result, 0);
    is(job, "b_eff", "B/s", 1.2e7);
    is(job, "bandwidth at 1024 B", "B/s", 2e7);
    let samples = &metric(job, "bandwidth at 1024 B").samples;
    // 40,000 bytes in 2 ms, then in 5 ms.
    assert_eq!(samples.len(), 2);
    assert!((samples[0] - 2e7).abs() < 1e-3 && (samples[1] - 8e6).abs() < 1e-3);
    let names: Vec<&str> = job.metrics.iter().map(|m| &*m.name).collect();
    assert_eq!(names, ["b_eff", "bandwidth at 64 B", "bandwidth at 1024 B"]);
}

#[test]
fn repetitions_of_ior_are_samples_in_every_form() {
    for name in ["ior.txt", "ior.csv", "ior.json"] {
        let result = import("ior", name);
        let job = job(&result, 0);
        is(job, "write bandwidth", "B/s", 300.0 * 1_048_576.0);
        let samples = &metric(job, "write bandwidth").samples;
        assert_eq!(
            samples,
            &[400.0 * 1_048_576.0, 200.0 * 1_048_576.0],
            "{name}"
        );
        is(job, "write rate", "ops/s", 1200.0);
        is(job, "write total time", "s", 0.0075);
    }
    let result = import("ior", "ior.txt");
    let job = job(&result, 0);
    is(job, "remove total time", "s", 0.001);
    is(job, "write time at the wall", "s", 1.03);
    assert!(
        job.metrics
            .iter()
            .all(|m| m.name != "read time at the wall")
    );
    assert_eq!(result.host.hostname.as_deref(), Some("host7"));
    assert!(result.warnings[0].cause.starts_with("Expected aggregate"));
}

#[test]
fn data_that_ior_found_wrong_fails_its_job() {
    let text = fixture("ior.txt").replace(
        "WARNING: Expected aggregate file size       = 2097152",
        "WARNING: Incorrect data on read (8 errors found).",
    );
    let result = ior::FORMAT.import(&text, "f").unwrap();
    assert_eq!(job(&result, 0).state, State::Failed);
}

#[test]
fn times_of_mdtest_are_seconds_per_phase_and_zeros_are_absent() {
    let result = import("mdtest", "mdtest.txt");
    let job = job(&result, 0);
    is(job, "file creation rate", "ops/s", 45_000.0);
    is(job, "file creation rate max", "ops/s", 50_000.0);
    is(job, "file creation time", "s", 0.045);
    assert!(job.metrics.iter().all(|m| !m.name.contains("stat")));
    assert_eq!(result.plan.command[1..3], ["-n", "1000"]);
}

#[test]
fn what_io500_marks_invalid_is_kept_and_warned_of() {
    let result = import("io500", "io500.txt");
    let job = job(&result, 0);
    is(
        job,
        "ior-easy-write bandwidth",
        "B/s",
        1.5 * 1_073_741_824.0,
    );
    is(job, "mdtest-easy-write rate", "ops/s", 79_815.792);
    is(job, "mdtest-easy-write time", "s", 2.115);
    is(job, "score", "", 10.941_834);
    let said: Vec<&str> = result.warnings.iter().map(|w| &*w.cause).collect();
    assert!(
        said.contains(&"ior-easy-write is marked [INVALID]."),
        "{said:?}"
    );
    assert!(job.metrics.iter().all(|m| !m.name.starts_with("timestamp")));
}

#[test]
fn points_and_histograms_of_spdk_belong_to_their_row() {
    let result = import("spdk-nvme-perf", "spdk.txt");
    assert_eq!(result.jobs().count(), 1, "the total of one row is that row");
    let job = job(&result, 0);
    is(job, "rate", "ops/s", 100_000.0);
    is(job, "bandwidth", "B/s", 390.62 * 1_048_576.0);
    is(job, "max", "s", 40.25e-6);
    is(job, "p99.9", "s", 30e-6);
    let kind = &job.workers()[0].kinds[0];
    let histogram = kind.stage(Stage::Lat).unwrap();
    assert_eq!((histogram.count(), histogram.min()), (100, Some(9504)));
    assert_eq!(histogram.max(), Some(12_480));
    assert_eq!(result.warnings.len(), 1);
}

#[test]
fn two_devices_of_spdk_keep_names_cores_and_latencies_of_their_own() {
    let result = import("spdk-nvme-perf", "spdk-two.txt");
    let names: Vec<&str> = result.jobs().map(|job| job.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "PCIE (0000:01:00.0) [144d:a80a] NSID 1 from core  0",
            "PCIE (0000:02:00.0) [144d:a80a] NSID 1 from core  1",
            "Total"
        ]
    );
    for (at, rate, p1, count) in [(0, 100_000.0, 10e-6, 100), (1, 50_000.0, 20e-6, 200)] {
        let job = job(&result, at);
        is(job, "rate", "ops/s", rate);
        is(job, "p1", "s", p1);
        let latency = job.workers()[0].kinds[0].stage(Stage::Lat).unwrap();
        assert_eq!(latency.count(), count);
    }
    is(job(&result, 2), "rate", "ops/s", 150_000.0);
}

#[test]
fn tests_of_vos_perf_are_jobs_whatever_the_version() {
    let result = import("vos-perf", "vos-perf.txt");
    assert_eq!(job(&result, 1).name, "FETCH");
    is(job(&result, 0), "bandwidth", "B/s", 64.0 * 1_048_576.0);
    is(job(&result, 0), "latency", "s", 7.5e-6);
    is(job(&result, 1), "duration max", "s", 0.25);
    assert_eq!(
        result.source.as_ref().unwrap().program.as_deref(),
        Some("vos_perf")
    );
    let later = import("vos-perf", "vos-perf-2.9.txt");
    assert_eq!(
        metric(job(&later, 0), "rate").samples,
        [131_072.0, 262_144.0]
    );
    is(job(&later, 0), "bandwidth", "B/s", 96.0 * 1_048_576.0);
    assert_eq!(job(&later, 1).state, State::Failed);
}

#[test]
fn megabytes_and_megabits_of_self_test_are_told_apart() {
    let result = import("self-test", "self-test.txt");
    is(job(&result, 0), "bandwidth", "B/s", 2000.0 * 1_048_576.0);
    is(job(&result, 1), "bandwidth", "B/s", 2e6);
    is(job(&result, 0), "p50", "s", 52e-6);
    assert_eq!(job(&result, 1).state, State::Failed);
    let failed = "Results for message size (0-EMPTY 0-EMPTY) (max_inflight_rpcs = 1):\n\n\
                  Master Endpoint 3:1 FAILED: no such rank\n\n";
    let failed = Format::named("self-test")
        .unwrap()
        .import(failed, "x")
        .unwrap();
    assert_eq!(
        job(&failed, 0).failure.as_ref().unwrap().message,
        "no such rank"
    );
    let json = import("self-test", "self-test.json");
    is(job(&json, 0), "rate", "ops/s", 2000.5);
    is(job(&json, 0), "p99", "s", 84e-6);
}

#[test]
fn reports_of_kio_have_the_same_figures_in_both_forms() {
    let yaml = import("kio", "kio.yaml");
    let csv = import("kio", "kio.csv");
    assert_eq!(job(&yaml, 0).metrics, job(&yaml, 1).metrics);
    assert_eq!(job(&csv, 0).name, "a, \"b\"");
    assert_eq!(job(&csv, 1).name, "row 2");
    for result in [&yaml, &csv] {
        is(job(result, 0), "bandwidth", "B/s", 299.211e6);
        is(job(result, 0), "clat mean", "s", 253.18e-6);
        is(job(result, 0), "completed", "ops", 365_245.0);
        assert_eq!(result.host.hostname.as_deref(), Some("host7"));
    }
}

#[test]
fn points_of_a_sweep_of_kio_are_jobs_of_their_own() {
    let result = import("kio", "kio-sweep.yaml");
    let names: Vec<&str> = (0..4).map(|at| job(&result, at).name.as_str()).collect();
    let expected = ["all threads, queue_depth=1", "thread 0, queue_depth=1"];
    assert_eq!(names[..2], expected);
    assert_eq!(names[3], "thread 0, queue_depth=4");
    is(job(&result, 3), "completed", "ops", 50.0);
    is(job(&result, 0), "rate", "ops/s", 320_178.0);
    is(job(&result, 2), "rate", "ops/s", 369_601.0);
}

#[test]
fn intervals_of_a_log_are_samples_and_tags_are_jobs() {
    let result = import("hlog", "two-tags.hlog");
    assert_eq!(result.started_unix_ns, 1_795_418_695_500_000_000);
    let log = job(&result, 0);
    is(log, "mixed rate", "ops/s", 200.0);
    assert_eq!(metric(log, "mixed rate").samples, [100.0, 300.0]);
    let kind = &log.workers()[0].kinds[0];
    let histogram = kind.stage(Stage::Lat).unwrap();
    assert_eq!((histogram.count(), histogram.min()), (400, Some(1000)));
    // 400,000 is in a bucket of 256, from 399,872 on.
    assert_eq!(histogram.max(), Some(400_000));
    let slow = job(&result, 1);
    assert_eq!(slow.name, "write");
    is(slow, "mixed rate", "ops/s", 10.0);
    let p50 = metric(slow, "mixed p50").value;
    assert!((p50 / 5e-3 - 1.0).abs() < 1e-3, "{p50}");
}

/// Every fixture with its format, and whether it has an end by which a cut between lines is noticed.
const FIXTURES: &[(&str, &str, bool)] = &[
    ("fio", "fio-plus.json", true),
    ("fio", "fio-points.txt", false),
    ("fio", "fio-clients.json", true),
    ("hyperfine", "hyperfine.json", true),
    ("hpcc-fpga", "hpcc-fpga.json", true),
    ("ior", "ior.txt", true),
    ("ior", "ior.csv", false),
    ("ior", "ior.json", true),
    ("mdtest", "mdtest.txt", true),
    ("io500", "io500.txt", true),
    ("spdk-nvme-perf", "spdk.txt", false),
    ("spdk-nvme-perf", "spdk-two.txt", false),
    ("vos-perf", "vos-perf.txt", false),
    ("vos-perf", "vos-perf-2.9.txt", false),
    ("self-test", "self-test.txt", false),
    ("self-test", "self-test.json", true),
    ("kio", "kio.yaml", true),
    ("kio", "kio-sweep.yaml", true),
    ("kio", "kio.csv", false),
    ("hlog", "two-tags.hlog", false),
];

#[test]
fn there_is_a_fixture_of_every_format_and_a_line_of_every_fixture() {
    for format in FORMATS {
        assert!(FIXTURES.iter().any(|(name, ..)| *name == format.name));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    assert_eq!(fs::read_dir(folder).unwrap().count(), FIXTURES.len());
}

#[test]
fn a_fixture_cut_at_any_byte_is_refused_with_its_line() {
    for (format, name, has_end) in FIXTURES {
        let text = fixture(name);
        let format = Format::named(format).unwrap();
        let whole = text.trim_end().len();
        for at in (0..whole).filter(|at| text.is_char_boundary(*at)) {
            let cut = &text[..at];
            let lines = cut.matches('\n').count() + 1;
            if let Err(error) = format.import(cut, name) {
                assert!((1..=lines).contains(&error.line), "{name} at {at}: {error}");
                assert!(!error.message.is_empty());
            } else {
                // Text after a document says nothing; elsewhere what is left ends a line.
                let is_between = cut.ends_with('\n') || *name == "fio-points.txt";
                assert!(!has_end && is_between, "{name} at {at}");
            }
        }
    }
}

#[test]
fn what_no_program_prints_is_no_format() {
    for text in [
        "",
        "{",
        "{}",
        "[]",
        "\u{feff}",
        "a,b\n1,2\n",
        "{\"results\": []}",
    ] {
        assert!(Format::of(text).is_none(), "{text}");
        for format in FORMATS {
            assert!(format.import(text, "f").is_err(), "{}: {text}", format.name);
        }
    }
}

#[test]
fn figures_that_no_result_holds_are_refused() {
    let most = "\"total_ios\": 18446744073709551615";
    let text = fixture("fio-clients.json").replace("\"total_ios\": 20000", most);
    let error = fio::FORMAT.import(&text, "f").unwrap_err();
    assert!(error.message.contains("64 bits"), "{error}");
    for number in ["nan", "inf", "1e999", "-"] {
        let text = fixture("ior.txt").replace("400.00 ", &format!("{number} "));
        let outcome = ior::FORMAT.import(&text, "f");
        let is_absent = number == "-";
        assert_eq!(outcome.is_ok(), is_absent, "{number}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(
        which in 0..FIXTURES.len(),
        at in any::<prop::sample::Index>(),
        what in "\\PC{0,12}|[0-9:%(),.\n\t{}\" -]{0,12}",
        length in 0..40_usize,
    ) {
        let (format, name, _) = FIXTURES[which];
        let mut text: Vec<char> = fixture(name).chars().collect();
        let at = at.index(text.len());
        let end = (at + length).min(text.len());
        text.splice(at..end, what.chars());
        let text: String = text.into_iter().collect();
        let _ = Format::of(&text);
        let _ = Format::named(format).unwrap().import(&text, name);
    }
}
