//! The engine `disk`: the model over a library of ordered keys, which survives the loss of power.
//!
//! In: calls of [`ObjectStore`]. Out: values, found by seeking. One transaction carries an update, or all that
//! arrived since the last one where updates wait for each other. Index and values lie in the library alone.
//! Behind a write that failed the pool can only be read, and each update names the failure.

// Against the limits of the model.
#![expect(clippy::cast_possible_truncation, reason = "lengths are checked")]

mod calls;
mod keys;
mod library;
mod listing;
mod passes;
mod read;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::prelude::*;
use crate::superblock::{BLOCK, PoolLock, Superblock, folder_of, io_error, length_of, on_file};
use library::{HEAD, Library, PoolFile, View, is_of_file};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// Least bytes of a pool: what the library makes of an empty one, or writes twice before it frees a byte.
const fn least(library: DiskLibrary) -> u64 {
    match library {
        DiskLibrary::Redb | DiskLibrary::Lmdb => 4 << 20,
        DiskLibrary::Fjall => 256 << 20,
    }
}

/// Updates that wait for one commit.
#[derive(Debug, Default)]
struct Group {
    last: u64,
    /// Tickets with the bytes of their updates.
    waiting: Vec<(u64, u64)>,
    ended: Vec<Completion>,
}

/// The engine over a library.
#[derive(Debug)]
pub struct DiskStore {
    /// Gone if the pool could not be opened again behind a failure.
    library: Option<Library>,
    file: PoolLock,
    which: DiskLibrary,
    /// Of libraries that have one.
    directory: PathBuf,
    head: Superblock,
    containers: Vec<Container>,
    group: Option<Group>,
    /// The failure behind which the pool can only be read.
    failure: Option<ObjectError>,
    recovery_ns: u64,
}

/// Bytes of a pool that values of one size take. Pages of redb are powers of two, those of LMDB 4 KiB, and
/// leaves of small values may be half full; fjall has journals beside its files.
pub fn footprint(library: DiskLibrary, values: u64, size: u64, key_bytes: u64) -> u64 {
    let entry = size.saturating_add(key_bytes + 48);
    let each = match library {
        DiskLibrary::Fjall => entry,
        _ if entry <= 2048 => entry * 2,
        DiskLibrary::Redb => entry.checked_next_power_of_two().unwrap_or(u64::MAX),
        DiskLibrary::Lmdb => entry.checked_next_multiple_of(4096).unwrap_or(u64::MAX),
    };
    let all = values.saturating_mul(each);
    all.saturating_add(all / 8).saturating_add(least(library))
}

/// Flushes the directory of a new file: the file lasts once its name does.
fn make_last(path: &Path) -> std::io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// Bytes of all files below a directory; 0 of what cannot be read.
fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => bytes_below(&entry.path()),
        // Journals are longer than what is in them.
        facts => facts.map_or(0, |facts| facts.blocks() * 512),
    });
    sizes.sum()
}

/// Carries a call of the library out, which may panic where a file is damaged.
fn guarded<T>(call: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        ObjectCode::Io.fail("the pool's file is damaged: its library cannot read it")
    })
}

/// The superblock of a new pool, which is written; else the one that is there.
fn head(file: &PoolLock, path: &Path, spec: &PoolSpec) -> Result<Superblock> {
    let io = |what, error: &std::io::Error| io_error(what, path, error);
    if spec.mode == PoolMode::Create {
        let least = least(spec.library);
        refuse!(spec.bytes < least => NoSpace, format!(
            "the pool is smaller than its own records; give {} MiB or more", least >> 20));
        let head = Superblock {
            magic: spec.library.magic(),
            uuid: spec.uuid.unwrap_or_default(),
            len: spec.bytes,
            generation: 0,
            words: [0; 3],
            // A library that returns other bytes is to be noticed.
            sums: match spec.sums {
                ValueSums::None => ValueSums::Crc32c,
                sums => sums,
            },
        };
        let written = file.write_all_at(&head.encode(), 0);
        written
            .and_then(|()| file.sync_all())
            .map_err(|e| io("write", &e))?;
        Ok(head)
    } else {
        let mut block = [0; BLOCK];
        refuse!(length_of(file, path)? < HEAD => Io, "the pool's file was cut short");
        file.read_exact_at(&mut block, 0)
            .map_err(|e| io("read", &e))?;
        Superblock::read([&block[..]], spec.library.magic(), spec.uuid)
    }
}

