//! The module kio in guests: its scripts (`kmod/kio/test`), four boots for all of them.
//!
//! In: the sources of `kmod/kio`. Out: each case by name. The older kernel runs every case, in one guest,
//! which looks for misuse of memory, those of the module, in another those of weir's door; the newer kernel
//! runs those that depend on the kernel most, and one guest counts instructions.
#![allow(clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use weir_lab::{Accel, CaseBatch, CaseRun, Lab, LabRun, or_skip, skip};

use crate::shared::{Guest, case, lab_of, static_program};

const MODULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kmod/kio");

/// Devices that `common.sh` expects, in its order.
const DEVICES: [&str; 7] = [
    "nvme:size=256M",
    "null",
    "ram:64M",
    "null:poll_queues=0",
    "scsi-debug:dev_size_mb=64,opts=2,medium_error_start=4660,medium_error_count=8",
    "dm-error:64M",
    "slow:lat=1ms",
];

/// A device that completes at once, so that what is counted is the module and the block layer, and
/// what `stuck.sh` needs.
const COUNTED: [&str; 3] = [
    "null:queue_mode=2,irqmode=0,no_sched=1",
    "ram:64M",
    "dm-error:64M",
];

/// Cases that leave devices as they are come first.
const CASES_OF_THE_MODULE: [&str; 12] = [
    "load", "runs", "steps", "busy", "killed", "held", "poll", "verify", "errors", "tree",
    "cycles", "removed",
];
const CASES_OF_THE_DOOR: [&str; 7] = [
    "weir-run",
    "weir-refused",
    "weir-module",
    "weir-data",
    "weir-errors",
    "weir-same",
    "weir-compare",
];
const CASES_OF_THE_NEWER: [&str; 10] = [
    "load",
    "busy",
    "poll",
    "verify",
    "tree",
    "weir-run",
    "weir-module",
    "weir-data",
    "cycles",
    "removed",
];
const CASES_THAT_COUNT: [&str; 2] = ["speed", "stuck"];

fn script(name: &str) -> Result<String> {
    let path = Path::new(MODULE).join(format!("test/{name}.sh"));
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// A C program of the module's tests, for any guest.
fn program(name: &str) -> Result<PathBuf> {
    static_program(&Path::new(MODULE).join(format!("test/{name}.c")))
}

/// A lab with the newest kernel of a series, the module and its test programs.
fn lab(series: &str) -> Result<Lab> {
    let lab = lab_of(series)?
        .module(MODULE)
        .file(program("kio-client")?, "lab/kio-client")
        .file(program("vectors")?, "lab/vectors")
        .file(Path::new(MODULE).join("test/common.sh"), "lab/common.sh")
        .timeout(Duration::from_secs(600));
    Ok(lab)
}

fn batch(cases: &[&str], cycles: u32) -> Result<CaseBatch> {
    let mut batch = CaseBatch::default();
    for name in cases {
        let script = format!("KIO_CYCLES={cycles}\n{}", script(name)?);
        batch = batch.case(name, &script);
    }
    Ok(batch)
}

/// Boots one of the four guests.
pub(crate) fn boot(guest: Guest) -> Result<(LabRun, Vec<CaseRun>)> {
    let (older, newer) = ("6.1.", "6.12.");
    let with = |lab: Lab, devices: &[&str]| devices.iter().fold(lab, |lab, spec| lab.dev(spec));
    let (lab, cases, cycles) = match guest {
        Guest::KioModule => {
            let lab = with(lab(older)?, &DEVICES).paranoid(true);
            // A leak of fewer bytes a cycle shows after more of them.
            let is_long = std::env::var_os("WEIR_LONG_TESTS").is_some();
            (
                lab,
                &CASES_OF_THE_MODULE[..],
                if is_long { 200 } else { 60 },
            )
        }
        Guest::KioDoor => {
            let lab = with(lab_with_module_of(newer, lab(older)?)?, &DEVICES);
            (lab, &CASES_OF_THE_DOOR[..], 0)
        }
        Guest::KioNewer => {
            let lab = with(lab_with_module_of(older, lab(newer)?)?, &DEVICES);
            (lab, &CASES_OF_THE_NEWER[..], 30)
        }
        _ => {
            let lab = with(lab(older)?.accel(Accel::Icount), &COUNTED);
            (lab, &CASES_THAT_COUNT[..], 0)
        }
    };
    lab.append("nvme.poll_queues=1")
        .batch(&batch(cases, cycles)?)
}

/// Adds the module that was built for the other series.
fn lab_with_module_of(series: &str, guest: Lab) -> Result<Lab> {
    let other = lab(series)?.build(MODULE)?;
    let file = other.files.first().context("a module")?;
    Ok(guest.file(file, "lab/of-another-kernel.ko"))
}

/// The case is good in each of these guests.
fn good(guests: &[Guest], test: &str) -> Result<()> {
    for guest in guests {
        match case(*guest, test)? {
            Some((_, case)) if case.skipped() => skip(test, case.output.trim()),
            Some((_, case)) => drop(case.good()?),
            None => {}
        }
    }
    Ok(())
}

#[test]
fn k1_the_module_loads_without_a_device_and_goes() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "load")
}

