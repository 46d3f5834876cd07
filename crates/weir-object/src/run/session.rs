//! An open store with what the tests of one rank share, and what one iteration of a test came to.
//!
//! In: the workload, the number of the rank. Out: a [`Session`], or why there is none.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use weir_run::failure;
use weir_run::generate::rng::GOLDEN;
use weir_schema::{
    ErrorCode, Failure, ObjectAction, ObjectEngine, ObjectFailure, ObjectKey, ObjectKeys,
    ObjectPrefault, ObjectRank, ObjectRun, ObjectWorkload,
};
use weir_sys::device::path_facts;
use weir_sys::{Tree, token};
use weir_units::Nanos;

use super::keys::{Contents, Names};
use crate::prelude::*;
use crate::{disk, mem};

/// Bytes of keys that a value's record has, at the most: those of the tests are shorter.
const KEY_BYTES: u64 = 64;

/// Opens a store by its pool's specification, which gets what the store itself decides.
pub(super) type OpenStore<'a> =
    &'a mut dyn FnMut(&mut PoolSpec) -> crate::Result<Box<dyn ObjectStore>>;

/// A store that is open on a rank.
pub(super) struct Session {
    pub(super) work: ObjectWorkload,
    pub(super) store: Box<dyn ObjectStore>,
    pub(super) container: ContainerId,
    pub(super) names: Names,
    pub(super) contents: Contents,
    /// Number of the last write of each key that mixes know, objects innermost; 0 where it is punched.
    pub(super) writes: Vec<u32>,
    /// The last epoch that an operation had.
    pub(super) epoch: Epoch,
    /// File that is removed at the end.
    made: Option<PathBuf>,
    /// The container is this run's and on servers: it is destroyed at the end.
    empties: bool,
}

/// Adds what a pass dropped.
pub(super) fn add_freed(run: &mut ObjectRun, freed: FreedVersions) {
    run.operations += freed.visited;
    run.freed_versions += freed.versions;
    run.freed_bytes.0 += freed.bytes;
}

/// A code as results have it.
pub(super) fn code_of(code: ObjectCode) -> ErrorCode {
    ErrorCode::Named(format!("DER_{}", code.name()))
}

/// The failure of a job by an error of its store.
pub(super) fn failed(error: &ObjectError) -> Failure {
    Failure::new("object", error.to_string())
}

/// The library of an engine on a disk.
pub(super) fn library_of(engine: ObjectEngine) -> Option<DiskLibrary> {
    match engine {
        ObjectEngine::Disk | ObjectEngine::Redb => Some(DiskLibrary::Redb),
        ObjectEngine::Fjall => Some(DiskLibrary::Fjall),
        ObjectEngine::Lmdb => Some(DiskLibrary::Lmdb),
        _ => None,
    }
}

/// Bytes of the pool that all updates of the tests take.
pub(super) fn planned_bytes(work: &ObjectWorkload) -> u64 {
    let tests = work.tests.iter();
    let bytes = tests.filter(|test| test.action == ObjectAction::Update);
    let bytes = bytes.map(|test| {
        let values = work.planned_operations(test).unwrap_or(u64::MAX);
        match library_of(work.engine) {
            Some(library) => disk::footprint(library, values, test.size.0, KEY_BYTES),
            None => mem::footprint(values, test.size.0, KEY_BYTES),
        }
    });
    bytes.fold(0, u64::saturating_add)
}

/// Bytes of the pool that the tests write: those of the updates, and what mixes write as far as it fits.
fn written_bytes(work: &ObjectWorkload) -> u64 {
    let planned = planned_bytes(work);
    let mixed = work.tests.iter().map(|test| match &test.action {
        ObjectAction::Mix(mix) => mem::footprint(mix.writes(), test.size.0, KEY_BYTES),
        _ => 0,
    });
    let all = mixed.fold(planned, u64::saturating_add);
    all.min(planned.max(work.pool_bytes.0))
}

/// A UUID of its usual form, in bytes.
pub fn uuid_of(text: &str) -> Option<StoreUuid> {
    let parts: Vec<&str> = text.split('-').collect();
    let is_formed = parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12]);
    let number = u128::from_str_radix(&parts.concat(), 16).ok()?;
    (is_formed && !text.starts_with('+')).then(|| number.to_be_bytes())
}

/// A UUID in its usual form.
pub fn uuid_text(uuid: &StoreUuid) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(*uuid));
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &digits[part]).join("-")
}

pub(super) fn random_uuid() -> Result<StoreUuid, Failure> {
    let mut uuid = token::nonce().map_err(|why| Failure::new("object", why.to_string()))?;
    uuid[6] = (uuid[6] & 0x0f) | 0x40;
    uuid[8] = (uuid[8] & 0x3f) | 0x80;
    Ok(uuid)
}

