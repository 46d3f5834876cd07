//! Test: runs the tests of a tier and lists what this machine cannot run.
//!
//! In: `--all` for every test instead of the quick ones, `--long` if tests may take minutes, then
//! arguments for `cargo test` (default: the whole workspace). Out: cargo's own output, every skipped
//! test with its reason, the slowest tests with the budget that each has, the time of the tier beside
//! its budget, and one last line `N passed, N failed, N skipped`.
//!
//! A test is quick unless a module named `slow` is on its path or its program is in [`SLOW_PROGRAMS`].
//! Slow is what needs a launcher, the lab, a browser, another program to compare with, root's devices
//! and networks, or minutes. Slow tests are left out by the harness, which counts them as filtered out.
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

/// Test programs whose every test is slow.
const SLOW_PROGRAMS: &[(&str, &str)] = &[
    ("guests", "boots kernels in an emulator"),
    ("guide", "builds the program with the guides' additions"),
    ("peers", "runs an installed fio beside weir"),
];
/// Part of the path of every other slow test.
const SLOW_MODULE: &str = "slow::";

/// So many of the slowest tests are listed.
const SLOWEST: usize = 10;
/// Budget of one test in seconds. A test over it is marked, and no more: no timing decides a test.
const BUDGET: f64 = 20.0;
/// Models of what threads share, in every order in which they can run. They replace the atomics of the
/// whole build, which therefore has a directory of its own.
const MODELS: &str = "cargo test -p weir-sys --lib --target-dir target/loom";
/// Libraries that tests load. With the programs their examples are built as tests alone.
const LIBRARIES: &str =
    "cargo build --workspace --features weir/fjall,weir/lmdb --example daos_stub";
/// Arguments of the whole build, with what a default build lacks.
const PROGRAMS: &str =
    "--workspace --features weir/fjall,weir/lmdb --lib --bins --tests --examples";
/// The word with which cargo starts this program in front of each test program.
pub(crate) const HARNESS: &str = "harness";

/// Set of tests that one call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Quick,
    All,
}

impl Tier {
    const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::All => "all",
        }
    }

    /// Seconds on two cores after the build.
    const fn budget(self) -> f64 {
        match self {
            Self::Quick => 4.0 * 60.0,
            Self::All => 14.0 * 60.0,
        }
    }

    /// Part of the paths of tests that a program leaves out in this tier; every path has the empty one.
    fn left_out(self, program: &str) -> Option<&'static str> {
        let is_slow = SLOW_PROGRAMS.iter().any(|(name, _)| *name == program);
        match self {
            Self::All => None,
            Self::Quick if is_slow => Some(""),
            Self::Quick => Some(SLOW_MODULE),
        }
    }
}

/// Words of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    tier: Tier,
    is_long: bool,
    cargo: &'a [String],
}

impl<'a> Request<'a> {
    fn read(mut args: &'a [String]) -> Self {
        let (mut tier, mut is_long) = (Tier::Quick, false);
        while let Some((first, rest)) = args.split_first() {
            match first.as_str() {
                "--all" => tier = Tier::All,
                "--long" => is_long = true,
                _ => break,
            }
            args = rest;
        }
        Self {
            tier,
            is_long,
            cargo: args,
        }
    }
}

/// Counts that the test harnesses printed, of all of them together.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
    left_out: usize,
    skipped: BTreeSet<String>,
    /// Seconds that each test took.
    times: Vec<(f64, String)>,
}

/// Variable that lets tests take minutes.
const LONG: &str = "WEIR_LONG_TESTS";

