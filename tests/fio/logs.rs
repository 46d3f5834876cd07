//! Log files of the fio door, and what is said when they cannot be written.

use std::os::unix::fs::symlink;

use super::stage::Stage;

/// The numbers of a line.
fn fields(line: &str) -> Vec<u64> {
    let number = |field: &str| field.trim().parse().unwrap();
    line.split(',').map(number).collect()
}

/// Every line of a log, as numbers.
fn lines(stage: &Stage, name: &str) -> Vec<Vec<u64>> {
    stage.read(name).lines().map(fields).collect()
}

/// Case 16: a rate is kept to 1 %, and a log of half seconds has no line for the last one.
#[test]
fn a_paced_job_logs_its_bandwidth_each_half_second_but_the_last() {
    let stage = Stage::new();
    let words = "fio --name=a --ioengine=null --size=64m --rw=read --bs=4k --rate=4m --runtime=2 \
                 --time_based --write_bw_log=x --write_iops_log=x --write_lat_log=x \
                 --log_avg_msec=500 --write_hist_log=x --log_hist_msec=500 --output-format=json";
    let words: Vec<&str> = words.split_whitespace().collect();
    let report = super::json(&stage.peer_says(&words).code(0));
    let iops = report["jobs"][0]["read"]["iops"].as_f64().unwrap();
    assert!((1013.0..1035.0).contains(&iops), "{iops}");
    let instants = |lines: &[Vec<u64>]| lines.iter().map(|l| l[0] / 100).collect::<Vec<_>>();
    for (name, about) in [("x_bw.1.log", 4096), ("x_iops.1.log", 1024)] {
        let lines = lines(&stage, name);
        assert_eq!(instants(&lines), [5, 10, 15], "{name}");
        for line in &lines {
            assert_eq!(line[2..], [0, 0, 0], "{name}");
            assert!(line[1].abs_diff(about) * 2 < about, "{name}: {line:?}");
        }
    }
    for name in ["x_lat.1.log", "x_clat.1.log"] {
        let lines = lines(&stage, name);
        assert_eq!(lines.len(), 4, "{name}: the last, shorter window is kept");
        assert!(lines.iter().all(|l| l.len() == 5), "{name}");
    }
    assert_eq!(stage.read("x_slat.1.log"), "", "the engine has none");
    let counts = lines(&stage, "x_clat_hist.1.log");
    assert_eq!(instants(&counts), [5, 10, 15]);
    for line in &counts {
        assert_eq!((line.len(), &line[1..3]), (3 + 1856, &[0, 4096][..]));
        let all: u64 = line[3..].iter().sum();
        assert!((200..1024).contains(&all), "{all}");
    }
}

#[test]
fn without_a_window_every_operation_has_a_line_in_the_log_of_its_worker() {
    let stage = Stage::new();
    stage.file(
        "j.fio",
        "[global]\nioengine=null\nsize=64k\nbs=4k\nrw=randwrite\nlog_offset=1\nlog_prio=1\n\
         write_bw_log\nwrite_lat_log\n[a]\n[b]\nnumjobs=2\n",
    );
    stage.peer_says(&["fio", "j.fio"]).code(0);
    for name in ["a_bw.1.log", "b_bw.2.log", "b_clat.3.log"] {
        let text = stage.read(name);
        assert_eq!(text.lines().count(), 16, "{name}");
        let mut offsets: Vec<u64> = Vec::new();
        for line in text.lines() {
            let columns: Vec<&str> = line.split(", ").collect();
            assert_eq!(columns[2..4], ["1", "4096"], "{line}");
            assert_eq!(columns[5], "0x0000", "{line}");
            offsets.push(columns[4].parse().unwrap());
        }
        offsets.sort_unstable();
        let all: Vec<u64> = (0..16).map(|n| n * 4096).collect();
        assert_eq!(offsets, all, "{name}: each block once");
    }
}

