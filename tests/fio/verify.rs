//! Data that is verified: what passes, what is found, what is refused.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::stage::{Said, Stage, root};

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
    let mut command = stage.weir(words);
    command.env("DIR", stage.path(""));
    crate::stage::said(command)
}

fn overwrite(path: &str, at: usize, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, at as u64).unwrap();
}

/// The lines with what was issued, job by job.
fn issued(said: &Said) -> Vec<&str> {
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
    stage.say(&["fio", "check.fio"]).code(0).calm();
    let at = (2 << 20) + 5000;
    overwrite(&stage.path("card"), at, b"\x01\x02\x03\x04");
    let said = stage.say(&["fio", "check.fio"]).code(1);
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
    stage.say(&["fio", "check.fio"]).code(4);
}

/// A file of eight verified blocks.
const WRITE: &[&str] = &[
    "fio",
    "--name=w",
    "--filename=f",
    "--rw=write",
    "--bs=4k",
    "--size=32k",
    "--verify=crc32c",
    "--do_verify=0",
];
const READ: &[&str] = &[
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
    stage.say(WRITE).code(0);
    let old = std::fs::read(&file).unwrap();
    stage.say(WRITE).code(0);
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
        let said = stage.say(READ).code(1);
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
    stage.say(WRITE).code(0);
    // The writer of this run writes another part, so that the reader meets the old one.
    let text = "[global]\nbs=4k\nverify=crc32c\n[w]\nfilename=other\nrw=write\nsize=32k\n\
                do_verify=0\n[r]\nwait_for=w\nfilename=f\nrw=read\nsize=32k\n";
    stage.file("j.fio", text);
    stage
        .say(&["fio", "j.fio"])
        .code(1)
        .err("verify: block belongs to an earlier run ")
        .err("Damage: stale");
    stage
        .say(&["fio", "--set", "verify_run_id=0", "j.fio"])
        .code(0);
    stage.say(READ).code(0).calm();
}

#[test]
fn jobs_go_on_after_bad_blocks_where_they_shall_and_still_fail() {
    let stage = Stage::new();
    stage.say(WRITE).code(0);
    for at in [5000, 21000] {
        overwrite(&stage.path("f"), at, b"\x11\x22");
    }
    let said = stage
        .say(&[READ, &["--continue_on_error=verify"]].concat())
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
    let said = stage.say(&[READ, &words].concat()).code(1);
    assert_eq!(
        said.err.matches("crc32c: verify failed").count(),
        2,
        "{said}"
    );
    let json = stage
        .say(
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
        let said = stage.say(&[&job[..], words].concat()).code(0).calm();
        assert_eq!(issued(&said), [wanted], "{words:?}");
    }
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
        let said = stage.say(&[&job[..], words].concat());
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
    stage.say(&job).code(0);
    let before = std::fs::read(stage.path("f")).unwrap();
    let said = stage.say(&[&job[..], &["--verify_only"]].concat()).code(0);
    assert_eq!(issued(&said), ["16,0,0,0"]);
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), before);
    overwrite(&stage.path("f"), 30_000, b"?");
    stage
        .say(&[&job[..], &["--verify_only"]].concat())
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
    let said = stage.say(&words).code(0);
    assert_eq!(issued(&said), ["52,52,0,0"]);
}

#[test]
fn every_method_of_the_example_writes_and_reads_back() {
    let stage = Stage::new();
    let said = in_directory(&stage, &["fio", &example("verify_methods.fio")]).code(0);
    assert_eq!(issued(&said), ["64,64,0,0"; 6]);
}

#[test]
fn the_null_engine_says_that_nothing_is_verified() {
    let stage = Stage::new();
    let words = [
        "fio",
        "--name=j",
        "--ioengine=null",
        "--size=64k",
        "--rw=write",
        "--verify=md5",
    ];
    let said = stage
        .say(&words)
        .code(0)
        .err("engine null moves no data: nothing is verified");
    assert_eq!(issued(&said), ["0,16,0,0"]);
}

