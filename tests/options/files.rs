//! Which files are used, and in which order.

use super::stage::{Stage, has, peer, said, skip};
use super::{Op, calls, done, fio, fios, has_all};

fn targets(done: &[Op]) -> Vec<u32> {
    done.iter().map(|op| op.1).collect()
}

const FOUR: [&str; 5] = [
    "--filename=f0:f1:f2:f3",
    "--size=64k",
    "--bs=4k",
    "--rw=write",
    "--ioengine=psync",
];

#[test]
fn files_are_served_in_the_order_that_fio_serves_them_in() {
    if let Err(missing) = has_all(&["fio"]) {
        return skip("files_are_served_in_the_order_of_fio", &missing);
    }
    for service in [
        "roundrobin",
        "roundrobin:2",
        "roundrobin:3",
        "sequential",
        "sequential:2",
    ] {
        let stage = Stage::new();
        let word = format!("--file_service_type={service}");
        let words = [&FOUR[..], &[&word]].concat();
        let theirs = targets(&fios(&stage, &words));
        assert_eq!(targets(&done(&stage, &words)), theirs, "{service}");
    }
}

#[test]
fn random_services_reach_every_block_once() {
    for service in ["random", "random:3"] {
        let stage = Stage::new();
        let word = format!("--file_service_type={service}");
        let mut ops = done(&stage, &[&FOUR[..], &[&word]].concat());
        let first: Vec<u32> = targets(&ops).into_iter().take(8).collect();
        assert_ne!(first, [0, 1, 2, 3, 0, 1, 2, 3], "{service}");
        ops.sort();
        ops.dedup();
        assert_eq!(ops.len(), 16, "{service}");
    }
    let stage = Stage::new();
    let words = [&FOUR[..], &["--file_service_type=random:4"]].concat();
    let order = targets(&done(&stage, &words));
    for four in order.chunks(4) {
        assert!(four.iter().all(|t| *t == four[0]), "{order:?}");
    }
}

#[test]
fn skewed_services_prefer_some_files_to_the_end_as_in_fio() {
    let words = ["--nrfiles=4", "--size=1m", "--bs=4k", "--rw=write"];
    let most = |ops: &[Op]| {
        let all = targets(ops);
        let of = |file: u32| all.iter().filter(|t| **t == file).count();
        assert_eq!(all.len(), 256);
        (0..4).map(of).max().unwrap()
    };
    for service in ["zipf:1.2", "pareto:0.3", "normal:20", "zipf"] {
        let word = format!("--file_service_type={service}");
        let words = [&words[..], &[&word[..]]].concat();
        // A file alone has 64 blocks.
        assert!(most(&done(&Stage::new(), &words)) > 80, "{service}");
        if has("fio") {
            assert!(most(&fios(&Stage::new(), &words)) > 80, "{service}");
        }
    }
}

#[test]
fn two_jobs_with_one_file_lay_it_out_as_long_as_both_read_it() {
    let jobs = "[global]\nfilename_format=one\nrw=read\nbs=4k\n\
                [a]\nsize=64k\n[b]\nsize=256k\n[c]\nstonewall\nsize=512k\n";
    let tools = if has("fio") {
        &["fio", peer("fio")][..]
    } else {
        &[peer("fio")]
    };
    for tool in tools {
        let stage = Stage::new();
        stage.file("j.fio", jobs);
        let mut command = stage.command(tool);
        command.args(["j.fio", "--output-format=json", "--output=report"]);
        said(command).code(0);
        let report = stage.read("report");
        let report = &report[report.find('{').unwrap()..];
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        let read = |job: usize| report["jobs"][job]["read"]["io_bytes"].as_u64().unwrap() >> 10;
        assert_eq!([0, 1, 2].map(read), [64, 256, 512], "{tool}");
        let length = std::fs::metadata(stage.path("one")).unwrap().len();
        assert_eq!(length, 512 << 10, "{tool}");
    }
}

#[test]
fn an_absolute_filename_lies_below_the_directory_as_in_fio() {
    let tools = if has("fio") {
        &["fio", peer("fio")][..]
    } else {
        &[peer("fio")]
    };
    // More slashes name the same file.
    for beginning in ["", "/"] {
        for tool in tools {
            let stage = Stage::new();
            let precious = stage.file("precious", "not to be written to");
            let joined = stage.path("one") + &precious;
            let parent = std::path::Path::new(&joined).parent().unwrap();
            std::fs::create_dir_all(parent).unwrap();
            let mut command = stage.command(tool);
            command.args([
                "--name=a",
                "--output=report",
                "--directory=one",
                &format!("--filename={beginning}{precious}"),
                "--rw=write",
                "--bs=4k",
                "--size=8k",
            ]);
            said(command).code(0);
            let kept = stage.read_bytes("precious") == b"not to be written to";
            assert!(kept, "{tool} has overwritten {precious}");
            let length = std::fs::metadata(&joined).unwrap().len();
            assert_eq!(length, 8192, "{tool}");
        }
    }
}