fn named_uuid(text: Option<&str>) -> Result<Option<StoreUuid>, Failure> {
    text.map(|text| uuid_of(text).ok_or_else(|| Failure::new("plan", format!("{text} is no UUID"))))
        .transpose()
}

/// The pool of a rank, as the workload asks for it; at the durability that its place may have.
fn pool_spec(work: &ObjectWorkload, directory: &Path, rank: u32) -> Result<PoolSpec, Failure> {
    // A pool of daos is a label as well, and no file.
    let is_far = work.engine == ObjectEngine::Daos;
    let wanted = named_uuid(work.pool.as_deref().filter(|_| !is_far))?;
    let is_in_memory = work.durability == Some(Durability::None);
    let path = (!is_in_memory && !is_far).then(|| directory.join(work.pool_file(rank)));
    Ok(PoolSpec {
        durability: match (&path, work.durability) {
            (None, _) => Durability::None,
            (_, Some(Durability::Process)) => Durability::Process,
            _ => Durability::Power,
        },
        path,
        uuid: Some(wanted.map_or_else(random_uuid, Ok)?),
        mode: wanted.map_or(PoolMode::Create, |_| PoolMode::Open),
        prefault: match work.prefault {
            ObjectPrefault::Plan => Prefault::Plan(written_bytes(work)),
            ObjectPrefault::All => Prefault::All,
            ObjectPrefault::None => Prefault::None,
        },
        group_commit: work.in_flight > 1,
        library: library_of(work.engine).unwrap_or_default(),
        ..PoolSpec::anonymous(work.pool_bytes.0)
    })
}

/// The failure to open a store or its container at a place, which it names once.
fn not_opened(work: &ObjectWorkload, place: &str, why: &ObjectError) -> Failure {
    let cause = match why.code {
        ObjectCode::Mismatch => "plan",
        // Of servers it is they that are missing, or refuse.
        code if code.is_of_place() || !work.servers.is_empty() => "missing",
        ObjectCode::Exist | ObjectCode::NoSpace => "plan",
        _ => "object",
    };
    let mut places = work.servers.iter().map(String::as_str).chain([place]);
    let text = if places.any(|place| why.message.contains(place)) {
        why.to_string()
    } else {
        format!("{place}: {why}")
    };
    failure(cause, Some(why.code.number().into()), text)
}

/// Type of the file system that holds a file.
fn file_system(file: &Path) -> Option<String> {
    let facts = path_facts(&Tree::real(), file).ok()?;
    Some(facts.file_system?.fs_type)
}

/// The part of the work that falls to a target: as many distribution keys lie between two of its own as
/// there are other targets.
fn part(work: &ObjectWorkload, target: u32) -> ObjectWorkload {
    let (mut part, all) = (work.clone(), work.targets());
    if all == 1 {
        return part;
    }
    let share = |count: &mut u64| {
        *count = (*count + u64::from(all - 1 - target)) / u64::from(all);
    };
    share(&mut part.layout.dkeys);
    part.pool_bytes.0 /= u64::from(all);
    part.path_end = format!(".{target}{}", work.path_end);
    for test in &mut part.tests {
        test.dkeys.iter_mut().for_each(share);
        if let ObjectAction::Mix(mix) = &mut test.action {
            mix.operations.iter_mut().for_each(share);
        }
    }
    part
}

