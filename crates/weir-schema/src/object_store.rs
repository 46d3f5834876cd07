//! Object store: a series of tests on versioned keys and arrays, each a phase of its own (spec: object store
//! performance). The work of a job.
//!
//! Not here: what was measured (`object_store_result`).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

use crate::kind::{KindInfo, Moves};
use crate::load_of_loop::Load;
use crate::object_test::{ObjectAction, ObjectTest};
use crate::store_class::ObjectClass;
use crate::workload::WorkloadFacts;

/// The kinds of an object store: its operations.
pub const OBJECT_KINDS: &[KindInfo] = &[
    KindInfo::new("update", Moves::Out),
    KindInfo::new("fetch", Moves::In),
    KindInfo::new("verify", Moves::In),
    KindInfo::new("punch", Moves::None),
    KindInfo::new("iterate", Moves::None),
    KindInfo::new("query", Moves::None),
    KindInfo::new("aggregate", Moves::None),
    KindInfo::new("discard", Moves::None),
    KindInfo::new("collect", Moves::None),
    KindInfo::new("list", Moves::None),
    KindInfo::new("scan", Moves::In),
    KindInfo::new("modify", Moves::Out),
    KindInfo::new("insert", Moves::Out),
];

/// Values longer than this are refused.
pub const LARGEST_OBJECT_VALUE: Bytes = Bytes(1 << 30);

/// Tests on an object store, one after the other on every rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectWorkload {
    /// Store that is measured.
    pub engine: ObjectEngine,
    /// Path of a rank's pool file before the number of the rank; empty where the engine has no file.
    #[serde(default)]
    pub path: String,
    /// End of that path, after the number of the rank.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path_end: String,
    /// Stores of a rank, each with a part of the distribution keys and of the pool, and with a worker; one where
    /// it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<u32>,
    /// Size of a rank's pool.
    pub pool_bytes: Bytes,
    /// Of it on blocks, where there is such a tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_tier_bytes: Option<Bytes>,
    /// Addresses of the servers whose targets hold the store, where the engine is one over a network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// File with the secret that these servers ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Spread of objects over targets, and what protects them; without it as the engine has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ObjectClass>,
    /// UUID of a pool that exists and is kept; without it each rank makes one and deletes it at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// UUID of the container: opened in a pool that exists, made in a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Fate that an acknowledged update survives; without it the best that the place of the file has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<ObjectDurability>,
    /// Pages of the pool that are mapped in before the first test.
    #[serde(default)]
    pub prefault: ObjectPrefault,
    /// Keys and values.
    pub layout: ObjectLayout,
    /// Of object ids, of the order of shuffled extents, of contents; 0 asks for another one at each run.
    pub seed: u64,
    /// Values are copied in place between a begin and an end, and not by one call.
    pub zero_copy: bool,
    /// Each operation is made, run and joined as a thread of its own on the next CPU.
    pub thread_per_operation: bool,
    /// Operations in flight; 0: one, and each is waited for.
    pub in_flight: u32,
    /// Bytes of values.
    #[serde(default)]
    pub payload: ObjectPayload,
    /// Each operation's time is kept in whole microseconds too, cut off, as the peers have it.
    #[serde(default)]
    pub truncate: bool,
    /// Recording and pace of every test, of the mixes alone where there are some; a test ends with its last
    /// operation, or at the bound of its mix.
    pub load: Load,
    /// Tests in their order.
    pub tests: Vec<ObjectTest>,
}

impl Default for ObjectWorkload {
    /// No tests on a small store in memory.
    fn default() -> Self {
        Self {
            engine: ObjectEngine::Mem,
            path: String::new(),
            path_end: String::new(),
            targets: None,
            pool_bytes: Bytes(2 << 30),
            block_tier_bytes: None,
            servers: Vec::new(),
            token_file: None,
            class: None,
            pool: None,
            container: None,
            durability: None,
            prefault: ObjectPrefault::default(),
            layout: ObjectLayout::default(),
            seed: 0,
            zero_copy: false,
            thread_per_operation: false,
            in_flight: 0,
            payload: ObjectPayload::default(),
            truncate: false,
            load: Load::default(),
            tests: Vec::new(),
        }
    }
}

impl WorkloadFacts for ObjectWorkload {
    fn title(&self) -> String {
        let value = match self.layout.value {
            ObjectValue::Single => "values",
            ObjectValue::Array { .. } => "extents",
        };
        let size = self.layout.stride_bytes;
        format!("{value} of {size} in a store ({})", self.engine.name())
    }

    fn load(&self) -> Option<&Load> {
        Some(&self.load)
    }

    fn load_mut(&mut self) -> Option<&mut Load> {
        Some(&mut self.load)
    }

    fn seed(&self) -> Option<u64> {
        Some(self.seed)
    }
}

