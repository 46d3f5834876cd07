//! Files that jobs read: laid out with random bytes once, shared by cases.
//!
//! In: where and how large. Out: a path, as an option. The file in memory
//! goes when its case is over, the one on the disk stays for the next run.
//! Not here: jobs.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::FOLDER;

const MIB: u64 = 1 << 20;

/// A file full of random bytes.
pub(super) struct Image {
    path: PathBuf,
    /// Removed when it is no longer needed.
    passing: bool,
}

impl Image {
    /// In a tmpfs.
    pub(super) fn in_memory() -> Result<Self> {
        let name = format!("/dev/shm/weir-bench.{}", std::process::id());
        Self::lay_out(Path::new(&name), 256 * MIB, true)
    }

    /// On the disk that holds this repository.
    pub(super) fn on_disk() -> Result<Self> {
        Self::lay_out(&Path::new(FOLDER).join("bench.img"), 1024 * MIB, false)
    }

    /// The option that names it, for both sides.
    pub(super) fn option(&self) -> String {
        format!(" --filename={}", self.path.display())
    }

    fn lay_out(path: &Path, bytes: u64, passing: bool) -> Result<Self> {
        let there = fs::metadata(path).is_ok_and(|meta| meta.len() == bytes);
        let image = Self {
            path: path.to_owned(),
            passing,
        };
        if !there {
            image
                .fill(bytes)
                .with_context(|| path.display().to_string())?;
        }
        Ok(image)
    }

    /// Written under another name first, so that what bears the name is whole.
    fn fill(&self, bytes: u64) -> Result<()> {
        println!("writing {} ({} MiB)", self.path.display(), bytes / MIB);
        let unfinished = self.path.with_extension("unfinished");
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
        std::io::copy(&mut File::open("/dev/urandom")?.take(bytes), &mut file)?;
        file.flush()?;
        file.get_ref().sync_all()?;
        fs::rename(&unfinished, &self.path)?;
        Ok(())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if self.passing {
            // What cannot be removed is in the way of nobody.
            let _ = fs::remove_file(&self.path);
        }
    }
}
