//! Every option by its record: alone it is noted where it acts only with others, with its partner it
//! is not; its default is what holds when nothing is said.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use crate::setting::{file, memory, request};
use weir_jobfile::{
    Compiled, Dialect, JobSource, OptionRecord, Scope, Support, ValueKind, find_option,
    option_records,
};

/// Lines of a job that meet each need. The dialect is that of fio.
const PARTNERS: &[(&str, &str)] = &[
    ("with `bsrange`", "bsrange=4k-8k"),
    ("with `rw=rw` or `rw=randrw`", "rw=rw"),
    ("with a random `rw`", "rw=randread"),
    ("with `:N` after a random `rw`", "rw=randread:8"),
    ("with a `rw` that writes", "rw=write"),
    ("with `zonemode=strided`", "zonemode=strided\nzonesize=64k"),
    (
        "with `buffer_compress_percentage`",
        "buffer_compress_percentage=50",
    ),
    ("with `dedupe_percentage`", "dedupe_percentage=50"),
    (
        "with `dedupe_percentage` and `dedupe_mode=working_set`",
        "dedupe_percentage=50\ndedupe_mode=working_set",
    ),
    ("without `filename` and `opendir`", ""),
    ("with several files", "nrfiles=2"),
    ("with `numjobs` above 1", "numjobs=2"),
    ("with an `offset` in percent", "offset=10%"),
    ("with `loops` above 1", "loops=2\nrw=write"),
    (
        "with an engine that has several operations in flight",
        "ioengine=libaio",
    ),
    (
        "with `iodepth` above 1 and an engine that has several operations in flight",
        "ioengine=libaio\niodepth=8",
    ),
    (
        "below `iodepth`, and with an engine that has several operations in flight",
        "ioengine=libaio\niodepth=8",
    ),
    ("with `mem=mmaphuge` or `mem=shmhuge`", "mem=shmhuge"),
    (
        "with `cpus_allowed`, `cpumask` or `numa_cpu_nodes`",
        "cpus_allowed=0",
    ),
    ("with `rate` or `rate_iops`", "rate_iops=10"),
    ("with `rate_min` or `rate_iops_min`", "rate_min=1m"),
    (
        "with `thinktime`, and with `rate` or `rate_iops`",
        "thinktime=1ms\nrate=1m",
    ),
    ("with `thinktime`", "thinktime=1ms"),
    ("with `steadystate_duration`", "steadystate_duration=10"),
    ("with `latency_target`", "latency_target=1ms"),
    ("with `flow`", "flow=1"),
    ("with `read_iolog`", "read_iolog=log"),
    ("with `exitall`", "exitall"),
    (
        "with `continue_on_error` or `ignore_error`",
        "continue_on_error=io",
    ),
    ("with `verify` or `verify_pattern`", "verify=crc32c"),
    ("with `verify=sha256` or `verify=sha512`", "verify=sha256"),
    (
        "with `verify` and `verify_backlog`",
        "verify=crc32c\nverify_backlog=8",
    ),
    (
        "with `verify` and `verify_async`",
        "verify=crc32c\nverify_async=2",
    ),
    (
        "with `write_bw_log`, `write_iops_log` or `write_lat_log`",
        "write_bw_log=l",
    ),
    (
        "with `write_bw_log`, `write_iops_log`, `write_lat_log` or `write_hist_log`",
        "write_hist_log=l\nlog_hist_msec=100",
    ),
    (
        "with `write_lat_log` and `log_avg_msec`",
        "write_lat_log=l\nlog_avg_msec=100",
    ),
    ("with `write_hist_log`", "write_hist_log=l"),
    ("with `log_hist_msec`", "log_hist_msec=100"),
    (
        "with a log of each operation, or with `trace`",
        "write_iops_log=l",
    ),
    ("where fio's output is printed", ""),
    ("with `hipri`", "hipri"),
    ("with `sqthread_poll`", "sqthread_poll"),
    (
        "with `cmdprio_percentage` or `cmdprio_bssplit`",
        "cmdprio_percentage=50",
    ),
    ("with `protocol=tcp` or `protocol=tcpv6`", ""),
    ("with `protocol=udp` or `protocol=udpv6`", "protocol=udp"),
];

