//! Test: runs every test that this machine can run and lists what it cannot.
//!
//! In: arguments for `cargo test` (default: the whole workspace), after `--long` if tests may take
//! minutes: they open more connections and kill more often. Out: cargo's own
//! output, every skipped test with its reason, the slowest tests with the budget
//! that each has, and one last line `N passed, N failed, N skipped`.
//!
//! A test that lacks something (a device, a right, a program) returns early
//! after it has appended one line `name: reason` to the file that the
//! environment variable `WEIR_SKIP_LOG` names. A file, because the harness
//! swallows what a passing test prints.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::cmd::Cmd;
use crate::{lab_kernels, packages};

const SKIP_LOG: &str = "target/skipped.log";

/// Number of the slowest tests that are listed.
const SLOWEST: usize = 10;
/// Budget of a test in seconds. A test over it is marked, and no more: no timing decides a test.
const BUDGET: f64 = 20.0;
/// Budget of all tests in seconds, on two cores after the build.
const BUDGET_OF_ALL: f64 = 12.0 * 60.0;
/// Models of what threads share, in every order in which they can run. They replace the atomics of the
/// whole build, which therefore has a directory of its own.
const MODELS: &str = "cargo test -p weir-sys --lib --target-dir target/loom";
/// The word with which cargo starts this program in front of each test program.
pub(crate) const HARNESS: &str = "harness";

/// Results of the test harnesses, all of them together.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: BTreeSet<String>,
    /// Seconds that each test took.
    times: Vec<(f64, String)>,
}

/// Variable that allows tests to take minutes.
const LONG: &str = "WEIR_LONG_TESTS";

/// The verb.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (is_long, args) = match args {
        [first, rest @ ..] if first == "--long" => (true, rest),
        all => (false, all),
    };
    packages::ensure("test");
    lab_kernels::ensure_there();
    Cmd::new("cargo build --release -p weir").run()?;

    let log = std::env::current_dir()?.join(SKIP_LOG);
    std::fs::create_dir_all("target")?;
    std::fs::write(&log, "")?;
    let mut tally = Tally::default();
    let mut good = true;
    let mut cargo_test = |command: Cmd| -> Result<()> {
        let command = command.env("WEIR_SKIP_LOG", log.to_string_lossy());
        let command = if is_long {
            command.env(LONG, "1")
        } else {
            command
        };
        good &= command.each_line(|line| {
            println!("{line}");
            tally.read(line);
        })?;
        Ok(())
    };
    let mut took = None;
    if args.is_empty() {
        let programs = "--workspace --lib --bins --tests --examples";
        Cmd::new(&format!("cargo test --no-run {programs}")).run()?;
        let models = || Cmd::new(MODELS).env("RUSTFLAGS", "--cfg loom");
        models().arg("--no-run").run()?;
        let begin = Instant::now();
        let this = std::env::current_exe().context("where this program lies")?;
        cargo_test(
            Cmd::new(&format!("cargo test --no-fail-fast {programs} --config")).arg(format!(
                "target.'cfg(unix)'.runner=['{}', '{HARNESS}']",
                this.display()
            )),
        )?;
        // Those in comments are programs of another harness.
        cargo_test(Cmd::new(
            "cargo test --no-fail-fast --workspace --doc --quiet",
        ))?;
        cargo_test(models().args(["--", "ring::model"]))?;
        took = Some(begin.elapsed().as_secs_f64());
    } else {
        cargo_test(Cmd::new("cargo test --no-fail-fast").args(args))?;
    }
    tally.add_skips(&read_lossy(&log)?);

    print_summary(&tally, took);
    if !good {
        bail!("cargo test failed");
    }
    Ok(())
}

/// Prints the result of the tests.
fn print_summary(tally: &Tally, took: Option<f64>) {
    println!();
    print!("{}", tally.slowest());
    if let Some(seconds) = took {
        println!("all tests: {seconds:.0} s (budget {BUDGET_OF_ALL} s on two cores)");
    }
    for skipped in &tally.skipped {
        println!("SKIPPED: {skipped}");
    }
    println!("{}", tally.summary());
}

/// Starts a test program so that it prints how long each test took. Its harness offers that to
/// nightly compilers, or to whoever sets this variable: for the program alone, since what cargo
/// builds depends on it.
pub(crate) fn harness(argv: &[String]) -> Result<()> {
    let (program, args) = argv.split_first().context("a test program")?;
    let mut command = Command::new(program);
    command
        .args(args)
        .args(["-Zunstable-options", "--report-time"]);
    Err(command.env("RUSTC_BOOTSTRAP", "1").exec()).with_context(|| program.clone())
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
        } else if let Some((name, seconds)) = timed(line) {
            self.times.push((seconds, name.to_owned()));
        }
    }

    /// The tests that took longest, one a line.
    fn slowest(&self) -> String {
        let mut times: Vec<&(f64, String)> = self.times.iter().collect();
        times.sort_by(|a, b| b.0.total_cmp(&a.0));
        let lines = times.iter().take(SLOWEST).map(|(seconds, name)| {
            let mark = if *seconds > BUDGET {
                format!("  over the budget of {BUDGET} s")
            } else {
                String::new()
            };
            format!("{seconds:6.1} s  {name}{mark}\n")
        });
        lines.collect()
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

/// `test NAME ... ok <0.123s>`.
fn timed(line: &str) -> Option<(&str, f64)> {
    let (name, state) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, time) = state.split_once('<')?;
    Some((name, time.strip_suffix("s>")?.parse().ok()?))
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
    fn the_slowest_tests_come_first_and_those_over_the_budget_are_marked() {
        let mut tally = Tally::default();
        for line in [
            "test a::quick ... ok <0.001s>",
            "test b::slow ... FAILED <31.500s>",
            "test c::ignored ... ignored, needs a card",
            "test d::other ... ok",
        ] {
            tally.read(line);
        }
        assert_eq!(
            tally.slowest(),
            "  31.5 s  b::slow  over the budget of 20 s\n   0.0 s  a::quick\n"
        );
        tally.times = (0..20).map(|n| (f64::from(n), n.to_string())).collect();
        assert_eq!(tally.slowest().lines().count(), SLOWEST);
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