impl DiskStore {
    /// Creates or opens a pool.
    ///
    /// # Errors
    /// By the cause; a file that was there and is no pool of this engine is never changed.
    pub fn open(spec: &PoolSpec) -> Result<Self> {
        let Some(path) = &spec.path else {
            return ObjectCode::Inval.fail("disk has no pools in memory; give a directory");
        };
        refuse!(spec.durability != Durability::Power => NoSys,
            "disk has the durability power alone; mem has none and process");
        let started = Instant::now();
        let mut store = on_file(path, spec.mode, HEAD, |file| Self::on(file, path, spec))?;
        let spent = started.elapsed().as_nanos();
        store.recovery_ns = u64::try_from(spent).unwrap_or(u64::MAX);
        Ok(store)
    }

    fn on(file: PoolLock, path: &Path, spec: &PoolSpec) -> Result<Self> {
        let io = |what, error: &std::io::Error| io_error(what, path, error);
        let in_memory = rustix::fs::fstatfs(&file).map_err(|e| io("look at", &e.into()))?;
        if in_memory.f_type == TMPFS && !spec.assume_persistent {
            let why = "this file system is in memory and loses all with power; give a directory on a disk";
            return ObjectCode::NoSys.fail(why);
        }
        let head = head(&file, path, spec)?;
        let directory = directory_of(path);
        let makes = spec.library.has_directory() && spec.mode == PoolMode::Create;
        if makes {
            fs::create_dir(&directory).map_err(|e| io_error("make", &directory, &e))?;
        }
        let mut store = Self {
            library: None,
            file,
            which: spec.library,
            directory,
            head,
            containers: Vec::new(),
            group: spec.group_commit.then(Group::default),
            failure: None,
            recovery_ns: 0,
        };
        let opened = store.open_library().and_then(|library| {
            store.library = Some(library);
            store.containers = store.read(containers)?;
            if spec.mode == PoolMode::Create {
                make_last(path).map_err(|e| io("make last", &e))?;
            }
            Ok(())
        });
        match opened {
            Ok(()) => Ok(store),
            Err(why) => {
                let directory = store.directory.clone();
                drop(store);
                if makes {
                    // This call's own: it was not there before.
                    let _ = fs::remove_dir_all(directory);
                }
                Err(why)
            }
        }
    }

    /// Bytes that the pool has on the disk.
    fn used(&self) -> u64 {
        match self.which {
            DiskLibrary::Redb => self.file.metadata().map_or(0, |facts| facts.blocks() * 512),
            DiskLibrary::Fjall | DiskLibrary::Lmdb => bytes_below(&self.directory),
        }
    }

    fn open_library(&self) -> Result<Library> {
        let file = self.file.try_clone();
        let file = file.map_err(|e| ObjectCode::Io.error(e.to_string()))?;
        let limit = self.head.len;
        let file = PoolFile { file, limit };
        guarded(|| Library::open(self.which, file, &self.directory, self.head.sums))
    }

    fn library(&mut self) -> Result<&mut Library> {
        match (&mut self.library, &self.failure) {
            (Some(library), _) => Ok(library),
            (None, Some(failure)) => Err(failure.clone()),
            (None, None) => ObjectCode::NoHdl.fail("the pool is closed"),
        }
    }

