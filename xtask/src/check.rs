//! Check: every gate that needs no run of weir.
//!
//! In: the names of gates, or none for all. Out: each gate's own output, then
//! the list of those that failed. One failing gate does not hide the next.
//! Not here: tests (`test`).

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::cmd::Cmd;
use crate::{arrows, dialect, lines, lints, tools};

/// Lines of `cargo tree` that the default build may have: every crate costs
/// every user build time.
const CRATE_LIMIT: usize = 200;

type Gate = (&'static str, fn() -> Result<()>);

const GATES: &[Gate] = &[
    ("lock", lock),
    ("fmt", || Cmd::new("cargo fmt --all --check -- -l").run()),
    ("arrows", || arrows::run(&[])),
    ("lints", lints::run),
    ("dialect", dialect::run),
    ("lines", lines::gate),
    ("crates", crate_count),
    ("deny", deny),
    ("clippy", || {
        Cmd::new("cargo clippy --workspace --all-targets --all-features -- -D warnings").run()
    }),
    ("fuzz", fuzz_targets),
    ("rustdoc", || {
        Cmd::new("cargo doc --workspace --no-deps")
            .env("RUSTDOCFLAGS", "-D warnings")
            .run()
    }),
    ("book", book),
    ("schemas", schemas),
    ("options", options),
];

/// The verb.
pub(crate) fn run(names: &[String]) -> Result<()> {
    if let Some(name) = names.iter().find(|name| gate(name).is_none()) {
        let known: Vec<&str> = GATES.iter().map(|(name, _)| *name).collect();
        bail!("no gate `{name}`; there are: {}", known.join(" "));
    }
    let chosen: Vec<&Gate> = GATES
        .iter()
        .filter(|(name, _)| names.is_empty() || names.iter().any(|chosen| chosen == name))
        .collect();
    let mut failed = Vec::new();
    for (name, check) in &chosen {
        println!("== {name}");
        let start = Instant::now();
        if let Err(error) = check() {
            println!("{name}: FAILED: {error:#}");
            failed.push(*name);
        }
        println!("   {name}: {:.1} s", start.elapsed().as_secs_f64());
    }
    if !failed.is_empty() {
        bail!(
            "check: {} of {} gates failed: {}",
            failed.len(),
            chosen.len(),
            failed.join(" ")
        );
    }
    println!("check: {} gates passed", chosen.len());
    Ok(())
}

fn gate(name: &str) -> Option<&'static Gate> {
    GATES.iter().find(|(known, _)| *known == name)
}

/// The fuzz targets, a workspace of their own, fit what they fuzz. Nothing is linked, so no library
/// of the fuzzer is built.
fn fuzz_targets() -> Result<()> {
    Cmd::new("cargo check --manifest-path fuzz/Cargo.toml --locked --target-dir fuzz/target")
        .env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a")
        .run()
}

/// The lock file is committed and fits the manifests. Cargo would have mended it on the way here, if
/// the alias did not forbid that.
fn lock() -> Result<()> {
    Cmd::new("cargo metadata --locked --format-version 1")
        .read()
        .map(drop)
}

/// Advisories need a database from the network: they belong to a release.
fn deny() -> Result<()> {
    let deny = tools::path("cargo-deny")?;
    Cmd::new(&deny.to_string_lossy())
        .args(["check", "--hide-inclusion-graph"])
        .args(["--allow", "unmatched-skip", "--allow", "unnecessary-skip"])
        .args(["bans", "licenses", "sources"])
        .run()
}

fn book() -> Result<()> {
    let mdbook = tools::path("mdbook")?;
    Cmd::new(&mdbook.to_string_lossy())
        .args(["build", "docs/book", "--dest-dir"])
        .arg(std::env::current_dir()?.join("target/book"))
        .run()
}

/// The committed JSON Schemas are what the types say.
fn schemas() -> Result<()> {
    Cmd::new("cargo run --quiet -p weir-compare --features json-schema --example write_schemas -- --check").run()
}

/// The book's table of options is what the records say.
fn options() -> Result<()> {
    Cmd::new("cargo run --quiet -p weir-jobfile --example write_options -- --check").run()
}

fn crate_count() -> Result<()> {
    let tree = Cmd::new("cargo tree -e normal,build --prefix none -p weir").read()?;
    let count = tree.lines().collect::<BTreeSet<_>>().len();
    println!("{count} lines of `cargo tree | sort -u`, limit {CRATE_LIMIT}");
    if count > CRATE_LIMIT {
        bail!("{count} is more than {CRATE_LIMIT}: drop a dependency");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alias_leaves_the_lock_file_alone() {
        let config = include_str!("../../.cargo/config.toml");
        let config: toml::Table = toml::from_str(config).unwrap();
        let alias = config["alias"]["xtask"].as_str().unwrap();
        assert!(alias.split(' ').any(|word| word == "--locked"), "{alias}");
    }

    #[test]
    fn an_unknown_gate_is_refused_before_anything_runs() {
        let error = run(&["clipy".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no gate `clipy`"), "{error}");
        assert!(error.contains("clippy"), "{error}");
    }
}
