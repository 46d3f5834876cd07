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

/// Writes files, over what is there if the words say so; prints their names.
pub(crate) fn write(wish: &NewFiles) -> Outcome {
    let directory = Path::new(&wish.directory);
    fs::create_dir_all(directory)
        .map_err(|e| Refusal::usage(format!("{}: {e}", wish.directory)))?;
    let path = |name: &str| directory.join(name).display().to_string();
    let there = wish
        .files
        .iter()
        .find(|(name, _)| directory.join(name).exists());
    if let Some((name, _)) = there.filter(|_| !wish.force) {
        return Err(Refusal::usage(format!(
            "{} is there already, nothing was written\n  help: --force replaces it",
            path(name)
        )));
    }
    let mut written = String::new();
    for (name, text) in &wish.files {
        output::write_file(&path(name), text).map_err(|message| Refusal::new(USAGE, message))?;
        written += &(path(name) + "\n");
    }
    Ok(printed(&written))
}
