//! The store: a pool of DAOS with its containers, objects and snapshots.
//!
//! In: calls of [`ObjectStore`]. Out: what libdaos answers. Handles are opened once and kept to the end. One
//! operation at a time waits in its call; several are in flight in an event queue. Not here: calls on raw memory
//! (`library`, `queue`).

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::Arc;

use weir_schema::ObjectRank;

use super::DaosPool;
use super::calls::{DaosHandle, DaosObject, NO_TRANSACTION};
use super::descriptors::{CallKind, Descriptors};
use super::library::DaosLibrary;
use super::listing::Listing;
use super::queue::EventQueue;
use crate::prelude::*;

/// Bits of an object's name that have its class.
pub(super) const CLASS_BITS: u64 = 0x00ff_ffff << 32;

/// An open container.
#[derive(Debug)]
pub(super) struct OpenContainer {
    pub(super) handle: DaosHandle,
    uuid: StoreUuid,
    /// It is destroyed at the end.
    is_own: bool,
    objects: HashMap<ObjectId, DaosHandle>,
    /// Transactions that read snapshots, by their epochs.
    snapshots: BTreeMap<u64, DaosHandle>,
}

/// An open pool.
#[derive(Debug)]
pub struct DaosStore {
    name: String,
    class: u32,
    pool: DaosHandle,
    /// None: it was destroyed.
    containers: Vec<Option<OpenContainer>>,
    request: Descriptors,
    queue: Option<EventQueue>,
    pub(super) listings: BTreeMap<u64, Listing>,
    pub(super) listed: u64,
    is_open: bool,
    /// The last to be dropped.
    pub(super) library: Arc<DaosLibrary>,
}

fn c_string(text: &str) -> Result<CString> {
    let why = "a label holds a NUL byte";
    CString::new(text).map_err(|_| ObjectCode::Inval.error(why))
}

fn check_latest(epoch: Epoch) -> Result<()> {
    if epoch == Epoch::LATEST {
        return Ok(());
    }
    let why =
        "daos gives updates, punches and snapshots their epochs itself: they are at the latest";
    ObjectCode::NoSys.fail(why)
}

fn flags(conditions: Conditions) -> u64 {
    // Those of each key by itself would stand in its descriptor.
    u64::from(conditions.0 & !Conditions::PER_AKEY.0)
}

impl DaosStore {
    /// Opens a pool.
    ///
    /// # Errors
    /// `NONEXIST` where there is no library that works; the library's own.
    pub fn open(pool: &DaosPool) -> Result<Self> {
        let library = DaosLibrary::open(pool.library.as_deref());
        let library = library.map_err(|why| ObjectCode::NonExist.error(why))?;
        let handle = library.connect(&c_string(&pool.name)?)?;
        let mut store = Self {
            name: pool.name.clone(),
            class: pool.class,
            pool: handle,
            containers: Vec::new(),
            request: Descriptors::new(),
            queue: None,
            listings: BTreeMap::new(),
            listed: 0,
            is_open: true,
            library,
        };
        if pool.in_flight > 1 {
            store.queue = Some(EventQueue::new(&store.library, pool.in_flight as usize)?);
        }
        Ok(store)
    }

    pub(super) fn container_at(&mut self, container: ContainerId) -> Result<&mut OpenContainer> {
        let found = self.containers.get_mut(container.0 as usize);
        found
            .and_then(Option::as_mut)
            .ok_or_else(|| ObjectCode::NoHdl.error("no such container"))
    }

    /// Handle of an object.
    pub(super) fn object(&mut self, id: ContainerId, object: ObjectId) -> Result<DaosHandle> {
        let of_pool = self.class;
        let library = Arc::clone(&self.library);
        let container = self.container_at(id)?;
        if let Some(handle) = container.objects.get(&object) {
            return Ok(*handle);
        }
        let form = u32::from(object.hi.to_be_bytes()[0]);
        let bits = (object.hi & CLASS_BITS) >> 32;
        let class = match u32::try_from(bits >> 16 << 24 | bits & 0xffff) {
            Ok(class) if class > 0 => class,
            _ => of_pool,
        };
        let name = DaosObject {
            hi: object.hi & u64::from(u32::MAX),
            lo: object.lo,
        };
        let handle = library.open_object(container.handle, name, (form, class))?;
        container.objects.insert(object, handle);
        Ok(handle)
    }

