//! Tools: pinned versions of the cargo tools that Debian does not have, under
//! `target/tools`.
//!
//! Built without optimisation: they run for a second, and this way all of
//! them compile in about a minute and a half on two cores instead of many.
//! Not here: Debian packages (`packages`).

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::cmd::Cmd;

/// A tool from crates.io; the version is exact.
struct Tool {
    name: &'static str,
    version: &'static str,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "cargo-deny",
        version: "0.20.2",
    },
    Tool {
        name: "mdbook",
        version: "0.5.4",
    },
];

const FOLDER: &str = "target/tools";

/// The verb: builds each tool that is missing or has another version.
pub(crate) fn run(_: &[String]) -> Result<()> {
    let build = Path::new(FOLDER).join("build");
    for tool in TOOLS {
        if is_there(tool) {
            println!("{} {} is there", tool.name, tool.version);
            continue;
        }
        Cmd::new("cargo install --quiet --debug --locked --force --no-default-features")
            .args(["--root", FOLDER, "--version", tool.version, tool.name])
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_TARGET_DIR", build.to_string_lossy())
            .run()?;
    }
    if build.exists() {
        std::fs::remove_dir_all(build)?; // 700 MB that nobody needs again
    }
    Ok(())
}

/// Where the pinned `name` lies, or how to get it.
pub(crate) fn path(name: &str) -> Result<PathBuf> {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    match tool {
        Some(tool) if is_there(tool) => Ok(Path::new(FOLDER).join("bin").join(name)),
        _ => bail!("the tool {name} is missing: run `cargo xtask tools`"),
    }
}

/// A tool counts only in its pinned version, asked from the program itself.
fn is_there(tool: &Tool) -> bool {
    let file = Path::new(FOLDER).join("bin").join(tool.name);
    std::process::Command::new(file)
        .arg("--version")
        .output()
        .is_ok_and(|out| {
            String::from_utf8_lossy(&out.stdout)
                .split_whitespace()
                .any(|word| word.trim_start_matches('v') == tool.version)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_the_verb_that_brings_it() {
        let error = path("cargo-nothing").unwrap_err().to_string();
        assert!(error.contains("cargo-nothing"), "{error}");
        assert!(error.contains("cargo xtask tools"), "{error}");
    }
}