#[test]
fn an_absolute_name_that_is_made_lies_below_the_directory_too() {
    let stage = Stage::new();
    let precious = stage.file("precious", "not to be written to");
    let joined = stage.path("d") + &precious;
    std::fs::create_dir_all(std::path::Path::new(&joined).parent().unwrap()).unwrap();
    let format = format!("--filename_format={precious}");
    fio(
        &stage,
        &["--directory=d", &format, "--rw=write", "--size=8k"],
    )
    .code(0);
    let kept = stage.read_bytes("precious") == b"not to be written to";
    assert!(kept, "{precious} was overwritten");
    assert_eq!(std::fs::metadata(&joined).unwrap().len(), 8192);
}

#[test]
fn a_service_with_a_bad_shape_is_refused() {
    let stage = Stage::new();
    for bad in ["zipf:1", "pareto:1.5", "normal", "random:0", "often"] {
        fio(
            &stage,
            &["--size=4k", &format!("--file_service_type={bad}")],
        )
        .code(1);
    }
    assert!(!stage.list().contains(&"a.0.0".to_owned()));
}

#[test]
fn no_more_files_are_in_use_than_openfiles_allows() {
    let stage = Stage::new();
    let order = targets(&done(&stage, &[&FOUR[..], &["--openfiles=2"]].concat()));
    let expected: Vec<u32> = [[0, 1].repeat(4), [2, 3].repeat(4)].concat();
    assert_eq!(order, expected);
}

#[test]
fn every_file_below_a_directory_is_read() {
    let stage = Stage::new();
    std::fs::create_dir_all(stage.path("d/deep/deeper")).unwrap();
    for name in ["d/one", "d/deep/two", "d/deep/deeper/three"] {
        stage.file(name, [7_u8; 8192]);
    }
    let ops = done(&stage, &["--opendir=d", "--rw=read", "--bs=4k"]);
    assert_eq!(ops.len(), 6);
    assert_eq!(targets(&ops).into_iter().max(), Some(2));
    fio(&stage, &["--opendir=missing", "--rw=read"]).code(1);
}

#[test]
fn appending_keeps_what_is_there() {
    let stage = Stage::new();
    stage.file("log", "x".repeat(10_000));
    let words = [
        "--filename=log",
        "--rw=write",
        "--bs=4k",
        "--size=8k",
        "--file_append=1",
    ];
    fio(&stage, &words).code(0);
    let content = std::fs::read(stage.path("log")).unwrap();
    assert_eq!(content.len(), 10_000 + 8192);
    assert!(content[..10_000].iter().all(|&byte| byte == b'x'));
}

#[test]
fn the_kernel_is_told_about_the_order_of_offsets() {
    if let Err(missing) = has_all(&["strace"]) {
        return skip("the_kernel_is_told_about_the_order_of_offsets", &missing);
    }
    for (rw, hint, advice) in [
        ("read", "1", Some("SEQUENTIAL")),
        ("randread", "1", Some("RANDOM")),
        ("randread", "sequential", Some("SEQUENTIAL")),
        ("read", "random", Some("RANDOM")),
        ("read", "0", None),
    ] {
        let stage = Stage::new();
        stage.file("f", [1_u8; 16384]);
        let words = [
            "--filename=f",
            "--invalidate=0",
            &format!("--rw={rw}"),
            &format!("--fadvise_hint={hint}"),
        ];
        let calls = calls(&stage, "fadvise64", &words);
        let advised: Vec<_> = calls.iter().filter(|c| !c.contains("DONTNEED")).collect();
        match advice {
            Some(advice) => assert!(
                advised.len() == 1
                    && advised[0].contains(&format!("0, 16384, POSIX_FADV_{advice}")),
                "{calls:?}"
            ),
            None => assert!(advised.is_empty(), "{calls:?}"),
        }
    }
}

#[test]
fn the_lifetime_of_data_is_told_by_fcntl() {
    if let Err(missing) = has_all(&["strace"]) {
        return skip("the_lifetime_of_data_is_told_by_fcntl", &missing);
    }
    let stage = Stage::new();
    let words = ["--rw=write", "--size=4k", "--write_hint=long"];
    let advised = calls(&stage, "fcntl", &words);
    let hints = |call: &&String| call.contains("0x40c") || call.contains("F_SET_RW_HINT");
    assert_eq!(advised.iter().filter(hints).count(), 1, "{advised:?}");
}
