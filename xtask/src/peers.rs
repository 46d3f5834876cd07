//! Peers: a peer's own test suite, with weir in its place and with the peer itself.
//!
//! In: the name of a peer that is installed here. Out: a table of what both did, case by case; an
//! error where weir fails what the peer passes on this machine. The source package of the installed
//! version is fetched once and kept under `target/peers`. Not here: weir's own comparison with its
//! peers, which is among the tests (`tests/peers`).

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cmd::Cmd;
use crate::packages;
use crate::processes::Mark;

/// Folder that is kept between runs.
const FOLDER: &str = "target/peers";
/// Where Debian keeps source packages.
const POOL: &str = "http://deb.debian.org/debian/pool/main/f/fio";
/// Where the Python is that Debian's packages are for.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// The cases of the suite that need neither a zoned device nor programs of fio's own.
const CASES: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    1003, 1004, 1006, 1010, 1011, 1012,
];
/// This case pins its threads to four processors.
const WANTS_FOUR_CPUS: u32 = 9;
/// These hand operations to threads. fio 3.33 waits without end for such a thread where it runs
/// before its starter goes on, as it often does on a busy machine; of two threads with real-time
/// priority, the one that is started waits.
const HANDED_OVER: &[u32] = &[10, 13];
const AT_REAL_TIME: &str = "chrt --fifo 1";
/// Longest time of a case. The suite's own limit is longer, and leaves behind what does not end.
const LIMIT: Duration = Duration::from_secs(500);

/// A program that the suite takes for fio.
struct Program {
    name: &'static str,
    path: PathBuf,
}

/// Needs of the suite, for either program.
struct Suite {
    folder: PathBuf,
    source: PathBuf,
    may_be_at_real_time: bool,
}

/// Outcome of a case with one program.
struct Outcome {
    /// Why it failed, if it did.
    failure: Option<String>,
    took: Duration,
}

/// Outcomes of a case with both.
struct Row {
    case: u32,
    fio: Outcome,
    weir: Outcome,
}

/// The verb.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let ["fio"] = args.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        bail!("usage: cargo xtask peers fio");
    };
    packages::ensure("peers");
    let folder = std::env::current_dir()?.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    let source = source(&folder)?;
    Cmd::new("cargo build --release -p weir").run()?;
    let weir = std::env::current_dir()?.join("target/release/weir");
    let fio = Program {
        name: "fio",
        path: crate::cmd::find("fio").context("fio is not installed")?,
    };
    let weir = Program {
        name: "weir",
        path: link(&folder.join("link"), "fio", &weir)?,
    };
    let may_be_at_real_time = Cmd::new(AT_REAL_TIME).arg("true").run().is_ok();
    let suite = Suite {
        folder,
        source,
        may_be_at_real_time,
    };
    let rows = rows(&suite, &fio, &weir)?;
    println!("\n{}", table(&rows));
    let unlike = examples(&suite.source, &fio, &weir)?;
    for line in &unlike {
        println!("{line}");
    }
    let lost = lost(&rows);
    ensure!(
        lost.is_empty() && unlike.is_empty(),
        "weir fails cases that fio passes: {lost:?}; examples that it reads otherwise: {}",
        unlike.len()
    );
    let passed = rows.iter().filter(|row| row.fio.failure.is_none()).count();
    ensure!(passed > 0, "fio passes no case of its own suite here");
    println!(
        "weir passes the {passed} cases that fio passes here, and reads its examples as fio does"
    );
    Ok(())
}

/// Runs each case with both programs, one after the other: many cases compare rates.
fn rows(suite: &Suite, fio: &Program, weir: &Program) -> Result<Vec<Row>> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    for &case in CASES {
        if case == WANTS_FOUR_CPUS && cpus < 4 {
            println!("case {case} is not run: it wants four processors");
            continue;
        }
        rows.push(Row {
            case,
            fio: suite.outcome(fio, case)?,
            weir: suite.outcome(weir, case)?,
        });
    }
    Ok(rows)
}

