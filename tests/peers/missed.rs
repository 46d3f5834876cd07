//! Job files whose words the generator of job files does not know: fio makes the same of each.

use std::process::Command;

use serde_json::Value;

use crate::beside::{Case, Kind, no_fio};
use crate::generated::{Differing, differing};
use crate::stage::{Stage, peer, said, skip};

const FILES: &[&str] = &[
    "[skip]\nrw=write:8k\nbs=4k\nsize=64k\n",
    "[skip]\nrw=read:512k\nbs=1m\nsize=8m\nnorandommap\n",
    "[trims]\nioengine=null\nrw=trimwrite\nbs=4k\nsize=64k\n",
    "[trims]\nioengine=null\nrw=randtrimwrite\nbs=4k\nsize=64k\n",
    "[more]\nrw=randwrite\nnorandommap\nbs=4k\nsize=64k\nio_size=256k\nverify=crc32c\n",
    "[more]\nrw=write\nbs=4k\nsize=64k\nio_size=256k\nverify=crc32c\n",
    "[more]\nrw=randwrite\nbs=4k\nsize=64k\nio_size=150k\nverify=crc32c\n",
    "[again]\nrw=write\nsize=128k\ndo_verify=1\nverify=md5\nexperimental_verify=1\n",
    "[odd]\nioengine=null\nsize=65536)\nbs=4k\n",
    "[odd]\nrw=read\nbsrange=4096/25:4k:25\nsize=64k\n",
    "[zones]\nsize=1m\nrw=randread\nnorandommap\nrandom_distribution=zoned:50/5:30/15:20/\n",
    "[many]\nioengine=null\nsize=64k\nthreads=4\n",
    "[shared]\nrw=write\nsize=64k\ndedupe_percentage=50\ndedupe_mode=working_set\ndedupe_global=1\n",
    "[errors]\nrw=write\nsize=64k\nblock_error_percentiles=1\n",
    "[zones]\nioengine=null\nsize=64k\nzonesize=4k\n",
    "[nowhere]\nrw=write\nsize=64k\ndirectory=nowhere\n[other]\nioengine=null\nsize=4k\n",
    "[mix]\nioengine=null\nrw=randrw\nsize=1g\nnumber_ios=400\nrate_iops=20000,20000\n",
    "[flushed]\nfilename=/dev/zero\nrw=write\nsize=508k\nio_size=794112\nend_fsync=1\n",
    "[walks]\nrw=rw\nsize=25600\nloops=3\n",
    "[walks]\nrw=randrw\nsize=25600\n",
    "[larger]\nfilename=many/first\nrw=write\nsize=96k\nbs=20k\n",
    "[mixed]\nsize=64k\nunified_rw_reporting=1\n[plain]\nsize=64k\n",
    "[counted]\nrw=write\nsize=64k\nverify=md5\nloops=3\nnumber_ios=10\n",
    "[counted]\nrw=write\nsize=64k\nverify=md5\nnumber_ios=10\n",
    "[backlog]\nrw=write\nsize=64k\nverify=md5\nverify_backlog=8\n",
    "[rounds]\nrw=write\nsize=96k\nio_size=562688\nbs=59904\nverify=md5\n",
    "[walks]\nrw=rw\nsize=835k\nio_size=995k\nloops=2\n",
    "[draws]\nrw=randread\nnorandommap\nsize=100k\nio_size=150k\nloops=2\n",
    "[draws]\nrw=randwrite\nnorandommap\nsize=100k\nio_size=150k\nloops=2\n",
    "[kinds]\nrw=write\nbs=16k,4k\nsize=128k\nio_size=140k\n",
    "[compressed]\nioengine=null\nsize=64k\nwrite_bw_log=log\nlog_compression=10K\n",
];

#[test]
fn fio_and_weir_make_the_same_of_words_that_were_missed() {
    if let Some(reason) = no_fio() {
        return skip(
            "fio_and_weir_make_the_same_of_words_that_were_missed",
            &reason,
        );
    }
    let case = |(number, text): (u64, &&str)| Case {
        seed: 0,
        number,
        kind: Kind::Run,
        files: vec![("j.fio".to_owned(), (*text).to_owned())],
        words: vec!["j.fio".to_owned()],
    };
    let cases: Vec<Case> = (0..).zip(FILES).map(case).collect();
    let failed = differing(&cases);
    for Differing { case, found, .. } in &failed {
        println!("==== {}", case.files[0].1);
        for difference in found {
            println!("{difference}");
        }
    }
    assert!(failed.is_empty());
}

