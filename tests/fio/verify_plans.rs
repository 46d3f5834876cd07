//! Verification at the door: what is refused or told beforehand, what was not checked, dumps and
//! states.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::stage::Stage;
use crate::verify::{READ, WRITE, issued, overwrite};

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
    assert_eq!(
        issued(&stage.peer_says(&words).code(0).calm()),
        ["0,16,0,0"]
    );
    stage
        .peer_says(&[&words[..], &["--output-format=json"]].concat())
        .code(0)
        .out("engine null moves no data: nothing is verified");
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
        (&["--bs=64k", "--size=4k"], "below the block size"),
    ] {
        let stage = Stage::new();
        let said = stage.peer_says(&[&job[..], words].concat()).code(1);
        assert!(said.err.contains(complaint), "{words:?}: {said}");
        assert!(!Path::new(&stage.path("f")).exists(), "{words:?}");
    }
}

#[test]
fn two_writers_of_one_place_are_refused_unless_something_orders_them() {
    let head = "[global]\nfilename=f\nsize=64k\nbs=4k\nrw=write\nverify=crc32c\n[a]\n[b]\n";
    // What the second writer does not verify is its own affair: it may damage what the first checks.
    for (tail, codes) in [
        ("", [1].as_slice()),
        ("offset=32k\n", &[1]),
        ("offset=64k\n", &[0]),
        ("stonewall\n", &[0]),
        ("wait_for=a\n", &[0]),
        ("verify=0\n", &[0, 1]),
        ("[c]\nstonewall\n", &[1]),
    ] {
        let stage = Stage::new();
        stage.file("j.fio", format!("{head}{tail}"));
        let said = stage.peer_says(&["fio", "j.fio"]);
        assert!(codes.contains(&said.code.unwrap()), "{tail}: {said}");
        assert_eq!(
            codes == [1],
            said.err.contains("at the same time"),
            "{tail}: {said}"
        );
        assert_eq!(
            codes.contains(&0),
            Path::new(&stage.path("f")).exists(),
            "{tail}"
        );
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
        .peer_says(&words)
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
        .peer_says(&words)
        .code(1)
        .err("verify: bad magic header 0, wanted acca at file f offset 0");
}

#[test]
fn a_reader_that_only_checks_reads_and_checks() {
    let stage = Stage::new();
    stage.peer_says(WRITE).code(0);
    let only = [READ, &["--verify_only"]].concat();
    let said = stage.peer_says(&only).code(0);
    let plain = stage.peer_says(READ).code(0);
    assert_eq!(issued(&said), issued(&plain));
    assert_ne!(issued(&said), ["0,0,0,0"]);
    overwrite(&stage.path("f"), 5000, b"\x11\x22");
    stage
        .peer_says(&only)
        .code(1)
        .err("verify failed at file f offset 4096");
}

#[test]
fn a_file_that_was_cut_short_does_not_pass() {
    let stage = Stage::new();
    stage.peer_says(WRITE).code(0);
    let path = stage.path("f");
    let whole = std::fs::metadata(&path).unwrap().len();
    let only = [WRITE, &["--verify_only"]].concat();
    for left in [whole / 4, 0] {
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(left).unwrap();
        let wanted =
            format!("f: its first {whole} bytes are to be verified, but it has only {left}:");
        for words in [READ, &only] {
            stage.peer_says(words).code(1).err(&wanted);
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
    stage.peer_says(&["fio", "j.fio"]).code(0);
    stage
        .peer_says(&["fio", "--set", "up:emu_fault=flip@300k", "j.fio"])
        .code(1)
        .err("crc32c: verify failed at file c2h offset 262144, length 65536")
        .err("Damage: bit flip, 1 bit from byte ");
}

#[test]
fn dumps_go_where_the_command_line_says() {
    let stage = Stage::new();
    stage.peer_says(WRITE).code(0);
    overwrite(&stage.path("f"), 5000, b"\x11\x22");
    std::fs::create_dir(stage.path("aux")).unwrap();
    stage
        .peer_says(&[READ, &["--verify_dump=1", "--aux-path=aux"]].concat())
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
    stage.peer_says(WRITE).code(0);
    overwrite(&stage.path("f"), 5000, b"\x11\x22");
    let dump = |aux| {
        stage
            .peer_says(&[READ, &["--verify_dump=1", aux]].concat())
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
    // Programs read standard error: nothing has gone wrong.
    stage.peer_says(&["fio", "w.fio"]).code(0).calm();
    stage
        .peer_says(&["fio", "--output-format=json", "w.fio"])
        .code(0)
        .out("The time was up before everything that was written had been read back");
    stage.say(&["run", "w.fio"]).code(0);
    stage.say(&["run", "--strict=unverified", "w.fio"]).code(1);
    let text = "[down]\nioengine=dma-emu\nfilename=h2c\nemu_dir=h2c\nrw=write\nbs=64k\nsize=1m\n\
                filesize=64m\nemu_fault=flip@32m\n";
    stage.file("j.fio", text);
    stage
        .peer_says(&["fio", "j.fio"])
        .code(0)
        .err("fio: down: The emulated fault flip@");
}

#[test]
fn what_cannot_be_verified_is_said_in_few_words() {
    let stage = Stage::new();
    stage
        .peer_says(&[WRITE, &["--numjobs=2"]].concat())
        .code(1)
        .err(
            "error: w: its clones 0 and 1 write and verify the same part of f: let their \
              parts begin 32768 bytes apart, or ",
        );
    stage
        .peer_says(&[WRITE, &["--numjobs=2", "--offset_increment=4k"]].concat())
        .code(1)
        .err(
            "error: w: its clones 0 and 1 write and verify the same part of f: let their \
              parts begin at least 32768 bytes apart,",
        );
    let trim = [
        "fio",
        "--name=t",
        "--filename=f",
        "--rw=trim",
        "--size=32k",
        "--verify=md5",
        "--output-format=json",
    ];
    stage
        .peer_says(&trim)
        .code(0)
        .out("a job that only trims brings no data: nothing is verified");
    stage
        .peer_says(&[WRITE, &["--verify_interval=1k"]].concat())
        .code(0);
    stage.peer_says(READ).code(1).err(
        "Damage: other interval, the block was written with an interval of 1024 bytes, this job \
         checks 4096\n",
    );
    let text = "[down]\nioengine=dma-emu\nfilename=h2c\nemu_dir=h2c\nrw=write\nbs=64k\nsize=1m\n\
                filesize=64m\nverify=crc32c\n";
    stage.file("j.fio", text);
    stage
        .peer_says(&["fio", "j.fio"])
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
        let said = stage.peer_says(&[WRITE, &words].concat()).code(0);
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
    stage.peer_says(&job).code(0);
    assert!(!Path::new(&stage.path(state)).exists());
    let slowly = [&job[..], &["--rate_iops=,100"]].concat();
    let changed = || {
        std::fs::metadata(stage.path("f"))
            .unwrap()
            .modified()
            .unwrap()
    };
    let before = changed();
    let running = crate::stage::Running::start(stage.peer(&slowly));
    crate::stage::until("a write", || changed() > before);
    running.signal(Signal::INT);
    let said = running.end().code(128);
    let totals = issued(&said);
    let written: u64 = totals[0].split(',').nth(1).unwrap().parse().unwrap();
    assert!(written > 0 && written < 1024, "{said}");
    // The whole sequence was written by the first run, with another identity; the second has
    // overwritten a part of it.
    let check = [&job[..], &["--verify_only", "--verify_state_load=1"]].concat();
    let said = stage.peer_says(&check).code(0).calm();
    assert_eq!(issued(&said), [format!("{written},0,0,0")]);
    stage.file(state, "no state");
    stage
        .peer_says(&check)
        .code(1)
        .err("weir has not stored it");
    std::fs::remove_file(stage.path(state)).unwrap();
    stage.peer_says(&check).code(1).err("cannot be read");
    stage
        .peer_says(&[&job[..], &["--verify_state_load=1"]].concat())
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
    stage.peer_says(&[&job[..], &write].concat()).code(0);
    let read = ["--rw=read", "--verify_state_load=1"];
    let said = stage.peer_says(&[&job[..], &read].concat()).code(0);
    assert_eq!(issued(&said), ["5,0,0,0"]);
    stage
        .peer_says(&[&job[..], &read, &["--verify=sha1"]].concat())
        .code(1)
        .err("verified by md5, not by sha1");
}

#[test]
fn a_state_holds_for_writes_that_went_over_their_range_again() {
    for (rw, further) in [
        ("write", "--time_based"),
        ("randwrite", "--time_based"),
        ("write", "--io_size=160k"),
        ("randwrite", "--io_size=160k"),
    ] {
        let stage = Stage::new();
        let words =
            format!("fio --name=w --filename=f --rw={rw} --bs=4k --size=32k --verify=crc32c");
        let pass: Vec<&str> = words
            .split(' ')
            .chain([further, "--runtime=200ms"])
            .collect();
        let write = ["--do_verify=0", "--verify_state_save=1"];
        stage.peer_says(&[&pass[..], &write].concat()).code(0);
        let check = ["--verify_only", "--verify_state_load=1"];
        let check = [&pass[..], &check].concat();
        stage.peer_says(&check).code(0);
        // The block of another place is good in itself.
        let mut data = std::fs::read(stage.path("f")).unwrap();
        data.copy_within(0..4096, 8192);
        std::fs::write(stage.path("f"), data).unwrap();
        stage.peer_says(&check).code(1).err("misplaced");
    }
}

#[test]
fn a_state_that_cannot_be_stored_is_found_before_anything_is_written() {
    let stage = Stage::new();
    let save = [WRITE, &["--verify_state_save=1", "--aux-path=none/there"]].concat();
    stage
        .peer_says(&save)
        .code(1)
        .err("could not be stored: No such file or directory");
    assert!(!Path::new(&stage.path("f")).exists());
    let named = stage.path("a file");
    std::fs::write(&named, "").unwrap();
    let save = [WRITE, &["--verify_state_save=1", "--aux-path=a file"]].concat();
    stage.peer_says(&save).code(1).err("could not be stored");
}

#[test]
fn a_job_that_only_trims_has_nothing_to_verify_alone() {
    let stage = Stage::new();
    stage.file("f", vec![7; 65536]);
    let words = [
        "fio",
        "--name=t",
        "--filename=f",
        "--rw=trim",
        "--verify=crc32c",
        "--verify_only",
    ];
    stage
        .peer_says(&words)
        .code(1)
        .err("`verify_only` of a job that only trims");
    assert_eq!(std::fs::read(stage.path("f")).unwrap(), vec![7; 65536]);
}
