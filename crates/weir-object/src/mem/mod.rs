//! The engine `mem`: values in a mapped pool, a log of what was done, an index of it in DRAM.
//!
//! In: calls of [`ObjectStore`]. Out: values, found by one look-up and one copy. An update copies its
//! value, then appends one record to the log, then enters the index; at `power` a fence stands
//! before and behind the record. Opening reads the log, or the image of the index that a clean end left. What
//! [`ObjectStore::collect`] writes is a shorter log of what is left.

// Lengths against the limits of the model, places against the pool.
#![expect(clippy::cast_possible_truncation, reason = "numbers are checked")]

mod fetch;
mod image;
mod index;
mod listing;
mod log;
mod medium;
mod passes;
mod pool;
mod punch;
mod record;
mod space;
mod table;
#[cfg(test)]
mod tests;
mod update;
mod visible;

use crate::prelude::*;
use index::Index;
use log::Log;
pub use medium::{CHUNK, Mapping, Medium};
pub use pool::{PoolFacts, may_be_pool, pool_uuid};
use record::{HEADER, Record, RecordKind};
use space::{Space, slot_size};
use update::{Placed, Source};
use weir_sys::mempolicy::nodes_of_page_and_cpu;

/// The engine on a mapped pool.
pub type MemStore = Mem<Mapping>;

/// The engine on a medium.
#[derive(Debug)]
pub struct Mem<M: Medium> {
    medium: M,
    space: Space,
    log: Log,
    index: Index,
    uuid: StoreUuid,
    generation: u64,
    sums: ValueSums,
    /// Places of dropped versions, which the log still names.
    deferred: Vec<(u64, u64)>,
    deferred_bytes: u64,
    /// Values of the update at hand, and their sums: kept for their room.
    placed: Vec<Placed>,
    piece_sums: Vec<u8>,
    stats: StoreStats,
}

/// Bytes of a pool that values of one size take with their records, for `Prefault::Plan`.
pub fn footprint(values: u64, size: u64, key_bytes: u64) -> u64 {
    let record = (HEADER as u64 + key_bytes).next_multiple_of(64);
    let slot = slot_size(size.max(1));
    let chunks = if slot > CHUNK {
        values.saturating_mul(slot / CHUNK)
    } else {
        values.div_ceil(CHUNK / slot)
    };
    let segments = values.div_ceil((CHUNK - 256) / record.min(CHUNK / 8));
    // As much room again as the log has is kept for a shorter log.
    chunks
        .saturating_add(segments.saturating_mul(2))
        .saturating_add(4)
        .saturating_mul(CHUNK)
}

impl<M: Medium> Mem<M> {
    fn check_writable(&self) -> Result<()> {
        if self.stats.log_damaged {
            return ObjectCode::NoPerm.fail("the pool's log is damaged: it can only be read");
        }
        Ok(())
    }

    /// Appends a record that stands alone and takes it into the index.
    fn note(&mut self, record: &Record<'_>) -> Result<()> {
        let at = self.log.append(record, &mut self.medium, &mut self.space)?;
        self.medium.fence();
        self.space.reserve = self.log.segments().len() + 1;
        self.index.apply(&self.medium, record, at);
        Ok(())
    }

    fn note_snapshot(&mut self, kind: RecordKind, id: ContainerId, epoch: Epoch) -> Result<()> {
        known(&self.index.containers, id)?;
        self.check_writable()?;
        check_epoch(epoch)?;
        self.note(&Record::new(kind, id.0, ObjectId::default(), epoch.0))
    }

    fn note_pass(
        &mut self,
        kind: RecordKind,
        id: ContainerId,
        span: EpochRange,
    ) -> Result<FreedVersions> {
        known(&self.index.containers, id)?;
        self.check_writable()?;
        check_range(span)?;
        let mut record = Record::new(kind, id.0, ObjectId::default(), span.upto.0);
        record.at = span.after.0;
        self.note(&record)?;
        Ok(self.pass_over(kind, id.0, span))
    }
}

impl MemStore {
    /// Creates or opens a pool.
    ///
    /// # Errors
    /// It is there already or not there, or its place has no room for it or not the durability.
    pub fn open(spec: &PoolSpec) -> Result<Self> {
        let started = std::time::Instant::now();
        let mut medium = Mapping::new(spec)?;
        let prepared = (|| {
            let wanted = match spec.prefault {
                Prefault::Plan(bytes) => bytes.checked_next_multiple_of(CHUNK).unwrap_or(u64::MAX),
                Prefault::All => medium.len(),
                Prefault::None => 0,
            };
            if wanted > medium.len() {
                return ObjectCode::NoSpace.fail("the plan needs more than the pool has");
            }
            let mut store = if spec.mode == PoolMode::Create {
                if wanted > 0 {
                    // In this order: what a file system allocates by itself has no huge pages.
                    medium.populate(0, wanted)?;
                    medium.back(0, wanted)?;
                }
                Mem::create(medium, spec.uuid.unwrap_or_default(), spec.sums, wanted)?
            } else {
                let mut store = Mem::recover(medium, spec.uuid)?;
                if wanted > 0 {
                    store.medium.back(0, wanted)?;
                    store.medium.populate(0, wanted)?;
                    store.space.set_backed(wanted);
                }
                store
            };
            let spent = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
            store.stats.prefault_ns = spent - store.stats.recovery_ns;
            Ok(store)
        })();
        if let (Err(_), PoolMode::Create, Some(path)) = (&prepared, spec.mode, &spec.path) {
            // The file is this call's own: it was not there before.
            let _ = std::fs::remove_file(path);
        }
        prepared
    }
}