    /// Transaction that reads an epoch.
    pub(super) fn transaction(&mut self, id: ContainerId, epoch: Epoch) -> Result<DaosHandle> {
        let container = self.container_at(id)?;
        if epoch == Epoch::LATEST {
            return Ok(NO_TRANSACTION);
        }
        let found = container.snapshots.get(&epoch.0).copied();
        found.ok_or_else(|| {
            let why = "daos reads the latest state, or that of a snapshot of this run";
            ObjectCode::NoSys.error(why)
        })
    }

    /// Gives everything back that the library holds.
    fn shut(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        let library = Arc::clone(&self.library);
        let mut ended = self.queue.as_mut().map_or(Ok(()), EventQueue::finish);
        for (_, listing) in std::mem::take(&mut self.listings) {
            ended = ended.and(listing.finish(&library));
        }
        for container in std::mem::take(&mut self.containers).into_iter().flatten() {
            ended = ended.and(self.leave(container));
        }
        ended.and(library.disconnect(self.pool))
    }

    /// Closes a container and its objects, and destroys it where it is this run's own.
    fn leave(&self, container: OpenContainer) -> Result<()> {
        let (library, mut ended) = (&self.library, Ok(()));
        for object in container.objects.into_values() {
            ended = ended.and(library.close_object(object));
        }
        for snapshot in container.snapshots.into_values() {
            ended = ended.and(library.close_snapshot(snapshot));
        }
        ended = ended.and(library.close_container(container.handle));
        if container.is_own {
            let name = c_string(&uuid_text(&container.uuid))?;
            ended = ended.and(library.destroy_container(self.pool, &name));
        }
        ended
    }
}

impl Drop for DaosStore {
    fn drop(&mut self) {
        // Whoever wants to know calls `close`.
        let _ = self.shut();
    }
}

impl ObjectStore for DaosStore {
    fn has_own_epochs(&self) -> bool {
        true
    }

    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId> {
        let library = Arc::clone(&self.library);
        let open = |uuid| library.open_container(self.pool, &c_string(&uuid_text(&uuid))?);
        let create = || {
            let made = library.create_container(self.pool)?;
            let opened = open(made);
            if opened.is_err() {
                // The first reason counts.
                let name = c_string(&uuid_text(&made))?;
                let _ = library.destroy_container(self.pool, &name);
            }
            opened.map(|handle| (handle, made, true))
        };
        let opened = || open(uuid).map(|handle| (handle, uuid, false));
        let (handle, uuid, is_own) = match mode {
            ContainerMode::Create => create()?,
            ContainerMode::Open => opened()?,
            ContainerMode::OpenOrCreate => match opened() {
                Err(why) if why.code == ObjectCode::NonExist => create()?,
                opened => opened?,
            },
        };
        self.containers.push(Some(OpenContainer {
            handle,
            uuid,
            is_own,
            objects: HashMap::new(),
            snapshots: BTreeMap::new(),
        }));
        let number = u32::try_from(self.containers.len() - 1).unwrap_or(u32::MAX);
        Ok(ContainerId(number))
    }

    fn drop_container(&mut self, container: ContainerId) -> Result<()> {
        self.container_at(container)?.is_own = true;
        let taken = self.containers[container.0 as usize].take();
        taken.map_or(Ok(()), |container| self.leave(container))
    }

