//! A directory of a run's own, which does not outlive it.
//!
//! In: where it may lie. Out: its path; it is removed when the run ends. A run that is killed
//! cannot do so: then the next one does, which finds that nobody holds the directory's lock. The
//! kernel lets go of a lock with the last of its holders, however they ended, on file systems that
//! several machines share too.

use std::fs::{self, DirEntry, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

/// Prefix of their names, before a number of the run.
const NAME: &str = "weir-channel-files-";

/// The directory, as long as the run lasts.
#[derive(Debug)]
pub(super) struct ScratchFiles {
    path: PathBuf,
    /// Open and locked.
    _lock: File,
}

impl ScratchFiles {
    /// A new one, of this number, in a directory that is there.
    pub(super) fn new(parent: &Path, number: u64) -> io::Result<Self> {
        let parent = fs::canonicalize(parent)?;
        sweep(&parent);
        // Under its name it is locked from the beginning.
        let young = parent.join(format!(".{NAME}{number:016x}"));
        fs::create_dir(&young)?;
        let lock = File::open(&young)?;
        // Where there are no locks nobody takes one that is free for a sign.
        let _ = try_lock(&lock);
        let path = parent.join(format!("{NAME}{number:016x}"));
        fs::rename(&young, &path)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, and tells what is in the way.
    pub(super) fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

impl Drop for ScratchFiles {
    fn drop(&mut self) {
        // Either it is removed already, or the run has failed and says why.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Fails if there cannot be such a directory, with the reason.
pub(super) fn usable(parent: &Path) -> Result<(), String> {
    let refuse = |why: &dyn std::fmt::Display| {
        Err(format!("channels cannot be in {}: {why}", parent.display()))
    };
    match fs::metadata(parent) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refuse(&"there is no such directory; make it first");
        }
        Err(error) => return refuse(&error),
        Ok(facts) if !facts.is_dir() => return refuse(&"it is not a directory"),
        Ok(_) => {}
    }
    let trial = parent.join(format!(".{NAME}trial-{}", std::process::id()));
    let tried = fs::create_dir(&trial).and_then(|()| fs::remove_dir(&trial));
    tried.or_else(|error| refuse(&error))
}

fn try_lock(directory: &File) -> io::Result<()> {
    Ok(flock(directory, FlockOperation::NonBlockingLockExclusive)?)
}

/// Removes what killed runs of this user have left.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_ours) {
        let path = entry.path();
        if File::open(&path).and_then(|open| try_lock(&open)).is_ok() {
            // What cannot be removed was not in the way before.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_ours(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    // Of the entry itself: a link leads elsewhere.
    let facts = entry.metadata();
    name.to_string_lossy().starts_with(NAME)
        && facts.is_ok_and(|facts| facts.is_dir() && facts.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory for one test.
    struct AddressOrInterface(PathBuf);

    impl AddressOrInterface {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let name = |e: io::Result<DirEntry>| e.unwrap().file_name().into_string().unwrap();
            let mut names: Vec<String> = entries.map(name).collect();
            names.sort();
            names
        }
    }

    impl Drop for AddressOrInterface {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn it_vanishes_with_its_run_and_leaves_others_alone() {
        let place = AddressOrInterface::new("two-runs");
        let first = ScratchFiles::new(&place.0, 1).unwrap();
        let second = ScratchFiles::new(&place.0, 2).unwrap();
        assert!(first.path().is_dir() && second.path().is_dir());
        drop(first);
        assert_eq!(place.names(), ["weir-channel-files-0000000000000002"]);
        second.remove().unwrap();
        assert!(place.names().is_empty());
    }

    #[test]
    fn what_a_killed_run_left_is_removed_and_nothing_else() {
        let place = AddressOrInterface::new("leftovers");
        fs::create_dir_all(place.0.join("weir-channel-files-dead/rank0")).unwrap();
        fs::write(place.0.join("weir-channel-files-file"), "").unwrap();
        fs::create_dir(place.0.join("other")).unwrap();
        std::os::unix::fs::symlink("other", place.0.join("weir-channel-files-link")).unwrap();
        drop(ScratchFiles::new(&place.0, 3).unwrap());
        assert_eq!(
            place.names(),
            [
                "other",
                "weir-channel-files-file",
                "weir-channel-files-link"
            ]
        );
    }
}