#[test]
fn plans_that_cannot_be_verified_are_refused_before_anything_is_touched() {
    let job = [
        "fio",
        "--name=j",
        "--filename=f",
        "--rw=write",
        "--size=64k",
        "--verify=crc32c",
    ];
    for (words, complaint) in [
        (
            &["--bs=4k", "--verify_backlog=4", "--verify_only"][..],
            "`verify_backlog`",
        ),
        (
            &["--bsrange=4k-8k", "--bs_unaligned"],
            "common place for headers",
        ),
        (&["--bssplit=4097/50:4098/50"], "leaves no room for data"),
        (
            &["--bs=4k", "--verify=pattern"],
            "`verify=pattern` without a pattern",
        ),
        (&["--bs=160", "--verify=sha512"], "no room"),
        (&["--bs=4k", "--verify_offset=4090"], "header cannot lie"),
        (
            &["--bs=4k", "--numjobs=2"],
            "its clones 0 and 1 write and verify the same part",
        ),
        (&["--bs=4k", "--trim_percentage=10"], "trim_percentage"),
        (
            &["--bs=4k", "--experimental_verify=1"],
            "experimental_verify",
        ),
        (&["--bs=64k", "--size=4k"], "below the block size"),
    ] {
        let stage = Stage::new();
        let said = stage.say(&[&job[..], words].concat()).code(1);
        assert!(said.err.contains(complaint), "{words:?}: {said}");
        assert!(!Path::new(&stage.path("f")).exists(), "{words:?}");
    }
}

#[test]
fn two_writers_of_one_place_are_refused_unless_something_orders_them() {
    let head = "[global]\nfilename=f\nsize=64k\nbs=4k\nrw=write\nverify=crc32c\n[a]\n[b]\n";
    for (tail, code) in [
        ("", 1),
        ("offset=32k\n", 1),
        ("offset=64k\n", 0),
        ("stonewall\n", 0),
        ("wait_for=a\n", 0),
        ("verify=0\n", 0),
        ("[c]\nstonewall\n", 1),
    ] {
        let stage = Stage::new();
        stage.file("j.fio", format!("{head}{tail}"));
        let said = stage.say(&["fio", "j.fio"]).code(code);
        assert_eq!(
            code == 1,
            said.err.contains("at the same time"),
            "{tail}: {said}"
        );
        assert_eq!(code == 0, Path::new(&stage.path("f")).exists(), "{tail}");
    }
}

#[test]
fn a_region_with_nothing_in_it_is_no_silent_pass() {
    let stage = Stage::new();
    stage.file("f", [0; 4096]);
    let words = [
        "fio",
        "--name=r",
        "--filename=f",
        "--rw=read",
        "--bs=4k",
        "--size=4k",
        "--offset=4k",
        "--verify=crc32c",
    ];
    stage
        .say(&words)
        .code(1)
        .err("you need to specify valid offset=");
    // Never written: zeros are no marks.
    let words = [
        "fio",
        "--name=r",
        "--filename=f",
        "--rw=read",
        "--bs=4k",
        "--size=4k",
        "--verify=crc32c",
    ];
    stage
        .say(&words)
        .code(1)
        .err("verify: bad magic header 0, wanted acca at file f offset 0");
}

#[test]
fn a_reader_that_only_checks_reads_and_checks() {
    let stage = Stage::new();
    stage.say(WRITE).code(0);
    let only = [READ, &["--verify_only"]].concat();
    let said = stage.say(&only).code(0);
    let plain = stage.say(READ).code(0);
    assert_eq!(issued(&said), issued(&plain));
    assert_ne!(issued(&said), ["0,0,0,0"]);
    overwrite(&stage.path("f"), 5000, b"\x11\x22");
    stage
        .say(&only)
        .code(1)
        .err("verify failed at file f offset 4096");
}

