//! Kinds of operation, which are counted apart.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of operation that block I/O counts apart.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Data from the target.
    Read,
    /// Data to the target.
    Write,
    /// Discard of a range.
    Trim,
    /// fsync, fdatasync or a range sync.
    Sync,
}

impl Kind {
    /// Every kind that moves or discards data, in the order of reports.
    pub const DATA: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Position in tables indexed by kind: read 0, write 1, trim 2, sync 3.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::Sync => "sync",
        }
    }
}

/// One value for each data kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PerKind<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims.
    pub trim: T,
}

impl<T> PerKind<T> {
    /// The value of a data kind; syncs share the write's.
    pub const fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Read => &self.read,
            Kind::Write | Kind::Sync => &self.write,
            Kind::Trim => &self.trim,
        }
    }
}
