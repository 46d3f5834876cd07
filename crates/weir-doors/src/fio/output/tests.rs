//! The texts on results built by hand: exact figures, worked out beside them or pinned.

use weir_schema::sample::JobSample;
use weir_schema::{DiskCounters, EndedBy, Failure, Kind, Mix, RunResult, Stage, Word};
use weir_units::Nanos;

use super::sample::{job, kind, latencies, mixed, result, worker};
use super::{FioTextOptions, banner, failures, json, normal, signal_notice};
use crate::fio::{ExitStyle, exit_code};

fn text(result: &RunResult) -> String {
    normal(result, FioTextOptions::default())
}

fn document(result: &RunResult) -> serde_json::Value {
    serde_json::from_str(&json(result, FioTextOptions::default(), None)).unwrap()
}

fn reader(name: &str, operations: u64, ms: u64) -> (weir_schema::Job, weir_schema::WorkerResult) {
    let lat = [(Stage::Lat, latencies(100, 1, operations))];
    let kinds = vec![kind(Kind::Read, operations, ms, &lat)];
    (
        job(name, Mix::only(Kind::Read), &[("rw", "randread")]),
        worker(0, ms, kinds),
    )
}

#[test]
fn a_run_that_reads_and_writes_prints_every_line() {
    insta::assert_snapshot!(text(&mixed()));
}

#[test]
fn a_run_that_reads_and_writes_gives_every_key() {
    let mut result = mixed();
    result.plan.global_words = vec![Word {
        key: "thread".to_owned(),
        value: None,
    }];
    let text = json(
        &result,
        FioTextOptions {
            utc_offset_s: 3600,
            ..FioTextOptions::default()
        },
        None,
    );
    // The plan has snapshots of its own.
    let (before, rest) = text.split_once("    \"plan\" : {\n").unwrap();
    let (_, after) = rest.split_once("\n    },\n").unwrap();
    insta::assert_snapshot!(format!("{before}{after}"));
}

#[test]
fn banners_say_what_will_run() {
    let mut plan = mixed().plan;
    plan.groups[0].jobs[0].clones = 3;
    let (single, _) = reader("one", 1, 1);
    plan.groups.push(weir_schema::Group { jobs: vec![single] });
    assert_eq!(
        banner(&plan, FioTextOptions::default(), "1.2.3"),
        "mix: (g=0): rw=randrw, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
         ioengine=null, iodepth=16\n...\n\
         one: (g=1): rw=randread, bs=(R) 4096B-4096B, (W) 4096B-4096B, (T) 4096B-4096B, \
         ioengine=null, iodepth=16\n\
         weir 1.2.3\nStarting 4 threads\n"
    );
    let compat = FioTextOptions {
        compat_banner: true,
        ..FioTextOptions::default()
    };
    assert!(banner(&plan, compat, "1.2.3").contains("\nfio-3.33\n"));
}

#[test]
fn a_direction_that_no_word_names_is_read_off_the_mix() {
    for (mix, word) in [
        (Mix::only(Kind::Write), "randwrite"),
        (Mix::only(Kind::Trim), "randtrim"),
        (
            Mix {
                trim_then_write: true,
                ..Mix::only(Kind::Trim)
            },
            "randtrimwrite",
        ),
    ] {
        let plan = result(vec![vec![(job("a", mix, &[]), Vec::new())]]).plan;
        let text = banner(&plan, FioTextOptions::default(), "1");
        assert!(text.contains(&format!("rw={word},")), "{text}");
    }
}

#[test]
fn group_lines_name_the_slowest_and_the_fastest_entry() {
    let (slow, first) = reader("a", 1000, 1000);
    let (fast, second) = reader("b", 1000, 500);
    let result = result(vec![vec![(slow, vec![first]), (fast, vec![second])]]);
    // 1000 · 4 KiB in 1 s and in 0.5 s; together 2000 · 4 KiB over the longer time.
    let line = "   READ: bw=8000KiB/s (8192kB/s), 4000KiB/s-8000KiB/s (4096kB/s-8192kB/s), \
                io=8000KiB (8192kB), run=500-1000msec\n";
    assert!(text(&result).contains(line), "{}", text(&result));
}

#[test]
fn merged_jobs_are_one_entry_named_after_the_first() {
    let (mut first, one) = reader("first", 1000, 1000);
    let (mut second, other) = reader("second", 500, 500);
    (first.report.merge, second.report.merge) = (true, true);
    second.description = Some("not shown".to_owned());
    let merged = result(vec![vec![
        (first, vec![one.clone(), one]),
        (second, vec![other]),
    ]]);
    let out = text(&merged);
    assert!(
        out.starts_with("\nfirst: (groupid=0, jobs=3): err= 0: pid=4000: "),
        "{out}"
    );
    assert!(!out.contains("not shown"), "{out}");
    let read = &document(&merged)["jobs"][0]["read"];
    assert_eq!(read["total_ios"], 2500);
    assert_eq!(read["clat_ns"]["N"], 2500);
    assert_eq!(read["clat_ns"]["max"], 1099);
    assert_eq!(read["runtime"], 1000);
    assert_eq!(document(&merged)["jobs"][0]["job_runtime"], 2500);
}

