//! Dumps: a bad interval as it was read and, unless its header is bad, as it should be, in files
//! beside each other.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use weir_schema::FailedCheck;

use crate::verify::IntervalFinding;

/// Directory of dumps.
#[derive(Debug)]
pub(super) struct Dumps {
    directory: PathBuf,
}

impl Dumps {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Stores them; the names of the files that could be written, and what became of another.
    pub(super) fn store(
        &self,
        target: &str,
        finding: &IntervalFinding,
        found: &[u8],
        wanted: &[u8],
    ) -> (Vec<String>, Option<String>) {
        let base = target.rsplit('/').next().unwrap_or(target);
        let name = |what: &str| format!("{base}.{}.{what}", finding.at);
        let files = match finding.check {
            FailedCheck::Data | FailedCheck::Pattern | FailedCheck::Method => {
                vec![(name("received"), found), (name("expected"), wanted)]
            }
            _ => vec![(name("hdr_fail"), found)],
        };
        let (mut stored, mut lost) = (Vec::new(), None);
        for (name, bytes) in files {
            let path = self.directory.join(&name);
            match write(&path, bytes) {
                Ok(()) => stored.push(name),
                Err(error) => {
                    lost.get_or_insert_with(|| format!("{}: {error}", path.display()));
                }
            }
        }
        (stored, lost)
    }
}

/// Writes a file whole, or leaves none.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = File::create(path)?.write_all(bytes);
    if written.is_err() {
        // The error of the write says more than one of this.
        let _ = std::fs::remove_file(path);
    }
    written
}
