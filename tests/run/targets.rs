//! Job files and targets of the command line: which argument is which, and what is never lost.

use std::fs;

use crate::stage::{Said, Stage, has, is_root, said, skip};
use crate::trouble::{LoopDevice, Mounted, act};

const JOBS: &str = "# a comment\n\n[a]\nioengine=null\nsize=64k\nrw=read\n";
const BLOCK: usize = 64 << 10;

/// Arguments that are refused, and a part of why.
const REFUSED: &[(&str, &str)] = &[
    // Which argument is which.
    ("data", "data: not a job file"),
    ("empty", "empty: not a job file"),
    ("none", "cannot read the job file `none`"),
    ("--rw=write odd.fio", "an option before the first section"),
    ("jobs.fio --rw=read data", "do not mix"),
    ("--rw=read data plan.json", "do not mix"),
    ("--rw=read plan.json", "--rw changes job files"),
    ("plan.json jobs.fio", "run alone"),
    ("--destroy jobs.fio jobs.fio", "a job file says itself"),
    ("--destroy x plan.json", "a job file says itself"),
    ("--example first jobs.fio", "it is run alone"),
    ("--example frist", "did you mean `first`?"),
    // Data is lost only where the command line says so, of each target.
    ("--rw=write data", "--destroy data"),
    ("--rw=randrw data", "--destroy data"),
    ("--rw=trim data", "--destroy data"),
    ("--rw=write --destroy data data more", "--destroy more"),
    (
        "--rw=write --destroy ./data data",
        "help: write it as the target is written",
    ),
    ("--rw=read --destroy data data", "nothing is written"),
    ("--rw=read --overwrite=1 data", "--destroy data"),
    ("--rw=read --unlink=1 data", "--destroy data"),
    ("--rw=read --ioengine=filedelete data", "--destroy data"),
    ("--rw=write --ioengine=falloc data", "--destroy data"),
    ("--rw=write --readonly --destroy data data", "read-only"),
    ("--rw=write --destroy image image", "an ext file system"),
    ("--rw=write --show-plan data", "--destroy data"),
    ("--rw=write --dry-run data", "--destroy data"),
    ("--rw=write --repeat=2 data", "--destroy data"),
    ("--rw=read --offset=1g data", "begins at offset"),
    ("--rw=write --size=4k none/f", "none does not exist"),
    ("--rw=write --size=4k none/", "it is a directory"),
    ("--rw=write --size=4k none/ --dry-run", "it is a directory"),
    (
        "--rw=write /",
        "/: it is a directory\n  help: name a job file",
    ),
    // A new file has a size.
    ("--rw=write new", "--size"),
    ("--rw=read empty", "--size"),
    ("--rw=write --size=4k /dev/none/such", "/dev/none"),
    ("--rw=write --size=4k /dev/no-such", "no such device"),
    // The arguments are all that is worked on.
    ("--rw=read --filename=more data", "--filename"),
    ("--rw=read --set filename=more data", "name other files"),
    ("--rw=read --directory=/tmp data", "name other files"),
    ("--rw=read --read_iolog=jobs data", "name other files"),
    ("--rw=read --name=b data", "--name"),
    ("--rw=read --section=a data", "--section"),
    (
        "--rw=read --ioengine=null --size=4k data",
        "the engine null",
    ),
    (
        "--rw=write --allow_mounted_write=1 --destroy data data",
        "never written",
    ),
    ("--rw=read --ranks=2 data", "--per-rank shared"),
    // Options are those of the language.
    (
        "--blocksise=4k --rw=read data",
        "did you mean `--blocksize`?",
    ),
    ("--rw=raed data", "did you mean `read`?"),
    ("--bs=4x --rw=read data", "command line, argument 1"),
    ("--time_based= --rw=read data", "a value is missing"),
    ("--rw", "a value is required"),
    ("--calibrate --rw=read", "--rw=read has no effect with"),
    ("--example list --format json", "--format has no effect"),
    ("--example list jobs.fio", "jobs.fio has no effect"),
];