#[test]
fn unmerged_clones_are_entries_and_hidden_jobs_are_none() {
    let (shown, work) = reader("shown", 10, 1);
    let (mut hidden, other) = reader("hidden", 10, 1);
    hidden.report.hidden = true;
    let result = result(vec![vec![
        (shown, vec![work.clone(), work]),
        (hidden, vec![other]),
    ]]);
    let out = text(&result);
    assert_eq!(out.matches("shown: (groupid=0, jobs=1)").count(), 2);
    assert!(!out.contains("hidden"));
    assert_eq!(document(&result)["jobs"].as_array().unwrap().len(), 2);
}

#[test]
fn unified_kinds_are_one_direction_called_mixed() {
    let mut result = mixed();
    result.plan.groups[0].jobs[0]
        .load_mut()
        .recording
        .unify_kinds = true;
    let out = text(&result);
    assert!(out.contains("  mixed: IOPS=1499, BW="), "{out}");
    assert!(out.contains("\n  MIXED: bw="), "{out}");
    assert!(out.contains("total=3000,0,0,0"), "{out}");
    let job = &document(&result)["jobs"][0];
    let keys: Vec<&String> = job.as_object().unwrap().keys().collect();
    assert_eq!(keys[6..8], ["mixed", "job_runtime"]);
}

#[test]
fn engines_that_complete_inside_the_call_have_no_slat() {
    let (job, work) = reader("psync", 100, 1);
    let out = text(&result(vec![vec![(job, vec![work])]]));
    assert!(!out.contains("slat"), "{out}");
    assert!(
        out.contains("    clat (nsec): min=100, max=199, avg=149.50, stdev=29.01\n"),
        "{out}"
    );
    assert!(
        out.contains("     lat (nsec): min=100, max=199, avg=149.50, stdev=29.01\n"),
        "{out}"
    );
}

#[test]
fn latencies_that_were_not_asked_for_are_absent() {
    let (mut job, work) = reader("plain", 100, 1);
    let recording = &mut job.load_mut().recording;
    (recording.clat, recording.lat) = (false, false);
    let result = result(vec![vec![(job, vec![work])]]);
    assert!(!text(&result).contains("lat ("), "{}", text(&result));
    assert_eq!(document(&result)["jobs"][0]["read"]["clat_ns"]["N"], 0);
}

#[test]
fn flushes_have_their_own_lines() {
    let write = kind(
        Kind::Write,
        64,
        10,
        &[(Stage::Lat, latencies(1000, 10, 64))],
    );
    let sync = kind(
        Kind::Sync,
        8,
        10,
        &[(Stage::Lat, latencies(200_000, 1000, 8))],
    );
    let job = job("flushed", Mix::only(Kind::Write), &[("rw", "write")]);
    let result = result(vec![vec![(job, vec![worker(0, 10, vec![write, sync])])]]);
    let out = text(&result);
    let lines = "  fsync/fdatasync/sync_file_range:\n    \
                 sync (usec): min=200, max=207, avg=203.50, stdev= 2.45\n    \
                 sync percentiles (usec):\n";
    assert!(out.contains(lines), "{out}");
    assert!(out.contains("issued rwts: total=0,64,0,8 short"), "{out}");
    assert_eq!(document(&result)["jobs"][0]["sync"]["total_ios"], 8);
}

#[test]
fn percentile_lines_hold_as_many_entries_as_fit() {
    let (mut job, work) = reader("p", 1000, 1);
    job.load_mut().recording.percentiles = [50.0, 99.0, 99.9999].map(weir_units::Percent).to_vec();
    let out = text(&result(vec![vec![(job.clone(), vec![work.clone()])]]));
    let four = "    clat percentiles (nsec):\n     \
                | 50.0000th=[  596], 99.0000th=[ 1096], 99.9999th=[ 1096]\n";
    assert!(out.contains(four), "{out}");
    job.load_mut().recording.percentiles = [50.0, 99.0].map(weir_units::Percent).to_vec();
    let out = text(&result(vec![vec![(job, vec![work])]]));
    assert!(
        out.contains("     |  50th=[  596],  99th=[ 1096]\n"),
        "{out}"
    );
}