impl Suite {
    /// Runs a case.
    fn outcome(&self, program: &Program, case: u32) -> Result<Outcome> {
        let artifacts = self.folder.join(format!("run-{}-{case}", program.name));
        if artifacts.exists() {
            std::fs::remove_dir_all(&artifacts)?;
        }
        let mark = Mark::new();
        let (variable, value) = mark.variable();
        let before = if HANDED_OVER.contains(&case) && self.may_be_at_real_time {
            AT_REAL_TIME
        } else {
            ""
        };
        let command = Cmd::new(&format!("{before} python3"))
            .arg(self.source.join("t/run-fio-tests.py"))
            .args(["-k", "-f"])
            .arg(&program.path)
            .arg("-r")
            .arg(&self.source)
            .arg("-a")
            .arg(&artifacts)
            .arg("-o")
            .arg(case.to_string())
            .env("PATH", PATH)
            .env(variable, value);
        let mut failure = Some("the suite says nothing of it".to_owned());
        let read = |line: &str| {
            if let Some((found, outcome)) = outcome(line)
                && found == case
            {
                failure = outcome;
            }
        };
        // Its exit status is the number of failures.
        let begin = Instant::now();
        let (done, is_late) = mark.within(LIMIT, || command.each_line(read));
        done?;
        let took = begin.elapsed();
        let left = mark.end();
        if is_late {
            failure = Some(format!("did not end in {} s", LIMIT.as_secs()));
        } else if left > 0 && failure.is_none() {
            failure = Some(format!("left {left} processes behind"));
        }
        // What failed is looked at by hand; gigabytes of what passed are not.
        if failure.is_none() {
            std::fs::remove_dir_all(artifacts)?;
        }
        let outcome = Outcome { failure, took };
        println!("{}: case {case} {}", program.name, outcome.words());
        Ok(outcome)
    }
}

impl Outcome {
    fn words(&self) -> String {
        let word = self.failure.as_ref().map_or("passed", |_| "failed");
        format!("{word} {:6.1} s", self.took.as_secs_f64())
    }
}

/// The unpacked source of the installed version.
fn source(folder: &Path) -> Result<PathBuf> {
    let version = Cmd::new("dpkg-query --show --showformat=${source:Version} fio").read()?;
    let upstream = version.split(['-', '+']).next().unwrap_or(&version);
    let unpacked = folder.join(format!("fio-{upstream}"));
    if unpacked.join("t/run-fio-tests.py").is_file() {
        return Ok(unpacked);
    }
    let archive = format!("fio_{upstream}.orig.tar.gz");
    let description = format!("fio_{version}.dsc");
    for file in [&description, &archive] {
        Cmd::new("curl --silent --show-error --fail --location --output")
            .arg(folder.join(file))
            .arg(format!("{POOL}/{file}"))
            .run()?;
    }
    let description = std::fs::read_to_string(folder.join(description))?;
    let wanted = checksum(&description, &archive)
        .with_context(|| format!("the package's description has no SHA-256 of {archive}"))?;
    let found = Cmd::new("sha256sum").arg(folder.join(&archive)).read()?;
    ensure!(
        found.starts_with(&wanted),
        "{archive} has another SHA-256 than its description says"
    );
    Cmd::new("tar --extract --gzip --file")
        .arg(folder.join(&archive))
        .arg("--directory")
        .arg(folder)
        .run()?;
    Ok(unpacked)
}

/// The SHA-256 of a file, from the description of a source package.
fn checksum(description: &str, file: &str) -> Option<String> {
    let list = description.split("Checksums-Sha256:").nth(1)?;
    let lines = list
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with(' '));
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let entry = lines
        .map(words)
        .find(|words| words.last().is_some_and(|name| name == file));
    entry?.into_iter().next()
}

/// Link with a peer's name, in this folder.
pub(crate) fn link(folder: &Path, name: &str, to: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let link = folder.join(name);
    if link.symlink_metadata().is_ok() {
        std::fs::remove_file(&link)?;
    }
    symlink(std::path::absolute(to)?, &link)?;
    Ok(link)
}

/// The case of a line and what it came to; nothing for what was not run.
fn outcome(line: &str) -> Option<(u32, Option<String>)> {
    let (case, rest) = line.strip_prefix("Test ")?.split_once(' ')?;
    let case = case.parse().ok()?;
    match rest.strip_prefix("FAILED: ") {
        Some(why) => Some((case, Some(why.trim().to_owned()))),
        None => rest.starts_with("PASSED").then_some((case, None)),
    }
}

