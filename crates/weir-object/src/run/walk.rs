//! Tests that are timed as one walk: punches, listings, queries, and passes that drop versions.
//!
//! In: a session, a test. Out: what was visited and found.

use weir_schema::{ObjectAction, ObjectFailure, ObjectKeys, ObjectRun, ObjectTest};

use super::keys::Ranges;
use super::session::{Session, add_freed};
use crate::prelude::*;

/// Keys that are listed by one call.
const KEYS_AT_ONCE: usize = 1024;
/// Ids that a listing of objects gives by one call, as the reference has it.
const IDS_AT_ONCE: usize = 8;

/// Carries a test out.
pub(super) fn walk<S: ObjectStore>(
    session: &mut Session<S>,
    test: &ObjectTest,
    iteration: u64,
) -> ObjectRun {
    let mut run = ObjectRun::default();
    let base = session.names.base(test, iteration);
    let ranges = Ranges::of(&session.work.layout, test);
    let done = match test.action {
        ObjectAction::Punch { dkeys } => punch(session, (ranges, base, dkeys), &mut run),
        ObjectAction::Iterate {
            visible,
            shallow,
            first,
        } => iterate(session, (visible, shallow, first), &mut run),
        ObjectAction::Query => query(session, base, &mut run),
        ObjectAction::Aggregate { .. } | ObjectAction::Discard { .. } => {
            let discards = matches!(test.action, ObjectAction::Discard { .. });
            let all = session.all_epochs();
            let freed = session.store.pass(session.container, all, discards);
            freed.map(|freed| add_freed(&mut run, freed))
        }
        ObjectAction::Collect { .. } => collect(session, &mut run),
        ObjectAction::ListObjects => list_objects(session, &mut run),
        // Those are loops.
        ObjectAction::Update
        | ObjectAction::Fetch
        | ObjectAction::Verify
        | ObjectAction::Mix(_) => Ok(()),
    };
    if let Err(error) = done {
        run.failure.get_or_insert(failure(session, &error));
    }
    run
}

fn failure<S: ObjectStore>(session: &Session<S>, error: &ObjectError) -> ObjectFailure {
    let at = error.at.as_deref();
    let object = at.map(|at| at.object.to_string()).unwrap_or_default();
    let keys = ObjectKeys {
        dkey: at.map(|at| session.names.shown_dkey(&at.dkey)),
        akey: None,
    };
    session.failure_at(object, keys, error)
}

fn punch<S: ObjectStore>(
    session: &mut Session<S>,
    (ranges, base, dkeys): (Ranges, u64, bool),
    run: &mut ObjectRun,
) -> Result<()> {
    let mut key = Vec::new();
    let each = if dkeys { ranges.dkeys } else { 1 };
    for number in 0..each {
        session.names.dkey(number, base, &mut key);
        for object in 0..ranges.objects {
            let object = session.names.object(object);
            let dkey = dkeys.then_some(PunchScope::Dkey(&key));
            let scope = dkey.unwrap_or(PunchScope::Object);
            let (container, epoch) = (session.container, session.next_epoch());
            let _ = session
                .store
                .punch(container, object, scope, epoch, Conditions::NONE)?;
            run.operations += 1;
        }
    }
    Ok(())
}

/// Keys of a level.
fn keys<S: ObjectStore>(
    session: &mut Session<S>,
    level: ListLevel<'_>,
    anchor: &mut ListAnchor,
) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let (container, epoch) = (session.container, session.epoch);
    session
        .store
        .list(container, level, epoch, anchor, &mut |entry| {
            if let ListEntry::Key(key) = entry {
                found.push(key.to_vec());
            }
            found.len() < KEYS_AT_ONCE
        })?;
    Ok(found)
}

fn iterate<S: ObjectStore>(
    session: &mut Session<S>,
    (visible, shallow, first): (bool, bool, bool),
    run: &mut ObjectRun,
) -> Result<()> {
    let objects: Vec<ObjectId> = session.names.objects.clone();
    let objects = if first { &objects[..1] } else { &objects[..] };
    for object in objects {
        let mut anchor = ListAnchor::default();
        while !anchor.done {
            for dkey in keys(session, ListLevel::Dkeys(*object), &mut anchor)? {
                run.operations += 1;
                if !shallow {
                    below(session, (*object, &dkey, visible), run)?;
                }
            }
        }
    }
    Ok(())
}

fn below<S: ObjectStore>(
    session: &mut Session<S>,
    (object, dkey, visible): (ObjectId, &[u8], bool),
    run: &mut ObjectRun,
) -> Result<()> {
    let mut anchor = ListAnchor::default();
    while !anchor.done {
        for akey in keys(session, ListLevel::Akeys(object, dkey), &mut anchor)? {
            let level = if visible {
                ListLevel::Visible(object, dkey, &akey)
            } else {
                ListLevel::Versions(object, dkey, &akey)
            };
            let mut within = ListAnchor::default();
            let (container, epoch) = (session.container, session.epoch);
            while !within.done {
                session
                    .store
                    .list(container, level, epoch, &mut within, &mut |_| {
                        run.hits += 1;
                        true
                    })?;
            }
            run.operations += 1;
        }
    }
    Ok(())
}

fn query<S: ObjectStore>(session: &mut Session<S>, base: u64, run: &mut ObjectRun) -> Result<()> {
    let what = KeyQuery::MAX.with(KeyQuery::DKEY).with(KeyQuery::EXTENT);
    for object in session.names.objects.clone() {
        let mut answer = QueryAnswer::default();
        session.names.akey(0, base, &mut answer.akey);
        run.operations += 1;
        let (container, epoch) = (session.container, session.epoch);
        match session
            .store
            .query(container, object, what, epoch, &mut answer)
        {
            Ok(()) => {
                run.hits += 1;
                let dkey = <[u8; 8]>::try_from(&answer.dkey[..]).map(u64::from_le_bytes);
                run.greatest_dkey = run.greatest_dkey.max(dkey.ok());
                let RecordExtent { index, count } = answer.extent;
                run.extent_end = run.extent_end.max(Some(index + count));
            }
            Err(error) if error.code == ObjectCode::NonExist => run.misses += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Frees what was put off, until nothing is left.
fn collect<S: ObjectStore>(session: &mut Session<S>, run: &mut ObjectRun) -> Result<()> {
    loop {
        let bytes = session.store.collect()?;
        run.operations += 1;
        run.freed_bytes.0 += bytes;
        if bytes == 0 {
            return Ok(());
        }
    }
}

fn list_objects<S: ObjectStore>(session: &mut Session<S>, run: &mut ObjectRun) -> Result<()> {
    let (container, epoch) = (session.container, session.epoch);
    let epoch = session.store.snapshot(container, epoch)?;
    let mut anchor = ListAnchor::default();
    while !anchor.done {
        let mut count = 0;
        session.store.list(
            container,
            ListLevel::Objects,
            epoch,
            &mut anchor,
            &mut |_| {
                count += 1;
                (count as usize) < IDS_AT_ONCE
            },
        )?;
        run.operations += u64::from(count);
        run.listed.push(count);
    }
    session.store.drop_snapshot(container, epoch)
}

impl<S: ObjectStore> Session<S> {
    /// From the first epoch to now.
    pub(super) fn all_epochs(&self) -> EpochRange {
        EpochRange {
            after: Epoch(0),
            upto: self.epoch,
        }
    }
}