#[test]
fn a_file_that_was_cut_short_does_not_pass() {
    let stage = Stage::new();
    stage.say(WRITE).code(0);
    let path = stage.path("f");
    let whole = std::fs::metadata(&path).unwrap().len();
    let only = [WRITE, &["--verify_only"]].concat();
    for left in [whole / 4, 0] {
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(left).unwrap();
        let wanted =
            format!("f: its first {whole} bytes are to be verified, but it has only {left}:");
        for words in [READ, &only] {
            stage.say(words).code(1).err(&wanted);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), left);
    }
}

#[test]
fn a_fault_of_an_emulated_card_is_found() {
    let text = "[global]\nioengine=dma-emu\nemu_shared=card\nbs=64k\nsize=1m\nfilesize=64m\n\
                verify=crc32c\n[down]\nfilename=h2c\nemu_dir=h2c\nrw=write\ndo_verify=0\n[up]\n\
                wait_for=down\nfilename=c2h\nemu_dir=c2h\nrw=read\n";
    let stage = Stage::new();
    stage.file("j.fio", text);
    stage.say(&["fio", "j.fio"]).code(0);
    stage
        .say(&["fio", "--set", "up:emu_fault=flip@300k", "j.fio"])
        .code(1)
        .err("crc32c: verify failed at file c2h offset 262144, length 65536")
        .err("Damage: bit flip, 1 bit from byte ");
}