/// Lines that prevent a need that is met by default.
const OBSTACLES: &[(&str, &str)] = &[
    ("without `filename` and `opendir`", "filename=f"),
    ("with `protocol=tcp` or `protocol=tcpv6`", "protocol=unix"),
];

/// Options whose default, as fio prints it, is not all that holds when they are not given: missing files
/// are made but below /dev, huge pages have the machine's size, states are saved of jobs that are
/// interrupted, and logs have more room in any case.
const MORE_THAN_THEIR_DEFAULT: &[&str] = &[
    "allow_file_create",
    "hugepage-size",
    "verify_state_save",
    "log_entries",
];

/// Values that their records cannot tell.
const VALUES: &[(&str, &str)] = &[
    ("file_service_type", "sequential"),
    ("filename_format", "f.$jobnum"),
    ("interface", "127.0.0.1"),
    ("offset_increment", "64k"),
    ("random_distribution", "zipf"),
    ("replay_redirect", "/dev/null"),
    ("replay_skip", "write"),
    ("steadystate", "iops:2%"),
    ("sync_file_range", "write:8"),
    ("ttl", "2"),
    ("verify_async_cpus", "0"),
    ("write_hist_log", "l"),
];

/// A line by which the option asks for something else than holds anyway.
fn line(record: &OptionRecord) -> String {
    let own = VALUES.iter().find(|(name, _)| *name == record.name);
    let value = match record.value {
        _ if own.is_some() => own.unwrap().1.to_owned(),
        ValueKind::Flag => return record.name.to_owned(),
        ValueKind::Bool => if record.default == "1" { "0" } else { "1" }.to_owned(),
        ValueKind::Integer { min, .. } => (min + 4).to_string(),
        ValueKind::Triple { .. } => "50".to_owned(),
        ValueKind::Numbers { .. } => "90".to_owned(),
        ValueKind::Duration { .. } => "2s".to_owned(),
        ValueKind::Words { words, .. } => {
            let others = words.iter().map(|(word, _)| *word);
            let mut other = others.filter(|word| *word != record.default && *word != "none");
            other.next_back().unwrap().to_owned()
        }
        _ => "1".to_owned(),
    };
    format!("{}={value}", record.name)
}

/// A job of these lines, on an engine that has the option.
fn compiled(record: &OptionRecord, lines: &str, dialect: Dialect) -> Compiled {
    let engine = match record.scope {
        Scope::Engines(engines) => engines[0],
        Scope::Job => "psync",
    };
    let text = format!("[a]\nioengine={engine}\nsize=1m\n{lines}\n");
    let mut request = request(vec![JobSource::File("job.fio".into())]);
    request.dialect = dialect;
    let files = memory(&[("job.fio", &text)]);
    crate::setting::compile_in(&request, &files)
        .unwrap_or_else(|e| panic!("{text}: {}", e[0].render()))
}

/// Note about this option.
fn said(compiled: &Compiled, name: &str) -> Option<String> {
    let start = format!("`{name}` has no effect in a: it acts only ");
    let mut about = compiled.notes.iter().filter_map(|s| s.strip_prefix(&start));
    about.next().map(str::to_owned)
}

