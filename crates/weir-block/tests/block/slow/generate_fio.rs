//! The skewed distributions beside real fio: sorted shares of the top blocks.
//!
//! fio places ranks on blocks by a hash that merges some of them, so only the
//! sorted shares at the top can be compared, not which blocks they are. Skips,
//! saying so, where fio is not installed.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test helpers; small numbers are exact; what was compared is shown"
)]

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use weir_block::generate::distribution::{OffsetDistribution, Pareto, Zipf};
use weir_block::generate::offsets::{Offsets, Skewed};
use weir_run::generate::rng::Rng;

const BLOCKS: u64 = 1000;
const DRAWS: u32 = 200_000;

/// Block numbers from fio's log of a run without I/O; `None` without fio.
fn fio_blocks(distribution: &str) -> Option<Vec<u64>> {
    let log: PathBuf = std::env::temp_dir().join(format!(
        "weir-generate-{}-{}.log",
        std::process::id(),
        distribution.replace(':', "-"),
    ));
    let status = Command::new("fio")
        .current_dir(std::env::temp_dir())
        .args(["--name=x", "--ioengine=null", "--rw=randread", "--bs=4k"])
        .args(["--size=4000k", "--io_size=800000k", "--norandommap"])
        .arg(format!("--random_distribution={distribution}"))
        .arg(format!("--write_iolog={}", log.display()))
        .stdout(Stdio::null())
        .status()
        .ok()?;
    assert!(status.success(), "fio failed");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(&log).unwrap();
    let offsets = text.lines().filter_map(|line| {
        let (_, operation) = line.split_once(" read ")?;
        operation.split(' ').next()?.parse::<u64>().ok()
    });
    Some(offsets.map(|bytes| bytes / 4096).collect())
}

/// Shares of the most wanted blocks, largest first.
fn top_shares(blocks: &[u64], top: usize) -> Vec<f64> {
    let mut counts = HashMap::new();
    for block in blocks {
        *counts.entry(block).or_insert(0_u32) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.truncate(top);
    let total = blocks.len() as f64;
    counts
        .iter()
        .map(|&count| f64::from(count) / total)
        .collect()
}

fn assert_top_shares_agree(name: &str, distribution: OffsetDistribution, top: usize) {
    let Some(theirs) = fio_blocks(name) else {
        eprintln!("SKIPPED: fio is not installed, so {name} is not compared with it");
        return;
    };
    assert_eq!(theirs.len(), DRAWS as usize);
    let mut offsets = Skewed::new(distribution, Rng::new(1));
    let ours: Vec<u64> = (0..DRAWS).filter_map(|_| offsets.next_block()).collect();
    let (ours, theirs) = (top_shares(&ours, top), top_shares(&theirs, top));
    println!("{name}: ours {ours:.4?}, fio's {theirs:.4?}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(
            (ours / theirs - 1.0).abs() < 0.1,
            "{name}: {ours} for {theirs}"
        );
    }
}

#[test]
fn the_top_shares_of_zipf_are_those_of_fio() {
    let zipf = Zipf::new(NonZeroU64::new(BLOCKS).unwrap(), 1.2, 1, None).unwrap();
    assert_top_shares_agree("zipf:1.2", OffsetDistribution::Zipf(zipf), 4);
}

#[test]
fn the_top_shares_of_pareto_are_those_of_fio() {
    let pareto = Pareto::new(NonZeroU64::new(BLOCKS).unwrap(), 0.2, 1, None).unwrap();
    // The fourth share of fio's is two ranks that its hash has merged.
    assert_top_shares_agree("pareto:0.2", OffsetDistribution::Pareto(pareto), 3);
}