impl ObjectStore for MemStore {
    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId> {
        self.open_container(uuid, mode)
    }

    fn drop_container(&mut self, container: ContainerId) -> Result<()> {
        self.note_pass(RecordKind::DropContainer, container, ALL_EPOCHS)
            .map(drop)
    }

    fn update(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<Ticket> {
        self.update_values(key, iods, epoch, conditions, data)
    }

    fn fetch(
        &mut self,
        key: KeyAt<'_>,
        iods: &mut [Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &mut [u8],
    ) -> Result<Ticket> {
        self.fetch_values(key, iods, epoch, conditions, data)
    }

    fn fetch_batch(&mut self, batch: &mut [FetchRequest<'_>]) {
        self.fetch_with_hints(batch);
    }

    fn reserve(&mut self, key: KeyAt<'_>, iod: &Iod<'_>) -> Result<Reserved> {
        let len = check_iods(key.object, std::slice::from_ref(iod))?;
        if len == 0 || iod.extents().len() != 1 {
            return ObjectCode::Inval.fail("space is reserved for one value with a length");
        }
        self.check_writable()?;
        let at = self.place(len)?;
        Ok(Reserved { at, len })
    }

    fn reserved(&mut self, reserved: &Reserved) -> &mut [u8] {
        self.medium.bytes_mut(reserved.at, reserved.len as usize)
    }

    fn publish(
        &mut self,
        key: KeyAt<'_>,
        iod: &Iod<'_>,
        epoch: Epoch,
        conditions: Conditions,
        reserved: Reserved,
    ) -> Result<Ticket> {
        let iods = std::slice::from_ref(iod);
        let at = &CallAt::new(key, epoch, conditions);
        let done = check_call(at, iods).and_then(|len| {
            if len != reserved.len || iod.extents().len() != 1 {
                return ObjectCode::Inval.fail("the reserved space has another length");
            }
            self.write(at, iods, &Source::Place(reserved.at))
        });
        if done.is_err() {
            self.space.free(reserved.at, reserved.len);
        }
        done.map_err(|e| e.at(key.object, key.dkey, iod.akey, epoch))
    }

    fn cancel(&mut self, reserved: Reserved) {
        self.space.free(reserved.at, reserved.len);
    }

    fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Ticket> {
        let (dkey, akey) = scope.keys();
        let (dkey, akey) = (dkey.unwrap_or_default(), akey.unwrap_or_default());
        let mut record = Record::new(RecordKind::PunchObject, container.0, object, epoch.0);
        (record.dkey, record.akey) = (dkey, akey);
        match scope {
            PunchScope::Object => {}
            PunchScope::Dkey(_) => record.kind = RecordKind::PunchDkey,
            PunchScope::Akey(..) => record.kind = RecordKind::PunchAkey,
            PunchScope::Extent(.., extent) => {
                (record.kind, record.extent) = (RecordKind::PunchExtent, extent);
            }
        }
        known(&self.index.containers, container)
            .and_then(|_| check_punch(object, scope, epoch))
            .and_then(|()| self.note_punch(&record, conditions))
            .map_err(|e| e.at(object, dkey, akey, epoch))
    }

    fn list(
        &mut self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        known(&self.index.containers, container)?;
        check_list(level, epoch)?;
        if !anchor.done {
            self.list_level(container, level, epoch, anchor, visit);
        }
        Ok(())
    }

    fn query(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()> {
        known(&self.index.containers, container)?;
        check_query(object, what, epoch, &answer.dkey)?;
        self.query_keys(container, object, what, epoch, answer)
    }

    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch> {
        self.note_snapshot(RecordKind::Snapshot, container, epoch)?;
        Ok(epoch)
    }

    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        self.note_snapshot(RecordKind::DropSnapshot, container, epoch)
    }

    fn pass(&mut self, id: ContainerId, span: EpochRange, discards: bool) -> Result<FreedVersions> {
        let kinds = [RecordKind::Aggregate, RecordKind::Discard];
        self.note_pass(kinds[usize::from(discards)], id, span)
    }

    fn collect(&mut self) -> Result<u64> {
        self.rewrite_log()
    }

    fn scrub(&mut self, visit: &mut dyn FnMut(&DamagedValue)) -> Result<u64> {
        Ok(self.check_values(visit))
    }

    fn nodes(&self) -> Option<(u32, u32)> {
        nodes_of_page_and_cpu(self.medium.bytes(0, 1).first()?)
    }

    fn stats(&self) -> StoreStats {
        StoreStats {
            containers: there(&self.index.containers).count() as u64,
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

    fn close(mut self: Box<Self>) -> Result<()> {
        if self.medium.is_file() {
            self.leave_image();
        }
        Ok(())
    }
}
