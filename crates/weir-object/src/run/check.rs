//! Checks of a workload before anything is touched.
//!
//! In: the workload. Out: a reason for each part of it that cannot be carried out. Not here: reasons against
//! mixes (`mix`).

use std::path::Path;

use weir_run::failure;
use weir_schema::{
    Failure, ObjectAction, ObjectDurability, ObjectEngine, ObjectPrefault, ObjectTest,
    ObjectWorkload,
};

use super::mix::wrong_mixes;
use super::session::{code_of, planned_bytes, uuid_of};
use crate::remote::LONGEST;
use crate::{ObjectCode, daos};

/// The directory of pool files, where it is missing or takes no file.
pub(super) fn no_directory(work: &ObjectWorkload, base: &Path) -> Option<Failure> {
    if work.durability == Some(ObjectDurability::None) || work.path.is_empty() {
        return None;
    }
    let file = base.join(work.pool_file(0));
    let directory = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    let place = directory.display();
    match std::fs::metadata(directory) {
        Err(why) => Some(failure(
            "missing",
            None,
            format!("directory {place}: {why}"),
        )),
        Ok(found) if !found.is_dir() => {
            Some(failure("missing", None, format!("{place} is no directory")))
        }
        Ok(_) => None,
    }
}

/// Parts of a workload that its engine does not carry out.
fn wrong_of_engine(work: &ObjectWorkload) -> Vec<String> {
    let name = work.engine.name();
    let mut wrong = Vec::new();
    match work.engine {
        ObjectEngine::Mem if work.in_flight > 1 => wrong.push(
            "mem completes each operation at once; leave the number in flight out".to_owned(),
        ),
        ObjectEngine::Mem => {}
        ObjectEngine::Remote | ObjectEngine::Echo => wrong.extend(wrong_with_servers(work)),
        ObjectEngine::Disk => wrong.extend(wrong_with_disk(work)),
        ObjectEngine::Daos => wrong.extend(daos::wrong(work).map(str::to_owned)),
    }
    if work.block_tier_bytes.is_some_and(|bytes| bytes.0 > 0) {
        wrong.push(format!("{name} has no tier of blocks"));
    }
    wrong
}

/// Everything that cannot be carried out.
pub(super) fn wrong(work: &ObjectWorkload) -> Vec<String> {
    let name = work.engine.name();
    let mut wrong = wrong_of_engine(work);
    let is_daos = work.engine == ObjectEngine::Daos;
    let labelled = work.pool.clone().filter(|_| !is_daos);
    let names = [("pool", &labelled), ("container", &work.container)];
    for (what, uuid) in names {
        if let Some(uuid) = uuid.as_ref().filter(|uuid| uuid_of(uuid).is_none()) {
            wrong.push(format!(
                "{what} {uuid}: a UUID has 32 hexadecimal digits, as 8-4-4-4-12"
            ));
        }
    }
    let merges = |test: &ObjectTest| {
        matches!(
            test.action,
            ObjectAction::Aggregate { merge: true, .. }
                | ObjectAction::Discard { merge: true, .. }
                | ObjectAction::Collect { merge: true, .. }
        )
    };
    if work.tests.iter().any(merges) {
        wrong.push(format!(
            "{name} does not merge neighbouring extents (`m`); leave it out"
        ));
    }
    wrong.extend(wrong_mixes(work));
    let layout = &work.layout;
    if [layout.objects, layout.dkeys, layout.akeys, layout.strides].contains(&0) {
        wrong.push("there has to be one object, key and stride at least".to_owned());
    }
    wrong.extend(wrong_sizes(work));
    if layout.dkeys < u64::from(work.targets()) {
        let why = "each target has to have a distribution key at least";
        wrong.push(why.to_owned());
    }
    let needed = planned_bytes(work);
    let pool = work.pool_bytes;
    let has_file = [ObjectEngine::Mem, ObjectEngine::Disk].contains(&work.engine);
    if has_file && work.pool.is_none() && needed > pool.0 {
        let needed = weir_units::Bytes(needed);
        let code = code_of(ObjectCode::NoSpace);
        wrong.push(format!(
            "{code}: the updates take {needed}, and the pool has {pool}; give it more (-P) or them less"
        ));
    }
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
    let shares = [ObjectEngine::Disk, ObjectEngine::Daos].contains(&work.engine);
    is_on_servers(work) || shares && work.in_flight > 1
}

/// The same of a store on a disk.
fn wrong_with_disk(work: &ObjectWorkload) -> impl Iterator<Item = String> {
    let lasts = work
        .durability
        .is_none_or(|it| it == ObjectDurability::Power);
    let wrong = [
        (!lasts).then_some("disk has the durability power alone; mem has none and process"),
        work.zero_copy
            .then_some("disk has no values that are filled in place; leave zero copy out"),
        (work.prefault == ObjectPrefault::All)
            .then_some("disk has no memory to make present; leave the prefault out"),
        (work.thread_per_operation && work.in_flight > 1)
            .then_some("disk: operations of one commit have no threads of their own"),
    ];
    wrong.into_iter().flatten().map(str::to_owned)
}

/// The same of a store on servers.
fn wrong_with_servers(work: &ObjectWorkload) -> impl Iterator<Item = String> {
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
    let wrong = [
        work.servers
            .is_empty()
            .then(|| format!("{name} needs the address of a server, as `weir obj serve` says it")),
        work.zero_copy.then(|| {
            format!("{name}: a server's memory cannot be filled in place; leave zero copy out")
        }),
        work.thread_per_operation.then(|| {
            format!("{name}: no operation has a thread of its own; have several in flight instead")
        }),
        work.durability
            .is_some()
            .then(|| format!("{name}: the server was told its durability when it was started")),
        (work.targets() > 1)
            .then(|| format!("{name}: servers have targets of their own; leave their number out")),
        (longest > LONGEST).then(|| {
            format!(
                "{too_long}: a server takes values of 64 MiB at the most, not of {longest} bytes"
            )
        }),
        stores_nothing.then(|| {
            format!(
                "{name} stores nothing: it has updates and fetches alone; remote has the others"
            )
        }),
    ];
    wrong.into_iter().flatten()
}
