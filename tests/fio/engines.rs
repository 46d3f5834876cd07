//! Engines that touch no file, as their users see them: what ends them and what they say.

use crate::json;
use crate::stage::Stage;

/// Operations and error of each entry by name.
fn entries(report: &serde_json::Value) -> Vec<(String, u64, u64)> {
    let entry = |job: &serde_json::Value| {
        (
            job["jobname"].as_str().unwrap().to_owned(),
            job["read"]["total_ios"].as_u64().unwrap(),
            job["error"].as_u64().unwrap(),
        )
    };
    report["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(entry)
        .collect()
}

#[test]
fn a_busy_processor_ends_with_the_io_and_has_no_banner() {
    let stage = Stage::new();
    stage.file(
        "j.fio",
        "[io]\nioengine=null\nsize=1m\n[busy]\nioengine=cpuio\ncpuload=10\nexit_on_io_done=1\n",
    );
    let said = stage
        .peer_says(&["fio", "j.fio"])
        .code(0)
        .out("io: (g=0): rw=read");
    assert!(!said.out.contains("busy: (g=0): rw="), "{said}");
    // It moves nothing, so there is no line of a direction.
    assert_eq!(said.out.matches("READ: bw=").count(), 1, "{said}");
}

#[test]
fn a_busy_processor_alone_ends_with_its_bounds() {
    let stage = Stage::new();
    let words = [
        "fio",
        "--output-format=json",
        "--name=b",
        "--ioengine=cpuio",
    ];
    let more = ["--cpuload=50", "--cpuchunks=1000", "--number_ios=4"];
    let said = stage.peer_says(&[&words[..], &more[..]].concat()).code(0);
    assert_eq!(entries(&json(&said)), [("b".to_owned(), 4, 0)]);
    stage
        .peer_says(&["fio", "--name=b", "--ioengine=cpuio"])
        .code(1)
        .err("fio: cpu thread needs rate (cpuload=)");
}

#[test]
fn a_program_runs_once_and_leaves_its_output() {
    let stage = Stage::new();
    let words = ["fio", "--output-format=json", "--name=p", "--ioengine=exec"];
    let more = [
        "--program=/bin/echo",
        "--arguments=to %n in %r",
        "--runtime=30",
    ];
    let said = stage.peer_says(&[&words[..], &more[..]].concat()).code(0);
    assert_eq!(entries(&json(&said)), [("p".to_owned(), 1, 0)]);
    assert_eq!(stage.read("p.stdout"), "to p in 30\n");
    assert_eq!(stage.read("p.stderr"), "");
}

#[test]
fn a_program_that_stays_is_ended_with_the_jobs_time() {
    let stage = Stage::new();
    stage.file(
        "stay.sh",
        "trap '' TERM\necho $$ >pid\nwhile :; do sleep 0.01; done\n",
    );
    let words = ["fio", "--name=p", "--ioengine=exec", "--program=/bin/sh"];
    let more = ["--arguments=stay.sh", "--runtime=200ms", "--grace_time=0"];
    stage.peer_says(&[&words[..], &more[..]].concat()).code(0);
    let process = format!("/proc/{}", stage.read("pid").trim());
    assert!(
        !std::path::Path::new(&process).exists(),
        "{process} goes on"
    );
}

#[test]
fn a_directory_that_is_not_there_ends_the_run_before_anything_is_touched() {
    let stage = Stage::new();
    let words = "fio --rw=write --size=4k --name=a --filename=a --name=b --directory=nowhere";
    stage
        .peer_says(&words.split(' ').collect::<Vec<_>>())
        .code(1)
        .err("nowhere");
    assert!(!std::path::Path::new(&stage.path("a")).exists());
}

#[test]
fn a_program_that_does_not_exist_fails_its_job_alone() {
    let stage = Stage::new();
    let words = ["fio", "--name=p", "--ioengine=exec", "--program=/nowhere/p"];
    let more = ["--name=io", "--ioengine=null", "--size=1m"];
    stage
        .peer_says(&[&words[..], &more[..]].concat())
        .code(1)
        .err("exec: /nowhere/p cannot be run")
        .out("io: (groupid=0, jobs=1): err= 0");
}

#[test]
fn a_network_job_says_what_it_lacks_and_who_is_not_there() {
    let stage = Stage::new();
    let say = |words: &[&str]| {
        let first = [
            "fio",
            "--name=n",
            "--ioengine=net",
            "--size=64k",
            "--port=9",
        ];
        stage.peer_says(&[&first[..], words].concat()).code(1)
    };
    say(&["--rw=write"]).err("no hostname= is set");
    say(&["--rw=randread", "--listen"]).err("cannot be random");
    say(&["--rw=rw", "--listen"]).err("not both");
    say(&["--rw=trim", "--listen"]).err("nothing to discard");
    // The port of the discard protocol: nobody has it here.
    say(&["--rw=write", "--hostname=127.0.0.1"])
        .err("127.0.0.1:9: cannot connect to it: Connection refused")
        .out("err=111/");
}

#[test]
fn a_pair_in_one_file_measures_in_bits() {
    let stage = Stage::new();
    let pair = "[global]\nioengine=net\nprotocol=unix\nhostname=there\nbs=4k\nsize=64k\n\
                [in]\nlisten\nrw=read\n[out]\nrw=write\n";
    stage.file("pair.fio", pair);
    let said = stage.peer_says(&["fio", "pair.fio"]).code(0);
    assert_eq!(
        said.out.matches("total=16,0,0,0 short=0").count(),
        1,
        "{said}"
    );
    assert_eq!(
        said.out.matches("total=0,16,0,0 short=0").count(),
        1,
        "{said}"
    );
    assert!(said.out.contains("bit/s"), "{said}");
    assert_eq!(stage.list(), ["pair.fio"], "the socket is gone");
}

#[test]
fn a_peer_that_closes_early_fails_a_receiver_unless_its_time_ends_it() {
    let stage = Stage::new();
    let pair = "[global]\nioengine=net\nprotocol=unix\nhostname=there\nbs=4k\n\
                [in]\nlisten\nrw=read\nsize=128k\n[out]\nrw=write\nsize=66k\nbs=6k\n";
    stage.file("pair.fio", pair);
    stage
        .peer_says(&["fio", "pair.fio"])
        .code(1)
        .err("there: the peer closed the connection after 67584 bytes")
        .out("in: (groupid=0, jobs=1): err=104")
        .out("out: (groupid=0, jobs=1): err= 0");
    stage
        .peer_says(&["fio", "--set=in:runtime=60", "pair.fio"])
        .code(0);
}

#[test]
fn a_receiver_that_nobody_calls_ends_with_a_signal() {
    use crate::stage::{Running, until};
    let stage = Stage::new();
    let words = [
        "fio",
        "--name=in",
        "--ioengine=net",
        "--protocol=unix",
        "--size=64k",
    ];
    let more = ["--hostname=there", "--listen", "--rw=read"];
    let running = Running::start(stage.peer(&[&words[..], &more[..]].concat()));
    until("it listens", || stage.list().contains(&"there".to_owned()));
    running.signal(rustix::process::Signal::INT);
    running.end().code(128).out("fio: terminating on signal 2");
    assert!(stage.list().is_empty(), "the socket is gone");
}

#[test]
fn what_is_done_to_names_is_told_in_words_of_its_own() {
    let stage = Stage::new();
    let words = [
        "fio",
        "--name=d",
        "--ioengine=filedelete",
        "--filename=gone",
        "--size=4k",
        "--exec_prerun=rm gone",
    ];
    let said = stage
        .peer_says(&words)
        .code(1)
        .err("fio: d: removing gone: No such file or directory");
    assert!(!said.err.contains("read"), "{said}");
}

#[test]
fn a_missing_file_is_told_once() {
    let stage = Stage::new();
    let words = [
        "fio",
        "--name=m",
        "--filename=none",
        "--rw=read",
        "--size=4k",
        "--allow_file_create=0",
    ];
    let said = stage
        .peer_says(&words)
        .code(1)
        .err("fio: file creation disallowed by allow_file_create=0");
    assert_eq!(said.err.matches("none: ").count(), 1, "{said}");
}

#[test]
fn what_a_network_job_lacks_is_told_before_other_jobs_run() {
    let stage = Stage::new();
    for (words, lacks) in [
        (
            &["--rw=write", "--hostname=localhost"][..],
            "no port= is set",
        ),
        (&["--rw=write", "--port=1"], "no hostname= is set"),
        (&["--rw=read", "--protocol=unix"], "no hostname= is set"),
        (
            &["--rw=randread", "--port=1", "--listen"],
            "cannot be random",
        ),
        (&["--rw=rw", "--port=1", "--listen"], "not both"),
        (&["--rw=trim", "--port=1", "--listen"], "nothing to discard"),
        (
            &["--rw=read", "--port=1", "--protocol=udp", "--listen"],
            "listen is for connections",
        ),
    ] {
        let job = ["fio", "--name=a", "--ioengine=net", "--size=4k"];
        let said = stage.peer_says(&[&job[..], words].concat()).code(1);
        let note = "note: a cannot run: net: ";
        assert!(said.err.contains(note), "{words:?}: {said}");
        assert_eq!(said.err.matches(lacks).count(), 1, "{words:?}: {said}");
    }
    // As in fio, a file's name may be the peer's.
    let peer = [
        "fio",
        "--name=a",
        "--ioengine=net",
        "--size=4k",
        "--rw=write",
        "--protocol=unix",
    ];
    stage
        .peer_says(&[&peer[..], &["--filename=nobody"]].concat())
        .code(1)
        .err("nobody: cannot connect to it");
}
