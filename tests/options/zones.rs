//! Zones of a region.

use super::stage::{Stage, skip};
use super::{Op, done, fio, fios, has_all};

const BASE: [&str; 4] = [
    "--filename=f",
    "--bs=4k",
    "--zonemode=strided",
    "--invalidate=0",
];

#[test]
fn sequential_zones_follow_each_other_as_in_fio() {
    if let Err(missing) = has_all(&["fio"]) {
        return skip("sequential_zones_follow_each_other_as_in_fio", &missing);
    }
    let stage = Stage::new();
    stage.file("f", vec![1; 256 << 10]);
    for words in [
        "--rw=read --zonesize=8k --zonerange=16k --zoneskip=16k",
        "--rw=read --zonesize=8k --zonerange=16k --zoneskip=16k --size=128k",
        "--rw=read --zonesize=32k --zonerange=16k --zoneskip=16k --size=128k",
        "--rw=read --zonesize=16k --zoneskip=20k --size=100k",
        "--rw=read --zonesize=8k --zonerange=16k --zoneskip=16k --size=128k --offset=64k --io_size=64k",
        "--rw=read --zonesize=8k",
        "--rw=write --zonesize=12k --zonerange=64k --zoneskip=64k --loops=2",
    ] {
        let words: Vec<&str> = BASE.into_iter().chain(words.split(' ')).collect();
        let theirs: Vec<Op> = fios(&stage, &words);
        assert_eq!(done(&stage, &words), theirs, "{words:?}");
    }
}

#[test]
fn random_offsets_stay_in_the_zone_whose_turn_it_is() {
    let stage = Stage::new();
    stage.file("f", vec![1; 256 << 10]);
    let words = [
        "--rw=randread",
        "--zonesize=8k",
        "--zonerange=16k",
        "--zoneskip=16k",
    ];
    let ops = done(&stage, &[&BASE[..], &words].concat());
    assert_eq!(ops.len(), 64);
    for (number, two) in (0_u64..).zip(ops.chunks(2)) {
        let zone = number % 8 * 32;
        assert!(
            two.iter().all(|op| (zone..zone + 16).contains(&op.2)),
            "{number}: {two:?}"
        );
        assert_ne!(two[0].2, two[1].2, "each block once while in the zone");
    }
}

#[test]
fn zones_without_a_size_and_zones_of_devices_are_refused() {
    let stage = Stage::new();
    stage.file("f", vec![1; 256 << 10]);
    fio(&stage, &[&BASE[..], &["--zonerange=8k"]].concat())
        .code(1)
        .err("zonesize");
    fio(&stage, &["--filename=f", "--zonemode=zbd", "--zonesize=8k"])
        .code(1)
        .err("strided");
}
