//! Settings of a pool, its counters, and what passes over it find.
//!
//! In: what a user asks for. Out: what an engine opens by. Not here: calls (`store`).

use std::ops::AddAssign;
use std::path::{Path, PathBuf};

use crc_fast::{CrcAlgorithm, checksum};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::ObjectCode;
use crate::store::{ContainerId, Epoch, EpochRange, ObjectId, RecordExtent, Result, StoreUuid};

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
pub use weir_schema::ObjectDurability as Durability;

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
    None = 0,
    /// CRC-32C.
    Crc32c = 1,
    /// Low half of XXH3-64.
    Xxh3 = 2,
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

/// Library of keys and values under the engine `disk`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DiskLibrary {
    /// In the pool's file.
    #[default]
    Redb,
    /// In a directory beside it.
    Fjall,
    /// In a directory beside it.
    Lmdb,
}

impl DiskLibrary {
    /// Name of the format of its pools.
    pub(crate) fn magic(self) -> [u8; 8] {
        *match self {
            Self::Redb => b"weirdisk",
            Self::Fjall => b"weirfjal",
            Self::Lmdb => b"weirlmdb",
        }
    }

    /// The library of the pool that a file is, by its first bytes.
    pub fn of_pool(head: &[u8]) -> Option<Self> {
        let all = [Self::Redb, Self::Fjall, Self::Lmdb];
        all.into_iter().find(|one| head.starts_with(&one.magic()))
    }

    /// True if it has a directory beside the pool's file.
    pub(crate) fn has_directory(self) -> bool {
        self != Self::Redb
    }

    /// The reason that this build has it not.
    pub fn lacks(self) -> Option<&'static str> {
        match self {
            Self::Fjall if cfg!(not(feature = "fjall")) => {
                Some("this weir has no fjall; one that is built with --features fjall has it")
            }
            Self::Lmdb if cfg!(not(feature = "lmdb")) => {
                Some("this weir has no LMDB; one that is built with --features lmdb has it")
            }
            _ => None,
        }
    }
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
    /// Library of a pool on a disk.
    pub library: DiskLibrary,
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
            library: DiskLibrary::Redb,
        }
    }
}

/// The directory beside the file of a pool, for libraries that have one.
pub(crate) fn directory_of(pool: &Path) -> PathBuf {
    let mut directory = pool.to_owned().into_os_string();
    directory.push(".d");
    directory.into()
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

/// A container of a pool.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) uuid: StoreUuid,
    /// Epochs of snapshots.
    pub(crate) snapshots: Vec<u64>,
    /// It was destroyed; its number is not given again.
    pub(crate) is_gone: bool,
}

impl Container {
    pub(crate) fn new(uuid: StoreUuid) -> Self {
        let (snapshots, is_gone) = (Vec::new(), false);
        Self {
            uuid,
            snapshots,
            is_gone,
        }
    }

    pub(crate) fn end(&mut self) {
        self.snapshots.clear();
        self.is_gone = true;
    }

    /// Keeps a snapshot, or drops it.
    pub(crate) fn keep(&mut self, epoch: u64, keeps: bool) {
        self.snapshots.retain(|&other| other != epoch);
        self.snapshots.extend(keeps.then_some(epoch));
    }
}

/// All epochs that updates may have.
pub(crate) const ALL_EPOCHS: EpochRange = EpochRange {
    after: Epoch(0),
    upto: Epoch::LATEST,
};

/// Containers that are there.
pub(crate) fn there(containers: &[Container]) -> impl Iterator<Item = &Container> {
    containers.iter().filter(|container| !container.is_gone)
}

/// An open container.
#[inline]
pub(crate) fn known(containers: &[Container], id: ContainerId) -> Result<&Container> {
    let found = containers.get(id.0 as usize);
    let found = found.filter(|container| !container.is_gone);
    found.ok_or_else(|| ObjectCode::NoHdl.error("no such container"))
}

/// The container of a name; `None` where it is to be made.
pub(crate) fn find_container(
    containers: &[Container],
    uuid: StoreUuid,
    mode: ContainerMode,
) -> Result<Option<ContainerId>> {
    let mut numbered = (0..).zip(containers);
    let found = numbered.find(|(_, container)| container.uuid == uuid && !container.is_gone);
    match (found, mode) {
        (Some(_), ContainerMode::Create) => ObjectCode::Exist.fail("the container exists"),
        (None, ContainerMode::Open) => ObjectCode::NonExist.fail("no such container"),
        (found, _) => Ok(found.map(|(number, _)| ContainerId(number))),
    }
}

/// The first eight bytes as a number; 0 where there are fewer.
#[inline]
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |w| u64::from_le_bytes(*w))
}

/// A length or a place in this machine's memory; the greatest where it has none such.
#[inline]
pub(crate) fn local(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
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

impl AddAssign for FreedVersions {
    fn add_assign(&mut self, other: Self) {
        self.visited += other.visited;
        self.versions += other.versions;
        self.bytes += other.bytes;
    }
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
