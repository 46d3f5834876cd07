//! Tests on an object store: an operation, and what it walks over.
//!
//! Not here: the store, its keys and values (`object_store`), mixes (`object_mix`).

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

use crate::object_mix::ObjectMix;
use crate::object_store::{OBJECT_KINDS, ObjectLayout, ObjectValue};

/// A test: one walk over keys for each iteration, or a mix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectTest {
    /// Operation on what it walks over.
    pub action: ObjectAction,
    /// Number of walks.
    pub iterations: u64,
    /// Keys of an iteration are further ones, not those of the last.
    #[serde(default)]
    pub keep_counter: bool,
    /// First objects that it walks over; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// First distribution keys of each; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dkeys: Option<u64>,
    /// First attribute keys of each; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub akeys: Option<u64>,
    /// First strides of each; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<u64>,
    /// First byte in a stride.
    #[serde(default)]
    pub offset: Bytes,
    /// Bytes of a stride from there.
    pub size: Bytes,
    /// The peer's text has its figures.
    #[serde(default)]
    pub print: bool,
    /// Each operation's keys are kept.
    #[serde(default)]
    pub verbose: bool,
    /// Question before it, which has to be answered by `y` on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl ObjectTest {
    /// One walk over everything in whole strides.
    pub fn new(action: ObjectAction, layout: &ObjectLayout) -> Self {
        Self {
            action,
            iterations: 1,
            keep_counter: false,
            objects: None,
            dkeys: None,
            akeys: None,
            strides: None,
            offset: Bytes(0),
            size: layout.stride_bytes,
            print: false,
            verbose: false,
            prompt: None,
        }
    }
}

/// Operation of a test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ObjectAction {
    /// Writes values.
    Update,
    /// Reads them.
    Fetch,
    /// Reads and compares them.
    Verify,
    /// Hides whole objects.
    Punch {
        /// Each distribution key by itself instead.
        dkeys: bool,
    },
    /// Walks over what is there, all versions.
    Iterate {
        /// Only what a reader sees now.
        visible: bool,
        /// Not below distribution keys.
        shallow: bool,
        /// The first object alone.
        first: bool,
    },
    /// Asks each object for its greatest key and the end of its array.
    Query,
    /// Frees versions that no reader sees any more.
    Aggregate {
        /// Also where nothing changed since the last time.
        full_scan: bool,
        /// Neighbouring extents become one whatever they cost.
        merge: bool,
    },
    /// Drops versions.
    Discard {
        /// As of an aggregation.
        full_scan: bool,
        /// As of an aggregation.
        merge: bool,
    },
    /// Frees memory that was put off until nothing is left.
    Collect {
        /// As of an aggregation.
        full_scan: bool,
        /// As of an aggregation.
        merge: bool,
    },
    /// Lists the objects of a snapshot.
    ListObjects,
    /// Operations that are drawn one by one.
    Mix(ObjectMix),
}

impl ObjectAction {
    /// Its kind of operation, by its place in [`OBJECT_KINDS`]; of a mix the first.
    pub fn kind(self) -> usize {
        match self {
            Self::Update | Self::Mix(_) => 0,
            Self::Fetch => 1,
            Self::Verify => 2,
            Self::Punch { .. } => 3,
            Self::Iterate { .. } => 4,
            Self::Query => 5,
            Self::Aggregate { .. } => 6,
            Self::Discard { .. } => 7,
            Self::Collect { .. } => 8,
            Self::ListObjects => 9,
        }
    }

    /// The reason for which it cannot be had with such keys and values.
    pub fn lacks(self, layout: &ObjectLayout) -> Option<&'static str> {
        if self != Self::Query {
            return None;
        }
        let is_array = layout.value != ObjectValue::Single;
        let needs = [
            (
                layout.integer_dkeys || layout.flat,
                "Integer dkeys required for query test (-i)",
            ),
            (is_array, "Array values required for query test (-A)"),
            (
                layout.constant_akey,
                "Const akey required for query test (-I)",
            ),
        ];
        needs.into_iter().find(|(has, _)| !has).map(|(_, why)| why)
    }

    /// Name of its phase.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mix(_) => "mix",
            _ => OBJECT_KINDS[self.kind()].name,
        }
    }

    /// True if it moves values.
    pub fn moves_values(self) -> bool {
        matches!(
            self,
            Self::Update | Self::Fetch | Self::Verify | Self::Mix(_)
        )
    }
}
