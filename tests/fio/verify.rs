//! Data that is verified: what passes, what is found, what is refused.

use std::os::unix::fs::symlink;

use crate::stage::{Running, Said, Stage, root, until};

/// A card's memory behind the nodes of both directions.
fn card() -> Stage {
    let stage = Stage::new();
    stage.sparse("card", 64 << 20);
    for channel in 0..4 {
        for direction in ["h2c", "c2h"] {
            symlink("card", stage.path(&format!("ch_{direction}_{channel}"))).unwrap();
        }
    }
    stage
}

fn example(name: &str) -> String {
    let path = root().join("examples/fio").join(name);
    path.to_str().unwrap().to_owned()
}

fn in_directory(stage: &Stage, words: &[&str]) -> Said {
    let mut command = stage.peer(words);
    command.env("DIR", stage.path(""));
    crate::stage::said(command)
}

pub(crate) fn overwrite(path: &str, at: usize, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at as u64).unwrap();
}

/// The lines with what was issued, job by job.
pub(crate) fn issued(said: &Said) -> Vec<&str> {
    let totals = said.out.split("issued rwts: total=").skip(1);
    totals.map(|t| t.split(' ').next().unwrap()).collect()
}

#[test]
fn a_card_is_filled_through_one_node_and_checked_through_the_other() {
    let stage = card();
    let said = in_directory(&stage, &["fio", &example("xdma_4-ch_4-1M_verify.fio")]);
    let said = said.code(0).calm();
    let groups: Vec<(String, Vec<&str>)> = said
        .out
        .split("Run status group ")
        .skip(1)
        .map(|g| {
            let kinds = ["   READ:", "  WRITE:"]
                .into_iter()
                .filter(|k| g.contains(k));
            (g[..1].to_owned(), kinds.map(str::trim).collect())
        })
        .collect();
    let both = vec!["READ:", "WRITE:"];
    let wanted = [
        ("0", vec!["WRITE:"]),
        ("1", both.clone()),
        ("2", both.clone()),
        ("3", both),
        ("4", vec!["READ:"]),
    ];
    assert_eq!(groups, wanted.map(|(n, k)| (n.to_owned(), k)), "{said}");
    assert_eq!(said.out.matches("err= 0").count(), 8, "{said}");
    assert!(!stage.list().iter().any(|f| f.contains("state")), "litter");
}

/// Reads each quarter of the card through its own node.
fn check_jobs(stage: &Stage) -> String {
    let head = "[global]\nioengine=psync\nbs=1m\nsize=16m\nverify=xxhash\nverify_dump=1\n\
                verify_fatal=1\nrw=read\n";
    let job = |q: u32| format!("[check-{q}]\nfilename=ch_c2h_{q}\noffset={}m\n", 16 * q);
    let jobs: Vec<String> = (0..4).map(job).collect();
    let text = head.to_owned() + &jobs.concat();
    stage.file("check.fio", text)
}

#[test]
fn damage_between_writing_and_checking_is_named_and_dumped_to_the_byte() {
    let stage = card();
    in_directory(&stage, &["fio", &example("xdma_4-ch_4-1M_verify.fio")]).code(0);
    check_jobs(&stage);
    stage.peer_says(&["fio", "check.fio"]).code(0).calm();
    let at = (2 << 20) + 5000;
    overwrite(&stage.path("card"), at, b"\x01\x02\x03\x04");
    let said = stage.peer_says(&["fio", "check.fio"]).code(1);
    let said = said
        .err("xxhash: verify failed at file ch_c2h_0 offset 2097152, length 1048576 (requested")
        .err("       received data dumped as ch_c2h_0.2097152.received\n")
        .err("       expected data dumped as ch_c2h_0.2097152.expected\n")
        .err("       Damage: ")
        .out("err=84 (file:ch_c2h_0, func=mismatch, error=Invalid or incomplete multibyte or wide")
        .out("(data verification failed)");
    assert_eq!(
        issued(&said),
        ["3,0,0,0", "16,0,0,0", "16,0,0,0", "16,0,0,0"]
    );
    let dump = |what: &str| std::fs::read(stage.path(&format!("ch_c2h_0.2097152.{what}"))).unwrap();
    let (received, expected) = (dump("received"), dump("expected"));
    assert_eq!(received.len(), 1 << 20);
    let differing: Vec<usize> = (0..received.len())
        .filter(|&i| received[i] != expected[i])
        .collect();
    let damaged: Vec<usize> = (5000..5004).collect();
    assert!(
        differing.iter().all(|i| damaged.contains(i)),
        "{differing:?}"
    );
    assert!(!differing.is_empty());
    for quarter in 1..4 {
        overwrite(
            &stage.path("card"),
            (quarter << 24) + at,
            b"\x01\x02\x03\x04",
        );
    }
    stage.peer_says(&["fio", "check.fio"]).code(4);
}

