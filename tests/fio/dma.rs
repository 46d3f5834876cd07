//! The day of an engineer who validates a DMA engine, on an emulated card.

use crate::stage::{Said, Stage};

/// Two channels of one emulated card, one for each direction.
const CARD: &str = "[global]
ioengine=dma-emu
emu_shared=card
bs=64k
size=16m
filesize=64g
ratemin=1m
[down]
filename=xdma0_h2c_0
emu_dir=h2c
rw=write
[up]
stonewall
filename=xdma0_c2h_0
emu_dir=c2h
rw=read
";

fn on_card(words: &[&str]) -> Said {
    let stage = Stage::new();
    stage.file("card.fio", CARD);
    let said = stage.peer_says(&[&["fio", "card.fio"], words].concat());
    assert_eq!(stage.list(), ["card.fio"], "no file is touched");
    said
}

#[test]
fn an_emulated_card_moves_data_both_ways_and_touches_no_file() {
    let said = on_card(&[]).code(0).calm();
    assert!(said.out.contains("total=0,256,0,0"), "{said}");
    assert!(said.out.contains("total=256,0,0,0"), "{said}");
}

#[test]
fn a_channel_that_fails_is_named_with_the_place_and_what_was_wanted() {
    on_card(&["--set", "up:emu_fault=eio@4m"])
        .code(1)
        .err("read of 65536 bytes at offset 4194304 of xdma0_c2h_0: Input/output error")
        .out("err= 5");
    on_card(&["--set", "down:emu_fault=short@2"])
        .code(1)
        .err("write of 65536 bytes at offset 65536 of xdma0_h2c_0: no more data after 32768 bytes")
        .out("err= 5");
}

#[test]
fn short_operations_are_continued_before_a_queue_has_sunk_to_its_refill_mark() {
    // The channel cuts off the last of them alone: the others' rests move.
    on_card(&[
        "--section=down",
        "--iodepth=8",
        "--iodepth_low=1",
        "--set",
        "emu_fault=short@1,short@2,short@3",
    ])
    .code(1)
    .err("write of 65536 bytes at offset 131072 of xdma0_h2c_0: no more data after 32768 bytes")
    .out("total=0,8,0,0 short=0,3,0,0");
}

#[test]
fn a_channel_used_the_wrong_way_round_is_named() {
    on_card(&["--set", "down:emu_dir=c2h"])
        .code(1)
        .err("device xdma0_h2c_0 does not accept writes (wrong direction?)")
        .out("err=22");
    on_card(&["--set", "up:emu_dir=h2c"])
        .code(1)
        .err("device xdma0_c2h_0 does not accept reads (wrong direction?)");
}

#[test]
fn a_channel_that_hangs_is_ended_by_the_minimum_rate() {
    // Longer than the patience of a test: nothing but the watchdog ends it.
    on_card(&["--section=down", "--set", "emu_fault=stall@8m:600000"])
        .code(1)
        .err("down: rate_min=1048576B/s not met, got 0B/s")
        .err("nothing comes back from xdma0_h2c_0, last asked at offset 8388608")
        .out("err= 5")
        .out("total=0,");
}

#[test]
fn a_fault_with_a_bad_place_is_refused_with_what_is_expected() {
    on_card(&["--set", "emu_fault=stall@8m"])
        .code(1)
        .silent()
        .err("`stall@8m` is no fault: expected flip@OFFSET")
        .err("fio: failed parsing emu_fault=stall@8m");
    on_card(&["--set", "emu_dir=up"])
        .code(1)
        .err("`up` is none of h2c, c2h, both");
}

#[test]
fn a_fault_that_struck_nothing_is_a_warning() {
    let stage = Stage::new();
    stage.file("card.fio", CARD);
    let words = ["run", "--strict=fault-idle", "card.fio", "--set"];
    stage
        .say(&[&words[..], &["emu_fault=eio@1g"]].concat())
        .code(1)
        .out("The emulated fault eio@1g struck no operation.");
}

#[test]
fn what_is_not_there_is_said_before_the_first_job_starts() {
    let stage = Stage::new();
    let text = "[global]\nsize=64k\n[first]\nfilename=made\nrw=write\n\
                [second]\nstonewall\nfilename=made\nallow_file_create=0\nrw=read\n\
                [third]\nstonewall\nfilename=/dev/weir_typo\nrw=write\n";
    stage.file("j.fio", text);
    let said = stage
        .peer_says(&["fio", "j.fio"])
        .code(1)
        .err("note: third cannot run: /dev/weir_typo: there is no such device");
    assert_eq!(said.out.matches("err= 0").count(), 2, "{said}");
    std::fs::remove_file(stage.path("made")).unwrap();
    stage
        .say(&["run", "j.fio"])
        .code(2)
        .silent()
        .err("error: third: /dev/weir_typo: there is no such device");
    assert_eq!(stage.list(), ["j.fio"], "nothing was touched");
    stage.file(
        "k.fio",
        "[a]\nfilename=made\nsize=64k\nrw=write\n[b]\nstonewall\nfilename=none\nrw=read\n",
    );
    stage
        .say(&["run", "k.fio"])
        .code(2)
        .silent()
        .err("error: b: none: ");
    assert!(std::fs::symlink_metadata("/dev/weir_typo").is_err());
}

#[test]
fn a_device_without_a_size_needs_one_and_a_region_is_never_empty() {
    let stage = Stage::new();
    let on = |words: &[&str]| {
        let fixed = ["fio", "--name=a", "--bs=1m"];
        stage.peer_says(&[&fixed[..], words].concat())
    };
    on(&["--filename=/dev/zero", "--rw=read"])
        .code(1)
        .err("a: you need to specify size=");
    on(&[
        "--filename=/dev/zero",
        "--rw=read",
        "--filesize=64m",
        "--size=16m",
        "--offset=64m",
    ])
    .code(1)
    .err("a: you need to specify valid offset=");
    // Stock fio's detour around a device without a size means the same.
    for size in [&["--size=16m"][..], &["--size=100%", "--io_size=16m"]] {
        let place = [
            "--filename=/dev/zero",
            "--rw=read",
            "--filesize=64m",
            "--offset=48m",
        ];
        on(&[&place[..], size].concat())
            .code(0)
            .out("total=16,0,0,0");
    }
    on(&[
        "--filename=/dev/null",
        "--rw=read",
        "--filesize=64m",
        "--size=16m",
    ])
    .code(1)
    .err("read of 1048576 bytes at offset 0 of /dev/null: no more data after 0 bytes");
    on(&[
        "--filename=/dev/full",
        "--rw=write",
        "--filesize=64m",
        "--size=16m",
    ])
    .code(1)
    .err("/dev/full: No space left on device")
    .out("err=28");
}
