//! This machine: where the tree and the lab's state lie, and which programs there are.
//!
//! In: the environment. Out: [`Places`], paths of programs, [`Missing`] with the package to install.
//! Not here: kernels (`kernel`), whether KVM works (`accel`).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};

/// The lab cannot run here: something is not installed. Tests skip on it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what} ({remedy})")]
pub struct Missing {
    /// The missing thing.
    pub what: String,
    /// Remedy, such as `apt: busybox-static`.
    pub remedy: String,
}

impl Missing {
    /// Something that a Debian package brings.
    pub(crate) fn package(what: impl Into<String>, package: &str) -> anyhow::Error {
        Self {
            what: what.into(),
            remedy: format!("apt: {package}"),
        }
        .into()
    }
}

/// Folders of the lab.
#[derive(Debug, Clone)]
pub struct Places {
    /// The root of the tree.
    pub root: PathBuf,
    /// Folder that the lab keeps between runs.
    pub state: PathBuf,
}

impl Places {
    /// The tree that `lab/vm` names, or else the one this was built from; its `target/lab`, or a
    /// folder for temporary files where that cannot be written.
    ///
    /// # Errors
    /// If neither folder can be made.
    pub fn find() -> Result<Self> {
        let root = std::env::var_os("WEIR_LAB_ROOT").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
            PathBuf::from,
        );
        let root = root.canonicalize().unwrap_or(root);
        let state = root.join("target/lab");
        if writable(&state) {
            return Ok(Self { root, state });
        }
        let user = rustix::process::geteuid().as_raw();
        let state = std::env::temp_dir().join(format!("weir-lab-{user}"));
        anyhow::ensure!(
            writable(&state) && fs::metadata(&state)?.uid() == user,
            "neither {} nor {} can be written: set TMPDIR to a folder of yours",
            root.join("target/lab").display(),
            state.display()
        );
        Ok(Self { root, state })
    }

    /// A folder of the state.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.state.join(name);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    }

    /// The program under test: what `WEIR_LAB_WEIR` names, or the tree's release build if there is one.
    ///
    /// # Errors
    /// The path names no file.
    pub(crate) fn weir(&self) -> Result<Option<PathBuf>> {
        let Some(named) = std::env::var_os("WEIR_LAB_WEIR").map(PathBuf::from) else {
            let built = self.root.join("target/release/weir");
            return Ok(Some(built).filter(|path| path.is_file()));
        };
        anyhow::ensure!(
            named.is_file(),
            "WEIR_LAB_WEIR={}: no such file",
            named.display()
        );
        Ok(Some(named))
    }
}

fn writable(folder: &Path) -> bool {
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let good = fs::create_dir_all(folder).is_ok() && fs::write(&probe, "").is_ok();
    let _ = fs::remove_file(probe);
    good
}

/// Path of `program`. Some are in folders that an ordinary user's PATH leaves out.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more: &[&str] = if ["depmod", "dmsetup"].contains(&program) {
        &["/usr/sbin", "/sbin"]
    } else {
        &[]
    };
    std::env::split_paths(&path)
        .chain(more.iter().map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
}

/// The same, or what to install.
pub(crate) fn need(program: &str, package: &str) -> Result<PathBuf> {
    find(program).ok_or_else(|| Missing::package(format!("no {program}"), package))
}

/// The first file whose path begins so, in a folder of libraries where it is none; or what to install.
pub(crate) fn need_file(begins: &str, package: &str) -> Result<PathBuf> {
    const FOLDERS: [&str; 3] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"];
    let found = FOLDERS.iter().find_map(|folder| {
        let path = Path::new(folder).join(begins);
        let name = path.file_name()?.to_str()?;
        let files = fs::read_dir(path.parent()?).ok()?.flatten();
        let files = files.filter(|file| file.file_name().to_string_lossy().starts_with(name));
        files.map(|file| file.path()).min()
    });
    found.ok_or_else(|| Missing::package(format!("no {begins}"), package))
}

/// Stamp that separates one state of a file from another, for keys of caches.
pub(crate) fn stamp(file: &Path) -> Result<String> {
    let meta = fs::metadata(file).with_context(|| file.display().to_string())?;
    Ok(format!(
        "{} {} {}.{}",
        file.display(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec()
    ))
}

/// A short name for a key of a cache.
pub(crate) fn digest(key: &str) -> String {
    use std::hash::{Hash as _, Hasher as _};
    let mut hasher = std::hash::DefaultHasher::new();
    key.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// A word that no other thread or process of this machine uses meanwhile.
pub(crate) fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{number}", std::process::id())
}

/// Writes a file that others see whole or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let part = path.with_extension(format!("part-{}", unique()));
    fs::write(&part, bytes).with_context(|| part.display().to_string())?;
    fs::rename(&part, path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        assert!(need("sh", "dash").is_ok());
        let error = need("no-such-program", "no-such-package").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no no-such-program (apt: no-such-package)"
        );
        assert!(error.is::<Missing>());
    }
}
