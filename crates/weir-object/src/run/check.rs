//! Checks of a workload before anything is touched.
//!
//! In: the workload. Out: a reason for each part of it that cannot be carried out. Not here: reasons against
//! mixes (`mix`).

use std::path::Path;

use weir_schema::{
    Failure, ObjectAction, ObjectEngine, ObjectPrefault, ObjectTest, ObjectWorkload,
};

use super::mix::wrong_mixes;
use super::session::{code_of, planned_bytes, uuid_of};
use crate::prelude::*;
use crate::remote::LONGEST;
use crate::superblock::folder_of;

/// The directory of pool files, where it is missing or takes no file.
pub(super) fn no_directory(work: &ObjectWorkload, base: &Path) -> Option<Failure> {
    if work.durability == Some(Durability::None) || work.path.is_empty() {
        return None;
    }
    let file = base.join(work.pool_file(0));
    let directory = folder_of(&file);
    let place = directory.display();
    let why = match std::fs::metadata(directory) {
        Err(why) => format!("directory {place}: {why}"),
        Ok(found) if !found.is_dir() => format!("{place} is no directory"),
        Ok(_) => return None,
    };
    Some(Failure::new("missing", why))
}

/// Parts of a workload that its engine does not carry out.
fn wrong_of_engine(work: &ObjectWorkload) -> Vec<String> {
    match work.engine {
        ObjectEngine::Mem => reasons! {
            (work.in_flight > 1) => "mem completes each operation at once; leave the number in flight out";
        },
        ObjectEngine::Remote | ObjectEngine::Echo => wrong_with_servers(work),
        ObjectEngine::Daos => wrong_with_daos(work),
        ObjectEngine::Disk | ObjectEngine::Redb | ObjectEngine::Fjall | ObjectEngine::Lmdb => {
            wrong_with_disk(work)
        }
    }
}

/// Everything that cannot be carried out.
pub(super) fn wrong(work: &ObjectWorkload) -> Vec<String> {
    let (name, layout) = (work.engine.name(), &work.layout);
    let merges = |test: &ObjectTest| {
        matches!(
            test.action,
            ObjectAction::Aggregate { merge: true, .. }
                | ObjectAction::Discard { merge: true, .. }
                | ObjectAction::Collect { merge: true, .. }
        )
    };
    let labelled = work.pool.as_ref();
    let labelled = labelled.filter(|_| work.engine != ObjectEngine::Daos);
    let names = [("pool", labelled), ("container", work.container.as_ref())];
    let wrong_uuid = |(what, uuid): (&str, Option<&String>)| {
        let uuid = uuid.filter(|uuid| uuid_of(uuid).is_none())?;
        Some(format!(
            "{what} {uuid}: a UUID has 32 hexadecimal digits, as 8-4-4-4-12"
        ))
    };
    let (needed, pool) = (weir_units::Bytes(planned_bytes(work)), work.pool_bytes);
    let has_file = work.engine == ObjectEngine::Mem || work.engine.is_on_disk();
    let code = code_of(ObjectCode::NoSpace);
    let mut wrong = wrong_of_engine(work);
    wrong.extend(names.into_iter().filter_map(wrong_uuid));
    wrong.extend(reasons! {
        work.block_tier_bytes.is_some_and(|bytes| bytes.0 > 0) => format!("{name} has no tier of blocks");
        work.tests.iter().any(merges) =>
            format!("{name} does not merge neighbouring extents (`m`); leave it out");
    });
    wrong.extend(wrong_mixes(work));
    wrong.extend(reasons! {
        [layout.objects, layout.dkeys, layout.akeys, layout.strides].contains(&0) =>
            "there has to be one object, key and stride at least";
        (layout.dkeys < u64::from(work.targets())) => "each target has to have a distribution key at least";
        (has_file && work.pool.is_none() && needed > pool) => format!(
            "{code}: the updates take {needed}, and the pool has {pool}; give it more (-P) or them less"
        );
    });
    wrong.extend(wrong_sizes(work));
    wrong
}

