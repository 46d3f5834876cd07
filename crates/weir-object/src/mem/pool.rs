//! A pool from its bytes and back: the superblock, a new pool, recovery, containers.
//!
//! The superblock has two places; the one with the greater generation counts. It names the start of
//! the log. Before the space of an earlier log is used again, the place that named it is cleared.

use std::time::Instant;

use super::index::Index;
use super::log::{Log, LogStart, ReadLog};
use super::medium::{CHUNK, Medium};
use super::record::{Record, RecordKind};
use super::space::Space;
use super::{Mem, fail};
use crate::store::{
    ContainerId, ContainerMode, ObjectId, Result, StoreStats, StoreUuid, ValueSums,
};
use crate::{ObjectCode, ObjectError};
use crc_fast::{CrcAlgorithm, checksum};

/// The first bytes of a pool.
pub const MAGIC: [u8; 8] = *b"weirpool";
const VERSION: u32 = 1;
const BLOCK: usize = 128;
const PLACES: [u64; 2] = [0, 4_096];

/// What a pool is, beside its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFacts {
    /// Its UUID.
    pub uuid: StoreUuid,
    /// Its size.
    pub bytes: u64,
    /// Sums over its values.
    pub sums: ValueSums,
    /// Its containers, in the order of their numbers.
    pub containers: Vec<StoreUuid>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Superblock {
    uuid: StoreUuid,
    len: u64,
    generation: u64,
    log: LogStart,
    sums: ValueSums,
}

impl Superblock {
    fn encode(&self) -> [u8; BLOCK] {
        let mut out = [0; BLOCK];
        let sums = match self.sums {
            ValueSums::None => 0,
            ValueSums::Crc32c => 1,
            ValueSums::Xxh3 => 2,
        };
        let words = [
            self.len,
            self.generation,
            self.log.at,
            self.log.seq,
            u64::from(self.log.salt),
            sums,
        ];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..32].copy_from_slice(&self.uuid);
        for (slot, word) in out[32..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        let crc = checksum(CrcAlgorithm::Crc32Iscsi, &out[16..]) as u32;
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            bytes[at..]
                .first_chunk()
                .map_or(0, |w| u64::from_le_bytes(*w))
        };
        if (word(8) >> 32) as u32 != checksum(CrcAlgorithm::Crc32Iscsi, &bytes[16..BLOCK]) as u32 {
            return None;
        }
        let sums = match word(72) {
            0 => ValueSums::None,
            1 => ValueSums::Crc32c,
            _ => ValueSums::Xxh3,
        };
        let log = LogStart {
            at: word(48),
            seq: word(56),
            salt: word(64) as u32,
        };
        let uuid = *bytes[16..].first_chunk()?;
        Some(Self {
            uuid,
            len: word(32),
            generation: word(40),
            log,
            sums,
        })
    }
}

/// The superblock that counts.
fn read_superblock(medium: &impl Medium, uuid: Option<StoreUuid>) -> Result<Superblock> {
    let places = PLACES.map(|at| medium.bytes(at, BLOCK));
    let named: Vec<&[u8]> = places
        .into_iter()
        .filter(|bytes| bytes[..8] == MAGIC)
        .collect();
    if named.is_empty() {
        return fail(ObjectCode::Inval, "the file is no pool of weir");
    }
    let version = |bytes: &&[u8]| {
        bytes[8..]
            .first_chunk()
            .map_or(0, |v| u32::from_le_bytes(*v))
    };
    if named.iter().map(version).max() > Some(VERSION) {
        return fail(ObjectCode::NoSys, "the pool has the format of a newer weir");
    }
    let whole = named.into_iter().filter_map(Superblock::decode);
    let Some(block) = whole.max_by_key(|block| block.generation) else {
        return fail(ObjectCode::Io, "the pool's superblock is damaged");
    };
    if uuid.is_some_and(|uuid| uuid != block.uuid) {
        return fail(ObjectCode::Mismatch, "the pool has another UUID");
    }
    if medium.len() < block.len {
        return fail(ObjectCode::Io, "the pool's file was cut short");
    }
    if !block.log.at.is_multiple_of(CHUNK) || block.log.at >= block.len {
        return fail(ObjectCode::Io, "the pool's superblock is damaged");
    }
    Ok(block)
}

impl<M: Medium> Mem<M> {
    fn new(medium: M, space: Space, log: Log, block: &Superblock) -> Self {
        Self {
            medium,
            space,
            log,
            index: Index::new(),
            uuid: block.uuid,
            generation: block.generation,
            sums: block.sums,
            deferred: Vec::new(),
            deferred_bytes: 0,
            placed: Vec::new(),
            piece_sums: Vec::new(),
            stats: StoreStats::default(),
        }
    }

    /// A new pool on a medium of zeros, whose first bytes have backing.
    pub(super) fn create(
        mut medium: M,
        uuid: StoreUuid,
        sums: ValueSums,
        backed: u64,
    ) -> Result<Self> {
        if medium.len() < 4 * CHUNK {
            return fail(
                ObjectCode::NoSpace,
                "the pool is smaller than its own records; give 8 MiB or more",
            );
        }
        let mut space = Space::new(medium.len());
        space.set_backed(backed);
        if backed == 0 {
            medium.back(0, CHUNK)?;
        }
        let log = Log::new(&mut medium, &mut space, 1)?;
        let block = Superblock {
            uuid,
            len: medium.len(),
            generation: 0,
            log: log.start,
            sums,
        };
        let mut store = Self::new(medium, space, log, &block);
        store.write_superblock();
        Ok(store)
    }