/// A file of eight verified blocks.
pub(crate) const WRITE: &[&str] = &[
    "fio",
    "--name=w",
    "--filename=f",
    "--rw=write",
    "--bs=4k",
    "--size=32k",
    "--verify=crc32c",
    "--do_verify=0",
];
pub(crate) const READ: &[&str] = &[
    "fio",
    "--name=r",
    "--filename=f",
    "--rw=read",
    "--bs=4k",
    "--size=32k",
    "--verify=crc32c",
];

#[test]
fn each_kind_of_damage_is_called_by_its_name() {
    let stage = Stage::new();
    let file = stage.path("f");
    stage.peer_says(WRITE).code(0);
    let old = std::fs::read(&file).unwrap();
    stage.peer_says(WRITE).code(0);
    let good = std::fs::read(&file).unwrap();
    let block = |data: &[u8], n: usize| data[n * 4096..(n + 1) * 4096].to_vec();
    let mut flipped = block(&good, 2);
    flipped[1000] ^= 0x10;
    let mut torn = block(&good, 2);
    torn[2048..].copy_from_slice(&block(&old, 2)[2048..]);
    let mut half_zero = block(&good, 2);
    half_zero[2048..].fill(0);
    let cases = [
        (
            flipped,
            "crc32c: verify failed",
            "bit flip, 1 bit from byte 1000 on",
        ),
        (
            block(&good, 3),
            "verify: bad header offset 12288, wanted 8192",
            "misplaced, this block belongs at offset 12288",
        ),
        (
            vec![0; 4096],
            "verify: bad magic header 0, wanted acca",
            "zeroed, nothing but zeros",
        ),
        (
            half_zero,
            "crc32c: verify failed",
            "zeroed, nothing but zeros from byte 2048 on",
        ),
        (torn, "crc32c: verify failed", "torn, from byte 2048 on"),
        (
            vec![b'X'; 4096],
            "verify: bad magic header 5858, wanted acca",
            "foreign",
        ),
    ];
    for (bad, check, damage) in cases {
        std::fs::write(&file, &good).unwrap();
        overwrite(&file, 8192, &bad);
        let said = stage.peer_says(READ).code(1);
        assert!(said.err.contains(check), "{damage}: {said}");
        assert!(
            said.err.contains(&format!("       Damage: {damage}")),
            "{damage}: {said}"
        );
        assert_eq!(issued(&said), ["3,0,0,0"]);
    }
}

#[test]
fn data_of_an_earlier_run_is_stale_for_a_reader_that_waits_for_the_writer() {
    let stage = Stage::new();
    stage.peer_says(WRITE).code(0);
    // The writer of this run writes another part, so that the reader meets the old one.
    let text = "[global]\nbs=4k\nverify=crc32c\n[w]\nfilename=other\nrw=write\nsize=32k\n\
                do_verify=0\n[r]\nwait_for=w\nfilename=f\nrw=read\nsize=32k\n";
    stage.file("j.fio", text);
    stage
        .peer_says(&["fio", "j.fio"])
        .code(1)
        .err("verify: block belongs to an earlier run ")
        .err("Damage: stale");
    stage
        .peer_says(&["fio", "--set", "verify_run_id=0", "j.fio"])
        .code(0);
    stage.peer_says(READ).code(0).calm();
}

