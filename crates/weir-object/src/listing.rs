//! Listings: their levels, anchors and entries.
//!
//! In: what is to be listed. Out: entries, and where to go on. Not here: what an engine lists (`store`).

use crate::pool::local;
use crate::store::{Epoch, ObjectId, RecordExtent};

/// Items that a listing visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListLevel<'a> {
    /// Objects of the container.
    Objects,
    /// Distribution keys of an object.
    Dkeys(ObjectId),
    /// Attribute keys of a distribution key.
    Akeys(ObjectId, &'a [u8]),
    /// Values and extents of an attribute key that a read at the epoch finds.
    Visible(ObjectId, &'a [u8], &'a [u8]),
    /// Every version up to the epoch of an attribute key, punches too, oldest first.
    Versions(ObjectId, &'a [u8], &'a [u8]),
}

/// Place where a listing goes on; a new one begins at the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListAnchor {
    /// True once everything was visited.
    pub done: bool,
    /// Place in the engine's own terms.
    pub(crate) next: u64,
    /// Place in the terms of an engine that goes by keys.
    pub(crate) key: Vec<u8>,
}

/// Item that a listing visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListEntry<'a> {
    /// An object.
    Object(ObjectId),
    /// A key of the level that is listed.
    Key(&'a [u8]),
    /// A version of a value, or the visible part of one.
    Version {
        /// Records of an array; `None` for a single value.
        extent: Option<RecordExtent>,
        /// Epoch of the version.
        epoch: Epoch,
        /// Bytes; 0 for a punch.
        bytes: u64,
        /// True for a punch.
        punch: bool,
    },
}

impl ListEntry<'static> {
    pub(crate) fn version(of: Option<RecordExtent>, epoch: u64, bytes: u64, punch: bool) -> Self {
        let (extent, epoch) = (of, Epoch(epoch));
        Self::Version {
            extent,
            epoch,
            bytes,
            punch,
        }
    }
}

/// Visits entries from the anchor on; the anchor counts those that were passed.
pub(crate) fn visit_from<'a>(
    entries: impl IntoIterator<Item = ListEntry<'a>>,
    anchor: &mut ListAnchor,
    visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
) {
    let passed = local(anchor.next);
    for entry in entries.into_iter().skip(passed) {
        anchor.next += 1;
        if !visit(entry) {
            return;
        }
    }
    anchor.done = true;
}
