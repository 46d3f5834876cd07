//! Settings of a pool, its counters, and what passes over it find.
//!
//! In: what a user asks for. Out: what an engine opens by. Not here: calls (`store`).

use std::path::PathBuf;

use crc_fast::{CrcAlgorithm, checksum};
use xxhash_rust::xxh3::xxh3_64;

use crate::store::{Epoch, ObjectId, RecordExtent, StoreUuid};

/// Counters of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Containers.
    pub containers: u64,
    /// Objects.
    pub objects: u64,
    /// Attribute keys.
    pub akeys: u64,
    /// Versions, punches too.
    pub versions: u64,
    /// Bytes of the pool that values take, rounding included.
    pub value_bytes: u64,
    /// Bytes of the pool that the log takes.
    pub log_bytes: u64,
    /// Bytes freed that wait for [`collect`](crate::ObjectStore::collect).
    pub deferred_bytes: u64,
    /// Bytes of the pool that nothing takes.
    pub free_bytes: u64,
    /// Bytes of memory beside the pool.
    pub index_bytes: u64,
    /// Nanoseconds that preparing the memory took.
    pub prefault_ns: u64,
    /// Nanoseconds that reading the log took.
    pub recovery_ns: u64,
    /// Log records read at open.
    pub recovered: u64,
    /// True if the log holds records behind a damaged one: the pool can only be read.
    pub log_damaged: bool,
}

impl StoreStats {
    /// Adds what another part of a store has; times count once.
    pub(crate) fn take_in(&mut self, other: &Self) {
        self.containers = self.containers.max(other.containers);
        self.objects += other.objects;
        self.akeys += other.akeys;
        self.versions += other.versions;
        self.value_bytes += other.value_bytes;
        self.log_bytes += other.log_bytes;
        self.deferred_bytes += other.deferred_bytes;
        self.free_bytes += other.free_bytes;
        self.index_bytes += other.index_bytes;
        self.prefault_ns = self.prefault_ns.max(other.prefault_ns);
        self.recovery_ns = self.recovery_ns.max(other.recovery_ns);
        self.recovered += other.recovered;
        self.log_damaged |= other.log_damaged;
    }
}

/// Failures that acknowledged operations survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Durability {
    /// None: anonymous memory.
    None,
    /// Death of the process.
    Process,
    /// Loss of power.
    Power,
}

/// Memory that is made present before the first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefault {
    /// The given bytes of the pool, as `footprint` of the engine reckons them.
    Plan(u64),
    /// The whole pool.
    All,
    /// Nothing.
    None,
}

/// Sums over the stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueSums {
    /// None.
    None,
    /// CRC-32C.
    Crc32c,
    /// Low half of XXH3-64.
    Xxh3,
}

/// Sum of bytes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "sums of 32 bits")]
pub(crate) fn sum_of(sums: ValueSums, bytes: &[u8]) -> u32 {
    match sums {
        ValueSums::None => 0,
        ValueSums::Crc32c => checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32,
        ValueSums::Xxh3 => xxh3_64(bytes) as u32,
    }
}

/// Creation or opening of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// A new pool; one that is there gives `EXIST` and is left as it is.
    Create,
    /// A pool that is there; `NONEXIST` without it.
    Open,
}

/// Pool to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// File of the pool; `None` for anonymous memory.
    pub path: Option<PathBuf>,
    /// Bytes of a new pool; ignored for one that is opened.
    pub bytes: u64,
    /// Name of the pool; one that is opened has to have it, unless it is `None`.
    pub uuid: Option<StoreUuid>,
    /// Create or open.
    pub mode: PoolMode,
    /// Failures to survive.
    pub durability: Durability,
    /// Takes memory that is not persistent for such that is: to measure the instructions alone.
    pub assume_persistent: bool,
    /// Memory to make present.
    pub prefault: Prefault,
    /// Sums of a new pool; one that is opened keeps its own.
    pub sums: ValueSums,
    /// Lets updates wait until [`poll`](crate::ObjectStore::poll) commits those that have arrived, where
    /// a commit costs more than an update.
    pub group_commit: bool,
}

impl PoolSpec {
    /// A new pool in anonymous memory, without sums.
    pub const fn anonymous(bytes: u64) -> Self {
        Self {
            path: None,
            bytes,
            uuid: None,
            mode: PoolMode::Create,
            durability: Durability::None,
            assume_persistent: false,
            prefault: Prefault::None,
            sums: ValueSums::None,
            group_commit: false,
        }
    }
}

/// Creation or opening of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContainerMode {
    /// A new one; `EXIST` if it is there.
    Create,
    /// One that is there; `NONEXIST` without it.
    Open,
    /// The one that is there, or else a new one.
    OpenOrCreate,
}

/// Work of a pass that drops versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreedVersions {
    /// Versions that it looked at.
    pub visited: u64,
    /// Versions that it dropped, punches too.
    pub versions: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

/// Value whose bytes are not those that were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedValue {
    /// Its object.
    pub object: ObjectId,
    /// Its distribution key.
    pub dkey: Vec<u8>,
    /// Its attribute key.
    pub akey: Vec<u8>,
    /// Its records; `None` for a single value.
    pub extent: Option<RecordExtent>,
    /// Its epoch.
    pub epoch: Epoch,
}
