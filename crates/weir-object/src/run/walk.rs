//! Tests that are timed as one walk: punches, listings, queries, and passes that drop versions.
//!
//! In: a session, a test. Out: what was visited and found.

use weir_schema::{ObjectAction, ObjectFailure, ObjectKeys, ObjectRun, ObjectTest};

use super::check::is_on_servers;
use super::keys::Ranges;
use super::session::{Session, add_freed};
use crate::prelude::*;

/// Keys that are listed by one call.
const KEYS_AT_ONCE: usize = 1024;
/// Ids that a listing of objects gives by one call, as the reference has it.
const IDS_AT_ONCE: usize = 8;

impl Session {
    /// Carries a test out.
    pub(super) fn walk(&mut self, test: &ObjectTest, iteration: u64) -> ObjectRun {
        let mut run = ObjectRun::default();
        let base = self.names.base(test, iteration);
        let done = match test.action {
            ObjectAction::Punch { dkeys } => {
                let ranges = Ranges::of(&self.work.layout, test);
                self.punch(ranges, base, dkeys, &mut run)
            }
            ObjectAction::Iterate { .. } => self.iterate(test.action, &mut run),
            ObjectAction::Query => match test.action.lacks(&self.work.layout) {
                Some(why) => ObjectCode::Inval.fail(why),
                None => self.query(base, &mut run),
            },
            ObjectAction::Aggregate { .. } | ObjectAction::Discard { .. } => {
                let discards = matches!(test.action, ObjectAction::Discard { .. });
                let freed = self.store.pass(self.container, self.all_epochs(), discards);
                freed.map(|freed| add_freed(&mut run, freed))
            }
            ObjectAction::Collect { .. } => self.collect(&mut run),
            ObjectAction::ListObjects => self.list_objects(&mut run),
            // Those are loops.
            ObjectAction::Update
            | ObjectAction::Fetch
            | ObjectAction::Verify
            | ObjectAction::Mix(_) => Ok(()),
        };
        if let Err(error) = done {
            run.failure.get_or_insert(self.failure_of(&error));
        }
        run
    }

    fn failure_of(&self, error: &ObjectError) -> ObjectFailure {
        let at = error.at.as_deref();
        let object = at.map(|at| at.object.to_string()).unwrap_or_default();
        let dkey = at.map(|at| self.names.shown_dkey(&at.dkey));
        self.failure_at(object, ObjectKeys { dkey, akey: None }, error)
    }

    fn punch(&mut self, all: Ranges, base: u64, dkeys: bool, run: &mut ObjectRun) -> Result<()> {
        let mut key = Vec::new();
        let each = if dkeys { all.dkeys } else { 1 };
        for number in 0..each {
            self.names.dkey(number, base, &mut key);
            for object in 0..all.objects {
                let object = self.names.object(object);
                let dkey = dkeys.then_some(PunchScope::Dkey(&key));
                let scope = dkey.unwrap_or(PunchScope::Object);
                let (container, epoch) = (self.container, self.next_epoch());
                let (store, none) = (&mut self.store, Conditions::NONE);
                let _ = store.punch(container, object, scope, epoch, none)?;
                run.operations += 1;
            }
        }
        Ok(())
    }

    /// Keys of a level.
    fn keys(&mut self, level: ListLevel<'_>, anchor: &mut ListAnchor) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let visit = &mut |entry: ListEntry<'_>| {
            if let ListEntry::Key(key) = entry {
                found.push(key.to_vec());
            }
            found.len() < KEYS_AT_ONCE
        };
        let (container, epoch) = (self.container, self.epoch);
        self.store.list(container, level, epoch, anchor, visit)?;
        Ok(found)
    }

    fn iterate(&mut self, action: ObjectAction, run: &mut ObjectRun) -> Result<()> {
        let ObjectAction::Iterate {
            visible,
            shallow,
            first,
        } = action
        else {
            return Ok(());
        };
        let most = if first { 1 } else { usize::MAX };
        for object in self.names.objects.clone().into_iter().take(most) {
            let mut anchor = ListAnchor::default();
            while !anchor.done {
                for dkey in self.keys(ListLevel::Dkeys(object), &mut anchor)? {
                    run.operations += 1;
                    if !shallow {
                        self.below(object, &dkey, visible, run)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn below(
        &mut self,
        id: ObjectId,
        dkey: &[u8],
        visible: bool,
        run: &mut ObjectRun,
    ) -> Result<()> {
        let mut anchor = ListAnchor::default();
        while !anchor.done {
            for akey in self.keys(ListLevel::Akeys(id, dkey), &mut anchor)? {
                let versions = ListLevel::Versions(id, dkey, &akey);
                let level = [versions, ListLevel::Visible(id, dkey, &akey)][usize::from(visible)];
                let mut within = ListAnchor::default();
                let (container, epoch) = (self.container, self.epoch);
                let visit = &mut |_: ListEntry<'_>| {
                    run.hits += 1;
                    run.operations += 1;
                    true
                };
                while !within.done {
                    self.store
                        .list(container, level, epoch, &mut within, visit)?;
                }
                run.operations += 1;
            }
        }
        Ok(())
    }

    fn query(&mut self, base: u64, run: &mut ObjectRun) -> Result<()> {
        let what = KeyQuery::MAX.with(KeyQuery::DKEY).with(KeyQuery::EXTENT);
        for object in self.names.objects.clone() {
            let mut answer = QueryAnswer::default();
            self.names.akey(0, base, &mut answer.akey);
            run.operations += 1;
            let (container, epoch) = (self.container, self.epoch);
            let found = self
                .store
                .query(container, object, what, epoch, &mut answer);
            match found {
                Ok(()) => {
                    run.hits += 1;
                    let dkey = <[u8; 8]>::try_from(&answer.dkey[..]).map(u64::from_le_bytes);
                    run.greatest_dkey = run.greatest_dkey.max(dkey.ok());
                    run.extent_end = run.extent_end.max(Some(range(answer.extent).1));
                }
                Err(error) if error.code == ObjectCode::NonExist => run.misses += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Frees what was put off, until nothing is left.
    fn collect(&mut self, run: &mut ObjectRun) -> Result<()> {
        loop {
            let bytes = self.store.collect()?;
            run.operations += 1;
            run.freed_bytes.0 += bytes;
            if bytes == 0 {
                return Ok(());
            }
        }
    }

    fn list_objects(&mut self, run: &mut ObjectRun) -> Result<()> {
        let (container, level) = (self.container, ListLevel::Objects);
        // Others write to servers too: these choose an epoch that is not behind theirs.
        let asked = [self.epoch, Epoch(0)][usize::from(is_on_servers(&self.work))];
        let epoch = self.store.snapshot(container, asked)?;
        let mut anchor = ListAnchor::default();
        while !anchor.done {
            let mut count = 0;
            let visit = &mut |_: ListEntry<'_>| {
                count += 1;
                (count as usize) < IDS_AT_ONCE
            };
            self.store
                .list(container, level, epoch, &mut anchor, visit)?;
            run.operations += u64::from(count);
            run.listed.push(count);
        }
        self.store.drop_snapshot(container, epoch)
    }

    /// From the first epoch to now.
    pub(super) fn all_epochs(&self) -> EpochRange {
        let (after, upto) = (Epoch(0), self.epoch);
        EpochRange { after, upto }
    }
}
