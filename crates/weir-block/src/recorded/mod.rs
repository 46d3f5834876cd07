//! Recorded patterns: operations with their files, offsets, sizes and times as text, so that a
//! run can be carried out again. The format is version 3 of fio's; version 2 is read too.
//!
//! In: the text of a pattern and how it is to be carried out again, or a job's operations. Out:
//! operations for a source, kept in memory or read in pieces while the job runs, and the job as
//! its pattern describes it; or the text. Not here: carrying out.

mod pattern_reader;
mod read;
mod replay;
mod write;

use std::path::PathBuf;
use std::sync::OnceLock;

use weir_schema::{Kind, Replay};

pub use pattern_reader::PatternReader;
pub use read::{Unreadable, read, survey};
pub(crate) use replay::{ReplayedJob, check_unchanged, replayed_job, tape};
pub(crate) use write::PatternFile;

use crate::op::Verb;

/// The first line of a pattern of version 3.
const VERSION_3: &str = "fio version 3 iolog";
/// The first line of a pattern of version 2.
const VERSION_2: &str = "fio version 2 iolog";

/// A pattern that was read.
#[derive(Debug, Default)]
pub struct RecordedPattern {
    /// Its files by their names.
    pub files: Vec<String>,
    /// Its operations in order; none where they are read in pieces.
    pub operations: Vec<Recorded>,
    /// Number of operations.
    count: u64,
    /// End of the last byte of each file's operations.
    ends: Vec<u64>,
    /// Bytes of the longest operation.
    longest: u32,
    /// The kinds that occur.
    kinds: Vec<Kind>,
    timed: bool,
    /// Its text and how it is carried out, where it is read in pieces.
    pieces: Option<(PathBuf, Replay)>,
    /// Error of a piece that could not be read.
    trouble: OnceLock<Unreadable>,
}

/// An operation of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its start, counted from the first one's.
    pub at_ns: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// Number of the file.
    pub file: u32,
    /// The action.
    pub verb: Verb,
}

impl RecordedPattern {
    /// End of the last byte of each file's operations.
    pub fn ends(&self) -> &[u64] {
        &self.ends
    }

    /// Bytes of the longest operation.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Operations of this kind occur.
    pub fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// It has pauses.
    pub fn is_timed(&self) -> bool {
        self.timed
    }

    /// Reason that its operations could not be read to their end while the job ran.
    pub fn trouble(&self) -> Option<&Unreadable> {
        self.trouble.get()
    }

    fn note(&mut self, op: &Recorded) {
        self.count += 1;
        self.timed |= op.at_ns > 0;
        self.longest = self.longest.max(op.length);
        let kind = op.verb.kind();
        if !self.has(kind) {
            self.kinds.push(kind);
        }
        let file = op.file as usize;
        if self.ends.len() <= file {
            self.ends.resize(file + 1, 0);
        }
        self.ends[file] = self.ends[file].max(op.offset + u64::from(op.length));
    }

    /// True if the operation is one of those seen when the pattern was first read.
    fn covers(&self, op: &Recorded) -> bool {
        let end = self.ends.get(op.file as usize).copied();
        end.is_some_and(|end| op.offset + u64::from(op.length) <= end)
            && op.length <= self.longest
            && self.has(op.verb.kind())
    }
}