impl Session {
    /// Opens the store of a target of a rank.
    #[expect(clippy::too_many_lines, reason = "step by step")]
    pub(super) fn open(
        whole: &ObjectWorkload,
        (directory, seed): (&Path, u64),
        (rank, target, shared): (u32, u32, Option<StoreUuid>),
        open: OpenStore<'_>,
    ) -> Result<(Self, ObjectRank), Failure> {
        let work = &part(whole, target);
        let mut spec = pool_spec(work, directory, rank)?;
        let is_new = spec.mode == PoolMode::Create;
        let place = match &spec.path {
            _ if shared.is_some() => work.servers.join(","),
            Some(path) => path.display().to_string(),
            None => work.pool.as_deref().unwrap_or("memory").to_owned(),
        };
        let failed = |why: ObjectError| not_opened(work, &place, &why);
        let started = Instant::now();
        let mut opened = open(&mut spec);
        let chosen = work.durability.is_some();
        if !chosen
            && !work.engine.is_on_disk()
            && matches!(&opened, Err(why) if why.code == ObjectCode::NoSys)
        {
            // No DAX: the best that the place has.
            spec.durability = Durability::Process;
            opened = open(&mut spec);
        }
        let mut store = opened.map_err(failed)?;
        let file_system = spec.path.as_deref().and_then(file_system);
        let setup_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let file = spec.path.as_ref().map(|_| work.pool_file(rank));
        let made = spec.path.filter(|_| is_new);
        let named = named_uuid(work.container.as_deref())?;
        let mode = match (shared, &work.pool, named) {
            (Some(_), ..) => ContainerMode::OpenOrCreate,
            (_, Some(_), Some(_)) => ContainerMode::Open,
            _ => ContainerMode::Create,
        };
        let uuid = named.or(shared).map_or_else(random_uuid, Ok)?;
        let container = store.container(uuid, mode).map_err(|why| {
            // The reason is told; the file is this run's own.
            let _ = made.as_deref().map(remove_pool);
            failed(why)
        })?;
        let mut described = ObjectRank {
            rank,
            target,
            file_system,
            pool: uuid_text(&spec.uuid.unwrap_or_default()),
            container: uuid_text(&uuid),
            file,
            durability: spec.durability,
            setup_ns: Nanos(setup_ns),
            ..ObjectRank::default()
        };
        store.describe(container, &mut described);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default();
        let targets: (u64, u64) = (target.into(), whole.targets().into());
        let number = u64::from(rank) * targets.1 + targets.0;
        let seed = seed ^ number.wrapping_mul(GOLDEN);
        let first = u64::from(rank).saturating_mul(work.layout.objects);
        let numbers = (seed, now.as_secs(), first);
        let session = Self {
            names: Names::new(&whole.layout, work.class, targets, numbers),
            contents: Contents::new(work.payload, seed),
            epoch: match u64::try_from(now.as_nanos()) {
                _ if store.has_own_epochs() => Epoch::LATEST,
                now => Epoch(now.unwrap_or(u64::MAX / 2)),
            },
            writes: Vec::new(),
            work: work.clone(),
            store,
            container,
            made,
            empties: shared.is_some() && named.is_none() && rank == 0,
        };
        Ok((session, described))
    }

    /// The epoch of an update.
    pub(super) fn next_epoch(&mut self) -> Epoch {
        // Where the store has its own epochs it stays the latest.
        self.epoch = Epoch(self.epoch.0 + 1).min(Epoch::LATEST);
        self.epoch
    }

    /// Bytes of an operation that was the only one in flight, once it has ended.
    pub(super) fn settled(&mut self, ticket: Ticket) -> crate::Result<u64> {
        let number = match ticket {
            Ticket::Done(bytes) => return Ok(bytes),
            Ticket::Waits(number) => number,
        };
        let mut ends = Vec::new();
        while self.store.poll(&mut ends, 1) > 0 {
            if let Some(end) = ends.drain(..).find(|end| end.ticket == number) {
                return end.result;
            }
        }
        ObjectCode::NoHdl.fail("the operation is not in flight")
    }

    /// A distribution key of an object, by its number.
    pub(super) fn key<'k>(&self, object: u64, dkey: &'k [u8]) -> KeyAt<'k> {
        KeyAt {
            container: self.container,
            object: self.names.object(object),
            dkey,
        }
    }

    /// Keys of an operation, for people.
    pub(super) fn shown_keys(&self, dkey: &[u8], akey: &[u8]) -> ObjectKeys {
        let name = String::from_utf8_lossy(akey).into_owned();
        ObjectKeys {
            dkey: Some(self.names.shown_dkey(dkey)),
            akey: Some(ObjectKey::Name(name)).filter(|_| !akey.is_empty()),
        }
    }

    /// The failure of an operation on an object, by its number, with these keys.
    pub(super) fn failure(
        &self,
        object: u64,
        (dkey, akey): (&[u8], &[u8]),
        error: &ObjectError,
    ) -> ObjectFailure {
        let object = self.names.object(object).to_string();
        self.failure_at(object, self.shown_keys(dkey, akey), error)
    }

    pub(super) fn failure_at(
        &self,
        object: String,
        keys: ObjectKeys,
        error: &ObjectError,
    ) -> ObjectFailure {
        ObjectFailure {
            object,
            keys,
            epoch: self.epoch.0,
            code: code_of(error.code),
            text: error.message.clone().into_owned(),
        }
    }

    /// Closes the store, and removes what was made for the run.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        let mut emptied = Ok(0);
        if self.empties && self.work.engine != ObjectEngine::Echo {
            let destroyed = self.store.drop_container(self.container);
            emptied = destroyed.and_then(|()| self.store.collect());
        }
        let closed = match &self.made {
            // Nothing is left for a next run in a file that goes.
            Some(_) => {
                drop(self.store);
                emptied.map(drop)
            }
            None => emptied.and(self.store.close()),
        };
        let closed = closed.map_err(|why| failed(&why));
        if let Some(file) = self.made {
            remove_pool(&file).map_err(|why| {
                let text = format!("{}: {why}", file.display());
                failure("object", why.raw_os_error(), text)
            })?;
        }
        closed
    }
}
