//! Fuzz: runs each target of `fuzz/` for a number of seconds.
//!
//! In: seconds, and names of targets (default all). Out: libFuzzer's output;
//! an input that fails is kept under `fuzz/artifacts/TARGET/`.
//! The parsers that are fuzzed are safe code, so the sanitizer that would need
//! a nightly compiler is left out: coverage feedback, debug assertions and
//! overflow checks work with the pinned one.
//! Words that an input is likely to need are the options and flags there are,
//! in the form that the target reads, and those of `fuzz/TARGET.dict`; first
//! inputs stand in `fuzz/seeds/TARGET/`. Both files may be absent.
//! Not here: the targets.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::cmd::{self, Cmd};
use crate::{dialect, packages};

/// Flags that make rustc count the edges that an input reaches, as libFuzzer expects it.
const COVERAGE: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0";

/// The verb.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let [seconds, wanted @ ..] = args else {
        bail!("usage: cargo xtask fuzz SECONDS [TARGET...]");
    };
    let seconds: u32 = seconds.parse().context("SECONDS is a whole number")?;
    let targets = targets(&std::fs::read_to_string("fuzz/Cargo.toml")?, wanted)?;
    packages::ensure("fuzz");
    if cmd::find("c++").is_none() {
        println!("SKIPPED: {}: no C++ compiler", targets.join(" "));
        return Ok(());
    }
    let host = host()?;
    Cmd::new("cargo build --release --manifest-path fuzz/Cargo.toml")
        .args(["--target", &host, "--target-dir", "fuzz/target"])
        .env("RUSTFLAGS", COVERAGE)
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .run()?;
    // What one target finds does not keep the others from running.
    let failures: Vec<String> = targets
        .iter()
        .filter_map(|target| {
            Some(format!(
                "{target}: {:#}",
                fuzz(target, &host, seconds).err()?
            ))
        })
        .collect();
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} targets, {seconds} s each, nothing found", targets.len());
    Ok(())
}

fn fuzz(target: &str, host: &str, seconds: u32) -> Result<()> {
    let corpus = format!("fuzz/corpus/{target}");
    let artifacts = format!("fuzz/artifacts/{target}/");
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let seeds = format!("fuzz/seeds/{target}");
    let seeds = Path::new(&seeds).exists().then_some(seeds);
    let words = format!("fuzz/target/{target}.dict");
    let dictionary = dictionary(target)?;
    std::fs::write(&words, &dictionary)?;
    // libFuzzer refuses a dictionary without a word.
    let dictionary = (!dictionary.is_empty()).then(|| format!("-dict={words}"));
    Cmd::new(&format!("fuzz/target/{host}/release/{target} {corpus}"))
        .args(seeds)
        .args(dictionary)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={artifacts}"))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-use_value_profile=1"])
        .run()
}

/// Words for the inputs of a target: those of its own file, with the options and flags there are.
fn dictionary(target: &str) -> Result<String> {
    let own = Path::new("fuzz").join(format!("{target}.dict"));
    let mut out = if own.exists() {
        std::fs::read_to_string(own)?
    } else {
        String::new()
    };
    let (before, doors) = match target {
        "argv" => (Some("--"), Some(dialect::DOORS)),
        "job_file" => (Some(""), None),
        "numbers" => (Some(" "), None),
        "beff" => (None, Some("crates/weir-doors/src/beff")),
        "axio" => (None, Some("crates/weir-doors/src/axio")),
        "kio" => (None, Some("crates/weir-doors/src/kio")),
        "nvme" => (None, Some("crates/weir-doors/src/nvme")),
        "selftest" => (None, Some("crates/weir-doors/src/selftest")),
        "object" => (None, Some("crates/weir-doors/src/object")),
        _ => (None, None),
    };
    if let Some(before) = before {
        let words = dialect::all_options()?.into_iter();
        out.extend(words.map(|word| format!("\"{before}{word}=\"\n")));
    }
    if let Some(doors) = doors {
        let words = dialect::all_flags(doors)?.into_iter();
        out.extend(words.map(|word| format!("\"--{word}\"\n")));
    }
    Ok(out)
}

/// The targets of the manifest, or those of them that are wanted.
fn targets(manifest: &str, wanted: &[String]) -> Result<Vec<String>> {
    let manifest: toml::Table = toml::from_str(manifest).context("fuzz/Cargo.toml")?;
    let bins = manifest.get("bin").and_then(toml::Value::as_array);
    let all: Vec<String> = bins
        .into_iter()
        .flatten()
        .filter_map(|bin| bin.get("name")?.as_str().map(str::to_owned))
        .collect();
    if let Some(name) = wanted.iter().find(|name| !all.contains(name)) {
        bail!("no fuzz target `{name}`; there are: {}", all.join(" "));
    }
    Ok(if wanted.is_empty() {
        all
    } else {
        wanted.to_vec()
    })
}

fn host() -> Result<String> {
    let version = Cmd::new("rustc -vV").read()?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("`rustc -vV` names no host")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = 'f'\n[[bin]]\nname = 'jobfile'\n\
                            path = 'a.rs'\n[[bin]]\nname = 'numbers'\n";

    #[test]
    fn all_targets_run_unless_some_are_named() {
        assert_eq!(targets(MANIFEST, &[]).unwrap(), ["jobfile", "numbers"]);
        let one = ["numbers".to_owned()];
        assert_eq!(targets(MANIFEST, &one).unwrap(), one);
    }

    #[test]
    fn an_unknown_target_is_refused_with_the_known_ones() {
        let error = targets(MANIFEST, &["argv".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("no fuzz target `argv`"), "{error}");
        assert!(error.contains("jobfile numbers"), "{error}");
    }
}
