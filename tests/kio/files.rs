//! Configurations, reports and rows in files.

use rustix::process::Signal;

use crate::stage::{Running, Stage, until};
use crate::{in_peace, kio, stage};

#[test]
fn a_generated_configuration_runs_again_with_another_time() {
    let stage = stage();
    let words = [
        "kio",
        "-t",
        "2",
        "--runtime",
        "5",
        "--generate-config",
        "kio.conf",
    ];
    let said = stage.peer_says(&words);
    said.code(0).out("Generating config in kio.conf\n").calm();
    let config = stage.read("kio.conf");
    assert!(
        config
            .starts_with("global:\n    num_threads: 2\n    runtime_seconds: 5\nthreads:\n    0:\n")
    );
    assert!(config.contains("\n    1:\n"), "{config}");
    let settings = config.lines().filter(|line| line.starts_with("        "));
    assert_eq!(settings.count(), 26);
    kio(
        &stage,
        "--config kio.conf --runtime 1 --device F --format kio",
    )
    .code(0)
    .out("    num_threads: 2\n    runtime_seconds: 1\n")
    .out("    1:\n        bw_MBps: ")
    .err("offset_high 0 means the end of the device");
}

#[test]
fn rows_are_added_to_one_file_under_one_head() {
    let stage = stage();
    for mix in [100, 50, 0] {
        let words =
            format!("-d F --runtime 1 --read-mix-percent {mix} --label m{mix} --output-csv r.csv");
        kio(&stage, &words).code(0);
    }
    let text = stage.read("r.csv");
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines.iter().all(|line| line.split(',').count() == 25),
        "{text}"
    );
    assert_eq!(
        lines[0],
        "timestamp,hostname,kio_version,label,num_threads,runtime_seconds,block_size,burst_delay,\
         burst_finish,offset_high,offset_low,offset_random,offset_stride,queue_depth,read_burst,\
         read_mix_percent,read_sleep_usec,write_burst,write_sleep_usec,completed,lat_usec,slat_usec,\
         clat_usec,iops,bw_MBps"
    );
    let columns: Vec<&str> = lines[0].split(',').collect();
    let at = columns
        .iter()
        .position(|column| *column == "read_mix_percent")
        .unwrap();
    let mixes: Vec<&str> = lines[1..]
        .iter()
        .map(|l| l.split(',').nth(at).unwrap())
        .collect();
    assert_eq!(mixes, ["100", "50", "0"]);
    assert!(
        lines[3].contains(",m0,") && lines[3].contains("+uring,"),
        "{text}"
    );
}

#[test]
fn a_file_with_other_columns_is_refused_before_any_io() {
    let stage = Stage::new();
    stage.sparse("F", 1 << 20);
    let before = "a,b\r\n1,2\r\n";
    stage.file("r.csv", before);
    let target = std::fs::metadata(stage.path("F"))
        .unwrap()
        .modified()
        .unwrap();
    kio(
        &stage,
        "-d F --runtime 1 --read-mix-percent 0 --output-csv r.csv",
    )
    .code(1)
    .silent()
    .err("\ncolumns:  ['timestamp', 'hostname',")
    .err("\nexisting: ['a', 'b']\n");
    assert_eq!(stage.read("r.csv"), before);
    assert_eq!(
        std::fs::metadata(stage.path("F"))
            .unwrap()
            .modified()
            .unwrap(),
        target
    );
    // Nothing is read before it is known to be no target, and bytes are never printed.
    stage.file("key", "\u{1}key\n");
    for (file, code, says) in [
        ("./F", 2, "works on this file"),
        ("key", 1, "it holds no rows"),
    ] {
        let said = kio(&stage, &format!("-d F --runtime 1 -o {file}")).code(code);
        let said = said.silent().err(says);
        assert!(
            !said.err.contains("existing") && !said.err.contains("key\n"),
            "{said}"
        );
    }
    stage.file("empty.csv", "");
    kio(&stage, "-d F --runtime 1 -o empty.csv").code(0);
    assert!(stage.read("empty.csv").starts_with("timestamp,"));
}

