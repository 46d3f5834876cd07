//! The files of a DMA engine's owner on a card that `lab/dma-card` sets up: made, looked at,
//! changed in passing, run, and with a channel missing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::stage::{Said, Stage, root, said};

/// The shipped files, and the words that make each kind of them.
const MADE: &[&[&str]] = &[
    &[],
    &["--size", "X"],
    &["--size", "var"],
    &["--driver", "edma"],
];
const QUARTER: usize = 16 << 20;

/// A card of 64 MiB with the nodes of a driver below `card/`.
fn card(driver: &str) -> Stage {
    let stage = Stage::new();
    lab(&stage, &["--driver", driver]).code(0).calm();
    stage
}

fn lab(stage: &Stage, words: &[&str]) -> Said {
    let script = root().join("lab/dma-card");
    let mut command = stage.command(script.to_str().unwrap());
    command.arg("card").args(words);
    said(command)
}

/// Makes job files for the card below `jobs/`.
fn make(stage: &Stage, words: &[&str]) -> Said {
    let fixed = ["new", "xdma", "--memory", "64m", "-o", "jobs"];
    stage.say(&[&fixed[..], words].concat())
}

/// Runs a file through fio's door on the card.
fn fio(stage: &Stage, file: &str, words: &[&str]) -> Said {
    let file = format!("jobs/{file}");
    let fixed = ["fio", "--map", "/dev/=card/", &file];
    stage.peer_says(&[&fixed[..], words].concat())
}

fn texts(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap();
    let text = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(text).collect()
}

#[test]
fn the_shipped_files_are_what_weir_new_writes() {
    let stage = Stage::new();
    for words in MADE {
        let fixed = ["new", "xdma", "-o", "made"];
        stage.say(&[&fixed[..], words].concat()).code(0).calm();
    }
    let made = texts(Path::new(&stage.path("made")));
    assert_eq!(made, texts(&root().join("examples/xdma")));
}

#[test]
fn weir_new_replaces_files_only_by_force() {
    let stage = Stage::new();
    let name = "jobs/xdma_4-ch_4-1M_write.fio";
    make(&stage, &["--mode", "write"]).code(0).out(name);
    stage.file(name, "mine");
    make(&stage, &[])
        .code(2)
        .silent()
        .err("xdma_4-ch_4-1M_write.fio is there already, nothing was written");
    assert_eq!(stage.read(name), "mine");
    assert_eq!(texts(Path::new(&stage.path("jobs"))).len(), 1);
    make(&stage, &["--force"]).code(0);
    assert!(stage.read(name).contains("bs=1m"));
    make(&stage, &["--workers", "0"])
        .code(2)
        .silent()
        .err("--workers 0: it takes a whole number from 1 to 256");
}

#[test]
fn the_lab_takes_away_what_it_made_and_nothing_else() {
    let stage = card("edma");
    stage.file("card/mine", "kept");
    assert!(fs::symlink_metadata(stage.path("card/edma0_queue_3")).is_ok());
    lab(&stage, &["--remove"]).code(0).calm();
    assert_eq!(texts(Path::new(&stage.path("card"))).len(), 1);
    lab(&stage, &["--channels", "0"])
        .code(2)
        .silent()
        .err("--channels 0: expected a number from 1 to 64");
}

#[test]
fn every_section_of_the_card_is_written_and_read_through_its_own_channel() {
    let stage = card("xdma");
    make(&stage, &[]).code(0);
    let write = fio(&stage, "xdma_4-ch_4-1M_write.fio", &[]).code(0);
    assert_eq!(write.out.matches("total=0,16,0,0").count(), 4, "{write}");
    let last = write.out.lines().rfind(|l| l.starts_with("  WRITE: bw="));
    assert!(last.is_some_and(|l| l.contains("io=64.0MiB (67.1MB)")));
    let memory = fs::read(stage.path("card/card")).unwrap();
    assert_eq!(memory.len(), 4 * QUARTER);
    assert!(memory.chunks(4096).all(|page| page.iter().any(|&b| b != 0)));
    let read = fio(&stage, "xdma_4-ch_4-1M_read.fio", &[]).code(0);
    assert_eq!(read.out.matches("total=16,0,0,0").count(), 4, "{read}");
    assert!(read.out.contains("   READ: bw="), "{read}");
}

#[test]
fn the_older_drivers_nodes_take_both_directions_and_are_flushed() {
    let stage = card("edma");
    make(&stage, &["--driver", "edma"]).code(0);
    // A worker's 16 writes are fewer than the 32 after which the file flushes.
    let write = fio(&stage, "edma_4-ch_4-1M_write.fio", &["--set=fsync=4"]).code(0);
    assert_eq!(write.out.matches("total=0,16,0,").count(), 4, "{write}");
    assert!(write.out.contains("fsync/fdatasync/sync_file_range"));
    fio(&stage, "edma_4-ch_4-1M_read.fio", &[])
        .code(0)
        .out("total=16,0,0,0");
}