#[test]
fn dumps_go_where_the_command_line_says() {
    let stage = Stage::new();
    stage.say(WRITE).code(0);
    overwrite(&stage.path("f"), 5000, b"\x11\x22");
    std::fs::create_dir(stage.path("aux")).unwrap();
    stage
        .say(&[READ, &["--verify_dump=1", "--aux-path=aux"]].concat())
        .code(1);
    let mut names: Vec<_> = std::fs::read_dir(stage.path("aux"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["f.4096.expected", "f.4096.received"]);
}

#[test]
fn a_dump_that_cannot_be_stored_is_told() {
    let stage = Stage::new();
    stage.say(WRITE).code(0);
    overwrite(&stage.path("f"), 5000, b"\x11\x22");
    let dump = |aux| {
        stage
            .say(&[READ, &["--verify_dump=1", aux]].concat())
            .code(1)
    };
    let missing = "none/f.4096.received";
    dump("--aux-path=none").err(&format!(
        "fio: r: A dump of bad data cannot be stored: {missing}"
    ));
    std::fs::create_dir(stage.path("aux")).unwrap();
    let full = "aux/f.4096.received";
    symlink("/dev/full", stage.path(full)).unwrap();
    dump("--aux-path=aux")
        .err(&format!("{full}: No space left on device"))
        .err("expected data dumped as f.4096.expected");
    assert!(
        std::fs::symlink_metadata(stage.path(full)).is_err(),
        "litter"
    );
}

#[test]
fn checks_that_were_asked_for_and_did_not_happen_are_told() {
    let stage = Stage::new();
    let text = "[w]\nfilename=f\nrw=write\nbs=4k\nsize=32k\nverify=crc32c\nrate_iops=,4\n\
                runtime=300ms\n";
    stage.file("w.fio", text);
    stage
        .say(&["fio", "w.fio"])
        .code(0)
        .err("fio: w: The time was up before everything that was written had been read back");
    stage.say(&["run", "w.fio"]).code(0);
    stage.say(&["run", "--strict=unverified", "w.fio"]).code(1);
    let text = "[down]\nioengine=dma-emu\nfilename=h2c\nemu_dir=h2c\nrw=write\nbs=64k\nsize=1m\n\
                filesize=64m\nemu_fault=flip@32m\n";
    stage.file("j.fio", text);
    stage
        .say(&["fio", "j.fio"])
        .code(0)
        .err("fio: down: The emulated fault flip@");
}

#[test]
fn what_cannot_be_verified_is_said_in_few_words() {
    let stage = Stage::new();
    stage.say(&[WRITE, &["--numjobs=2"]].concat()).code(1).err(
        "error: w: its clones 0 and 1 write and verify the same part of f: give them \
              offset_increment=32768, or ",
    );
    stage
        .say(&[WRITE, &["--numjobs=2", "--offset_increment=4k"]].concat())
        .code(1)
        .err(
            "error: w: its clones 0 and 1 write and verify the same part of f: make \
              offset_increment at least 32768,",
        );
    let trim = [
        "fio",
        "--name=t",
        "--filename=f",
        "--rw=trim",
        "--size=32k",
        "--verify=md5",
    ];
    stage
        .say(&trim)
        .code(0)
        .err("a job that only trims brings no data: nothing is verified");
    stage
        .say(&[WRITE, &["--verify_interval=1k"]].concat())
        .code(0);
    stage.say(READ).code(1).err(
        "Damage: other interval, the block was written with an interval of 1024 bytes, this job \
         checks 4096\n",
    );
    let text = "[down]\nioengine=dma-emu\nfilename=h2c\nemu_dir=h2c\nrw=write\nbs=64k\nsize=1m\n\
                filesize=64m\nverify=crc32c\n";
    stage.file("j.fio", text);
    stage
        .say(&["fio", "j.fio"])
        .code(1)
        .err("device h2c does not accept reads (wrong direction?)");
}

#[test]
fn reads_back_do_not_keep_to_a_rate() {
    let stage = Stage::new();
    // At one read in a hundred seconds the stage would lose its patience.
    for engine in ["psync", "libaio"] {
        let engine = format!("--ioengine={engine}");
        let words = ["--do_verify=1", "--rate=41,100m", &engine];
        let said = stage.say(&[WRITE, &words].concat()).code(0);
        assert_eq!(issued(&said), ["8,8,0,0"]);
    }
}

#[test]
fn an_interrupted_job_leaves_a_state_and_just_that_is_checked_later() {
    use rustix::process::Signal;
    let stage = Stage::new();
    let job = [
        "fio",
        "--name=j",
        "--filename=f",
        "--bs=4k",
        "--size=4m",
        "--rw=randwrite",
        "--verify=crc32c",
    ];
    let state = "local-j-0-verify.state";
    // Nothing is left behind in order.
    stage.say(&job).code(0);
    assert!(!Path::new(&stage.path(state)).exists());
    let slowly = [&job[..], &["--rate_iops=,100"]].concat();
    let changed = || {
        std::fs::metadata(stage.path("f"))
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = changed();
    let running = crate::stage::Running::start(stage.weir(&slowly));
    crate::stage::until("a write", || changed() > before);
    running.signal(Signal::INT);
    let said = running.end().code(128);
    let totals = issued(&said);
    let written: u64 = totals[0].split(',').nth(1).unwrap().parse().unwrap();
    assert!(written > 0 && written < 1024, "{said}");
    // The whole sequence was written by the first run, with another identity; the second has
    // overwritten a part of it.
    let check = [&job[..], &["--verify_only", "--verify_state_load=1"]].concat();
    let said = stage.say(&check).code(0).calm();
    assert_eq!(issued(&said), [format!("{written},0,0,0")]);
    stage.file(state, "no state");
    stage.say(&check).code(1).err("it is no state of weir");
    std::fs::remove_file(stage.path(state)).unwrap();
    stage.say(&check).code(1).err("cannot be read");
    stage
        .say(&[&job[..], &["--verify_state_load=1"]].concat())
        .code(1)
        .err("this job writes anew");
}

#[test]
fn a_state_is_stored_when_it_is_asked_for_and_bounds_a_reader() {
    let stage = Stage::new();
    let job = [
        "fio",
        "--name=j",
        "--filename=f",
        "--bs=4k",
        "--size=64k",
        "--verify=md5",
    ];
    let write = ["--rw=write", "--verify_state_save=1", "--number_ios=5"];
    stage.say(&[&job[..], &write].concat()).code(0);
    let read = ["--rw=read", "--verify_state_load=1"];
    let said = stage.say(&[&job[..], &read].concat()).code(0);
    assert_eq!(issued(&said), ["5,0,0,0"]);
    stage
        .say(&[&job[..], &read, &["--verify=sha1"]].concat())
        .code(1)
        .err("verified by md5, not by sha1");
}