#[test]
fn rows_that_would_not_fit_behind_those_of_a_file_are_refused_before_the_run() {
    let stage = stage();
    kio(&stage, "-d F --ios 10 -o r.csv").code(0);
    let whole = stage.read("r.csv");
    for (name, text, says) in [
        (
            "open.csv",
            whole.trim_end().to_owned(),
            "its last row has no end",
        ),
        ("unix.csv", whole.replace('\r', ""), "its lines end with LF"),
    ] {
        stage.file(name, &text);
        let words = format!("-d F -s 60 -o {name} --store-result s.json");
        let said = kio(&stage, &words).code(1).silent().err(says);
        assert!(said.err.contains(&format!("--output-csv {name}")), "{said}");
        assert!(!said.err.contains("--append"), "{said}");
        assert_eq!(stage.read(name), text);
    }
    assert_eq!(stage.list(), ["F", "open.csv", "r.csv", "unix.csv"]);
}

#[test]
fn runs_that_end_together_all_leave_their_rows() {
    let stage = stage();
    let words = |number: usize| {
        let label = number.to_string();
        let words = "kio --engine sync -d F --ios 1 -o r.csv --label";
        let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        words.push(label);
        words
    };
    let running: Vec<Running> = (0..8)
        .map(|number| {
            let words = words(number);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            Running::start(in_peace(&stage, &words))
        })
        .collect();
    for running in running {
        running.end().code(0);
    }
    let text = stage.read("r.csv");
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    let mut labels: Vec<&str> = lines.iter().map(|l| l.split(',').nth(3).unwrap()).collect();
    assert_eq!(labels.remove(0), "label");
    labels.sort_unstable();
    assert_eq!(labels, ["0", "1", "2", "3", "4", "5", "6", "7"], "{text}");
}

#[test]
fn settings_that_differ_between_threads_are_joined() {
    let stage = stage();
    let config =
        "global: {num_threads: 2}\nthreads:\n  0: {queue_depth: 1}\n  1: {queue_depth: 16}\n";
    stage.file("two.conf", config);
    kio(&stage, "-c two.conf -d F -s 1 -o r.csv -y r.yaml").code(0);
    assert!(stage.read("r.csv").contains(",1/16,"));
    let yaml = stage.read("r.yaml");
    let keys: Vec<&str> = yaml.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(keys, ["config:", "results:", "run_label: \"\"", "system:"]);
    assert!(yaml.contains("        1:\n            bw_MBps: "), "{yaml}");
    assert!(yaml.contains("    kio_version: weir-"), "{yaml}");
}

#[test]
fn what_is_wrong_with_a_configuration_is_named_with_its_file() {
    let stage = stage();
    stage.file("odd.conf", "threads:\n  0:\n    queue_dept: 4\n");
    kio(&stage, "-c odd.conf -d F -s 1")
        .code(2)
        .err("--config odd.conf:")
        .err("did you mean `queue_depth`");
    kio(&stage, "-c none.conf -d F").code(2).err("none.conf");
    stage
        .peer_says(&["kio", "-g", "no/such/folder.conf"])
        .code(2)
        .err("no/such/folder.conf");
}

#[test]
fn a_sweep_is_one_run_with_a_row_for_each_point() {
    let stage = stage();
    let words = "-d F -s 1 --sweep offset_random=0,1 --sweep queue_depth=1..4*4 -o s.csv \
                 --store-result r.json --format csv";
    let said = kio(&stage, words).code(0);
    let text = stage.read("s.csv");
    assert_eq!(said.out, text);
    let rows: Vec<Vec<&str>> = text
        .split_terminator("\r\n")
        .map(|line| line.split(',').collect())
        .collect();
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    let points: Vec<(&str, &str)> = rows[1..]
        .iter()
        .map(|row| (row[column("offset_random")], row[column("queue_depth")]))
        .collect();
    assert_eq!(points, [("0", "1"), ("0", "4"), ("1", "1"), ("1", "4")]);
    let done = rows[1..].iter().all(|row| row[column("completed")] != "0");
    assert!(done, "{text}");
    let again = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(again.out, text);
}

