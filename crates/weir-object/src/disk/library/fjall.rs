//! fjall: a journal and sorted files in a directory of its own, which threads of its own merge.
//!
//! In: keys, changes. Out: values. The pool's length is a bound of the bytes before a commit: what threads
//! merge lies twice on the disk for a while.

use std::path::{Path, PathBuf};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::{Changes, Committed, Entries, Value, code_of_place, full};
use crate::disk::bytes_below;
use crate::prelude::*;

/// Longest key that it takes.
const LONGEST: usize = u16::MAX as usize;

/// Bytes of its cache, as many as redb has.
const CACHE: u64 = 1 << 30;

struct Fjall {
    database: Database,
    keys: Keyspace,
    directory: PathBuf,
    limit: u64,
    /// Bytes that commits may take before the directory is looked at again.
    room: u64,
}

impl Fjall {
    /// Refuses values for which the pool has no room.
    fn has_room(&mut self, bytes: u64) -> Result<()> {
        if bytes > self.room {
            self.room = self.limit.saturating_sub(bytes_below(&self.directory));
        }
        let left = self.room.checked_sub(bytes);
        let full = || super::failed("fjall", ObjectCode::NoSpace, full(self.limit));
        self.room = left.ok_or_else(full)?;
        Ok(())
    }
}

fn failed(error: fjall::Error) -> ObjectError {
    let code = match &error {
        fjall::Error::Io(why) | fjall::Error::Storage(fjall::LsmError::Io(why)) => {
            code_of_place(why)
        }
        _ => ObjectCode::Io,
    };
    super::failed("fjall", code, error)
}

pub(super) fn open(directory: &Path, limit: u64) -> Result<Box<dyn Committed>> {
    let database = Database::builder(directory);
    let database = database.worker_threads(1).cache_size(CACHE);
    let database = database.open().map_err(failed)?;
    let options = || {
        let separate = KvSeparationOptions::default();
        KeyspaceCreateOptions::default().with_kv_separation(Some(separate))
    };
    let keys = database.keyspace("weir", options).map_err(failed)?;
    Ok(Box::new(Fjall {
        database,
        keys,
        directory: directory.to_owned(),
        limit,
        room: 0,
    }))
}

impl Committed for Fjall {
    fn longest(&self) -> usize {
        LONGEST
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        let value = self.keys.get(key).map_err(failed)?;
        Ok(value.map(Value::Held))
    }

    fn range(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Entries<'_>> {
        let entries = self.keys.range::<&[u8], _>(from..below);
        let entry = |found: fjall::Guard| {
            let (key, value) = found.into_inner().map_err(failed)?;
            Ok((Value::Held(key), Value::Held(value)))
        };
        if is_back {
            return Ok(Box::new(entries.rev().map(entry)));
        }
        Ok(Box::new(entries.map(entry)))
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        // What only goes makes room.
        let values = changes.iter();
        let values = values.filter_map(|(key, value)| Some(key.len() + value.as_ref()?.len()));
        let bytes: usize = values.sum();
        if bytes > 0 {
            self.has_room(bytes as u64)?;
        }
        let batch = self.database.batch();
        let mut batch = batch.durability(Some(PersistMode::SyncData));
        for (key, value) in changes {
            match value {
                Some(value) => batch.insert(&self.keys, &key[..], &value[..]),
                None => batch.remove(&self.keys, &key[..]),
            }
        }
        batch.commit().map_err(failed)
    }

    fn compact(&mut self) -> Result<()> {
        self.keys.rotate_memtable_and_wait().map_err(failed)?;
        self.keys.major_compact().map_err(failed)
    }
}