#[test]
fn k2_weirs_report_is_what_the_log_says() -> Result<()> {
    good(&[Guest::KioDoor, Guest::KioNewer], "weir-run")
}

#[test]
fn weir_says_what_is_in_the_way() -> Result<()> {
    good(&[Guest::KioDoor], "weir-refused")
}

#[test]
fn the_verbs_of_the_door_load_and_unload_the_module_and_name_what_is_in_the_way() -> Result<()> {
    good(&[Guest::KioDoor, Guest::KioNewer], "weir-module")
}

#[test]
fn k3_one_load_carries_runs_of_all_numbers_and_sizes() -> Result<()> {
    good(&[Guest::KioModule], "runs")
}

#[test]
fn k4_the_module_stays_while_it_is_used() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "busy")
}

#[test]
fn k5_a_killed_client_leaves_nothing() -> Result<()> {
    good(&[Guest::KioModule], "killed")
}

#[test]
fn k6_a_held_device_is_not_written_to() -> Result<()> {
    good(&[Guest::KioModule], "held")
}

#[test]
fn k7_polling_needs_no_interrupts_and_loses_nothing() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "poll")
}

#[test]
fn k8_data_is_the_definitions_and_a_wrong_byte_is_found() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "verify")
}

#[test]
fn k8_what_one_engine_wrote_the_other_verifies() -> Result<()> {
    good(&[Guest::KioDoor, Guest::KioNewer], "weir-data")
}

#[test]
fn k9_as_many_failures_end_a_run_as_it_is_told() -> Result<()> {
    good(&[Guest::KioDoor], "weir-errors")
}

#[test]
fn k9_failures_are_counted_by_their_names() -> Result<()> {
    good(&[Guest::KioModule], "errors")
}

#[test]
fn k10_the_tree_answers_as_it_always_did() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "tree")
}

#[test]
fn k11_the_boundary_costs_something() -> Result<()> {
    good(&[Guest::KioDoor], "weir-compare")
}

#[test]
fn k12_loads_and_runs_leave_no_memory_behind() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "cycles")
}

#[test]
fn k13_the_module_draws_what_the_definition_and_user_space_draw() -> Result<()> {
    good(&[Guest::KioModule], "steps")?;
    good(&[Guest::KioDoor], "weir-same")
}

#[test]
fn a_device_that_goes_away_ends_its_job() -> Result<()> {
    good(&[Guest::KioModule, Guest::KioNewer], "removed")
}

#[test]
fn bios_that_do_not_come_back_keep_what_they_need() -> Result<()> {
    good(&[Guest::KioCounting], "stuck")
}

#[test]
fn the_loop_takes_the_instructions_it_may() -> Result<()> {
    let Some((_, case)) = case(Guest::KioCounting, "speed")? else {
        return Ok(());
    };
    let said = case.good()?;
    let speed = |name: &str| -> Result<f64> {
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix(&format!("speed {name} ")));
        Ok(line.with_context(|| said.to_owned())?.parse()?)
    };
    for depth in ["depth-1", "depth-32"] {
        let whole = speed(depth)?;
        let bare = speed(&format!("{depth}-without-histograms"))?;
        ensure!(whole <= 2735.0, "{depth}: {whole} instructions");
        ensure!(
            whole - bare <= 0.05 * whole,
            "{depth}: {bare} without histograms"
        );
        ensure!(bare > 1000.0, "nothing was counted: {said}");
    }
    Ok(())
}

