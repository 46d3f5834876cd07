//! Building a module for a kernel, once per state of its sources and release.
//!
//! In: a folder with a Kbuild or Makefile. Out: the `.ko` files and what the compiler said. It is
//! built in a copy, so the tree stays clean and two releases do not meet.
//! Not here: putting it into a guest (`initrd`).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::host::{Places, digest, need, unique};
use crate::kernel::Kernel;

/// A module that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// The files to load.
    pub files: Vec<PathBuf>,
    /// Output of `make`, with every warning there is (`W=1`).
    pub log: String,
}

impl Built {
    /// The lines of the log that warn.
    pub fn warnings(&self) -> Vec<&str> {
        // Kernels newer than the compiler of their distribution say so in every build.
        let about_the_compiler = |line: &str| line.contains("the compiler differs");
        self.log
            .lines()
            .filter(|line| line.contains("warning:") && !about_the_compiler(line))
            .collect()
    }
}

/// Builds the module of `folder` for a kernel, or finds the build of the same sources.
pub(crate) fn build(places: &Places, kernel: &Kernel, folder: &Path) -> Result<Built> {
    let headers = kernel.headers()?;
    let sources = sources(folder)?;
    ensure!(
        !sources.is_empty(),
        "{}: no sources of a module",
        folder.display()
    );
    let mut key = format!("{}\n", headers.display());
    for (name, text) in &sources {
        let _ = writeln!(
            key,
            "{} {}",
            name.display(),
            digest(&String::from_utf8_lossy(text))
        );
    }
    let name = folder
        .file_name()
        .map_or_else(|| "module".into(), |name| name.to_string_lossy());
    let kept = places
        .folder("modules")?
        .join(&kernel.release)
        .join(format!("{name}-{}", digest(&key)));
    let is_built = || kept.join("build.log").is_file();
    if !is_built() {
        // Whoever wants the same meanwhile waits instead of building it too.
        let lock = kept.with_extension("lock");
        fs::create_dir_all(lock.parent().context("a module has a folder")?)?;
        let lock = fs::File::create(&lock).with_context(|| lock.display().to_string())?;
        lock.lock().context("the lock of a build")?;
        if !is_built() {
            make(&kept, &headers, &sources)?;
        }
    }
    Ok(Built {
        files: products(&kept)?,
        log: fs::read_to_string(kept.join("build.log"))?,
    })
}

fn make(kept: &Path, headers: &Path, sources: &[(PathBuf, Vec<u8>)]) -> Result<()> {
    // Two of them at once build apart, and the second to end finds the first one's place taken.
    let work = kept.with_extension(format!("work-{}", unique()));
    let _ = fs::remove_dir_all(&work);
    for (name, text) in sources {
        let to = work.join(name);
        fs::create_dir_all(to.parent().context("a source has a folder")?)?;
        fs::write(&to, text).with_context(|| to.display().to_string())?;
    }
    let output = Command::new(need("make", "build-essential")?)
        .arg("-C")
        .arg(headers)
        .arg(format!("M={}", work.display()))
        .args(["W=1", "modules"])
        .env_remove("MAKEFLAGS")
        .output()?;
    let mut log = String::from_utf8_lossy(&output.stdout).into_owned();
    log.push_str(&String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        let _ = fs::remove_dir_all(&work);
        bail!(
            "the module does not build with {}:\n{log}",
            headers.display()
        );
    }
    fs::write(work.join("build.log"), log)?;
    if fs::rename(&work, kept).is_err() {
        fs::remove_dir_all(&work)?;
    }
    Ok(())
}

/// The files of a folder and its folders, without what a build leaves and without folders `test`.
fn sources(folder: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let here = folder.join(&below);
        for entry in fs::read_dir(&here).with_context(|| here.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Scripts that test a module need no new build of it.
            if name.starts_with('.') || name == "test" || is_product(&name) {
                continue;
            }
            if entry.path().is_dir() {
                folders.push(below.join(name));
            } else {
                found.push((below.join(name), fs::read(entry.path())?));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_product(name: &str) -> bool {
    let ends = [".ko", ".o", ".mod", ".mod.c", ".order", ".symvers"];
    ends.iter().any(|end| name.ends_with(end))
}

fn products(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "ko"))
        .collect();
    found.sort();
    ensure!(
        !found.is_empty(),
        "{}: the build made no .ko",
        folder.display()
    );
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_those_of_the_compiler_about_the_module() {
        let built = Built {
            files: Vec::new(),
            log: "make: Entering\nwarning: the compiler differs from the one used\n\
                  kio.c:3:1: warning: unused variable\n"
                .to_owned(),
        };
        assert_eq!(built.warnings(), ["kio.c:3:1: warning: unused variable"]);
    }

    #[test]
    fn what_a_build_leaves_is_no_source() {
        for name in [
            "kio.ko",
            "kio.o",
            "kio.mod",
            "kio.mod.c",
            "modules.order",
            "Module.symvers",
        ] {
            assert!(is_product(name), "{name}");
        }
        for name in ["Kbuild", "kio.c", "kio_uapi.h", "Makefile"] {
            assert!(!is_product(name), "{name}");
        }
    }
}
