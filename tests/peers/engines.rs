//! Every engine beside fio's of the same name: the same operations, bytes, errors and exit status
//! of jobs that end by themselves.

use serde_json::Value;

use crate::stage::{Said, Stage, has, said, skip};

/// Jobs by name. fio 3.33 loses bytes of random reads with vsync above depth 1, so there is none
/// here. The words are given to both programs.
const JOBS: &[(&str, &str)] = &[
    ("sync write", "--ioengine=sync --rw=write --size=64k"),
    ("sync randread", "--ioengine=sync --rw=randread --size=64k"),
    (
        "vsync write",
        "--ioengine=vsync --rw=write --size=64k --iodepth=8 --iodepth_batch=8",
    ),
    (
        "vsync randread",
        "--ioengine=vsync --rw=randread --size=64k",
    ),
    (
        "pvsync read",
        "--ioengine=pvsync --rw=read --size=64k --nrfiles=2",
    ),
    ("falloc write", "--ioengine=falloc --rw=write --size=64k"),
    ("falloc read", "--ioengine=falloc --rw=read --size=64k"),
    ("falloc trim", "--ioengine=falloc --rw=trim --size=64k"),
    (
        "ftruncate write",
        "--ioengine=ftruncate --rw=write --size=64k",
    ),
    (
        "filecreate",
        "--ioengine=filecreate --nrfiles=100 --filesize=4k",
    ),
    (
        "filecreate write",
        "--ioengine=filecreate --rw=write --nrfiles=10 --filesize=8k --loops=2",
    ),
    (
        "filestat",
        "--ioengine=filestat --nrfiles=20 --filesize=4k --stat_type=statx",
    ),
    (
        "filedelete",
        "--ioengine=filedelete --nrfiles=20 --size=160k",
    ),
    (
        "filedelete twice",
        "--ioengine=filedelete --nrfiles=3 --filesize=4k --loops=2",
    ),
];

/// Of each entry the error and, by kind, operations and bytes.
fn counts(said: &Said) -> Vec<(u64, [(u64, u64); 3])> {
    let text = said.out.find('{').map_or("", |at| &said.out[at..]);
    let report: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{said}"));
    let entry = |job: &Value| {
        let kind = |name: &str| {
            let number = |key: &str| job[name][key].as_u64().unwrap();
            (number("total_ios"), number("io_bytes"))
        };
        (
            job["error"].as_u64().unwrap(),
            ["read", "write", "trim"].map(kind),
        )
    };
    report["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(entry)
        .collect()
}

/// The files that are left, with their lengths.
fn left(stage: &Stage) -> Vec<(String, u64)> {
    let length = |name: &String| std::fs::metadata(stage.path(name)).unwrap().len();
    let names = stage.list();
    names.into_iter().map(|n| (n.clone(), length(&n))).collect()
}

#[test]
fn engines_do_what_fios_engines_of_the_same_name_do() {
    if !has("fio") {
        return skip("engines_do_what_fios_engines_do", "no fio");
    }
    for (name, words) in JOBS {
        let run = |program: &str, first: &[&str]| {
            let stage = Stage::new();
            let mut command = stage.command(program);
            command
                .args(first)
                .args(["--output-format=json", "--name=j", "--bs=4k"]);
            command.args(words.split(' '));
            (said(command), left(&stage))
        };
        let (theirs, their_files) = run("fio", &[]);
        let (ours, our_files) = run(crate::stage::WEIR, &["fio"]);
        assert_eq!(ours.code, theirs.code, "{name}: {ours}\n{theirs}");
        assert_eq!(counts(&ours), counts(&theirs), "{name}: {ours}");
        assert_eq!(our_files, their_files, "{name}");
    }
}
