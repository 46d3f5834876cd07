//! The calls of [`ObjectStore`] on a disk.
//!
//! In: calls. Out: what the library holds, or an error. Not here: how a commit or its failure goes (`disk`).

use crate::error::fail;
use crate::limits::{check_akey, check_epoch, check_extent, check_iods, check_key};
use crate::store::{
    Completion, Conditions, ContainerId, ContainerMode, DamagedValue, Epoch, EpochRange,
    FreedVersions, Iod, KeyAt, KeyQuery, ListAnchor, ListEntry, ListLevel, ObjectId, ObjectStore,
    PunchScope, QueryAnswer, Reserved, Result, StoreStats, StoreUuid, Ticket,
};
use crate::{ObjectCode, ObjectError};
use std::fs::File;

use super::{Container, DiskStore, guarded, keys};

impl ObjectStore for DiskStore {
    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId> {
        let found = self.containers.iter().position(|c| c.uuid == uuid);
        match (found, mode) {
            (Some(_), ContainerMode::Create) => fail(ObjectCode::Exist, "the container exists"),
            (Some(number), _) => Ok(ContainerId(number as u32)),
            (None, ContainerMode::Open) => fail(ObjectCode::NonExist, "no such container"),
            (None, _) => {
                let number = self.containers.len() as u32;
                let key = keys::pool(keys::CONTAINER, number, 0);
                self.write_through(|view| view.put(&key, [&uuid, &[]]))?;
                let snapshots = Vec::new();
                self.containers.push(Container { uuid, snapshots });
                Ok(ContainerId(number))
            }
        }
    }

    fn update(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<Ticket> {
        let akey = iods.first().map_or(&[][..], |iod| iod.akey);
        let done = (|| {
            if check_iods(key.object, iods)? != data.len() as u64 {
                return fail(
                    ObjectCode::Inval,
                    "the data has not the length of the descriptors",
                );
            }
            self.known(key.container)?;
            check_epoch(epoch)?;
            check_key(key.dkey, key.object.dkeys())?;
            let bytes = self.write(|view| view.update(key, iods, epoch, conditions, data))?;
            Ok(self.ticket(bytes))
        })();
        done.map_err(|e: ObjectError| e.at(key.object, key.dkey, akey, epoch))
    }

    fn fetch(
        &mut self,
        key: KeyAt<'_>,
        iods: &mut [Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &mut [u8],
    ) -> Result<Ticket> {
        let akey = iods.first().map_or(&[][..], |iod| iod.akey);
        let done = (|| {
            self.known(key.container)?;
            check_epoch(epoch)?;
            check_key(key.dkey, key.object.dkeys())?;
            if check_iods(key.object, iods)? > data.len() as u64 {
                return fail(
                    ObjectCode::Inval,
                    "the data has less room than the descriptors say",
                );
            }
            self.read(|view| view.fetch(key, iods, epoch, conditions, data))
        })();
        let done = done.map(Ticket::Done);
        done.map_err(|e: ObjectError| e.at(key.object, key.dkey, akey, epoch))
    }

    fn reserve(&mut self, _: KeyAt<'_>, _: &Iod<'_>) -> Result<Reserved> {
        fail(
            ObjectCode::NoSys,
            "disk has no values that are filled in place (-z); mem has",
        )
    }

    fn reserved(&mut self, _: &Reserved) -> &mut [u8] {
        &mut []
    }

    fn publish(
        &mut self,
        key: KeyAt<'_>,
        iod: &Iod<'_>,
        _: Epoch,
        _: Conditions,
        _: Reserved,
    ) -> Result<Ticket> {
        self.reserve(key, iod).map(|_| Ticket::Done(0))
    }

    fn cancel(&mut self, _: Reserved) {}

    fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Ticket> {
        let (dkey, akey) = match scope {
            PunchScope::Object => (None, None),
            PunchScope::Dkey(dkey) => (Some(dkey), None),
            PunchScope::Akey(dkey, akey) | PunchScope::Extent(dkey, akey, _) => {
                (Some(dkey), Some(akey))
            }
        };
        let done = (|| {
            self.known(container)?;
            check_epoch(epoch)?;
            dkey.map_or(Ok(()), |dkey| check_key(dkey, object.dkeys()))?;
            akey.map_or(Ok(()), |akey| check_akey(object, akey))?;
            if let PunchScope::Extent(.., extent) = scope {
                check_extent(extent)?;
            }
            let done =
                self.write(|view| view.punch(container, object, scope, epoch, conditions))?;
            Ok(self.ticket(done))
        })();
        let (dkey, akey) = (dkey.unwrap_or_default(), akey.unwrap_or_default());
        done.map_err(|e: ObjectError| e.at(object, dkey, akey, epoch))
    }

    fn list(
        &mut self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        self.known(container)?;
        check_epoch(epoch)?;
        if anchor.done {
            return Ok(());
        }
        self.read(|view| view.list(container, level, epoch, anchor, visit))
    }

    fn query(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()> {
        self.known(container)?;
        check_epoch(epoch)?;
        self.read(|view| view.query(container, object, what, epoch, answer))
    }

    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch> {
        self.keep_snapshot(container, epoch, true)?;
        Ok(epoch)
    }

    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        self.keep_snapshot(container, epoch, false)
    }

    fn aggregate(&mut self, container: ContainerId, range: EpochRange) -> Result<FreedVersions> {
        self.pass(container, range, true)
    }

    fn discard(&mut self, container: ContainerId, range: EpochRange) -> Result<FreedVersions> {
        self.pass(container, range, false)
    }

    fn collect(&mut self) -> Result<u64> {
        self.write_through(|_| Ok(()))?;
        let len = |file: &File| file.metadata().map_or(0, |metadata| metadata.len());
        let before = len(&self.file);
        let library = self.library()?;
        if let Err(why) = guarded(|| library.compact()) {
            self.fall(why.clone());
            return Err(why);
        }
        Ok(before.saturating_sub(len(&self.file)))
    }

    fn scrub(&mut self, visit: &mut dyn FnMut(&DamagedValue)) -> Result<u64> {
        self.read(|view| view.scrub(visit))
    }

    fn stats(&self) -> StoreStats {
        let used = self.file.metadata().map_or(0, |metadata| metadata.len());
        // Of a pool that cannot be read nothing is counted.
        let library = self.library.as_ref();
        let counted = library.and_then(|library| guarded(|| library.count()).ok());
        StoreStats {
            containers: self.containers.len() as u64,
            free_bytes: self.head.len.saturating_sub(used),
            recovery_ns: self.recovery_ns,
            ..counted.unwrap_or_default()
        }
    }

    fn poll(&mut self, out: &mut Vec<Completion>, _: usize) -> usize {
        // A failure is in what it ended.
        let _ = self.settle();
        let Some(group) = &mut self.group else {
            return 0;
        };
        let ended = group.ended.len();
        out.append(&mut group.ended);
        ended
    }

    fn close(mut self) -> Result<()> {
        self.settle()?;
        match self.library.take() {
            Some(library) => guarded(|| library.close()),
            None => Ok(()),
        }
    }
}
