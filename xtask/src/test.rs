//! Test: runs every test that this machine can run and lists what it cannot.
//!
//! In: arguments for `cargo test` (default `--workspace`). Out: cargo's own
//! output, every skipped test with its reason, and one last line
//! `N passed, N failed, N skipped`.
//!
//! A test that lacks something (a device, a right, a program) returns early
//! after it has appended one line `name: reason` to the file that the
//! environment variable `WEIR_SKIP_LOG` names. A file, because the harness
//! swallows what a passing test prints.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};

use crate::cmd::Cmd;
use crate::packages;

const SKIP_LOG: &str = "target/skipped.log";

/// What the test harnesses said, all of them together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: BTreeSet<String>,
}

/// The verb.
pub(crate) fn run(args: &[String]) -> Result<()> {
    packages::ensure("test");
    Cmd::new("cargo build --release -p weir").run()?;

    let log = std::env::current_dir()?.join(SKIP_LOG);
    std::fs::create_dir_all("target")?;
    std::fs::write(&log, "")?;
    let mut tally = Tally::default();
    let all = ["--workspace".to_owned()];
    let good = Cmd::new("cargo test --no-fail-fast")
        .args(if args.is_empty() { &all } else { args })
        .env("WEIR_SKIP_LOG", log.to_string_lossy())
        .each_line(|line| {
            println!("{line}");
            tally.read(line);
        })?;
    tally.add_skips(&read_lossy(&log)?);

    println!();
    for skipped in &tally.skipped {
        println!("SKIPPED: {skipped}");
    }
    println!("{}", tally.summary());
    if !good {
        bail!("cargo test failed");
    }
    Ok(())
}

fn read_lossy(path: &Path) -> Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

impl Tally {
    /// Takes what counts from one line of a test harness.
    fn read(&mut self, line: &str) {
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += number_before(counts, "passed");
            self.failed += number_before(counts, "failed");
        } else if let Some((name, reason)) = ignored(line) {
            self.skipped.insert(format!("{name}: {reason}"));
        }
    }

    /// Adds the tests that skipped themselves: their harness says "passed".
    fn add_skips(&mut self, log: &str) {
        for line in log.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let line = line.trim_start_matches("SKIPPED: ");
            if self.skipped.insert(line.to_owned()) {
                self.passed = self.passed.saturating_sub(1);
            }
        }
    }

    fn summary(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failed,
            self.skipped.len()
        )
    }
}

/// `test NAME ... ignored, REASON`.
fn ignored(line: &str) -> Option<(&str, &str)> {
    let (name, state) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let reason = state.strip_prefix("ignored")?.trim_start_matches(", ");
    Some((name, if reason.is_empty() { "ignored" } else { reason }))
}

fn number_before(text: &str, word: &str) -> usize {
    let words: Vec<&str> = text.split([' ', ';', '.']).collect();
    words
        .windows(2)
        .find(|pair| pair[1] == word)
        .and_then(|pair| pair[0].parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_harnesses_are_added() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "test lab::a_ring ... ignored, needs an NVMe device",
            "test lab::b_ring ... ok",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.summary(), "15 passed, 2 failed, 1 skipped");
        assert!(tally.skipped.contains("lab::a_ring: needs an NVMe device"));
    }

    #[test]
    fn a_test_that_skipped_itself_counts_as_skipped_not_as_passed() {
        let mut tally = Tally::default();
        tally.read("test result: ok. 5 passed; 0 failed; 0 ignored;");
        tally.add_skips(
            "loop_device: not root\nSKIPPED: loop_device: not root\n\nfull_disk: no tmpfs\n",
        );
        assert_eq!(tally.summary(), "3 passed, 0 failed, 2 skipped");
    }
}
