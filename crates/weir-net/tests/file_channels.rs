//! The files of the `file` transport: names, links, byte counts, what stays and what goes.
#![allow(clippy::unwrap_used, reason = "in tests")]

mod ranks;

use std::fs;
use std::path::{Path, PathBuf};

use ranks::{engine, exponents, first, run_engine, workload};
use weir_run::execute::Signals;
use weir_schema::{ExchangeResult, Setting};

/// An empty directory of this test alone.
fn empty(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// One run of one size, kept in `directory`.
fn kept(directory: &Path, ranks: u32, replications: u32, exponent: u8, loops: u64) {
    let mut plan = workload(exponents([exponent], loops));
    (plan.repetitions, plan.replications) = (1, replications);
    let result = exchange(directory, ranks, &plan, true);
    assert_eq!(result.wrong_bytes(), 0);
}

fn exchange(
    directory: &Path,
    ranks: u32,
    plan: &weir_schema::ExchangeWorkload,
    keep: bool,
) -> ExchangeResult {
    let settings = [
        (
            "channel_directory",
            Setting::Text(directory.display().to_string()),
        ),
        ("keep_channels", Setting::Bool(keep)),
    ];
    let engine = engine("file", &settings);
    first(run_engine(engine, ranks, plan, &Signals::default())).unwrap()
}

#[test]
fn the_files_hold_the_bytes_that_a_boards_emulator_writes() {
    for (exponent, loops) in [(5, 4), (6, 4), (8, 1)] {
        let directory = empty("counts");
        kept(&directory, 1, 2, exponent, loops);
        for channel in 0..4 {
            let bytes = fs::read(directory.join(format!("kernel_output_ch{channel}"))).unwrap();
            assert_eq!(
                bytes,
                vec![exponent; 128],
                "2^{exponent}, channel {channel}"
            );
        }
        for (input, output) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            let link = fs::read_link(directory.join(format!("kernel_input_ch{input}"))).unwrap();
            assert_eq!(link, PathBuf::from(format!("kernel_output_ch{output}")));
        }
    }
}

#[test]
fn files_of_an_earlier_run_do_not_disturb() {
    let directory = empty("stale");
    kept(&directory, 1, 2, 9, 3);
    kept(&directory, 1, 2, 6, 4);
    let bytes = fs::read(directory.join("kernel_output_ch2")).unwrap();
    assert_eq!(bytes, [6; 128]);
}

#[test]
fn several_ranks_link_their_inputs_to_their_neighbours() {
    let directory = empty("ring");
    kept(&directory, 3, 2, 7, 2);
    for (rank, right, left) in [(0, 1, 2), (1, 2, 0), (2, 0, 1)] {
        for (input, neighbour, output) in [(0, right, 1), (1, left, 0), (2, right, 3), (3, left, 2)]
        {
            let name = directory.join(format!("rank{rank}/kernel_input_ch{input}"));
            let target = format!("../rank{neighbour}/kernel_output_ch{output}");
            assert_eq!(fs::read_link(name).unwrap(), PathBuf::from(target));
        }
        let bytes = fs::read(directory.join(format!("rank{rank}/kernel_output_ch3"))).unwrap();
        assert_eq!(bytes, [7; 128], "two words of 32 bytes, twice");
    }
}

#[test]
fn nothing_stays_unless_it_is_kept() {
    let directory = empty("gone");
    let plan = workload(exponents([4, 9], 3));
    exchange(&directory, 2, &plan, false);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}
