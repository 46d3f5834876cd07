//! The same run with several kernels.
//!
//! In: patterns of folders or images. Out: the kernels they name, and a [`MatrixRow`] for each run.
//! Not here: the run itself (`lab`).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::kernel::{Kernel, by_version};
use crate::verdict::LabRun;

/// One kernel's line of the table.
#[derive(Debug, Clone)]
pub struct MatrixRow {
    /// The kernel's release.
    pub kernel: String,
    /// The run's status.
    pub status: i32,
    /// Complaints of the kernel.
    pub complaints: usize,
    /// Seconds of the emulator.
    pub run_s: f64,
}

impl MatrixRow {
    /// Row of a run.
    pub fn of(run: &LabRun) -> Self {
        Self {
            kernel: run.kernel.clone(),
            status: run.status,
            complaints: run.complaints.len(),
            run_s: run.run_s,
        }
    }
}

/// The kernels that patterns name, the oldest first; a pattern may end in `*`.
///
/// # Errors
/// If one names none, or something that is no kernel.
pub fn kernels_matching(patterns: &[String]) -> Result<Vec<Kernel>> {
    let mut found = Vec::new();
    for pattern in patterns {
        let paths = match pattern.strip_suffix('*') {
            Some(begin) => beginning_with(Path::new(begin), begin.ends_with('/'))?,
            None => vec![PathBuf::from(pattern)],
        };
        ensure!(!paths.is_empty(), "`{pattern}` names no kernel");
        for path in paths {
            found.push(Kernel::at(&path)?);
        }
    }
    found.sort_by(|a, b| by_version(&a.release, &b.release));
    Ok(found)
}

fn beginning_with(begin: &Path, all: bool) -> Result<Vec<PathBuf>> {
    let (folder, start) = if all {
        (begin, "")
    } else {
        let start = begin.file_name().and_then(|name| name.to_str());
        let folder = begin.parent().filter(|path| !path.as_os_str().is_empty());
        (folder.unwrap_or(Path::new(".")), start.unwrap_or(""))
    };
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.flatten().map(|entry| entry.path());
    Ok(names
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(start))
        })
        .collect())
}