/// A stage with job files, and with files that hold something.
fn stage() -> Stage {
    let stage = Stage::in_memory();
    stage.file("jobs", JOBS);
    stage.file("jobs.fio", JOBS);
    stage.file("odd.fio", "no section\n");
    stage.file("data", vec![7; BLOCK]);
    stage.file("more", vec![8; BLOCK]);
    stage.file("empty", "");
    let mut ext = vec![0; BLOCK];
    ext[1080..1082].copy_from_slice(&[0x53, 0xef]);
    stage.file("image", ext);
    let plan = stage.say(&["run", "--show-plan", "jobs.fio"]).code(0).out;
    stage.file("plan.json", plan);
    stage
}

/// Names and content of everything on it.
fn content(stage: &Stage) -> Vec<(String, Vec<u8>)> {
    let names = stage.list().into_iter();
    names
        .map(|name| (name.clone(), stage.read_bytes(&name)))
        .collect()
}

fn run(stage: &Stage, words: &str) -> Said {
    let words: Vec<&str> = std::iter::once("run").chain(words.split(' ')).collect();
    stage.say(&words)
}

#[test]
fn what_is_refused_says_why_and_changes_nothing() {
    let stage = stage();
    let before = content(&stage);
    for (words, why) in REFUSED {
        let said = run(&stage, words);
        assert!(said.err.contains(why), "{words}: no `{why}` in\n{said}");
        assert_eq!(
            said.err.matches("error: ").count() + said.err.matches("error[").count(),
            1,
            "{words}\n{said}"
        );
        let mut parts = said.err.trim_start_matches("error: ").split(": ");
        let (job, target) = (parts.next().unwrap(), parts.next().unwrap_or("-"));
        assert!(!target.ends_with(job), "{words}: named twice\n{said}");
        said.code(2).silent();
        assert!(content(&stage) == before, "{words}: something was changed");
    }
}

#[test]
fn every_argument_is_what_the_rule_says_and_reads_change_nothing() {
    let stage = stage();
    let before = content(&stage);
    for (words, title) in [
        ("jobs.fio", "a   read 4 KiB"),
        ("jobs", "a   read 4 KiB"),
        ("--bs=8k jobs jobs.fio", "a   read 8 KiB"),
        // With a job file flags are settings of its jobs.
        ("--rw=write --bs 16k jobs", "a   write 16 KiB"),
        ("--set bs=8k --bs=4k --bs=32k jobs.fio", "a   read 32 KiB"),
        ("plan.json", "a   read 4 KiB"),
        ("--rw=randread data", "data   read 4 KiB random"),
        ("--rw=read --bs=8k ./data more", "more   read 8 KiB"),
        (
            "--readwrite=read --direct=0 --time_based --runtime=10ms data",
            "data   read 4 KiB",
        ),
        (
            "--rw=read --ranks=2 --per-rank=shared data",
            "data   read 4 KiB",
        ),
        ("--size=64k /dev/zero", "zero   read 4 KiB"),
    ] {
        let said = run(&stage, words);
        assert!(said.out.contains(title), "{words}: no `{title}` in\n{said}");
        said.code(0);
        assert!(content(&stage) == before, "{words}: something was changed");
    }
    let mut piped = stage.weir(&["run", "--bs=8k", "-"]);
    piped.stdin(fs::File::open(stage.path("jobs")).unwrap());
    said(piped).code(0).out("a   read 8 KiB");
}

#[test]
fn what_may_be_lost_is_written_and_what_is_new_is_made() {
    let stage = stage();
    run(&stage, "--rw=write --bs=4k --destroy data data").code(0);
    assert_ne!(stage.read_bytes("data"), vec![7; BLOCK]);
    assert_eq!(stage.read_bytes("more"), vec![8; BLOCK]);
    run(&stage, "--rw=write --size=8k new empty").code(0);
    assert_eq!(stage.read_bytes("new").len(), 8 << 10);
    assert_eq!(stage.read_bytes("empty").len(), 8 << 10);
    // Of another name, the colon in it included.
    run(&stage, "--rw=write --size=4k a:b global")
        .code(0)
        .out("./global   write");
    assert_eq!(stage.read_bytes("a:b").len(), 4 << 10);
    run(
        &stage,
        "--rw=write --size=64k --destroy /dev/null /dev/null",
    )
    .code(0);
    run(&stage, "--rw=write --size=64k /dev/null")
        .code(2)
        .err("--destroy /dev/null");
}