/// Tests on parts of strides that these do not have.
fn wrong_sizes(work: &ObjectWorkload) -> impl Iterator<Item = String> + '_ {
    let stride = work.layout.stride_bytes.0;
    work.tests.iter().filter_map(move |test| {
        let (offset, size) = (test.offset.0, test.size.0);
        let is_part = size > 0 && offset.saturating_add(size) <= stride;
        let why = || format!("{size} bytes from {offset} on are no part of a stride of {stride}");
        (test.action.moves_values() && !is_part).then(why)
    })
}

pub(super) fn is_on_servers(work: &ObjectWorkload) -> bool {
    matches!(work.engine, ObjectEngine::Remote | ObjectEngine::Echo)
}

/// True if operations have their ends later: those of servers, updates that share a commit, events of DAOS.
pub(super) fn waits(work: &ObjectWorkload) -> bool {
    let shares = work.engine == ObjectEngine::Daos || work.engine.is_on_disk();
    is_on_servers(work) || shares && work.in_flight > 1
}

/// The same of a store on a disk.
fn wrong_with_disk(work: &ObjectWorkload) -> Vec<String> {
    let lasts = lasts(work);
    reasons! {
        !lasts => "disk has the durability power alone; mem has none and process";
        work.zero_copy => "disk has no values that are filled in place; leave zero copy out";
        (work.prefault == ObjectPrefault::All) => "disk has no memory to make present; leave the prefault out";
        (work.thread_per_operation && work.in_flight > 1) =>
            "disk: operations of one commit have no threads of their own";
    }
}

fn lasts(work: &ObjectWorkload) -> bool {
    work.durability
        .is_none_or(|level| level == Durability::Power)
}

/// The same of objects of DAOS.
fn wrong_with_daos(work: &ObjectWorkload) -> Vec<String> {
    let has = |is: fn(&ObjectAction) -> bool| work.tests.iter().any(|test| is(&test.action));
    let lasts = lasts(work);
    reasons! {
        work.pool.is_none() => "daos makes no pools: name one by its label or UUID";
        work.zero_copy => "daos has no values in place (-z): mem has them";
        work.layout.flat => "daos has objects with attribute keys here: leave -f out";
        (work.thread_per_operation && work.in_flight > 1) =>
            "daos: operations in flight have no threads of their own";
        !lasts => "the servers of daos keep what they acknowledge: there is --durability power alone";
        has(|action| matches!(action, ObjectAction::Iterate { .. })) =>
            "daos lists keys and no versions: I is there on mem";
        has(|action| matches!(action, ObjectAction::Discard { .. })) =>
            "daos does not discard epochs: D is there on mem";
        has(|action| matches!(action, ObjectAction::Collect { .. })) =>
            "daos frees what was put off by itself: G is there on mem";
    }
}

/// The same of a store on servers.
fn wrong_with_servers(work: &ObjectWorkload) -> Vec<String> {
    let name = work.engine.name();
    let longest = work.layout.stride_bytes.0;
    let stored = |test: &ObjectTest| {
        matches!(
            test.action,
            ObjectAction::Update | ObjectAction::Fetch | ObjectAction::ListObjects
        )
    };
    let stores_nothing = work.engine == ObjectEngine::Echo && !work.tests.iter().all(stored);
    let too_long = code_of(ObjectCode::Rec2Big);
    reasons! {
        work.servers.is_empty() =>
            format!("{name} needs the address of a server, as `weir obj serve` says it");
        work.zero_copy =>
            format!("{name}: a server's memory cannot be filled in place; leave zero copy out");
        work.thread_per_operation =>
            format!("{name}: no operation has a thread of its own; have several in flight instead");
        work.durability.is_some() =>
            format!("{name}: the server was told its durability when it was started");
        (work.targets() > 1) =>
            format!("{name}: servers have targets of their own; leave their number out");
        (longest > LONGEST) =>
            format!("{too_long}: a server takes values of 64 MiB at the most, not of {longest} bytes");
        stores_nothing =>
            format!("{name} stores nothing: it has updates and fetches alone; remote has the others");
    }
}
