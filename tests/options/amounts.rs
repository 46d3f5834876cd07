//! Amount and place of a job's data: skips, trims that are followed by writes, zones without a
//! mode.

mod slow;

use super::stage::{Stage, skip};
use super::{done, fio, fios, has_all};

#[test]
fn a_walk_with_a_skip_ends_and_begins_again_where_fios_does() {
    if let Err(missing) = has_all(&["fio"]) {
        return skip("a_walk_with_a_skip_ends_and_begins_again", &missing);
    }
    // Where the region is a part of the file fio uses the whole: here it ends with the file.
    for (words, kib) in [
        ("--rw=write:8k --bs=4k --size=64k", 64),
        ("--rw=write:8k --bs=4k --size=64k --loops=3", 64),
        ("--rw=write:8k --bs=4k --size=64k --io_size=128k", 64),
        ("--rw=write:4k --bs=4k --size=64k --loops=2", 64),
        ("--rw=write:6k --bs=4k --size=60k", 60),
        ("--rw=read:512k --bs=1m --size=8m --norandommap", 8 << 10),
        ("--rw=read:8k --bs=4k --size=32k", 32),
        ("--rw=read:100m --bs=4k --size=32k", 32),
    ] {
        let (theirs, ours) = (Stage::new(), Stage::new());
        for stage in [&theirs, &ours] {
            stage.file("f", vec![1; kib << 10]);
        }
        let words: Vec<&str> = words.split(' ').chain(["--filename=f"]).collect();
        assert_eq!(done(&ours, &words), fios(&theirs, &words), "{words:?}");
    }
}

#[test]
fn number_ios_is_multiplied_by_loops_and_does_not_end_what_time_ends() {
    let stage = Stage::new();
    let words = ["--number_ios=10", "--loops=3", "--size=64k", "--show-plan"];
    for (more, operations) in [
        (&["--runtime=1"][..], 30.into()),
        (&["--time_based", "--runtime=1"], serde_json::Value::Null),
    ] {
        let said = fio(&stage, &[&words[..], more].concat()).code(0);
        let plan: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let bounds = &plan["groups"][0]["jobs"][0]["workload"]["load"]["bounds"];
        assert_eq!(bounds["operations"], operations, "{more:?}");
    }
}

#[test]
fn each_block_that_is_trimmed_is_written_as_in_fio() {
    if let Err(missing) = has_all(&["fio"]) {
        return skip("each_block_that_is_trimmed_is_written_as_in_fio", &missing);
    }
    for words in [
        "--rw=trimwrite --size=64k",
        "--rw=trimwrite --size=64k --loops=2",
        "--rw=trimwrite --size=64k --number_ios=4",
        "--rw=trimwrite --size=64k --io_size=32k",
        "--rw=trimwrite --size=64k --io_size=128k",
    ] {
        let (theirs, ours) = (Stage::new(), Stage::new());
        let words: Vec<&str> = words.split(' ').chain(["--ioengine=null"]).collect();
        let places = |ops: Vec<super::Op>| -> Vec<(String, u64)> {
            ops.into_iter()
                .map(|(kind, _, offset)| (kind, offset))
                .collect()
        };
        let theirs = places(fios(&theirs, &words));
        assert_eq!(places(done(&ours, &words)), theirs, "{words:?}");
    }
    let stage = Stage::new();
    let words = ["--rw=randtrimwrite", "--size=64k", "--ioengine=null"];
    let ops = done(&stage, &words);
    let mut trimmed: Vec<u64> = ops.iter().step_by(2).map(|op| op.2).collect();
    assert!(ops.chunks(2).all(|two| two[0].2 == two[1].2), "{ops:?}");
    trimmed.sort_unstable();
    assert_eq!(trimmed, (0..16).map(|n| n * 4).collect::<Vec<_>>());
}

#[test]
fn zones_without_a_mode_are_refused() {
    let stage = Stage::new();
    stage.file("f", vec![1; 64 << 10]);
    for words in [
        &["--zonesize=8k"][..],
        &["--zonesize=8k", "--zonemode=none"],
    ] {
        let said = fio(&stage, &[&["--filename=f", "--rw=read"], words].concat());
        said.code(1)
            .err("--zonemode=none and --zonesize are not compatible");
    }
}