#[test]
fn a_sweep_is_eight_groups_of_four_workers() {
    let stage = card("xdma");
    make(&stage, &["--size", "X"]).code(0);
    for (file, label) in [("write", "  WRITE: "), ("read", "   READ: ")] {
        let said = fio(&stage, &format!("xdma_4-ch_4-X_{file}.fio"), &[]).code(0);
        let names = ["4KB", "8KB", "16KB", "32KB", "64KB", "256KB", "1MB", "2MB"];
        for (group, name) in names.iter().enumerate() {
            let head = format!("{name}: (groupid={group}, jobs=4): err= 0");
            assert_eq!(said.out.matches(&head).count(), 1, "{said}");
        }
        let lines = said.out.lines().filter(|l| l.starts_with(label));
        let moved: Vec<&str> = lines
            .filter_map(|l| l.split("io=").nth(1)?.split(' ').next())
            .collect();
        let (small, half, whole) = ("16.0MiB", "32.0MiB", "64.0MiB");
        let wanted = [small, small, half, whole, whole, whole, whole, whole];
        assert_eq!(moved, wanted, "{said}");
    }
}

#[test]
fn the_block_size_is_changed_in_passing_only_where_the_file_leaves_it_open_or_by_set() {
    let stage = card("xdma");
    make(&stage, &[]).code(0);
    make(&stage, &["--size", "var"]).code(0);
    for (file, words, size) in [
        ("4_var", ["--blocksize=128k"], "128KiB"),
        ("4-1M", ["--blocksize=128k"], "1024KiB"),
        ("4-1M", ["--set=bs=128k"], "128KiB"),
    ] {
        let said = fio(&stage, &format!("xdma_4-ch_{file}_write.fio"), &words).code(0);
        let banner = format!("bs=(R) {size}-{size}");
        assert_eq!(said.out.matches(&banner).count(), 4, "{file} {said}");
    }
}

#[test]
fn what_showcmd_prints_runs_the_same() {
    let stage = card("xdma");
    make(&stage, &[]).code(0);
    let shown = fio(&stage, "xdma_4-ch_4-1M_write.fio", &["--showcmd"]).code(0);
    assert_eq!(shown.out.lines().count(), 1, "{shown}");
    assert!(
        shown.out.starts_with(
            "fio --allow_file_create=0 --ioengine=psync --mem=mmap --rate_min=1m --filesize=64m \
             --bs=1m --name=w1 --size=16m --offset=0 --rw=write --filename=card/xdma0_h2c_0 "
        ),
        "{shown}"
    );
    let words: Vec<&str> = shown.out.split_whitespace().collect();
    let again = stage.peer_says(&words).code(0).calm();
    assert_eq!(again.out.matches("total=0,16,0,0").count(), 4, "{again}");
    assert!(again.out.contains("io=64.0MiB (67.1MB)"));
}

#[test]
fn maps_say_what_they_replaced_and_must_meet_something() {
    let stage = card("xdma");
    make(&stage, &["--mode", "read"]).code(0);
    fio(&stage, "xdma_4-ch_4-1M_read.fio", &["--output-format=json"])
        .code(0)
        .out("--map: 4 names replaced, for example /dev/xdma0_c2h_0 by card/xdma0_c2h_0");
    let file = "jobs/xdma_4-ch_4-1M_read.fio";
    let unmet = ["--map", "/dev/=card/", "--map", "/dev/xmda=x", file];
    let nonsense = ["--map", "nonsense", file];
    for (words, why) in [
        (
            &unmet[..],
            "`--map /dev/xmda` meets no file or device of the jobs",
        ),
        (&nonsense, "expected OLD=NEW"),
    ] {
        let as_fio = stage.peer_says(&[&["fio"], words].concat());
        as_fio.code(1).silent().err(why);
        let as_weir = stage.say(&[&["run"], words].concat());
        as_weir.code(2).silent().err(why);
    }
    stage
        .say(&["run", "--map", "/dev/=card/", file])
        .code(0)
        .out("card/xdma0_c2h_0");
}

#[test]
fn a_missing_channel_fails_its_worker_alone_and_is_not_made() {
    let stage = card("xdma");
    make(&stage, &[]).code(0);
    fs::remove_file(stage.path("card/xdma0_h2c_2")).unwrap();
    let said = fio(&stage, "xdma_4-ch_4-1M_write.fio", &[]).code(1);
    assert!(
        said.err
            .contains("fio: file creation disallowed by allow_file_create=0"),
        "{said}"
    );
    assert_eq!(said.out.matches("total=0,16,0,0").count(), 3, "{said}");
    assert!(fs::symlink_metadata(stage.path("card/xdma0_h2c_2")).is_err());
}