#[test]
fn a_stored_plan_of_a_target_reads_it_alone() {
    let stage = stage();
    let plan = run(&stage, "--rw=read --show-plan data").code(0).out;
    stage.file(
        "p.json",
        plan.replace("\"read_percent\": 100", "\"read_percent\": 0"),
    );
    assert!(plan.contains("\"read_only\": true"), "{plan}");
    run(&stage, "p.json").code(2);
    assert_eq!(stage.read_bytes("data"), vec![7; BLOCK]);
}

#[test]
fn readonly_removes_no_file() {
    let stage = stage();
    stage.file("j.fio", "[a]\nrw=read\nfilename=data\nunlink=1\n");
    let said = run(&stage, "--readonly j.fio");
    said.code(2).silent().err("removes");
    assert_eq!(stage.read_bytes("data"), vec![7; BLOCK]);
}

#[test]
fn every_example_runs_here_or_says_what_is_missing() {
    let stage = Stage::in_memory();
    let list = run(&stage, "--example list").code(0).calm().out;
    assert!(list.starts_with("first "), "{list}");
    for line in list.lines() {
        let (name, purpose) = line.split_once(' ').unwrap();
        assert!(purpose.trim().len() > 10, "{line}");
        let words = ["run", "--example", name, "--runtime=20ms", "--dry-run"];
        let said = stage.say(&words);
        if said.code == Some(0) {
            continue;
        }
        assert!(name.contains("dma"), "{said}");
        said.code(2).silent().err("/dev/").err("missing");
    }
    run(&stage, "--example first --runtime=20ms --size=1m")
        .code(0)
        .out("four   read 4 KiB random");
    assert_eq!(stage.list(), Vec::<String>::new());
    let list = stage.say(&["axio", "--example", "list"]).code(0).calm();
    list.out("echo  One workspace").out("scan  One workspace");
}

/// Bytes of a device.
fn bytes(device: &LoopDevice) -> Vec<u8> {
    fs::read(&device.0).unwrap()
}

#[test]
fn a_device_is_written_only_where_nothing_on_it_can_be_lost_by_mistake() {
    let name = "a_device_is_written_only_where_nothing_on_it_can_be_lost_by_mistake";
    let stage = Stage::new();
    let device = match LoopDevice::over(&stage, "disk", 64 << 20) {
        Ok(device) => device,
        Err(why) => return skip(name, &why),
    };
    let path = device.0.as_str();
    fs::write(path, vec![9; 1 << 20]).unwrap();
    let refused = |words: &str, why: &str| {
        let before = bytes(&device);
        run(&stage, &format!("{words} {path}"))
            .code(2)
            .silent()
            .err(why);
        assert!(bytes(&device) == before, "{words}: the device was changed");
    };
    let destroy = format!("--destroy {path}");
    refused("--rw=write", &destroy);
    refused("--rw=trim", &destroy);
    refused("--rw=randrw --size=1m", &destroy);
    let before = bytes(&device);
    run(&stage, &format!("--size=1m --bs=64k {path}"))
        .code(0)
        .out("read 64 KiB");
    assert!(bytes(&device) == before);
    run(
        &stage,
        &format!("--rw=write --size=1m --bs=64k {destroy} {path}"),
    )
    .code(0);
    assert!(bytes(&device) != before);
    if !is_root() || !has("mkfs.ext4") || act("mkfs.ext4", &["-q", "-F", path]).is_err() {
        return skip(
            name,
            "no mkfs.ext4: a device with a file system is not tried",
        );
    }
    let write = format!("--rw=write --size=1m {destroy}");
    refused(&write, "an ext file system");
    // Only to be read: else the kernel writes to it by itself.
    match Mounted::at(&stage, "point", &["-o", "ro", path]) {
        Ok(_mounted) => {
            refused(&write, "is mounted on");
            refused("--rw=write --size=1m", &destroy);
        }
        Err(why) => skip(name, &format!("nothing can be mounted here: {why}")),
    }
}
