//! The library under the engine: ordered keys with values, and transactions that last.
//!
//! In: bytes. Out: the same, or an error named `NOSPACE` or `IO` for what the file does not take or give.
//! The pool's file has a superblock, and behind it what the library writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use redb::{
    AccessGuard, Builder, Database, ReadOnlyTable, ReadableDatabase as _, ReadableTable as _,
    StorageBackend, Table, TableDefinition, WriteTransaction,
};

use super::keys::{self, SUM};
use crate::prelude::*;

type Bytes = &'static [u8];
/// A value that was found.
pub(super) type Value<'a> = AccessGuard<'a, Bytes>;
/// An entry that was found: key and value.
pub(super) type Entry<'a> = (AccessGuard<'a, Bytes>, AccessGuard<'a, Bytes>);

const TABLE: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("weir");
/// Place of the library's first byte.
pub(super) const HEAD: u64 = 4096;

/// The pool's file behind its superblock, up to the length that the pool may have.
#[derive(Debug)]
pub(super) struct PoolFile {
    pub(super) file: File,
    pub(super) limit: u64,
}

// The file is locked by whoever opened it: the library's own locks are left out.
impl StorageBackend for PoolFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len().saturating_sub(HEAD))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, HEAD + offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // The library doubles the length long before it writes there.
        self.file.set_len(HEAD + len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if HEAD + offset + data.len() as u64 > self.limit {
            let why = format!("the pool has {} B, and this needs more", self.limit);
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        }
        self.file.write_all_at(data, HEAD + offset)
    }
}

/// The error of a call of the library.
fn failed(error: impl Into<redb::Error>) -> ObjectError {
    let error = error.into();
    let code = match &error {
        redb::Error::Io(why) if code_of_io(why) == ObjectCode::NoSpace => ObjectCode::NoSpace,
        _ => ObjectCode::Io,
    };
    ObjectError::new(code, format!("the pool's file: {error}"))
}

/// True for an error of the file, behind which the library does nothing more.
pub(super) fn is_of_file(error: &ObjectError) -> bool {
    matches!(error.code, ObjectCode::Io | ObjectCode::NoSpace)
}

pub(super) struct Library {
    database: Database,
    /// The transaction of updates that wait for their commit.
    pending: Option<WriteTransaction>,
    /// The keys as they were when last committed.
    committed: Option<ReadOnlyTable<Bytes, Bytes>>,
    sums: ValueSums,
    /// True once an object or a distribution key was punched.
    pub(super) is_punched: bool,
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").finish_non_exhaustive()
    }
}

impl Library {
    pub(super) fn open(file: PoolFile, sums: ValueSums) -> Result<Self> {
        let database = Builder::new().create_with_backend(file).map_err(failed)?;
        let mut library = Self {
            database,
            pending: None,
            committed: None,
            sums,
            is_punched: false,
        };
        if library.view().is_err() {
            // A new one: the table is made by its first use.
            library.change(|_| Ok(()))?;
            library.commit()?;
        }
        let view = library.view()?;
        let is_punched = view.get(&keys::pool(keys::PUNCHED, 0, 0))?.is_some();
        drop(view);
        Ok(Self {
            is_punched,
            ..library
        })
    }

