//! A pool from its bytes and back: the superblock, a new pool, recovery, containers.
//!
//! The superblock has two places; the one with the greater generation counts. It names the start of
//! the log. Before the space of an earlier log is used again, the place that named it is cleared.

use std::time::Instant;

use super::Mem;
use super::index::Index;
use super::log::{Log, LogPlace, LogReader};
use super::medium::{CHUNK, Medium, too_small};
use super::record::{Record, RecordKind};
use super::space::Space;
use crate::prelude::*;
use crate::superblock::{BLOCK, Superblock};

const MAGIC: [u8; 8] = *b"weirpool";
const PLACES: [u64; 2] = [0, 4_096];

/// Records of a log that are read before the first of them is taken into the index: so many of its lines come
/// from memory at once.
const AHEAD: usize = 32;

/// True if a file that begins with these bytes, two pages at least, may be a pool.
pub fn may_be_pool(head: &[u8]) -> bool {
    let begins = |at: &u64| {
        head.get(*at as usize..)
            .is_some_and(|block| block.starts_with(&MAGIC))
    };
    PLACES.iter().any(begins)
}

/// Name of the pool of a file that begins with these bytes, two pages at least.
///
/// # Errors
/// `INVAL` where it is none.
pub fn pool_uuid(head: &[u8]) -> Result<StoreUuid> {
    let blocks = PLACES.into_iter().filter_map(|at| head.get(at as usize..));
    Superblock::read(blocks, MAGIC, None).map(|block| block.uuid)
}

/// Facts about a pool, beside its counters.
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

/// The superblock that counts.
fn read_superblock(medium: &impl Medium, uuid: Option<StoreUuid>) -> Result<Superblock> {
    let block = Superblock::read(PLACES.map(|at| medium.bytes(at, BLOCK)), MAGIC, uuid)?;
    refuse!(medium.len() < block.len => Io, "the pool's file was cut short");
    let at = block.words[0];
    refuse!(!at.is_multiple_of(CHUNK) || at >= block.len => Io, "the pool's superblock is damaged");
    Ok(block)
}

impl<M: Medium> Mem<M> {
    /// The superblock that names the present log.
    fn superblock(&self) -> Superblock {
        let LogPlace { at, salt, seq, .. } = self.log.start;
        Superblock {
            magic: MAGIC,
            uuid: self.uuid,
            len: self.medium.len(),
            generation: self.generation,
            words: [at, seq, u64::from(salt)],
            sums: self.sums,
        }
    }

    fn new(
        medium: M,
        space: Space,
        log: Log,
        (uuid, generation, sums): (StoreUuid, u64, ValueSums),
    ) -> Self {
        Self {
            medium,
            space,
            log,
            index: Index::default(),
            uuid,
            generation,
            sums,
            deferred: Vec::new(),
            deferred_bytes: 0,
            placed: Vec::new(),
            piece_sums: Vec::new(),
            stats: StoreStats::default(),
        }
    }

    /// A new pool on a medium of zeros, whose first bytes have backing.
    pub(super) fn create(mut on: M, uuid: StoreUuid, sums: ValueSums, backed: u64) -> Result<Self> {
        refuse!(on.len() < 4 * CHUNK => too_small());
        let mut space = Space::new(on.len());
        space.set_backed(backed);
        if backed == 0 {
            on.back(0, CHUNK)?;
        }
        let log = Log::new(&mut on, &mut space, 1)?;
        let mut store = Self::new(on, space, log, (uuid, 0, sums));
        store.write_superblock();
        Ok(store)
    }

    /// Names the present log in the superblock, and nothing else any more.
    pub(super) fn write_superblock(&mut self) {
        self.generation += 1;
        let block = self.superblock();
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
        let [at, seq, salt] = block.words;
        let log = LogPlace::start(at, seq, salt as u32);
        let named = (block.uuid, block.generation, block.sums);
        let mut store = Self::new(medium, space, Log::at(log), named);
        if !store.take_image() {
            store.read_log(log)?;
        }
        store.stats.recovery_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(store)
    }

    /// Takes the whole log in, and what it names as used.
    fn read_log(&mut self, log: LogPlace) -> Result<()> {
        let read = self.replay(log)?;
        self.stats.recovered = read.records;
        self.stats.log_damaged = read.damaged;
        self.log = read.log;
        for &segment in self.log.segments() {
            self.space.mark_segment(segment);
        }
        self.space.reserve = self.log.segments().len() + 1;
        let mut values = std::mem::take(&mut self.deferred);
        let deferred = values.len();
        self.each_value(|at, len| values.push((at, len)));
        refuse!(!self.space.mark_values(values.iter().copied()) => Io,
            "the pool's log names one place twice: it is damaged");
        values.truncate(deferred);
        self.deferred = values;
        if !read.damaged {
            // In this order: the tail may have the link to the segment that is noted as the last.
            self.log.set_current(&mut self.medium);
            self.log.clear_tail(&mut self.medium);
        }
        Ok(())
    }

    /// Takes the records of a log into the index.
    fn replay(&mut self, start: LogPlace) -> Result<LogReader> {
        // The passes of a log change the store, and reading it borrows the medium: one at a time.
        let mut next = Log::reader(start);
        let (mut places, mut goes_on) = (Vec::new(), true);
        while goes_on {
            places.clear();
            while goes_on && places.len() < AHEAD {
                let known = places.len();
                goes_on = next.read_group(&self.medium, &mut places);
                for &at in &places[known..] {
                    self.index.prefetch_record(&self.medium, at);
                }
            }
            for &at in &places {
                let Some(record) = Log::record(&self.medium, at) else {
                    continue;
                };
                let (after, upto) = (Epoch(record.at), Epoch(record.epoch));
                let (of, span) = (record.container, EpochRange { after, upto });
                refuse!(!self.is_possible(&record) => Io, "a record of the pool's log makes no sense");
                match record.kind {
                    kind @ (RecordKind::Aggregate
                    | RecordKind::Discard
                    | RecordKind::DropContainer) => {
                        self.pass_over(kind, of, span);
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
        if let Some(found) = find_container(&self.index.containers, uuid, mode)? {
            return Ok(found);
        }
        self.check_writable()?;
        let number = u32::try_from(self.index.containers.len())
            .map_err(|_| ObjectCode::NoSpace.error("too many containers"))?;
        self.note(&Record::container(number, uuid))?;
        Ok(ContainerId(number))
    }

    /// Facts about the pool, beside its counters.
    pub fn facts(&self) -> PoolFacts {
        PoolFacts {
            uuid: self.uuid,
            bytes: self.medium.len(),
            sums: self.sums,
            containers: there(&self.index.containers).map(|c| c.uuid).collect(),
        }
    }
}