    fn update(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<Ticket> {
        check_latest(epoch)?;
        let bytes = check_update(&CallAt::new(key, epoch, conditions), iods, data)?;
        let object = self.object(key.container, key.object)?;
        let (flags, call) = (flags(conditions), (key.dkey, iods));
        if let Some(queue) = &mut self.queue {
            let at = (object, NO_TRANSACTION, flags);
            let ticket = queue.begin(CallKind::Update, at, call, data)?;
            return Ok(Ticket::Waits(ticket));
        }
        let at = (object, flags);
        self.library.update(at, &mut self.request, call, data)?;
        Ok(Ticket::Done(bytes))
    }

    fn fetch(
        &mut self,
        key: KeyAt<'_>,
        iods: &mut [Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &mut [u8],
    ) -> Result<Ticket> {
        check_call(&CallAt::new(key, epoch, conditions), iods)?;
        let transaction = self.transaction(key.container, epoch)?;
        let object = self.object(key.container, key.object)?;
        let at = (object, transaction, flags(conditions));
        if let Some(queue) = &mut self.queue {
            let ticket = queue.begin(CallKind::Fetch, at, (key.dkey, iods), data)?;
            return Ok(Ticket::Waits(ticket));
        }
        let request = &mut self.request;
        let fetched = self.library.fetch(at, request, (key.dkey, iods), data);
        // Of a value that is too long its length is wanted too.
        request.describe(iods);
        fetched.map(|()| Ticket::Done(request.found()))
    }

    fn receive(&mut self, ticket: u64, iods: &mut [Iod<'_>], data: &mut [u8]) -> Result<u64> {
        let queue = self.queue.as_mut();
        queue.map_or_else(
            || ObjectCode::NoHdl.fail("no fetch is in flight"),
            |queue| queue.receive(ticket, iods, data),
        )
    }

    fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Ticket> {
        check_latest(epoch)?;
        check_punch(object, scope, epoch)?;
        let at = (self.object(container, object)?, flags(conditions));
        if let PunchScope::Extent(dkey, akey, extent) = scope {
            // An update of records with nothing.
            let extents = [extent];
            let iods = [Iod::array(akey, 0, &extents)];
            let library = &self.library;
            library.update(at, &mut self.request, (dkey, &iods), &[])?;
        } else {
            let (dkey, akey) = scope.keys();
            self.library.punch(at, dkey, akey)?;
        }
        Ok(Ticket::Done(0))
    }

    fn list(
        &mut self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        self.list_level(container, level, epoch, anchor, visit)
    }

    fn query(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()> {
        let mut levels = [
            (KeyQuery::DKEY, object.dkeys(), &mut answer.dkey),
            (KeyQuery::AKEY, object.akeys(), &mut answer.akey),
        ];
        for (level, order, key) in &mut levels {
            if !what.has(*level) {
                continue;
            }
            refuse!(*order != KeyOrder::Integer => Inval, "daos finds the greatest of integer keys alone");
            key.clear();
            key.resize(8, 0);
        }
        let transaction = self.transaction(container, epoch)?;
        let object = self.object(container, object)?;
        let at = (object, transaction, u64::from(what.0));
        let found = self.library.query(at, &mut answer.dkey, &mut answer.akey)?;
        refuse!(what.has(KeyQuery::EXTENT) && found.count == 0 => NonExist, "nothing is visible");
        answer.extent = RecordExtent {
            index: found.index,
            count: found.count,
        };
        Ok(())
    }

    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch> {
        check_latest(epoch)?;
        let library = Arc::clone(&self.library);
        let container = self.container_at(container)?;
        let epoch = library.create_snapshot(container.handle)?;
        let transaction = library.open_snapshot(container.handle, epoch)?;
        container.snapshots.insert(epoch, transaction);
        Ok(Epoch(epoch))
    }

    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        let library = Arc::clone(&self.library);
        let container = self.container_at(container)?;
        let Some(transaction) = container.snapshots.remove(&epoch.0) else {
            return ObjectCode::NonExist.fail("no snapshot of this run has this epoch");
        };
        let closed = library.close_snapshot(transaction);
        closed.and(library.destroy_snapshot(container.handle, epoch.0))
    }

    fn pass(&mut self, id: ContainerId, span: EpochRange, discards: bool) -> Result<FreedVersions> {
        refuse!(discards => NoSys, "daos does not discard epochs");
        refuse!(span.after != Epoch(0) => NoSys, "daos aggregates from the first epoch on");
        self.transaction(id, span.upto)?;
        let all = span.upto == Epoch::LATEST;
        let upto = if all { 0 } else { span.upto.0 };
        let handle = self.container_at(id)?.handle;
        self.library.aggregate(handle, upto)?;
        // The library does not say what it freed.
        Ok(FreedVersions::default())
    }

    fn collect(&mut self) -> Result<u64> {
        ObjectCode::NoSys.fail("daos frees what was put off by itself")
    }

    fn scrub(&mut self, _: &mut dyn FnMut(&DamagedValue)) -> Result<u64> {
        ObjectCode::NoSys.fail("daos scrubs by itself, as its pools are set")
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn describe(&self, container: ContainerId, rank: &mut ObjectRank) {
        rank.pool.clone_from(&self.name);
        if let Some(Some(container)) = self.containers.get(container.0 as usize) {
            rank.container = uuid_text(&container.uuid);
        }
        rank.file = None;
        rank.durability = Durability::Power;
        rank.library = Some(self.library.file().to_owned());
    }

    fn poll(&mut self, out: &mut Vec<Completion>, min: usize) -> usize {
        self.queue.as_mut().map_or(0, |queue| queue.poll(out, min))
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        self.shut()
    }
}
