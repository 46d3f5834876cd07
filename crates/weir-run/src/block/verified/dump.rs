//! Dumps: a bad interval as it was read and, unless its header is bad, as it should be, in files
//! beside each other.

use std::path::PathBuf;

use weir_schema::FailedCheck;

use crate::verify::Finding;

/// Where dumps go.
#[derive(Debug)]
pub(super) struct Dumps {
    directory: PathBuf,
}

impl Dumps {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Stores them; the names of the files that could be written.
    pub(super) fn store(
        &self,
        target: &str,
        finding: &Finding,
        found: &[u8],
        wanted: &[u8],
    ) -> Vec<String> {
        let base = target.rsplit('/').next().unwrap_or(target);
        let name = |what: &str| format!("{base}.{}.{what}", finding.at);
        let files = match finding.check {
            FailedCheck::Data | FailedCheck::Pattern | FailedCheck::Method => {
                vec![(name("received"), found), (name("expected"), wanted)]
            }
            _ => vec![(name("hdr_fail"), found)],
        };
        let stored = files
            .into_iter()
            .filter(|(name, bytes)| std::fs::write(self.directory.join(name), bytes).is_ok());
        stored.map(|(name, _)| name).collect()
    }
}