    /// Reads the keys.
    fn read<T>(&mut self, work: impl FnOnce(&View<'_>) -> Result<T>) -> Result<T> {
        let library = self.library()?;
        let done = guarded(|| work(&library.view()?));
        if let Err(why) = &done
            && is_of_file(why)
        {
            self.fall(why.clone());
        }
        done
    }

    /// Changes keys, and commits at once unless changes wait for each other.
    fn write<T>(&mut self, work: impl FnOnce(&mut View<'_>) -> Result<T>) -> Result<T> {
        if let Some(why) = &self.failure {
            let text = format!(
                "the pool can only be read since a write failed: {}",
                why.message
            );
            return ObjectCode::NoPerm.fail(text);
        }
        let waits = self.group.is_some();
        let library = self.library()?;
        let done = guarded(|| {
            let done = library.change(work)?;
            if !waits {
                library.commit()?;
            }
            Ok(done)
        });
        match &done {
            Err(why) if is_of_file(why) => self.fall(why.clone()),
            // What waits in the same transaction stays.
            Err(_) if !waits => self.library()?.roll_back(),
            _ => {}
        }
        done
    }

    /// Opens the pool again as it was last committed, to be read only.
    fn fall(&mut self, why: ObjectError) {
        self.end_group(Some(&why));
        // Dropping a library that failed may fail again.
        let old = self.library.take();
        let _ = guarded(|| {
            drop(old);
            Ok(())
        });
        self.failure.get_or_insert(why);
        self.library = self.open_library().ok();
    }

    /// Commits what waits.
    fn settle(&mut self) -> Result<()> {
        let library = self.library()?;
        if library.is_pending()
            && let Err(why) = guarded(|| library.commit())
        {
            self.fall(why.clone());
            return Err(why);
        }
        self.end_group(None);
        Ok(())
    }

    /// Ends what waited for a commit, by its failure or well.
    fn end_group(&mut self, failure: Option<&ObjectError>) {
        if let Some(group) = &mut self.group {
            let waited = group.waiting.drain(..);
            group.ended.extend(waited.map(|(ticket, bytes)| Completion {
                ticket,
                result: failure.map_or(Ok(bytes), |why| Err(why.clone())),
            }));
        }
    }

    fn ticket(&mut self, bytes: u64) -> Ticket {
        let Some(group) = &mut self.group else {
            return Ticket::Done(bytes);
        };
        group.last += 1;
        group.waiting.push((group.last, bytes));
        Ticket::Waits(group.last)
    }

    /// A change that lasts when the call returns.
    fn write_through<T>(&mut self, work: impl FnOnce(&mut View<'_>) -> Result<T>) -> Result<T> {
        let done = self.write(work)?;
        self.settle()?;
        Ok(done)
    }

    fn keep_snapshot(&mut self, id: ContainerId, epoch: Epoch, keep: bool) -> Result<()> {
        known(&self.containers, id)?;
        check_epoch(epoch)?;
        let key = keys::pool(keys::SNAPSHOT, id.0, epoch.0);
        self.write_through(|view| {
            if keep {
                view.put(&key, [&[]; 2])
            } else {
                view.delete(&key)
            }
        })?;
        self.containers[id.0 as usize].keep(epoch.0, keep);
        Ok(())
    }
}

/// Containers and their snapshots, as the pool has them.
fn containers(view: &View<'_>) -> Result<Vec<Container>> {
    let mut containers = Vec::new();
    let damaged = || ObjectCode::Io.error("an entry of the pool is damaged");
    for what in [keys::CONTAINER, keys::SNAPSHOT] {
        for entry in view.range(&keys::pool(what, 0, 0), &keys::pool(what + 1, 0, 0))? {
            let (key, value) = entry?;
            let key = key.value();
            let bytes = keys::unseal(view.sums, key, value.value())?;
            let number = key.get(5..).and_then(<[u8]>::first_chunk);
            let number = number.ok_or_else(damaged)?;
            let number = u32::from_be_bytes(*number) as usize;
            if what == keys::SNAPSHOT {
                let container: &mut Container = containers.get_mut(number).ok_or_else(damaged)?;
                container.snapshots.push(!keys::epoch_of(key));
            } else {
                let uuid = *bytes.first_chunk().ok_or_else(damaged)?;
                let mut container = Container::new(uuid);
                if bytes.get(uuid.len()) == Some(&GONE) {
                    container.end();
                }
                containers.push(container);
            }
        }
    }
    Ok(containers)
}

/// Byte behind the name of a container that was destroyed.
const GONE: u8 = 1;
/// Number of file systems in memory.
const TMPFS: rustix::fs::FsWord = 0x0102_1994;