/// The verb.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let request = Request::read(args);
    let models = || Cmd::new(MODELS).env("RUSTFLAGS", "--cfg loom");
    let runs_all = request.tier == Tier::All && request.cargo.is_empty();
    packages::ensure(match request.tier {
        Tier::Quick => "test",
        Tier::All => "test --all",
    });
    if request.tier == Tier::All {
        lab_kernels::ensure_there();
        Cmd::new("cargo build --release -p weir").run()?;
    }
    if request.cargo.is_empty() {
        Cmd::new(&format!("cargo test --no-run {PROGRAMS}")).run()?;
        Cmd::new(LIBRARIES).run()?;
    }
    if runs_all {
        models().arg("--no-run").run()?;
    }

    let log = std::env::current_dir()?.join(SKIP_LOG);
    std::fs::create_dir_all("target")?;
    std::fs::write(&log, "")?;
    let mut tally = Tally::default();
    let mut good = true;
    let mut cargo_test = |command: Cmd| -> Result<()> {
        let command = command.env("WEIR_SKIP_LOG", log.to_string_lossy());
        let command = if request.is_long {
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
    let begin = Instant::now();
    cargo_test(programs(&request)?)?;
    if runs_all {
        // Those in comments are programs of another harness.
        cargo_test(Cmd::new(
            "cargo test --no-fail-fast --workspace --doc --quiet",
        ))?;
        cargo_test(models().args(["--", "ring::model"]))?;
    }
    let took = begin.elapsed().as_secs_f64();
    tally.add_skips(&read_lossy(&log)?);

    print_summary(&tally, &request, took);
    if !good {
        bail!("cargo test failed");
    }
    Ok(())
}

/// Command that starts this program in front of each test program.
fn programs(request: &Request) -> Result<Cmd> {
    let this = std::env::current_exe().context("where this program lies")?;
    let runner = format!(
        "target.'cfg(unix)'.runner=['{}', '{HARNESS}', '{}']",
        this.display(),
        request.tier.name()
    );
    let command = Cmd::new("cargo test --no-fail-fast --config").arg(runner);
    Ok(if request.cargo.is_empty() {
        command.args(PROGRAMS.split(' '))
    } else {
        command.args(request.cargo)
    })
}

/// Prints what came of the tests.
fn print_summary(tally: &Tally, request: &Request, took: f64) {
    println!();
    print!("{}", tally.slowest());
    if request.cargo.is_empty() {
        let (name, budget) = (request.tier.name(), request.tier.budget());
        println!("{name} tests: {took:.0} s (budget {budget} s on two cores)");
        if request.tier == Tier::Quick {
            println!("slow tests left out: {} (--all)", tally.left_out);
        }
    }
    for skipped in &tally.skipped {
        println!("SKIPPED: {skipped}");
    }
    println!("{}", tally.summary());
}

/// Starts a test program so that it leaves out what is not of the tier, and prints how long each test took.
/// Its harness offers that to nightly compilers, or to whoever sets this variable: for the program alone,
/// since what cargo builds depends on it.
pub(crate) fn harness(words: &[String]) -> Result<()> {
    let [tier, program, args @ ..] = words else {
        bail!("a tier and a test program");
    };
    let mut command = Command::new(program);
    command.args(args);
    if let Some(name) = name_of(program) {
        // Tests wait for processes most of their time.
        let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
        command
            .args(["-Zunstable-options", "--report-time"])
            .arg(format!("--test-threads={threads}"))
            .env("RUSTC_BOOTSTRAP", "1");
        let tier = if tier == Tier::All.name() {
            Tier::All
        } else {
            Tier::Quick
        };
        if let Some(part) = tier.left_out(name) {
            command.args(["--skip", part]);
        }
    }
    Err(command.exec()).with_context(|| program.clone())
}

/// Name of a test program from its path `.../deps/NAME-HASH`; `None` for a program of a doc test.
fn name_of(program: &str) -> Option<&str> {
    let (folder, file) = program.rsplit_once('/')?;
    if !folder.ends_with("/deps") && !folder.ends_with("/examples") {
        return None;
    }
    Some(file.rsplit_once('-')?.0)
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
            self.left_out += number_before(counts, "filtered");
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
    fn the_quick_tier_leaves_out_slow_programs_and_modules_alone() {
        assert_eq!(Tier::Quick.left_out("guide"), Some(""));
        assert_eq!(Tier::Quick.left_out("beff"), Some("slow::"));
        assert_eq!(Tier::All.left_out("guide"), None);
        assert_eq!(
            name_of("/t/debug/deps/weir_net-0123abc"),
            Some("weir_net"),
            "a library"
        );
        assert_eq!(name_of("/tmp/rustdoctestX/rust_out"), None, "a doc test");
    }

    #[test]
    fn every_slow_program_is_in_the_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let crates = std::fs::read_dir(root.join("crates")).unwrap();
        let folders: Vec<_> = crates
            .map(|entry| entry.unwrap().path().join("tests"))
            .chain([root.join("tests")])
            .collect();
        for (name, _) in SLOW_PROGRAMS {
            let main = |folder: &std::path::PathBuf| folder.join(name).join("main.rs").is_file();
            assert!(folders.iter().any(main), "no test program {name}");
        }
    }

    #[test]
    fn words_before_those_of_cargo_choose_the_tier() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let all = words("--long --all -p weir -- --all");
        let read = Request::read(&all);
        assert_eq!((read.tier, read.is_long), (Tier::All, true));
        assert_eq!(read.cargo, words("-p weir -- --all"));
        let one = words("-p weir --all");
        assert_eq!(Request::read(&one).tier, Tier::Quick);
        assert!(Request::read(&[]).cargo.is_empty());
    }

    #[test]
    fn counts_of_all_harnesses_are_added() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            "test lab::a_ring ... ignored, needs an NVMe device",
            "test lab::b_ring ... ok",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 41 filtered out; finished in 0.00s",
        ] {
            tally.read(line);
        }
        assert_eq!(tally.summary(), "15 passed, 2 failed, 1 skipped");
        assert_eq!(tally.left_out, 41);
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