#[test]
fn jobs_go_on_after_bad_blocks_where_they_shall_and_still_fail() {
    let stage = Stage::new();
    stage.peer_says(WRITE).code(0);
    for at in [5000, 21000] {
        overwrite(&stage.path("f"), at, b"\x11\x22");
    }
    let said = stage
        .peer_says(&[READ, &["--continue_on_error=verify"]].concat())
        .code(1);
    let said = said
        .out("err=84")
        .out("errors    : total=2, first_error=84/<");
    assert_eq!(
        said.err.matches("crc32c: verify failed").count(),
        2,
        "{said}"
    );
    assert_eq!(issued(&said), ["8,0,0,0"]);
    // Threads beside the worker find the same.
    let words = ["--continue_on_error=verify", "--verify_async=2"];
    let said = stage.peer_says(&[READ, &words].concat()).code(1);
    assert_eq!(
        said.err.matches("crc32c: verify failed").count(),
        2,
        "{said}"
    );
    let json = stage
        .peer_says(
            &[
                READ,
                &["--continue_on_error=verify", "--output-format=json"],
            ]
            .concat(),
        )
        .code(1);
    let result: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let job = &result["jobs"][0];
    assert_eq!(job["total_err"], 2);
    assert_eq!(job["first_error"], 84);
    assert_eq!(job["error"], 84);
}

#[test]
fn writes_are_read_back_as_often_as_fio_reads_them_back() {
    let stage = Stage::new();
    for (words, wanted) in [
        (&["--rw=write"][..], "16,16,0,0"),
        (&["--rw=write", "--do_verify=0"], "0,16,0,0"),
        (&["--rw=randwrite"], "16,16,0,0"),
        (&["--rw=write", "--loops=3"], "48,48,0,0"),
        (&["--rw=write", "--number_ios=5"], "5,5,0,0"),
        (&["--rw=write", "--io_size=32k"], "8,8,0,0"),
        (&["--rw=write", "--verify_backlog=4"], "16,16,0,0"),
        (
            &[
                "--rw=randwrite",
                "--verify_backlog=5",
                "--verify_backlog_batch=2",
            ],
            "16,16,0,0",
        ),
        (&["--rw=randwrite", "--verify_async=2"], "16,16,0,0"),
        (&["--rw=randwrite", "--verify=null"], "16,16,0,0"),
        (
            &["--rw=randwrite", "--ioengine=io_uring", "--iodepth=8"],
            "16,16,0,0",
        ),
        (&["--rw=write", "--verify_interval=1k"], "16,16,0,0"),
    ] {
        let job = [
            "fio",
            "--name=j",
            "--filename=f",
            "--bs=4k",
            "--size=64k",
            "--verify=md5",
        ];
        let said = stage.peer_says(&[&job[..], words].concat()).code(0).calm();
        assert_eq!(issued(&said), [wanted], "{words:?}");
    }
}

const FOR_A_TIME: [&str; 6] = [
    "fio",
    "--name=j",
    "--filename=f",
    "--bs=4k",
    "--size=64k",
    "--time_based",
];

#[test]
fn until_the_time_is_up_each_pass_is_read_back_before_the_next() {
    let stage = Stage::new();
    for words in [
        &["--rw=write"][..],
        &["--rw=randwrite", "--ioengine=io_uring", "--iodepth=8"],
        &["--rw=randwrite", "--verify_backlog=5"],
    ] {
        let job = ["--verify=crc32c", "--runtime=300ms"];
        let said = stage.peer_says(&[&FOR_A_TIME[..], &job[..], words].concat());
        let said = said.code(0);
        let counts: Vec<u64> = issued(&said)[0]
            .split(',')
            .map(|n| n.parse().unwrap())
            .collect();
        let (reads, writes) = (counts[0], counts[1]);
        // The time cuts one pass of 16 blocks; what a pass has written twice is read once.
        let most = if words.contains(&"--norandommap") {
            3 * reads
        } else {
            reads
        };
        assert!(
            reads <= writes && writes <= most + 16,
            "{words:?}: {reads} {writes}"
        );
    }
    // Where nothing is to be checked, nothing is.
    let job = ["--rw=write", "--verify=crc32c", "--do_verify=0"];
    let said = stage.peer_says(&[&FOR_A_TIME[..], &job[..], &["--runtime=50ms"]].concat());
    assert!(issued(&said.code(0))[0].starts_with("0,"));
}