#[test]
fn operations_are_logged_with_their_priority_and_windows_have_none() {
    let stage = Stage::new();
    let logged = |words: &str| {
        let all = format!(
            "fio --name=a --filename=f --size=16k --bs=4k --write_bw_log=p --write_lat_log=p {words}"
        );
        stage
            .peer_says(&all.split_whitespace().collect::<Vec<_>>())
            .code(0);
        let columns = ["p_bw.1.log", "p_clat.1.log", "p_lat.1.log"].map(|name| {
            let text = stage.read(name);
            let last = |line: &str| line.rsplit(", ").next().unwrap().to_owned();
            let mut columns: Vec<String> = text.lines().map(last).collect();
            columns.dedup();
            columns
        });
        columns.concat()
    };
    // As in fio 3.33: the class is in the upper bits.
    let best_effort = "--prioclass=2 --prio=3";
    assert_eq!(
        logged(&format!("{best_effort} --log_prio=1")),
        ["0x4003"; 3]
    );
    assert_eq!(logged("--prio=3 --log_prio=1"), ["0x4003"; 3]);
    assert_eq!(logged("--prioclass=3 --log_prio=1"), ["0x6000"; 3]);
    assert_eq!(logged("--log_prio=1"), ["0x0000"; 3]);
    // Without it the column tells the class that goes first.
    assert_eq!(logged(best_effort), ["0"; 3]);
    let averaged = logged(&format!("{best_effort} --log_prio=1 --log_avg_msec=1"));
    assert!(
        averaged.iter().all(|priority| priority == "0x0000"),
        "{averaged:?}"
    );
    if crate::stage::is_root() {
        assert_eq!(logged("--prioclass=1 --prio=4"), ["1"; 3]);
    }
}

#[test]
fn workers_whose_logs_have_one_name_share_it() {
    let stage = Stage::new();
    let words = "fio --name=a --ioengine=null --size=16k --bs=4k --numjobs=3 --write_iops_log=p \
                 --per_job_logs=0";
    stage
        .peer_says(&words.split_whitespace().collect::<Vec<_>>())
        .code(0);
    assert_eq!(lines(&stage, "p_iops.log").len(), 12);
}

#[test]
fn a_log_that_cannot_be_written_is_named_and_nothing_starts() {
    let stage = Stage::new();
    let words = "fio --name=a --filename=target --size=64k --rw=write --write_bw_log=no/where/x";
    let said = stage.peer_says(&words.split_whitespace().collect::<Vec<_>>());
    said.code(1).err("no/where/x_bw.1.log cannot be written");
    assert_eq!(stage.list(), Vec::<String>::new(), "no target was made");
}

#[test]
fn a_log_on_a_full_disk_is_given_up_and_the_job_goes_on() {
    let stage = Stage::new();
    symlink("/dev/full", stage.path("x_bw.1.log")).unwrap();
    let words = "fio --name=a --ioengine=null --size=1m --bs=4k --write_bw_log=x \
                 --output-format=json";
    let said = stage
        .peer_says(&words.split_whitespace().collect::<Vec<_>>())
        .code(0);
    let said = said.err("x_bw.1.log is not whole");
    let job = &super::json(&said)["jobs"][0];
    assert_eq!(job["read"]["total_ios"], 256);
}

#[test]
fn the_bandwidth_of_the_whole_run_is_logged_without_a_terminal() {
    let stage = Stage::new();
    let words = "fio --bandwidth-log --name=a --ioengine=null --size=1g --bs=4k --rate=4m \
                 --rw=randrw --runtime=1200ms --time_based";
    stage
        .peer_says(&words.split_whitespace().collect::<Vec<_>>())
        .code(0);
    for (name, kind, about) in [
        ("agg-read_bw.log", 0, 4096),
        ("agg-write_bw.log", 1, 4096),
        ("agg-trim_bw.log", 2, 0),
    ] {
        let lines = lines(&stage, name);
        assert_eq!(lines.len(), 2, "{name}");
        for line in lines {
            assert_eq!(line[2..], [kind, 0, 0], "{name}");
            assert!(line[1].abs_diff(about) * 2 <= about, "{name}: {line:?}");
        }
    }
}

#[test]
fn a_latency_that_is_not_recorded_has_no_log_and_a_prefix_holds_until_the_next() {
    let stage = Stage::in_memory();
    stage.file(
        "j.fio",
        "[global]\nioengine=null\nsize=16k\nwrite_lat_log=x\n[a]\nwrite_lat_log\ndisable_lat=1\n",
    );
    stage.peer_says(&["fio", "j.fio"]).code(0);
    assert_eq!(stage.list(), ["j.fio", "x_clat.1.log", "x_slat.1.log"]);
}

#[test]
fn a_log_of_each_operation_is_whole_however_fast_they_come() {
    let stage = Stage::new();
    let words = "fio --name=a --ioengine=null --size=4g --rw=read --bs=4k --write_iops_log=x";
    let words: Vec<&str> = words.split_whitespace().collect();
    stage.peer_says(&words).code(0).calm();
    assert_eq!(stage.read("x_iops.1.log").lines().count(), 1 << 20);
}