/// Cases that weir fails and fio passes.
fn lost(rows: &[Row]) -> Vec<u32> {
    let lost = |row: &&Row| row.fio.failure.is_none() && row.weir.failure.is_some();
    rows.iter().filter(lost).map(|row| row.case).collect()
}

/// Table of the outcomes, a case a line.
fn table(rows: &[Row]) -> String {
    let mut text = format!("{:>5}  {:17}  weir\n", "case", "fio");
    for row in rows {
        let why = |name: &str, outcome: &Outcome| {
            let failure = outcome.failure.as_ref()?;
            Some(format!("{name}: {failure}"))
        };
        let remarks = [why("fio", &row.fio), why("weir", &row.weir)];
        let remarks: Vec<String> = remarks.into_iter().flatten().collect();
        let (fio, weir) = (row.fio.words(), row.weir.words());
        let line = format!(
            "{:>5}  {fio:17}  {weir:17}  {}",
            row.case,
            remarks.join("; ")
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The shipped examples that weir does not read as fio does, but for engines that are not built in
/// and zoned devices.
fn examples(source: &Path, fio: &Program, weir: &Program) -> Result<Vec<String>> {
    let folder = source.join("examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "fio"));
    files.sort();
    let (mut alike, mut apart, mut unlike) = (0, 0, Vec::new());
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (theirs, _) = parse(fio, &folder, &name)?;
        let (ours, said) = parse(weir, &folder, &name)?;
        let is_not_there = said.contains("is not built in") || said.contains("zoned devices");
        match (theirs == ours, is_not_there) {
            (true, _) => alike += 1,
            (false, true) => apart += 1,
            (false, false) => unlike.push(format!("{name}: fio {theirs:?}, weir {ours:?}\n{said}")),
        }
    }
    println!(
        "{} examples: {alike} end as in fio, {apart} want what is not built in, {} differ",
        files.len(),
        unlike.len()
    );
    Ok(unlike)
}

/// Result of parsing a job file by a program: its exit status, and its output.
fn parse(program: &Program, folder: &Path, file: &str) -> Result<(Option<i32>, String)> {
    let output = Command::new(&program.path)
        .args(["--parse-only", file])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.code(), said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_suite_says_what_a_case_came_to() {
        let case = |line| outcome(line).unwrap();
        assert_eq!(case("Test 7 PASSED t0007-37cf9e3c.fio"), (7, None));
        let (number, why) = case("Test 1010 FAILED:  non-zero return code, t/latency.py");
        assert_eq!(number, 1010);
        assert_eq!(why.as_deref(), Some("non-zero return code, t/latency.py"));
        for line in [
            "Test 8 SKIPPED (User request)",
            "3 test(s) passed",
            "fio path is fio",
        ] {
            assert!(outcome(line).is_none(), "{line}");
        }
    }

    #[test]
    fn a_case_is_lost_only_where_fio_passes_it() {
        let outcome = |failure: Option<&str>| Outcome {
            failure: failure.map(str::to_owned),
            took: Duration::from_millis(1500),
        };
        let rows = [
            (1, None, None),
            (2, None, Some("why")),
            (3, Some("late"), Some("why")),
            (4, Some("why"), None),
        ];
        let rows = rows.map(|(case, fio, weir)| Row {
            case,
            fio: outcome(fio),
            weir: outcome(weir),
        });
        assert_eq!(lost(&rows), [2]);
        let expected = [
            " case  fio                weir",
            "    1  passed    1.5 s    passed    1.5 s",
            "    2  passed    1.5 s    failed    1.5 s    weir: why",
            "    3  failed    1.5 s    failed    1.5 s    fio: late; weir: why",
            "    4  failed    1.5 s    passed    1.5 s    fio: why",
        ];
        assert_eq!(table(&rows).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_checksum_is_that_of_the_file() {
        let description = "Checksums-Sha1:\n dead 5 a.tar.gz\nChecksums-Sha256:\n beef 5 a.tar.gz\n \
                           cafe 6 b.tar.xz\nFiles:\n f00d 5 c.tar\n";
        assert_eq!(checksum(description, "a.tar.gz").as_deref(), Some("beef"));
        assert_eq!(checksum(description, "c.tar"), None);
    }
}