#[test]
fn a_failed_worker_shows_its_error_and_spares_the_others() {
    let (job, work) = reader("half", 100, 1);
    let mut broken = work.clone();
    broken.failure = Some(Failure {
        errno: Some(5),
        target: Some("/dev/broken".to_owned()),
        kind: Some(Kind::Read.into()),
        ..Failure::new("io", "reading failed")
    });
    let mut result = result(vec![vec![(job, vec![work, broken])]]);
    let why = "file:/dev/broken, func=io_u error, error=Input/output error";
    let out = text(&result);
    assert!(
        out.contains("half: (groupid=0, jobs=1): err= 0: pid=4000"),
        "{out}"
    );
    assert!(
        out.contains(&format!("err= 5 ({why}): pid=4000: ")),
        "{out}"
    );
    assert_eq!(failures(&result), format!("fio: pid=4000, err=5/{why}\n"));
    assert_eq!(document(&result)["jobs"][1]["error"], 5);
    assert_eq!(exit_code(&result, ExitStyle::Fio), 1);
    result.ended_by = Some(EndedBy { signal: 15 });
    assert_eq!(exit_code(&result, ExitStyle::Fio), 128);
    assert_eq!(exit_code(&result, ExitStyle::Unix), 143);
    assert_eq!(signal_notice(2), "\nfio: terminating on signal 2\n");
}

#[test]
fn a_job_that_did_nothing_has_no_entry_in_the_text_and_one_in_json() {
    let (job, _) = reader("idle", 1, 1);
    let mut result = result(vec![vec![(job, Vec::new())]]);
    assert_eq!(text(&result), "\n\nRun status group 0 (all jobs):\n");
    assert_eq!(document(&result)["jobs"][0]["read"]["io_bytes"], 0);
    result.groups[0].jobs[0].failure = Some(Failure {
        errno: Some(2),
        ..Failure::new("open", "")
    });
    assert_eq!(
        failures(&result),
        "fio: pid=0, err=2/file:-, func=open, error=No such file or directory\n"
    );
    assert_eq!(exit_code(&result, ExitStyle::Unix), 1);
}

#[test]
fn errors_that_a_job_survives_are_counted() {
    let (mut job, mut work) = reader("tough", 100, 1);
    job.load_mut().errors.go_on = weir_schema::Kind::DATA.map(Into::into).into();
    work.kinds[0].errors = [(5.into(), 3), (28.into(), 1)].into();
    let result = result(vec![vec![(job, vec![work])]]);
    let line = "     errors    : total=4, first_error=5/<Input/output error>\n";
    assert!(text(&result).contains(line), "{}", text(&result));
    assert_eq!(document(&result)["jobs"][0]["total_err"], 4);
}

#[test]
fn disks_are_printed_with_what_lies_below_them() {
    let mut result = mixed();
    let plain = |device: &str, factor: u64| DiskCounters {
        device: device.to_owned(),
        read_operations: 10 * factor,
        write_operations: 20 * factor,
        read_ns: Nanos::from_millis(30 * factor),
        busy_ns: Nanos::from_millis(500 * factor),
        elapsed_ns: Nanos::from_millis(2000),
        ..DiskCounters::default()
    };
    let mut stacked = plain("dm-0", 2);
    stacked.members = vec![plain("vda", 1), plain("vdb", 3)];
    result.disks = vec![stacked];
    let out = text(&result);
    let lines = "\n\nDisk stats (read/write):\n    \
        dm-0: ios=20/40, merge=0/0, ticks=60/0, in_queue=0, util=50.00%, aggrios=20/40, \
        aggrmerge=0/0, aggrticks=60/0, aggrin_queue=0, aggrutil=75.00%\n  \
        vda: ios=10/20, merge=0/0, ticks=30/0, in_queue=0, util=25.00%\n  \
        vdb: ios=30/60, merge=0/0, ticks=90/0, in_queue=0, util=75.00%\n";
    assert!(out.ends_with(lines), "{out}");
    let disk = &document(&result)["disk_util"][0];
    assert_eq!(disk["aggr_write_merge"], 0);
    assert_eq!(disk["aggr_util"], 75.0);
}

#[test]
fn bits_and_decimal_units_stand_where_the_words_ask_for_them() {
    let (mut job, work) = reader("bits", 2000, 1000);
    job.words.push(Word {
        key: "kb_base".to_owned(),
        value: Some("1000".to_owned()),
    });
    job.words.push(Word {
        key: "unit_base".to_owned(),
        value: Some("1".to_owned()),
    });
    let out = text(&result(vec![vec![(job, vec![work])]]));
    let line = "  read: IOPS=2000, BW=65.5Mbit/s (62.5Mibit/s)(8192kB/1000msec)\n";
    assert!(out.contains(line), "{out}");
}

#[test]
fn json_with_histograms_counts_every_operation() {
    let (job, work) = reader("bins", 1000, 1);
    let result = result(vec![vec![(job, vec![work])]]);
    let text = json(
        &result,
        FioTextOptions {
            bins: true,
            ..FioTextOptions::default()
        },
        None,
    );
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let clat = &document["jobs"][0]["read"]["clat_ns"];
    let bins = clat["bins"].as_object().unwrap();
    assert_eq!(
        bins.values().map(|v| v.as_u64().unwrap()).sum::<u64>(),
        1000
    );
    for value in clat["percentile"].as_object().unwrap().values() {
        assert!(bins.contains_key(&value.to_string()), "{value}");
    }
}
