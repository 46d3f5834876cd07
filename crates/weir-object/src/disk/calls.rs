//! The calls of [`ObjectStore`] on a disk.
//!
//! In: calls. Out: what the library holds, or an error. Not here: how a commit or its failure goes (`disk`).

use super::{DiskStore, GONE, guarded, keys};
use crate::array::Pass;
use crate::prelude::*;

impl ObjectStore for DiskStore {
    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId> {
        if let Some(found) = find_container(&self.containers, uuid, mode)? {
            return Ok(found);
        }
        let number = self.containers.len() as u32;
        let key = keys::pool(keys::CONTAINER, number, 0);
        self.write_through(|view| view.put(&key, [&uuid, &[]]))?;
        self.containers.push(Container::new(uuid));
        Ok(ContainerId(number))
    }

    fn drop_container(&mut self, id: ContainerId) -> Result<()> {
        let Container {
            uuid, snapshots, ..
        } = known(&self.containers, id)?;
        let (key, uuid) = (keys::pool(keys::CONTAINER, id.0, 0), *uuid);
        let snapshots = snapshots.iter();
        let snapshots = snapshots.map(|epoch| keys::pool(keys::SNAPSHOT, id.0, *epoch));
        let snapshots: Vec<_> = snapshots.collect();
        self.write_through(|view| {
            view.pass(id, Pass::new(ALL_EPOCHS, None))?;
            snapshots.iter().try_for_each(|key| view.delete(key))?;
            view.put(&key, [&uuid, &[GONE]])
        })?;
        self.containers[id.0 as usize].end();
        Ok(())
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
        let at = &CallAt::new(key, epoch, conditions);
        let done = (|| {
            known(&self.containers, key.container)?;
            check_update(at, iods, data)?;
            let bytes = self.write(|view| view.update(at, iods, data))?;
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
        let at = &CallAt::new(key, epoch, conditions);
        let done = (|| {
            known(&self.containers, key.container)?;
            check_fetch(at, iods, data)?;
            self.read(|view| view.fetch(at, iods, data))
        })();
        let done = done.map(Ticket::Done);
        done.map_err(|e: ObjectError| e.at(key.object, key.dkey, akey, epoch))
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
        let done = (|| {
            known(&self.containers, container)?;
            check_punch(object, scope, epoch)?;
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
        known(&self.containers, container)?;
        check_list(level, epoch)?;
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
        known(&self.containers, container)?;
        check_query(object, what, epoch, &answer.dkey)?;
        self.read(|view| view.query(container, object, what, epoch, answer))
    }

    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch> {
        self.keep_snapshot(container, epoch, true)?;
        Ok(epoch)
    }

    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        self.keep_snapshot(container, epoch, false)
    }

    fn pass(&mut self, id: ContainerId, span: EpochRange, discards: bool) -> Result<FreedVersions> {
        let snapshots = &known(&self.containers, id)?.snapshots;
        check_range(span)?;
        let snapshots = (!discards).then_some(&snapshots[..]);
        let pass = Pass::new(span, snapshots);
        self.write_through(|view| view.pass(id, pass))
    }

    fn collect(&mut self) -> Result<u64> {
        self.write_through(|_| Ok(()))?;
        let before = self.used();
        let library = self.library()?;
        if let Err(why) = guarded(|| library.compact()) {
            self.fall(why.clone());
            return Err(why);
        }
        Ok(before.saturating_sub(self.used()))
    }

    fn scrub(&mut self, visit: &mut dyn FnMut(&DamagedValue)) -> Result<u64> {
        self.read(|view| view.scrub(visit))
    }

    fn stats(&self) -> StoreStats {
        let used = self.used();
        // Of a pool that cannot be read nothing is counted.
        let library = self.library.as_ref();
        let counted = library.and_then(|library| guarded(|| library.count()).ok());
        StoreStats {
            containers: there(&self.containers).count() as u64,
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

    fn close(mut self: Box<Self>) -> Result<()> {
        self.settle()?;
        match self.library.take() {
            Some(library) => guarded(|| library.close()),
            None => Ok(()),
        }
    }
}