impl ObjectWorkload {
    /// Path of a rank's pool file.
    pub fn pool_file(&self, rank: u32) -> String {
        format!("{}{rank}{}", self.path, self.path_end)
    }

    /// Stores of a rank.
    pub fn targets(&self) -> u32 {
        self.targets.map_or(1, |targets| targets.max(1))
    }

    /// Operations that a test counts on one rank, where its parameters say so beforehand.
    pub fn planned_operations(&self, test: &ObjectTest) -> Option<u64> {
        let part = |chosen: Option<u64>, all: u64| chosen.unwrap_or(all);
        let objects = part(test.objects, self.layout.objects);
        let dkeys = part(test.dkeys, self.layout.dkeys);
        let per_dkey = part(test.akeys, self.layout.akeys)
            .saturating_mul(part(test.strides, self.layout.strides));
        let once = match test.action {
            ObjectAction::Update | ObjectAction::Fetch | ObjectAction::Verify => {
                objects.saturating_mul(dkeys).saturating_mul(per_dkey)
            }
            ObjectAction::Punch { dkeys: true } => objects.saturating_mul(dkeys),
            ObjectAction::Punch { dkeys: false } | ObjectAction::Query => objects,
            ObjectAction::Aggregate { .. }
            | ObjectAction::Discard { .. }
            | ObjectAction::Collect { .. } => 1,
            ObjectAction::Mix(mix) => mix.operations?,
            ObjectAction::Iterate { .. } | ObjectAction::ListObjects => return None,
        };
        Some(once.saturating_mul(test.iterations))
    }
}

/// Store that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectEngine {
    /// In memory over a mapped file.
    #[default]
    Mem,
    /// A library of keys and values on a disk.
    Disk,
    /// The library redb.
    Redb,
    /// The library fjall.
    Fjall,
    /// The library LMDB.
    Lmdb,
    /// A server over a network.
    Remote,
    /// A server that stores nothing: the network alone.
    Echo,
    /// The library of DAOS.
    Daos,
}

impl ObjectEngine {
    /// Stores of this process, in the order of help texts.
    pub const EMBEDDED: [Self; 5] = [Self::Mem, Self::Disk, Self::Redb, Self::Fjall, Self::Lmdb];

    /// True for a library of keys and values on a disk.
    pub fn is_on_disk(self) -> bool {
        matches!(self, Self::Disk | Self::Redb | Self::Fjall | Self::Lmdb)
    }

    /// Its name in plans and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mem => "mem",
            Self::Disk => "disk",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
            Self::Lmdb => "lmdb",
            Self::Remote => "remote",
            Self::Echo => "echo",
            Self::Daos => "daos",
        }
    }
}

/// Fate that an acknowledged update survives.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ObjectDurability {
    /// None: anonymous memory.
    #[default]
    None,
    /// The end of the process, also by a signal.
    Process,
    /// A loss of power.
    Power,
}

impl ObjectDurability {
    /// All, from the weakest.
    pub const ALL: [Self; 3] = [Self::None, Self::Process, Self::Power];

    /// Its name in plans and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Process => "process",
            Self::Power => "power",
        }
    }
}

/// Pages of a pool that are mapped in before the first test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectPrefault {
    /// As many as the updates of the plan write.
    #[default]
    Plan,
    /// All.
    All,
    /// None.
    None,
}

/// Bytes of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectPayload {
    /// Every byte says where it belongs, and is compared.
    #[default]
    Verified,
    /// Zeros with one letter at 16 places of each page, which alone are compared.
    Compat,
}

/// Keys and values of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObjectLayout {
    /// Objects of the container.
    pub objects: u64,
    /// Distribution keys of an object.
    pub dkeys: u64,
    /// Attribute keys of a distribution key.
    pub akeys: u64,
    /// Extents of an array; of a single value, times that it is written.
    pub strides: u64,
    /// Length of a value or extent.
    pub stride_bytes: Bytes,
    /// Form of values.
    pub value: ObjectValue,
    /// Distribution keys are numbers of 8 bytes.
    pub integer_dkeys: bool,
    /// All attribute keys are one.
    pub constant_akey: bool,
    /// Objects without attribute keys.
    pub flat: bool,
}

impl Default for ObjectLayout {
    /// As the peers have it when nothing is said.
    fn default() -> Self {
        Self {
            objects: 1,
            dkeys: 256,
            akeys: 16,
            strides: 16,
            stride_bytes: Bytes(64),
            value: ObjectValue::Single,
            integer_dkeys: false,
            constant_akey: false,
            flat: false,
        }
    }
}

/// Form of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "form", rename_all = "snake_case")]
pub enum ObjectValue {
    /// Each whole.
    Single,
    /// Extents of an array of bytes.
    Array {
        /// In random order.
        shuffled: bool,
    },
}