/// The document that a program prints for these words.
fn document(program: &[&str], words: &[&str]) -> Value {
    let stage = Stage::new();
    let mut command = stage.command(program[0]);
    command
        .args(&program[1..])
        .args(words)
        .arg("--output-format=json+");
    let text = said(command).code(0).out;
    serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap()
}

/// Class, level and latency of each priority.
fn priorities(of: &Value, stage: &str) -> Vec<String> {
    let list = of["prios"].as_array().into_iter().flatten();
    let name = |one: &Value| {
        format!(
            "{} {} {}",
            one["prioclass"],
            one["prio"],
            one[stage].is_object()
        )
    };
    let mut names: Vec<String> = list.map(name).collect();
    names.sort();
    names
}

#[test]
fn latencies_by_priority_have_the_keys_of_fios_and_add_up() {
    if let Some(reason) = no_fio() {
        return skip("latencies_by_priority_have_the_keys_of_fios", &reason);
    }
    let words = "--name=a --ioengine=libaio --rw=randrw --size=4m --iodepth=4 --prioclass=2 --prio=5 \
                 --cmdprio_percentage=50 --cmdprio_class=2 --cmdprio=3";
    for (more, stage, occurring) in [
        ("--clat_percentiles=1", "clat_ns", &["read", "write"][..]),
        ("--lat_percentiles=1", "lat_ns", &["read", "write"]),
        ("--unified_rw_reporting=1", "clat_ns", &["mixed"]),
    ] {
        let words: Vec<&str> = words.split(' ').chain([more]).collect();
        let (theirs, ours) = (document(&["fio"], &words), document(&[peer("fio")], &words));
        for kind in occurring {
            let (theirs, ours) = (&theirs["jobs"][0][kind], &ours["jobs"][0][kind]);
            let names = priorities(ours, stage);
            assert_eq!(names, ["2 3 true", "2 5 true"], "{kind} {more}");
            assert_eq!(names, priorities(theirs, stage), "{kind} {more}");
            let count = |of: &Value| of[stage]["N"].as_u64().unwrap();
            let list = ours["prios"].as_array().unwrap();
            assert_eq!(list.iter().map(count).sum::<u64>(), count(ours));
            let percentiles = |of: &Value| {
                let first = &of["prios"][0][stage];
                first["percentile"].as_object().map(serde_json::Map::len)
            };
            assert_eq!(percentiles(ours), percentiles(theirs), "{kind} {more}");
        }
    }
}

#[test]
fn without_completion_latencies_there_is_no_distribution() {
    let stage = Stage::new();
    let programs = [&[peer("fio")][..], &["fio"]];
    let here = programs
        .iter()
        .filter(|program| program[0] != "fio" || no_fio().is_none());
    for program in here {
        let mut command = stage.command(program[0]);
        command.args(&program[1..]);
        command.args([
            "--name=a",
            "--ioengine=null",
            "--size=64k",
            "--disable_clat=1",
        ]);
        let said = said(command).code(0);
        let is_shown = said.out.lines().any(|line| line.starts_with("  lat ("));
        assert!(!is_shown, "{said}");
    }
}

#[test]
fn a_compressed_log_is_inflated_to_the_lines_of_a_plain_one() {
    let stage = Stage::new();
    let words = [
        "--ioengine=null",
        "--size=1m",
        "--bs=4k",
        "--write_bw_log=log",
        "--log_offset=1",
    ];
    let run = |more: &[&str]| {
        let mut command = Command::new(peer("fio"));
        command.current_dir(stage.path("")).arg("--name=a");
        command.args(words).args(more);
        said(command).code(0)
    };
    run(&[]);
    run(&["--log_store_compressed=1"]);
    let plain = stage.read("log_bw.1.log");
    let inflated = stage
        .peer_says(&["fio", "--inflate-log=log_bw.1.log.fz"])
        .code(0)
        .out;
    let offsets = |text: &str| -> Vec<String> {
        let offset = |line: &str| line.split(", ").nth(4).unwrap().to_owned();
        text.lines().map(offset).collect()
    };
    assert_eq!(offsets(&inflated).len(), 256);
    assert_eq!(offsets(&inflated), offsets(&plain));
    let packed = std::fs::metadata(stage.path("log_bw.1.log.fz"))
        .unwrap()
        .len();
    assert!(packed < plain.len() as u64 / 2, "{packed} bytes");
    stage
        .peer_says(&["fio", "--inflate-log=log_bw.1.log"])
        .code(1)
        .err("log_bw.1.log: ");
}
