//! The files that jobs of a run have made. They are the run's own: a job that reads may make them
//! longer, where it would leave alone what lay there before.
//!
//! In: sites that were laid out and opened. Out: whether a path is one of them. Not here: when a
//! file is to be made longer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Site;

/// Files by their paths, shared by all jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeFiles(Arc<Mutex<HashSet<PathBuf>>>);

impl MadeFiles {
    /// Notes those of a job's sites that were not there before, or empty.
    pub(crate) fn note(&self, sites: &[Site]) {
        let is_made = |site: &Site| site.kind.is_none() && site.named.path.exists();
        let new = sites.iter().filter(|site| site.is_ours || is_made(site));
        let paths = new.map(|site| site.named.path.clone());
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.extend(paths);
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        let made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.contains(path)
    }
}
