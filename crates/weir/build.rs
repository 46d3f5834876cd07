//! Passes the time of the build and its commit to the program, where they can be found out.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    // Whatever changes the program may change what git says of its tree.
    for path in ["build.rs", "../../crates", "../../Cargo.lock"] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    for name in ["HEAD", "refs/heads"] {
        let path = git(&["rev-parse", "--git-path", name]);
        if let Some(path) = path.filter(|p| Path::new(p).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).ok();
    let built = given.or_else(|| now().map(|t| t.as_secs().to_string()));
    println!("cargo::rustc-env=WEIR_BUILT={}", built.unwrap_or_default());
    let commit = git(&[
        "describe",
        "--always",
        "--dirty",
        "--abbrev=7",
        "--exclude=*",
    ]);
    println!(
        "cargo::rustc-env=WEIR_COMMIT={}",
        commit.unwrap_or_default()
    );
}

/// Runs git and returns its output; `None` where it fails or prints nothing.
fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").args(words).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    let line = text.trim();
    (said.status.success() && !line.is_empty()).then(|| line.to_owned())
}
