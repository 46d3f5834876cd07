//! `weir new`: writes job files, and what other doors make.

use std::fs;
use std::path::Path;

use weir_doors::new::{Action, NewFiles, read};
use weir_doors::{Refusal, USAGE};

use crate::{Outcome, output, printed};

/// Carries out the arguments after `new`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Write(files) => write(&files),
    }
}

/// Writes files, over existing ones if the arguments ask for that, and prints their names.
pub(crate) fn write(new: &NewFiles) -> Outcome {
    let directory = Path::new(&new.directory);
    fs::create_dir_all(directory).map_err(|e| Refusal::usage(format!("{}: {e}", new.directory)))?;
    let path = |name: &str| directory.join(name).display().to_string();
    let there = new
        .files
        .iter()
        .find(|(name, _)| directory.join(name).exists());
    if let Some((name, _)) = there.filter(|_| !new.force) {
        return Err(Refusal::usage(format!(
            "{} is there already, nothing was written\n  help: --force replaces it",
            path(name)
        )));
    }
    let mut written = String::new();
    for (name, text) in &new.files {
        output::write_file(&path(name), text).map_err(|message| Refusal::new(USAGE, message))?;
        written += &(path(name) + "\n");
    }
    Ok(printed(&written))
}