fn of(list: &'static [(&str, &str)], when: &str) -> Option<&'static str> {
    let found = list.iter().find(|(known, _)| *known == when);
    found.map(|(_, lines)| *lines)
}

#[test]
fn an_option_without_its_partner_is_noted_and_with_it_is_not() {
    let needing = option_records().filter_map(|r| r.needs.map(|need| (r, need)));
    for (record, need) in needing {
        let (name, when) = (record.name, need.when);
        let partner = of(PARTNERS, when).unwrap_or_else(|| panic!("{name}: {when}"));
        let obstacle = of(OBSTACLES, when).unwrap_or_default();
        let alone = match when {
            "where fio's output is printed" => Dialect::Run,
            _ => Dialect::Fio,
        };
        let line = line(record);
        let alone = compiled(record, &format!("{obstacle}\n{line}"), alone);
        assert_eq!(said(&alone, name).as_deref(), Some(when), "{name}");
        let both = compiled(record, &format!("{partner}\n{line}"), Dialect::Fio);
        assert_eq!(said(&both, name), None, "{name} with {partner}");
    }
}

#[test]
fn the_default_of_an_option_is_what_holds_when_nothing_is_said() {
    let mut others = Vec::new();
    for record in option_records() {
        let is_of_job = record.scope == Scope::Job && record.support == Support::Supported;
        if record.default.is_empty() || !is_of_job {
            continue;
        }
        let when = record.needs.map(|need| need.when);
        let partner = when.and_then(|when| of(PARTNERS, when)).unwrap_or_default();
        let job = |lines: &str| {
            let compiled = compiled(record, lines, Dialect::Fio);
            let mut job = compiled.plan.groups[0].jobs[0].clone();
            job.words.clear();
            job
        };
        let line = format!("{partner}\n{}={}", record.name, record.default);
        if job(&line) != job(partner) {
            others.push(record.name);
        }
    }
    assert_eq!(others, MORE_THAN_THEIR_DEFAULT);
}

#[test]
fn every_partner_is_some_options() {
    for (when, _) in PARTNERS {
        let needed = option_records().any(|r| r.needs.is_some_and(|need| need.when == *when));
        assert!(needed, "{when}");
        // What stands between backticks can be found in the table of options.
        for word in when.split('`').skip(1).step_by(2) {
            let name = word.split('=').next().unwrap();
            assert!(name == ":N" || find_option(name).is_some(), "{when}");
        }
    }
}

#[test]
fn what_holds_anyway_may_be_asked_for() {
    let quiet = file("[a]\nioengine=null\nsize=1m\nrate_process=linear\nfsync=0\nverify_fatal=0\n");
    assert!(quiet.unwrap().notes.is_empty());
}

#[test]
fn a_word_for_all_jobs_is_idle_where_it_acts_in_none() {
    let head = "[global]\nioengine=null\nsize=1m\nrate_process=poisson\n";
    let one_acts = file(&format!("{head}[a]\nrate=1m\n[b]\n")).unwrap();
    assert!(one_acts.notes.is_empty(), "{:?}", one_acts.notes);
    let none_acts = file(&format!("{head}[a]\n[b]\n")).unwrap();
    assert_eq!(
        none_acts.notes,
        ["`rate_process` has no effect: it acts only with `rate` or `rate_iops`"]
    );
    let unused = file(&format!("[a]\nioengine=null\nsize=1m\n{head}")).unwrap();
    assert!(unused.notes.is_empty(), "no job is for it to act in");
    let later = request(["one", "two"].map(|f| JobSource::File(f.into())).into());
    let files = memory(&[
        ("one", &format!("{head}[a]\n")),
        ("two", "[b]\nioengine=null\nsize=1m\nrate=1m\n"),
    ]);
    let later = crate::setting::compile_in(&later, &files).unwrap();
    assert_eq!(later.notes.len(), 1, "the second file starts anew");
}

#[test]
fn jobs_in_which_an_option_is_idle_are_named_up_to_three() {
    let jobs: Vec<String> = (0..6).map(|n| format!("[j{n}]\nflow_id=3\n")).collect();
    let jobs = jobs.concat();
    let compiled = file(&format!("[global]\nioengine=null\nsize=1m\n{jobs}")).unwrap();
    let note = "`flow_id` has no effect in j0, j1, j2 and 3 more jobs: it acts only with `flow`";
    assert_eq!(compiled.notes, [note]);
}