    /// Names the present log in the superblock, and nothing else any more.
    pub(super) fn write_superblock(&mut self) {
        self.generation += 1;
        let block = Superblock {
            uuid: self.uuid,
            len: self.medium.len(),
            generation: self.generation,
            log: self.log.start,
            sums: self.sums,
        };
        let places = [self.generation % 2, (self.generation + 1) % 2].map(|n| PLACES[n as usize]);
        for (at, bytes) in places.into_iter().zip([block.encode(), [0; BLOCK]]) {
            self.medium.bytes_mut(at, BLOCK).copy_from_slice(&bytes);
            self.medium.write_back(at, BLOCK);
            self.medium.fence();
        }
        self.log.set_current(&mut self.medium);
    }

    /// Opens the pool that a medium has.
    pub(super) fn recover(medium: M, uuid: Option<StoreUuid>) -> Result<Self> {
        let started = Instant::now();
        let block = read_superblock(&medium, uuid)?;
        let space = Space::new(medium.len());
        let mut store = Self::new(medium, space, Log::at(block.log), &block);
        let read = store.replay(block.log)?;
        store.stats.recovered = read.records;
        store.stats.log_damaged = read.damaged;
        store.log = read.log;
        for &segment in store.log.segments() {
            store.space.mark_segment(segment);
        }
        store.space.reserve = store.log.segments().len() + 1;
        let mut values = std::mem::take(&mut store.deferred);
        let deferred = values.len();
        store.each_value(|at, len| values.push((at, len)));
        if !store.space.mark_values(values.iter().copied()) {
            return fail(
                ObjectCode::Io,
                "the pool's log names one place twice: it is damaged",
            );
        }
        values.truncate(deferred);
        store.deferred = values;
        if !read.damaged {
            // In this order: the tail may have the link to the segment that is noted as the last.
            store.log.set_current(&mut store.medium);
            store.log.clear_tail(&mut store.medium);
        }
        store.stats.recovery_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(store)
    }

    /// Takes the records of a log into the index.
    fn replay(&mut self, start: LogStart) -> Result<ReadLog> {
        // The passes of a log change the store, and reading it borrows the medium: one at a time.
        let mut next = Log::reader(start);
        let mut group = Vec::new();
        while next.read_group(&self.medium, &mut group) {
            for &(at, salt) in &group {
                let Some(record) = Log::record(&self.medium, at, salt) else {
                    continue;
                };
                let (container, from, upto) = (record.container, record.at, record.epoch);
                if !self.is_possible(&record) {
                    return fail(ObjectCode::Io, "a record of the pool's log makes no sense");
                }
                match record.kind {
                    kind @ (RecordKind::Aggregate | RecordKind::Discard) => {
                        self.pass(kind, container, from, upto);
                    }
                    _ => self.index.apply(&self.medium, &record, at),
                }
            }
        }
        Ok(next.finish(&self.medium))
    }

    /// True unless a record names a place or a length that cannot be.
    fn is_possible(&self, record: &Record<'_>) -> bool {
        let len = match record.kind {
            RecordKind::Single => u64::from(record.len),
            RecordKind::Extent => record.extent.count.saturating_mul(u64::from(record.size)),
            _ => return true,
        };
        let end = record.at.checked_add(len);
        len > 0 && record.at >= CHUNK && end.is_some_and(|end| end <= self.medium.len())
    }

    /// Opens or makes a container.
    pub(super) fn open_container(
        &mut self,
        uuid: StoreUuid,
        mode: ContainerMode,
    ) -> Result<ContainerId> {
        let found = self.index.containers.iter().position(|c| c.uuid == uuid);
        match (found, mode) {
            (Some(_), ContainerMode::Create) => fail(ObjectCode::Exist, "the container exists"),
            (Some(number), _) => Ok(ContainerId(number as u32)),
            (None, ContainerMode::Open) => fail(ObjectCode::NonExist, "no such container"),
            (None, _) => {
                self.check_writable()?;
                let number = u32::try_from(self.index.containers.len())
                    .map_err(|_| ObjectError::new(ObjectCode::NoSpace, "too many containers"))?;
                let (hi, lo) = uuid.split_at(8);
                let word = |half: &[u8]| half.first_chunk().map_or(0, |w| u64::from_le_bytes(*w));
                let object = ObjectId {
                    hi: word(hi),
                    lo: word(lo),
                };
                self.note(&Record::new(RecordKind::Container, number, object, 0))?;
                Ok(ContainerId(number))
            }
        }
    }

    /// What the pool is, beside its counters.
    pub fn facts(&self) -> PoolFacts {
        PoolFacts {
            uuid: self.uuid,
            bytes: self.medium.len(),
            sums: self.sums,
            containers: self.index.containers.iter().map(|c| c.uuid).collect(),
        }
    }

    /// Counters, with those that are reckoned when asked for.
    pub(super) fn counters(&self) -> StoreStats {
        StoreStats {
            containers: self.index.containers.len() as u64,
            objects: self.index.objects.len() as u64,
            akeys: self.index.items.len() as u64,
            versions: self.index.versions,
            value_bytes: self.space.value_bytes,
            log_bytes: self.log.bytes(),
            deferred_bytes: self.deferred_bytes,
            free_bytes: self.space.free_bytes(),
            index_bytes: self.index.bytes(),
            ..self.stats
        }
    }
}
