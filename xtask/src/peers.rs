//! Peers: a peer's own test suite, with weir in its place and with the peer itself.
//!
//! In: the name of a peer that is installed here. Out: a table of who passed what; an error where
//! weir fails what the peer passes on this machine. The source package of the installed version is
//! fetched once and kept under `target/peers`. Not here: weir's own comparison with its peers, which
//! is among the tests (`tests/peers`).

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cmd::Cmd;
use crate::packages;

/// What is kept between runs.
const FOLDER: &str = "target/peers";
/// Where Debian keeps source packages.
const POOL: &str = "http://deb.debian.org/debian/pool/main/f/fio";
/// The cases of the suite that need neither a zoned device nor programs of fio's own.
const CASES: &[u32] = &[
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
    1003, 1004, 1006, 1010, 1011, 1012,
];

/// What a case came to: nothing where it passed, else why it did not.
type Outcomes = BTreeMap<u32, Option<String>>;

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
    let fio = crate::cmd::find("fio").context("fio is not installed")?;
    let weir = link(&folder, "link", "fio", &weir)?;
    let programs = [
        ("fio", bounded(&folder, "fio", &fio)?),
        ("weir", bounded(&folder, "weir", &weir)?),
    ];
    let path = path_with_python(&folder)?;
    let mut outcomes = Vec::new();
    for (name, program) in &programs {
        outcomes.push(suite(&folder, &source, name, program, &path)?);
    }
    let [theirs, ours] = &outcomes[..] else {
        bail!("there are two programs");
    };
    println!("\n{}", table(theirs, ours));
    let [(_, fio), (_, weir)] = &programs;
    let unlike = examples(&source, fio, weir)?;
    for line in &unlike {
        println!("{line}");
    }
    let lost = lost(theirs, ours);
    ensure!(
        lost.is_empty() && unlike.is_empty(),
        "weir fails cases that fio passes: {lost:?}; examples that it reads otherwise: {}",
        unlike.len()
    );
    println!("weir passes every case that fio passes here, and reads its examples as fio does");
    Ok(())
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

/// A link of this name in a folder of its own.
fn link(folder: &Path, inside: &str, name: &str, to: &Path) -> Result<PathBuf> {
    let inside = folder.join(inside);
    std::fs::create_dir_all(&inside)?;
    let link = inside.join(name);
    if link.symlink_metadata().is_ok() {
        std::fs::remove_file(&link)?;
    }
    symlink(to, &link)?;
    Ok(link)
}

/// A script named fio that ends a program which does not end by itself: the suite asks once, and
/// then waits for ever.
fn bounded(folder: &Path, name: &str, program: &Path) -> Result<PathBuf> {
    let inside = folder.join(name);
    std::fs::create_dir_all(&inside)?;
    let script = inside.join("fio");
    let program = program.display();
    let text = format!("#!/bin/sh\nexec timeout --kill-after=10 900 '{program}' \"$@\"\n");
    std::fs::write(&script, text)?;
    std::fs::set_permissions(&script, Permissions::from_mode(0o755))?;
    Ok(script)
}

/// The PATH, with the system's Python first: the one that Debian's packages are for.
fn path_with_python(folder: &Path) -> Result<String> {
    let python = link(folder, "python", "python3", Path::new("/usr/bin/python3"))?;
    let first = python.parent().map(PathBuf::from).unwrap_or_default();
    let old = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(first).chain(std::env::split_paths(&old));
    Ok(std::env::join_paths(all)?.to_string_lossy().into_owned())
}

/// Runs the suite with a program as fio.
fn suite(folder: &Path, source: &Path, name: &str, fio: &Path, path: &str) -> Result<Outcomes> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let cases = CASES.iter().filter(|case| **case != 9 || cpus >= 4);
    let artifacts = folder.join(format!("run-{name}"));
    if artifacts.exists() {
        std::fs::remove_dir_all(&artifacts)?;
    }
    let mut outcomes = Outcomes::new();
    Cmd::new("python3")
        .arg(source.join("t/run-fio-tests.py"))
        .args(["-k", "-f"])
        .arg(fio)
        .arg("-r")
        .arg(source)
        .arg("-a")
        .arg(&artifacts)
        .arg("-o")
        .args(cases.map(u32::to_string))
        .env("PATH", path)
        .env("PYTHONUNBUFFERED", "1")
        // Its exit status is the number of failures.
        .each_line(|line| {
            if let Some((case, outcome)) = outcome(line) {
                println!("{name}: {line}");
                outcomes.insert(case, outcome);
            }
        })?;
    ensure!(!outcomes.is_empty(), "the suite ran no case with {name}");
    // What failed is looked at by hand; gigabytes of what passed are not.
    for (case, _) in outcomes.iter().filter(|(_, outcome)| outcome.is_none()) {
        std::fs::remove_dir_all(artifacts.join(format!("{case:04}")))?;
    }
    Ok(outcomes)
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
fn lost(theirs: &Outcomes, ours: &Outcomes) -> Vec<u32> {
    let passes = |outcomes: &Outcomes, case| outcomes.get(case).is_some_and(Option::is_none);
    let lost = theirs
        .keys()
        .filter(|&case| passes(theirs, case) && !passes(ours, case));
    lost.copied().collect()
}

/// Who passed what.
fn table(theirs: &Outcomes, ours: &Outcomes) -> String {
    let word = |outcomes: &Outcomes, case| match outcomes.get(case) {
        Some(None) => "passed",
        Some(Some(_)) => "failed",
        None => "not run",
    };
    let mut text = format!("{:>5}  {:8} {:8}\n", "case", "fio", "weir");
    for case in theirs.keys() {
        let why = ours.get(case).cloned().flatten().unwrap_or_default();
        let line = format!(
            "{case:>5}  {:8} {:8} {why}",
            word(theirs, case),
            word(ours, case)
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The shipped examples that weir does not read as fio does, but for engines that are not built in
/// and zoned devices.
fn examples(source: &Path, fio: &Path, weir: &Path) -> Result<Vec<String>> {
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

/// What a program makes of a job file: its exit status, and what it said.
fn parse(program: &Path, folder: &Path, file: &str) -> Result<(Option<i32>, String)> {
    let output = Command::new(program)
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
        let failed = || Some("why".to_owned());
        let theirs: Outcomes = [(1, None), (2, None), (3, failed()), (4, None)].into();
        let ours: Outcomes = [(1, None), (2, failed()), (3, failed())].into();
        assert_eq!(lost(&theirs, &ours), [2, 4]);
        let table = table(&theirs, &ours);
        assert!(table.contains("    2  passed   failed   why\n"), "{table}");
        assert!(table.contains("    4  passed   not run\n"), "{table}");
    }

    #[test]
    fn the_checksum_is_that_of_the_file() {
        let description = "Checksums-Sha1:\n dead 5 a.tar.gz\nChecksums-Sha256:\n beef 5 a.tar.gz\n \
                           cafe 6 b.tar.xz\nFiles:\n f00d 5 c.tar\n";
        assert_eq!(checksum(description, "a.tar.gz").as_deref(), Some("beef"));
        assert_eq!(checksum(description, "c.tar"), None);
    }
}
