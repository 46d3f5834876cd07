//! `cargo xtask`: the one entry for gates, benches, fuzzing and the tools they need.
//!
//! In: a verb and its arguments. Out: what the verb prints, exit code 0 or 1.
//! One file per verb; every verb prints the commands it runs with a leading
//! `$ `, so that each can be repeated by hand.
//! Not here: anything that a user of weir runs.

#![deny(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool: talking on the terminal is its job"
)]

mod ab;
mod arrows;
mod bench;
mod check;
mod cmd;
mod dialect;
mod fuzz;
mod lab_kernels;
mod lines;
mod lints;
mod package;
mod packages;
mod peers;
mod processes;
mod source;
mod test;
mod tools;
mod wording;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

/// One verb of `cargo xtask`.
struct Verb {
    name: &'static str,
    arguments: &'static str,
    what: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const VERBS: &[Verb] = &[
    Verb {
        name: "tools",
        arguments: "",
        what: "put the pinned cargo tools under target/tools, if missing",
        run: tools::run,
    },
    Verb {
        name: "check",
        arguments: "[GATE...]",
        what: "fmt, clippy, arrows, lints, dialect, deny, docs: everything that needs no run",
        run: check::run,
    },
    Verb {
        name: "test",
        arguments: "[--all] [--long] [CARGO-TEST...]",
        what: "run the quick tests; --all: every test, and install what they need",
        run: test::run,
    },
    Verb {
        name: "arrows",
        arguments: "",
        what: "check the edges between the crates against arrows.toml",
        run: arrows::run,
    },
    Verb {
        name: "lines",
        arguments: "",
        what: "count the lines of code, without tests and comments, beside their budgets",
        run: lines::run,
    },
    Verb {
        name: "bench",
        arguments: "[NAME [CASE...] [ROUNDS]]",
        what: "measure side by side with a peer; a whole run's table goes to bench/NAME.md",
        run: bench::run,
    },
    Verb {
        name: "peers",
        arguments: "fio",
        what: "run the peer's own test suite with weir in its place, and with itself",
        run: peers::run,
    },
    Verb {
        name: "package",
        arguments: "[--check]",
        what: "make a Debian package, a wheel and an archive, equal byte for byte each time",
        run: package::run,
    },
    Verb {
        name: "fuzz",
        arguments: "SECONDS [TARGET...]",
        what: "run each fuzz target for SECONDS",
        run: fuzz::run,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        // Where cargo wants the test program to run.
        Some((word, program)) if word == test::HARNESS => test::harness(program),
        _ => dispatch(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((name, rest)) = args.split_first() else {
        print!("{}", list());
        return Ok(());
    };
    let verb = VERBS
        .iter()
        .find(|verb| verb.name == name)
        .with_context(|| format!("no verb `{name}`\n{}", list()))?;
    if verb.arguments.is_empty() && !rest.is_empty() {
        bail!("`{name}` takes no arguments");
    }
    std::env::set_current_dir(root()?)?;
    (verb.run)(rest)
}

fn list() -> String {
    let mut text = String::from("usage: cargo xtask VERB\n");
    for verb in VERBS {
        let call = format!("{} {}", verb.name, verb.arguments);
        let _ = writeln!(text, "  {call:<32} {}", verb.what);
    }
    text
}

/// The root of the repository, from where cargo says this package lies.
fn root() -> Result<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: start this as `cargo xtask`")?;
    let root = PathBuf::from(package)
        .parent()
        .map(PathBuf::from)
        .context("the package xtask has no parent folder")?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_verb_is_refused_with_the_list() {
        let error = dispatch(&["chekc".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("no verb `chekc`"), "{error}");
        assert!(error.contains("cargo xtask VERB"), "{error}");
    }

    #[test]
    fn the_list_names_every_verb() {
        let list = list();
        assert!(VERBS.iter().all(|verb| list.contains(verb.name)));
    }
}