#[test]
fn a_sweep_runs_on_the_emulated_card_at_full_size() {
    // Offsets of 48 GiB and more; what is not written takes no memory.
    let file = root().join("examples/xdma/xdma_4-ch_4-X_write.fio");
    let words = [
        "fio",
        "--set=ioengine=dma-emu",
        "--set=emu_shared=card",
        "--set=emu_dir=h2c",
        "--set=number_ios=4",
        file.to_str().unwrap(),
    ];
    let said = Stage::new().peer_says(&words).code(0).calm();
    assert_eq!(said.out.matches("jobs=4): err= 0").count(), 8, "{said}");
}

#[test]
fn a_verified_card_has_five_groups_and_exit_0() {
    let stage = card("xdma");
    make(&stage, &["--mode", "verify"]).code(0);
    let said = fio(&stage, "xdma_4-ch_4-1M_verify.fio", &[]).code(0);
    for (group, jobs) in [
        (0, &["write-phase-0"][..]),
        (1, &["verify-phase-0", "write-phase-1"]),
        (2, &["verify-phase-1", "write-phase-2"]),
        (3, &["verify-phase-2", "write-phase-3"]),
        (4, &["verify-phase-3"]),
    ] {
        for job in jobs {
            let head = format!("{job}: (groupid={group}, jobs=1): err= 0");
            assert_eq!(said.out.matches(&head).count(), 1, "{said}");
        }
        let lines = said.out.split(&format!("Run status group {group} ")).nth(1);
        let lines = lines.unwrap().split("Run status").next().unwrap();
        let labels = ["   READ: bw=", "  WRITE: bw="].map(|label| lines.contains(label));
        assert_eq!(labels, [group > 0, group < 4], "{said}");
    }
}

#[test]
fn a_fault_on_the_way_back_is_told_with_its_place_and_kind() {
    let stage = Stage::new();
    make(&stage, &["--mode", "verify"]).code(0);
    let offset = "offset 35651584";
    for (fault, words) in [
        ("flip@35656584", ["xxhash", "bit flip"]),
        ("misplaced@34m", ["misplaced", "offset 34603008"]),
        // The buffer still has what was read into it before.
        ("stale@34m", ["misplaced", "offset 34603008"]),
        ("short@34m", ["xdma0_c2h_2", "after 524288 bytes"]),
        ("eio@34m", ["xdma0_c2h_2", "Input/output error"]),
        ("stall@34m:600000", ["got 0B/s", "from /dev/xdma0_c2h_2"]),
    ] {
        let said = stage
            .peer_says(&[
                "fio",
                "--set=ioengine=dma-emu",
                "--set=emu_shared=card",
                "--set=ratemin=1m",
                &format!("--set=verify-phase-2:emu_fault={fault}"),
                "jobs/xdma_4-ch_4-1M_verify.fio",
            ])
            .code(1)
            .err(offset);
        for word in words {
            assert!(said.err.contains(word), "{fault}: no `{word}` in {said}");
        }
        assert_eq!(said.out.matches("err= 0").count(), 7, "{fault}: {said}");
    }
}

#[test]
fn every_fault_of_the_emulated_card_is_told_with_its_place_and_kind() {
    let stage = Stage::new();
    make(&stage, &["--mode", "verify"]).code(0);
    for (fault, failed, words) in [
        // Byte 5,000 of the third block of the first section.
        (
            "flip@2102152",
            1,
            &["xxhash", "offset 2097152", "bit flip"][..],
        ),
        (
            "misplaced@2m",
            1,
            &["offset 2097152", "misplaced", "offset 1048576"],
        ),
        ("stale@2m", 1, &["offset 2097152", "zeroed"]),
        ("short@2m", 2, &["offset 2097152", "after 524288 bytes"]),
        ("eio@2m", 2, &["offset 2097152", "Input/output error"]),
    ] {
        let words_of_fault = format!("--set=emu_fault={fault}");
        let said = stage
            .peer_says(&[
                "fio",
                "--set=ioengine=dma-emu",
                "--set=emu_shared=card",
                &words_of_fault,
                "jobs/xdma_4-ch_4-1M_verify.fio",
            ])
            .code(failed);
        for word in words {
            assert!(said.err.contains(word), "{fault}: no `{word}` in {said}");
        }
        // A reader also finds what its writer failed to write.
        let good = said.out.matches("err= 0").count();
        assert_eq!(
            good,
            usize::try_from(8 - failed).unwrap(),
            "{fault}: {said}"
        );
    }
}