#[test]
fn data_that_goes_bad_ends_a_job_that_has_time_left() {
    let stage = Stage::new();
    let file = stage.sparse("f", 64 << 10);
    let job = ["--rw=write", "--verify=crc32c", "--runtime=100s"];
    let running = Running::start(stage.peer(&[&FOR_A_TIME[..], &job[..]].concat()));
    let status = format!("/proc/{}/stat", running.process().as_raw_pid());
    until("it ends", || {
        overwrite(&file, 9000, b"bad");
        std::fs::read_to_string(&status).is_ok_and(|status| status.contains(") Z "))
    });
    let said = running.end().code(1);
    assert!(said.err.contains("verify"), "{said}");
}

#[test]
fn overwritten_blocks_are_read_back_once_with_what_was_written_last() {
    let stage = Stage::new();
    for words in [
        &["--rw=randwrite", "--norandommap"][..],
        &["--rw=randwrite", "--norandommap", "--bsrange=4k-16k"],
        &[
            "--rw=randwrite",
            "--random_distribution=zipf:1.2",
            "--verify_backlog=10",
        ],
        &["--rw=randrw", "--norandommap", "--verify_async=1"],
        &["--rw=trimwrite"],
        &[
            "--rw=randwrite",
            "--norandommap",
            "--ioengine=io_uring",
            "--iodepth=16",
        ],
    ] {
        let job = [
            "fio",
            "--name=j",
            "--filename=f",
            "--bs=4k",
            "--size=256k",
            "--verify=xxhash",
        ];
        let said = stage.peer_says(&[&job[..], words].concat());
        assert_eq!(said.code, Some(0), "{words:?}: {said}");
    }
}

#[test]
fn an_earlier_run_is_checked_without_writing() {
    let stage = Stage::new();
    let job = [
        "fio",
        "--name=j",
        "--filename=f",
        "--bs=4k",
        "--size=64k",
        "--rw=randwrite",
        "--verify=sha1",
    ];
    stage.peer_says(&job).code(0);
    let before = std::fs::read(stage.path("f")).unwrap();
    let said = stage
        .peer_says(&[&job[..], &["--verify_only"]].concat())
        .code(0);
    assert_eq!(issued(&said), ["16,0,0,0"]);
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), before);
    overwrite(&stage.path("f"), 30_000, b"?");
    stage
        .peer_says(&[&job[..], &["--verify_only"]].concat())
        .code(1)
        .err("sha1: verify failed at file f offset 28672");
}

#[test]
fn a_minimum_rate_holds_for_the_kind_whose_turn_it_is() {
    let stage = Stage::new();
    // Writes for more than three seconds before the first read.
    let words = [
        "fio",
        "--name=j",
        "--filename=f",
        "--bs=64k",
        "--size=3328k",
        "--rw=write",
        "--rate=,1m",
        "--rate_min=64k",
        "--verify=crc32c",
    ];
    let said = stage.peer_says(&words).code(0);
    assert_eq!(issued(&said), ["52,52,0,0"]);
}

#[test]
fn every_method_of_the_example_writes_and_reads_back() {
    let stage = Stage::new();
    let said = in_directory(&stage, &["fio", &example("verify_methods.fio")]).code(0);
    assert_eq!(issued(&said), ["64,64,0,0"; 6]);
}

#[test]
fn a_pattern_without_a_method_is_verified_too() {
    let stage = Stage::in_memory();
    let write = [
        "fio",
        "--name=a",
        "--filename=f",
        "--size=64k",
        "--rw=write",
        "--verify_pattern=0xa5",
    ];
    // Written, and read back.
    stage.peer_says(&write).code(0).out("total=16,16,0,0");
    let mut data = std::fs::read(stage.path("f")).unwrap();
    data[5000] ^= 1;
    std::fs::write(stage.path("f"), data).unwrap();
    let read = [
        "fio",
        "--name=a",
        "--filename=f",
        "--size=64k",
        "--rw=read",
        "--verify_pattern=0xa5",
    ];
    stage.peer_says(&read).code(1).out("err=84");
}

#[test]
fn a_pattern_with_headers_is_found_again_by_blocks_of_another_size() {
    let stage = Stage::in_memory();
    let words = "fio --name=a --size=512k --rw=randwrite --bssplit=4k/50:8k/50 --norandommap";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push("--verify_pattern=\"ab\"%o");
    stage.peer_says(&words).code(0).out("err= 0");
}
