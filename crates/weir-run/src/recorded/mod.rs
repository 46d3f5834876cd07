//! Recorded patterns: operations with their files, offsets, sizes and times as text, so that a
//! run can be carried out again. The format is version 3 of fio's; version 2 is read too.
//!
//! In: the text of a pattern and how it is to be carried out again, or a job's operations. Out:
//! operations for a source, or the text. Not here: looking for the files, carrying out.

mod read;
mod write;

pub use read::{Unreadable, read};
pub(crate) use write::PatternFile;

use crate::block::Verb;

/// The first line of a pattern of version 3.
const VERSION_3: &str = "fio version 3 iolog";
/// The first line of a pattern of version 2.
const VERSION_2: &str = "fio version 2 iolog";

/// A pattern that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// Its files by their names.
    pub files: Vec<String>,
    /// Its operations in order.
    pub operations: Vec<Recorded>,
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
    /// Which file.
    pub file: u32,
    /// What it does.
    pub verb: Verb,
}

impl Pattern {
    /// Where the last byte of each file's operations lies.
    pub fn ends(&self) -> Vec<u64> {
        let mut ends = vec![0_u64; self.files.len()];
        for op in &self.operations {
            if let Some(end) = ends.get_mut(op.file as usize) {
                *end = (*end).max(op.offset + u64::from(op.length));
            }
        }
        ends
    }

    /// It has pauses.
    pub fn is_timed(&self) -> bool {
        self.operations.iter().any(|op| op.at_ns > 0)
    }
}
