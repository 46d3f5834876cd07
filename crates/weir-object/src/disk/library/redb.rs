//! redb: pages in the pool's file, behind its superblock.
//!
//! In: keys, values. Out: the same. Not here: the superblock, the file's lock (`disk`).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use redb::{
    AccessGuard, Builder, Database, ReadOnlyTable, ReadableDatabase as _, ReadableTable,
    StorageBackend, TableDefinition, WriteTransaction,
};

use super::{Entries, Entry, Value, code_of_place, full};
use crate::prelude::*;

type Bytes = &'static [u8];
/// A value in a page.
pub(super) type Guard<'a> = AccessGuard<'a, Bytes>;

const TABLE: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("weir");
/// Place of the library's first byte.
pub(in crate::disk) const HEAD: u64 = 4096;

/// The pool's file behind its superblock, up to the length that the pool may have.
#[derive(Debug)]
pub(in crate::disk) struct PoolFile {
    pub(in crate::disk) file: File,
    pub(in crate::disk) limit: u64,
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
            return Err(io::Error::new(io::ErrorKind::StorageFull, full(self.limit)));
        }
        self.file.write_all_at(data, HEAD + offset)
    }
}

/// The error of a call of the library.
fn failed(error: impl Into<redb::Error>) -> ObjectError {
    let error = error.into();
    let code = match &error {
        redb::Error::Io(why) => code_of_place(why),
        _ => ObjectCode::Io,
    };
    super::failed("redb", code, error)
}

pub(super) struct Redb {
    database: Database,
    /// The transaction of updates that wait for their commit.
    pending: Option<WriteTransaction>,
    /// The keys as they were when last committed.
    committed: Option<ReadOnlyTable<Bytes, Bytes>>,
}

impl Redb {
    pub(super) fn open(file: PoolFile) -> Result<Self> {
        let database = Builder::new().create_with_backend(file).map_err(failed)?;
        let mut redb = Self {
            database,
            pending: None,
            committed: None,
        };
        if redb.committed().is_err() {
            // A new one: the table is made by its first use.
            redb.begin()?;
            redb.table()?;
            redb.commit()?;
        }
        Ok(redb)
    }

    /// The keys as last committed.
    pub(super) fn committed(&self) -> Result<ReadOnlyTable<Bytes, Bytes>> {
        let read = self.database.begin_read().map_err(failed)?;
        read.open_table(TABLE).map_err(failed)
    }

    pub(super) fn table(&mut self) -> Result<Table<'_>> {
        if let Some(pending) = &self.pending {
            return Ok(Table::Pending(pending.open_table(TABLE).map_err(failed)?));
        }
        let table = match self.committed.take() {
            Some(table) => table,
            None => self.committed()?,
        };
        Ok(Table::Committed(self.committed.insert(table)))
    }

    /// Begins a transaction, unless one waits for its commit.
    pub(super) fn begin(&mut self) -> Result<()> {
        // An older view would keep pages from being used again.
        self.committed = None;
        if self.pending.is_none() {
            self.pending = Some(self.database.begin_write().map_err(failed)?);
        }
        Ok(())
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        match self.pending.take() {
            Some(pending) => pending.commit().map_err(failed),
            None => Ok(()),
        }
    }

    pub(super) fn roll_back(&mut self) {
        self.pending = None;
    }

    pub(super) fn compact(&mut self) -> Result<()> {
        self.committed = None;
        self.database.compact().map(drop).map_err(failed)
    }

    pub(super) fn close(self) -> Result<()> {
        drop((self.pending, self.committed));
        self.database.close().map_err(failed)
    }
}

pub(super) enum Table<'a> {
    Pending(redb::Table<'a, Bytes, Bytes>),
    Committed(&'a ReadOnlyTable<Bytes, Bytes>),
}

impl<'t> Table<'t> {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Guard<'_>>> {
        match self {
            Self::Pending(table) => table.get(key),
            Self::Committed(table) => ReadableTable::get(*table, key),
        }
        .map_err(failed)
    }

    fn pages<'s>(
        &'s self,
        from: &[u8],
        below: &[u8],
    ) -> Result<impl DoubleEndedIterator<Item = Result<Entry<'s>>> + use<'s, 't>> {
        // An empty range is none to the library.
        let range = from..below.max(from);
        let entries = match self {
            Self::Pending(table) => table.range::<&[u8]>(range),
            Self::Committed(table) => ReadableTable::range::<&[u8]>(*table, range),
        };
        let entry = |(key, value)| (Value::Page(key), Value::Page(value));
        let entries = entries.map_err(failed)?;
        Ok(entries.map(move |found| found.map(entry).map_err(failed)))
    }

    pub(super) fn range(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Entries<'_>> {
        let pages = self.pages(from, below)?;
        if is_back {
            return Ok(Box::new(pages.rev()));
        }
        Ok(Box::new(pages))
    }

    /// The first entry of a range, or the last.
    pub(super) fn end(
        &self,
        from: &[u8],
        below: &[u8],
        is_back: bool,
    ) -> Result<Option<Entry<'_>>> {
        let mut pages = self.pages(from, below)?;
        let found = if is_back {
            pages.next_back()
        } else {
            pages.next()
        };
        found.transpose()
    }

    /// Writes an entry in its page.
    pub(super) fn put(
        &mut self,
        key: &[u8],
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<()> {
        let mut room = self.pending()?.insert_reserve(key, len).map_err(failed)?;
        fill(room.as_mut());
        Ok(())
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.pending()?.remove(key).map(drop).map_err(failed)
    }

    fn pending(&mut self) -> Result<&mut redb::Table<'t, Bytes, Bytes>> {
        match self {
            Self::Pending(table) => Ok(table),
            Self::Committed(_) => ObjectCode::Io.fail("a view only reads"),
        }
    }
}