#[test]
fn the_module_builds_without_a_warning_on_both_series() -> Result<()> {
    for series in ["6.1.", "6.12."] {
        let built = lab(series).and_then(|lab| lab.build(MODULE));
        if let Some(built) = or_skip("kio builds", built)? {
            ensure!(built.warnings().is_empty(), "{}", built.log);
        }
    }
    Ok(())
}

/// Output of `vectors`.
fn vectors(args: &str) -> Result<Vec<u8>> {
    let mut command = Command::new(program("vectors")?);
    let output = command.args(args.split(' ')).output()?;
    ensure!(output.status.success(), "{args}: {output:?}");
    Ok(output.stdout)
}

/// True if C programs for guests can be built here; prints a note for this test if not.
fn compiler(test: &str) -> bool {
    let there = Command::new("cc").arg("--version").output().is_ok();
    if !there {
        skip(test, "no C compiler (apt: build-essential)");
    }
    there
}

#[test]
fn the_shared_generator_is_that_of_the_other_engines() -> Result<()> {
    if !compiler("generator") {
        return Ok(());
    }
    // Drawn with weir's own streams: offsets below 16384 blocks, mix 50.
    let of_seed_5eed = "0 32006144\n0 25153536\n1 28835840\n0 66932736\n1 44978176\n";
    let of_worker_3 = "1 51064832\n0 14606336\n1 63270912\n0 41631744\n0 2158592\n";
    let drawn = vectors("steps 0 67108864 4096 4096 4096 1 50 1 1 0x5eed 0 5")?;
    assert_eq!(String::from_utf8(drawn)?, of_seed_5eed);
    let drawn = vectors("steps 0 67108864 4096 4096 4096 1 50 1 1 7 3 5")?;
    assert_eq!(String::from_utf8(drawn)?, of_worker_3);
    let walk = vectors("steps 8192 24576 4096 4096 -8192 0 0 1 1 1 0 3")?;
    assert_eq!(String::from_utf8(walk)?, "1 16384\n1 8192\n1 16384\n");
    Ok(())
}

#[test]
fn the_shared_buckets_are_those_of_every_histogram() -> Result<()> {
    if !compiler("buckets") {
        return Ok(());
    }
    let edge = 1_u64 << 34;
    let values = [
        0,
        127,
        128,
        255,
        256,
        1000,
        74_200,
        edge - 1,
        edge,
        u64::MAX,
    ];
    let args = values.map(|value| value.to_string()).join(" ");
    let printed = String::from_utf8(vectors(&format!("index {args}"))?)?;
    let expected = values.map(|value| {
        let e = u64::from(value.max(1).ilog2()).saturating_sub(6);
        let index = if value < 128 {
            value
        } else {
            e * 64 + (value >> e)
        };
        index.min(1855).to_string()
    });
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    Ok(())
}

#[test]
fn the_shared_data_is_what_its_definition_says() -> Result<()> {
    if !compiler("data") {
        return Ok(());
    }
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let golden = 0x9e37_79b9_7f4a_7c15_u64;
    let (seed, generation) = (77_u64, 3_u64);
    let word = |at: u64| {
        let (sector, i) = (8 + at / 64, at % 64);
        match i {
            0 => 0x314F_494B_5249_4557,
            1 => sector,
            2 => generation,
            _ => {
                let from = seed ^ sector.wrapping_mul(golden) ^ (generation * 64 + i);
                mix(from.wrapping_add(golden))
            }
        }
    };
    let expected: Vec<u8> = (0..1024).flat_map(|at| word(at).to_le_bytes()).collect();
    ensure!(vectors("pattern 77 3 4096 8192")? == expected);
    Ok(())
}

#[test]
fn dkms_knows_the_version_of_weir() -> Result<()> {
    let conf = std::fs::read_to_string(Path::new(MODULE).join("dkms.conf"))?;
    let line = format!("PACKAGE_VERSION=\"{}\"", env!("CARGO_PKG_VERSION"));
    ensure!(conf.lines().any(|have| have == line), "{conf}");
    Ok(())
}