#[test]
fn a_sweep_that_is_interrupted_leaves_no_rows_of_points_that_never_ran() {
    for format in ["kio", "csv", "table"] {
        let stage = stage();
        let words =
            "kio --engine uring -d F -s 60 --rm 0 --sweep queue_depth=1..8*2 -o r.csv -y r.yaml";
        let words = [words, "--format", format].join(" ");
        let words: Vec<&str> = words.split(' ').collect();
        let running = Running::start(in_peace(&stage, &words));
        until("the first block to be written", || {
            stage.read_bytes("F")[..4096] != [7; 4096]
        });
        running.signal(Signal::INT);
        let said = running.end().code(130);
        let text = stage.read("r.csv");
        let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
        assert_eq!(rows.len(), 2, "{text}");
        assert_eq!(rows[0][5], "runtime_seconds");
        let seconds: f64 = rows[1][5].parse().unwrap();
        assert!(seconds > 0.0 && seconds < 60.0, "{text}");
        let yaml = stage.read("r.yaml");
        assert_eq!(yaml.matches("config:\n").count(), 1, "{yaml}");
        assert!(
            yaml.contains(&format!("runtime_seconds: {}\n", rows[1][5])),
            "{yaml}"
        );
        let all = said.err.clone() + &said.out;
        assert!(all.contains("INCOMPLETE"), "{said}");
        if format == "kio" {
            assert_eq!(said.out.matches("Results...").count(), 1, "{said}");
            assert!(
                said.out
                    .ends_with("# INCOMPLETE: 3 of 4 points did not run\n"),
                "{said}"
            );
        }
    }
}

#[test]
fn points_of_several_axes_are_told_apart_in_the_report() {
    let stage = stage();
    let axes = "--sweep read_sleep_usec=0,1 --sweep offset_random=0,1 --sweep queue_depth=1,2";
    let said = kio(&stage, &format!("-d F --ios 20 {axes}")).code(0);
    for values in [
        "queue_depth=1 read_sleep_usec=0",
        "queue_depth=2 read_sleep_usec=1",
    ] {
        assert!(said.out.contains(values), "{said}");
    }
    assert!(said.out.contains("offset_random=1"), "{said}");
}

#[test]
fn a_dry_run_and_a_plan_touch_nothing() {
    let stage = stage();
    let bytes = stage.read_bytes("F");
    kio(&stage, "-d F --read-mix-percent 0 --dry-run")
        .code(0)
        .out("        read_mix_percent: 0\n");
    let plan = kio(&stage, "-d F --read-mix-percent 0 --show-plan").code(0);
    assert!(plan.out.contains("\"bursts\""), "{plan}");
    stage.file("plan.json", &plan.out);
    stage.file(
        "odd.json",
        plan.out.replace("\"module\": false", "\"modul\": false"),
    );
    stage
        .say(&["run", "odd.json"])
        .code(2)
        .err("extensions.kio");
    std::fs::remove_file(stage.path("odd.json")).unwrap();
    let planned = kio(&stage, "-d F --ios 50 --show-plan").code(0);
    stage.file("reads.json", &planned.out);
    stage.say(&["run", "reads.json"]).code(0).out("thread 0");
    stage.file("c.conf", "global: {num_threads: 3, block_device: F}");
    let converted = stage.peer_says(&["kio", "convert", "c.conf"]).code(0);
    assert_eq!(converted.out.matches("\"thread ").count(), 3, "{converted}");
    stage.file("d.conf", "global: {num_threads: 2}");
    let words = ["kio", "convert", "d.conf", "--device", "F"];
    let converted = stage.peer_says(&words).code(0);
    assert_eq!(converted.out.matches("\"thread ").count(), 2, "{converted}");
    assert_eq!(stage.read_bytes("F"), bytes);
    let files = ["F", "c.conf", "d.conf", "plan.json", "reads.json"];
    assert_eq!(stage.list(), files);
}

#[test]
fn data_that_was_damaged_is_found_with_its_offset_and_byte() {
    let stage = stage();
    kio(
        &stage,
        "-d F --oh 1M --op write --data verify --verify --queue-depth 8 --offset-random 1",
    )
    .code(0)
    .out("thread 0 read back");
    kio(
        &stage,
        "-d F --oh 1M --op write --data verify --verify --format kio",
    )
    .code(0)
    .out("# thread 0: 256 blocks read back are what was written\n");
    kio(
        &stage,
        "-d F --oh 1M --op read --data verify --ios 256 --engine sync",
    )
    .code(0);
    let mut bytes = stage.read_bytes("F");
    bytes[8192 + 100] ^= 4;
    stage.file("F", bytes);
    kio(
        &stage,
        "-d F --oh 1M --op read --data verify --ios 256 --format kio",
    )
    .code(1)
    .err("the data at offset 8192 is not what was written")
    .err("byte 100");
    for (words, remedy) in [
        ("--data verify --rm 50", "--op write --verify"),
        ("--verify --op write", "--data verify"),
        ("--data verify --op write --verify -s 3", "--ios or --size"),
    ] {
        kio(&stage, &format!("-d F {words}")).code(2).err(remedy);
    }
}
