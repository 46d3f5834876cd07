//! Every engine beside fio's of the same name: the same operations, bytes, errors and exit status
//! of jobs that end by themselves.

use serde_json::Value;

use crate::stage::{Running, Said, Stage, has, peer, said, skip};

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
        "posixaio write",
        "--ioengine=posixaio --rw=write --size=64k --iodepth=4",
    ),
    (
        "posixaio randread",
        "--ioengine=posixaio --rw=randread --size=64k --iodepth=4",
    ),
    ("splice write", "--ioengine=splice --rw=write --size=64k"),
    ("splice read", "--ioengine=splice --rw=read --size=64k"),
    (
        "cpuio rounds",
        "--ioengine=cpuio --cpuload=100 --cpuchunks=1000 --number_ios=7",
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
        let run = |program: &str| {
            let stage = Stage::new();
            let mut command = stage.command(program);
            command.args(["--output-format=json", "--name=j", "--bs=4k"]);
            command.args(words.split(' '));
            (said(command), left(&stage))
        };
        let (theirs, their_files) = run("fio");
        let (ours, our_files) = run(peer("fio"));
        assert_eq!(ours.code, theirs.code, "{name}: {ours}\n{theirs}");
        assert_eq!(counts(&ours), counts(&theirs), "{name}: {ours}");
        assert_eq!(our_files, their_files, "{name}");
    }
}

/// A port that was free a moment ago.
fn port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("--port={}", listener.local_addr().unwrap().port())
}

/// Both programs as a pair: one receives, the other sends. By kind, operations and bytes.
fn pair(receiver: &str, sender: &str, words: &[&str]) -> [[(u64, u64); 3]; 2] {
    let stage = Stage::new();
    let port = port();
    let command = |program: &str, name: &str, more: &[&str]| {
        let mut command = stage.command(program);
        let common = ["--output-format=json", "--ioengine=net"];
        command.arg(format!("--name={name}")).args(common);
        command.arg(&port).args(words).args(more);
        command
    };
    let tcp = words.contains(&"--protocol=tcp");
    let receive: &[&str] = if tcp {
        &["--rw=read", "--listen"]
    } else {
        &["--rw=read"]
    };
    let receiving = Running::start(command(receiver, "receive", receive));
    // It takes a while until the receiver has its port: TCP says when it has not, UDP does not.
    let number: u16 = port.trim_start_matches("--port=").parse().unwrap();
    crate::stage::until("the receiver has its port", || {
        let table = if tcp {
            "/proc/net/tcp"
        } else {
            "/proc/net/udp"
        };
        let table = std::fs::read_to_string(table).unwrap();
        table.contains(&format!(":{number:04X} 00000000:0000"))
    });
    let sending = said(command(
        sender,
        "send",
        &["--rw=write", "--hostname=127.0.0.1"],
    ))
    .code(0);
    let receiving = receiving.end().code(0);
    [&receiving, &sending].map(|said| {
        let counts = counts(said);
        assert_eq!(counts[0].0, 0, "{said}");
        counts[0].1
    })
}

#[test]
fn blocks_go_from_fio_to_weir_and_from_weir_to_fio() {
    if !has("fio") {
        return skip("blocks_go_from_fio_to_weir", "no fio");
    }
    let weir = peer("fio");
    for words in [
        ["--protocol=tcp", "--bs=4k", "--size=256k"],
        ["--protocol=udp", "--bs=1k", "--size=16k"],
    ] {
        let (blocks, bytes) = if words[0] == "--protocol=tcp" {
            (64, 256 << 10)
        } else {
            (16, 16 << 10)
        };
        let sent = [(0, 0), (blocks, bytes), (0, 0)];
        let received = [(blocks, bytes), (0, 0), (0, 0)];
        for (receiver, sender) in [(weir, weir), (weir, "fio"), ("fio", weir)] {
            let [receiving, sending] = pair(receiver, sender, &words);
            assert_eq!(sending, sent, "{sender} to {receiver}, {words:?}");
            // fio counts a block that comes in two pieces twice, or not in full.
            if receiver == weir {
                assert_eq!(receiving, received, "{sender} to {receiver}, {words:?}");
            } else {
                assert!(receiving[0].1 > 0, "{sender} to {receiver}, {words:?}");
            }
        }
    }
}

#[test]
fn each_block_comes_back_where_fio_and_weir_play_ping_pong() {
    if !has("fio") {
        return skip("each_block_comes_back", "no fio");
    }
    let words = ["--protocol=tcp", "--bs=512", "--size=16k", "--pingpong"];
    let weir = peer("fio");
    for (receiver, sender) in [(weir, "fio"), ("fio", weir)] {
        let [_, sending] = pair(receiver, sender, &words);
        assert_eq!(sending[1], (32, 16 << 10), "{sender} to {receiver}");
    }
}