    /// The keys as they are, with what waits for its commit.
    pub(super) fn view(&mut self) -> Result<View<'_>> {
        let table = if let Some(pending) = &self.pending {
            Keys::Pending(pending.open_table(TABLE).map_err(failed)?)
        } else {
            let table = if let Some(table) = self.committed.take() {
                table
            } else {
                let read = self.database.begin_read().map_err(failed)?;
                read.open_table(TABLE).map_err(failed)?
            };
            Keys::Committed(self.committed.insert(table))
        };
        let (sums, is_punched) = (self.sums, self.is_punched);
        Ok(View {
            table,
            sums,
            is_punched,
        })
    }

    /// Counts of what was last committed.
    pub(super) fn count(&self) -> Result<StoreStats> {
        let read = self.database.begin_read().map_err(failed)?;
        let table = &read.open_table(TABLE).map_err(failed)?;
        let (table, sums, is_punched) = (Keys::Committed(table), self.sums, self.is_punched);
        View {
            table,
            sums,
            is_punched,
        }
        .count()
    }

    /// Changes keys in a transaction, which waits for its commit. Where the work fails, it has changed
    /// nothing, or the error is one of the file.
    pub(super) fn change<T>(&mut self, work: impl FnOnce(&mut View<'_>) -> Result<T>) -> Result<T> {
        // An older view would keep pages from being used again.
        self.committed = None;
        if self.pending.is_none() {
            self.pending = Some(self.database.begin_write().map_err(failed)?);
        }
        let mut view = self.view()?;
        let done = work(&mut view);
        let is_punched = view.is_punched;
        drop(view);
        self.is_punched = is_punched;
        done
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Makes what waits last.
    pub(super) fn commit(&mut self) -> Result<()> {
        match self.pending.take() {
            Some(pending) => pending.commit().map_err(failed),
            None => Ok(()),
        }
    }

    /// Drops what waits.
    pub(super) fn roll_back(&mut self) {
        self.pending = None;
    }

    /// Gives pages that nothing uses back to the file system.
    pub(super) fn compact(&mut self) -> Result<()> {
        self.committed = None;
        self.database.compact().map(drop).map_err(failed)
    }

    pub(super) fn close(self) -> Result<()> {
        drop((self.pending, self.committed));
        self.database.close().map_err(failed)
    }
}

enum Keys<'a> {
    Pending(Table<'a, Bytes, Bytes>),
    Committed(&'a ReadOnlyTable<Bytes, Bytes>),
}

/// The keys at one moment.
pub(super) struct View<'a> {
    table: Keys<'a>,
    pub(super) sums: ValueSums,
    pub(super) is_punched: bool,
}

impl<'v> View<'v> {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        match &self.table {
            Keys::Pending(table) => table.get(key),
            Keys::Committed(table) => redb::ReadableTable::get(*table, key),
        }
        .map_err(failed)
    }

    /// Entries from a key on that lie before another, from either end.
    pub(super) fn range<'s>(
        &'s self,
        from: &[u8],
        below: &[u8],
    ) -> Result<impl DoubleEndedIterator<Item = Result<Entry<'s>>> + use<'s, 'v>> {
        // An empty range is none to the library.
        let range = from..below.max(from);
        let entries = match &self.table {
            Keys::Pending(table) => table.range::<&[u8]>(range),
            Keys::Committed(table) => redb::ReadableTable::range::<&[u8]>(*table, range),
        };
        let entries = entries.map_err(failed)?;
        Ok(entries.map(|entry| entry.map_err(failed)))
    }

    pub(super) fn first(&self, from: &[u8], below: &[u8]) -> Result<Option<Entry<'_>>> {
        self.range(from, below)?.next().transpose()
    }

    pub(super) fn last(&self, from: &[u8], below: &[u8]) -> Result<Option<Entry<'_>>> {
        self.range(from, below)?.next_back().transpose()
    }

    /// Writes an entry of some parts, with its sum.
    pub(super) fn put(&mut self, key: &[u8], parts: [&[u8]; 2]) -> Result<()> {
        let len = parts[0].len() + parts[1].len();
        let sums = self.sums;
        let mut room = self
            .pending()?
            .insert_reserve(key, SUM + len)
            .map_err(failed)?;
        let (sum, bytes) = room.as_mut().split_at_mut(SUM);
        let (first, second) = bytes.split_at_mut(parts[0].len());
        first.copy_from_slice(parts[0]);
        second.copy_from_slice(parts[1]);
        sum.copy_from_slice(&keys::seal(sums, key, bytes));
        Ok(())
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.pending()?.remove(key).map(drop).map_err(failed)
    }

    fn pending(&mut self) -> Result<&mut Table<'v, Bytes, Bytes>> {
        match &mut self.table {
            Keys::Pending(table) => Ok(table),
            Keys::Committed(_) => ObjectCode::Io.fail("a view only reads"),
        }
    }
}
