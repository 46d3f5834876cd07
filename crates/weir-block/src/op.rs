//! One block operation: what a source gives and an engine takes.

use weir_run::{OpTarget, Operation};
use weir_schema::Kind;

/// Action of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verb {
    /// Data from the target into the buffer.
    #[default]
    Read,
    /// Data from the buffer to the target.
    Write,
    /// Discard.
    Trim,
    /// Flush data and metadata.
    Sync,
    /// Flush data.
    DataSync,
    /// Flush a range of the page cache: from `offset`, `range` bytes.
    RangeSync,
}

impl Verb {
    /// The kind that it is counted as.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Read => Kind::Read,
            Self::Write => Kind::Write,
            Self::Trim => Kind::Trim,
            Self::Sync | Self::DataSync | Self::RangeSync => Kind::Sync,
        }
    }
}

/// The address of a slot's memory. The buffers it points into outlive every operation, because
/// worker and engine end before them (or leak them).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer(pub(crate) *mut u8);

impl Default for Buffer {
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

/// One block operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockOp {
    /// First byte on the target.
    pub offset: u64,
    /// Memory.
    pub buffer: Buffer,
    /// Bytes.
    pub length: u32,
    /// Index of the target.
    pub target: u32,
    /// Bytes of a range that is flushed; they do not count as moved.
    pub range: u32,
    /// Flags of `sync_file_range(2)`, beside the verb so that its tests stay of one byte.
    pub range_flags: u8,
    /// The action.
    pub verb: Verb,
    /// The I/O priority that goes along with it; 0: that of the thread.
    pub priority: u16,
}

impl Operation for BlockOp {
    #[inline]
    fn kind_index(&self) -> usize {
        self.verb.kind().index()
    }

    #[inline]
    fn length(&self) -> u32 {
        self.length
    }

    /// Operations of one priority are told apart from the others.
    #[inline]
    fn class(&self) -> u16 {
        self.priority
    }

    #[inline]
    fn acts_on(&self) -> OpTarget {
        OpTarget {
            number: self.target,
            offset: Some(self.offset),
        }
    }

    fn rest(&self, done: u32) -> Option<Self> {
        let done = done.min(self.length);
        Some(Self {
            offset: self.offset + u64::from(done),
            buffer: Buffer(self.buffer.0.wrapping_add(done as usize)),
            length: self.length - done,
            ..*self
        })
    }

    /// Some of their bytes are the same.
    fn overlaps(&self, other: &Self) -> bool {
        let end = |op: &Self| op.offset.saturating_add(u64::from(op.length));
        self.target == other.target && self.offset < end(other) && other.offset < end(self)
    }
}
