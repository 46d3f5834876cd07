//! The library under the engine: ordered keys with values, and transactions that last.
//!
//! In: bytes. Out: the same, or an error named `NOSPACE` or `IO` for what the place does not take or give. redb
//! keeps what waits for its commit itself; for the others it lies in memory beside the library ([`Changes`]).

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
mod redb;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::path::Path;

use super::keys::{self, Place, SUM, VERSION};
use crate::prelude::*;
use redb::{Guard, Redb, Table};
pub(super) use redb::{HEAD, PoolFile};

/// A value that was found.
pub(super) enum Value<'a> {
    Page(Guard<'a>),
    #[cfg(feature = "fjall")]
    Held(::fjall::Slice),
    Plain(&'a [u8]),
}

impl Value<'_> {
    pub(super) fn value(&self) -> &[u8] {
        match self {
            Self::Page(guard) => guard.value(),
            #[cfg(feature = "fjall")]
            Self::Held(held) => held,
            Self::Plain(bytes) => bytes,
        }
    }
}

/// An entry that was found: key and value.
pub(super) type Entry<'a> = (Value<'a>, Value<'a>);
/// Entries in order of their keys, or back.
type Entries<'a> = Box<dyn Iterator<Item = Result<Entry<'a>>> + 'a>;
/// Changes that wait for their commit: values, and nothing for keys that go.
type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A library that knows only what was committed.
trait Committed: Send {
    /// Bytes of the longest key that it takes.
    fn longest(&self) -> usize;

    fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>>;

    /// Entries from a key on that lie before another, which is no lesser one.
    fn range(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Entries<'_>>;

    /// Makes changes last, all or none.
    fn commit(&mut self, changes: &Changes) -> Result<()>;

    /// Gives back what nothing uses, where the library can.
    fn compact(&mut self) -> Result<()>;
}

enum Store {
    Redb(Box<Redb>),
    Other {
        library: Box<dyn Committed>,
        changes: Changes,
    },
}

/// The error of a library's call.
fn failed(library: &str, code: ObjectCode, why: impl std::fmt::Display) -> ObjectError {
    ObjectError::new(code, format!("the pool's library {library}: {why}"))
}

/// Said where the pool may not get longer.
fn full(limit: u64) -> String {
    format!("the pool has {limit} B, and this needs more")
}

/// The code of an error of the file system.
fn code_of_place(error: &std::io::Error) -> ObjectCode {
    match code_of_io(error) {
        ObjectCode::NoSpace => ObjectCode::NoSpace,
        _ => ObjectCode::Io,
    }
}

/// True for an error of the file, behind which the library does nothing more.
pub(super) fn is_of_file(error: &ObjectError) -> bool {
    matches!(error.code, ObjectCode::Io | ObjectCode::NoSpace)
}

pub(super) struct Library {
    store: Store,
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
    /// Opens one in the pool's file, or in the directory beside it.
    pub(super) fn open(
        which: DiskLibrary,
        file: PoolFile,
        directory: &Path,
        sums: ValueSums,
    ) -> Result<Self> {
        let store = match which {
            DiskLibrary::Redb => Store::Redb(Box::new(Redb::open(file)?)),
            other => Store::Other {
                library: in_directory(other, directory, file.limit)?,
                changes: Changes::new(),
            },
        };
        let mut library = Self {
            store,
            sums,
            is_punched: false,
        };
        let punched = keys::pool(keys::PUNCHED, 0, 0);
        let is_punched = library.view()?.get(&punched)?.is_some();
        library.is_punched = is_punched;
        Ok(library)
    }

    /// The keys as they are, with what waits for its commit.
    pub(super) fn view(&mut self) -> Result<View<'_>> {
        let keys = match &mut self.store {
            Store::Redb(redb) => Keys::Table(redb.table()?),
            Store::Other { library, changes } => Keys::Changed(&**library, changes),
        };
        let (sums, is_punched) = (self.sums, self.is_punched);
        Ok(View {
            keys,
            sums,
            is_punched,
        })
    }

    /// Counts of what was last committed.
    pub(super) fn count(&self) -> Result<StoreStats> {
        let (sums, is_punched) = (self.sums, self.is_punched);
        let count = |keys| {
            let view = View {
                keys,
                sums,
                is_punched,
            };
            view.count()
        };
        match &self.store {
            Store::Redb(redb) => count(Keys::Table(Table::Committed(&redb.committed()?))),
            Store::Other { library, .. } => count(Keys::Changed(&**library, &mut Changes::new())),
        }
    }

    /// Changes keys in a transaction, which waits for its commit. Where the work fails, it has changed
    /// nothing, or the error is one of the file.
    pub(super) fn change<T>(&mut self, work: impl FnOnce(&mut View<'_>) -> Result<T>) -> Result<T> {
        if let Store::Redb(redb) = &mut self.store {
            redb.begin()?;
        }
        let mut view = self.view()?;
        let done = work(&mut view);
        let is_punched = view.is_punched;
        drop(view);
        self.is_punched = is_punched;
        done
    }

    pub(super) fn is_pending(&self) -> bool {
        match &self.store {
            Store::Redb(redb) => redb.is_pending(),
            Store::Other { changes, .. } => !changes.is_empty(),
        }
    }

    /// Makes what waits last.
    pub(super) fn commit(&mut self) -> Result<()> {
        match &mut self.store {
            Store::Redb(redb) => redb.commit(),
            Store::Other { changes, .. } if changes.is_empty() => Ok(()),
            Store::Other { library, changes } => library.commit(&std::mem::take(changes)),
        }
    }

    /// Drops what waits.
    pub(super) fn roll_back(&mut self) {
        match &mut self.store {
            Store::Redb(redb) => redb.roll_back(),
            Store::Other { changes, .. } => changes.clear(),
        }
    }

    /// Gives back to the file system what nothing uses.
    pub(super) fn compact(&mut self) -> Result<()> {
        match &mut self.store {
            Store::Redb(redb) => redb.compact(),
            Store::Other { library, .. } => library.compact(),
        }
    }

    pub(super) fn close(self) -> Result<()> {
        match self.store {
            Store::Redb(redb) => redb.close(),
            Store::Other { .. } => Ok(()),
        }
    }
}

/// Opens one that has a directory, in which the pool may take so many bytes.
#[cfg_attr(
    not(any(feature = "fjall", feature = "lmdb")),
    expect(unused_variables, reason = "this build has none")
)]
fn in_directory(which: DiskLibrary, directory: &Path, limit: u64) -> Result<Box<dyn Committed>> {
    match which {
        #[cfg(feature = "fjall")]
        DiskLibrary::Fjall => fjall::open(directory, limit),
        #[cfg(feature = "lmdb")]
        DiskLibrary::Lmdb => lmdb::open(directory, limit),
        _ => ObjectCode::NoSys.fail(which.lacks().unwrap_or_default()),
    }
}

enum Keys<'a> {
    Table(Table<'a>),
    Changed(&'a dyn Committed, &'a mut Changes),
}

/// The keys at one moment.
pub(super) struct View<'a> {
    keys: Keys<'a>,
    pub(super) sums: ValueSums,
    pub(super) is_punched: bool,
}

impl View<'_> {
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        match &self.keys {
            Keys::Table(table) => Ok(table.get(key)?.map(Value::Page)),
            Keys::Changed(library, changes) => match changes.get(key) {
                Some(change) => Ok(change.as_deref().map(Value::Plain)),
                None => library.get(key),
            },
        }
    }

    /// Entries from a key on that lie before another.
    pub(super) fn range(&self, from: &[u8], below: &[u8]) -> Result<Entries<'_>> {
        self.entries(from, below, false)
    }

    /// The same from the last one back.
    pub(super) fn range_back(&self, from: &[u8], below: &[u8]) -> Result<Entries<'_>> {
        self.entries(from, below, true)
    }

    fn entries(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Entries<'_>> {
        if from >= below {
            // Not every library knows an empty range.
            return Ok(Box::new(std::iter::empty()));
        }
        match &self.keys {
            Keys::Table(table) => table.range(from, below, is_back),
            Keys::Changed(library, changes) => {
                let stored = library.range(from, below, is_back)?;
                let bounds = (Bound::Included(from), Bound::Excluded(below));
                let changed = changes.range::<[u8], _>(bounds);
                if changed.clone().next().is_none() {
                    return Ok(stored);
                }
                let changed: ChangedKeys<'_> = if is_back {
                    Box::new(changed.rev())
                } else {
                    Box::new(changed)
                };
                Ok(Box::new(Merged {
                    stored: stored.peekable(),
                    changed: changed.peekable(),
                    is_back,
                }))
            }
        }
    }

    pub(super) fn first(&self, from: &[u8], below: &[u8]) -> Result<Option<Entry<'_>>> {
        self.end(from, below, false)
    }

    pub(super) fn last(&self, from: &[u8], below: &[u8]) -> Result<Option<Entry<'_>>> {
        self.end(from, below, true)
    }

    fn end(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Option<Entry<'_>>> {
        match &self.keys {
            Keys::Table(table) => table.end(from, below, is_back),
            Keys::Changed(..) => self.entries(from, below, is_back)?.next().transpose(),
        }
    }

    /// Refuses what has longer keys than the library takes.
    pub(super) fn takes(&self, place: &Place) -> Result<()> {
        if let Keys::Changed(library, _) = &self.keys {
            let longest = library.longest();
            refuse!(place.key.len() + VERSION > longest => NoSys,
                format!("the pool's library takes keys of {longest} B with all their parts; redb takes any"));
        }
        Ok(())
    }

    /// Writes an entry of some parts, with its sum.
    pub(super) fn put(&mut self, key: &[u8], parts: [&[u8]; 2]) -> Result<()> {
        let len = SUM + parts[0].len() + parts[1].len();
        let sums = self.sums;
        let fill = |room: &mut [u8]| {
            let (sum, bytes) = room.split_at_mut(SUM);
            let (first, second) = bytes.split_at_mut(parts[0].len());
            first.copy_from_slice(parts[0]);
            second.copy_from_slice(parts[1]);
            sum.copy_from_slice(&keys::seal(sums, key, bytes));
        };
        match &mut self.keys {
            Keys::Table(table) => table.put(key, len, fill),
            Keys::Changed(_, changes) => {
                let mut value = vec![0; len];
                fill(&mut value);
                changes.insert(key.to_vec(), Some(value));
                Ok(())
            }
        }
    }

    pub(super) fn delete(&mut self, key: &[u8]) -> Result<()> {
        match &mut self.keys {
            Keys::Table(table) => table.delete(key),
            Keys::Changed(_, changes) => {
                changes.insert(key.to_vec(), None);
                Ok(())
            }
        }
    }
}

type ChangedKeys<'a> = Box<dyn Iterator<Item = (&'a Vec<u8>, &'a Option<Vec<u8>>)> + 'a>;

/// Entries of a library, with changes that wait for their commit in their places.
struct Merged<'a> {
    stored: Peekable<Entries<'a>>,
    changed: Peekable<ChangedKeys<'a>>,
    is_back: bool,
}

impl<'a> Iterator for Merged<'a> {
    type Item = Result<Entry<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let order = match (self.stored.peek(), self.changed.peek()) {
                (None | Some(Ok(_)), None) | (Some(Err(_)), _) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok((key, _))), Some((changed, _))) => {
                    let order = key.value().cmp(changed);
                    if self.is_back { order.reverse() } else { order }
                }
            };
            if order == Ordering::Less {
                return self.stored.next();
            }
            if order == Ordering::Equal {
                self.stored.next();
            }
            if let Some((key, Some(value))) = self.changed.next() {
                return Some(Ok((Value::Plain(key), Value::Plain(value))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library in memory.
    struct Stored(BTreeMap<Vec<u8>, Vec<u8>>);

    impl Committed for Stored {
        fn longest(&self) -> usize {
            64
        }

        fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
            Ok(self.0.get(key).map(|value| Value::Plain(value)))
        }

        fn range(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Entries<'_>> {
            let bounds = (Bound::Included(from), Bound::Excluded(below));
            let entry = |(key, value)| Ok((Value::Plain(key), Value::Plain(value)));
            let entries = self
                .0
                .range::<[u8], _>(bounds)
                .map(move |(k, v)| entry((k, v)));
            Ok(if is_back {
                Box::new(entries.rev())
            } else {
                Box::new(entries)
            })
        }

        fn commit(&mut self, _: &Changes) -> Result<()> {
            Ok(())
        }

        fn compact(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_waits_stands_in_the_place_of_what_is_stored() {
        // Each key is stored or not, and not changed, changed or gone.
        for case in 0..6_u32.pow(4) {
            let (mut stored, mut changes, mut both) =
                (BTreeMap::new(), Changes::new(), BTreeMap::new());
            for key in 1..=4_u8 {
                let kind = case / 6_u32.pow(u32::from(key) - 1) % 6;
                let key = vec![key];
                if kind >= 3 {
                    stored.insert(key.clone(), b"old".to_vec());
                    both.insert(key.clone(), b"old".to_vec());
                }
                match kind % 3 {
                    1 => {
                        both.insert(key.clone(), b"new".to_vec());
                        changes.insert(key, Some(b"new".to_vec()));
                    }
                    2 => {
                        both.remove(&key);
                        changes.insert(key, None);
                    }
                    _ => {}
                }
            }
            let view = View {
                keys: Keys::Changed(&Stored(stored), &mut changes),
                sums: ValueSums::None,
                is_punched: false,
            };
            let bytes = |entry: Result<Entry<'_>>| {
                let (key, value) = entry.unwrap();
                (key.value().to_vec(), value.value().to_vec())
            };
            for (from, below) in [([0], [9]), ([2], [4]), ([3], [3]), ([4], [1])] {
                let there = both.iter().filter(|(key, _)| **key >= from.to_vec());
                let there = there.filter(|(key, _)| **key < below.to_vec());
                let mut there: Vec<_> = there.map(|(k, v)| (k.clone(), v.clone())).collect();
                let found: Vec<_> = view.range(&from, &below).unwrap().map(bytes).collect();
                assert_eq!(found, there, "{case}");
                there.reverse();
                let found: Vec<_> = view.range_back(&from, &below).unwrap().map(bytes).collect();
                assert_eq!(found, there, "{case} back");
                let last = view.last(&from, &below).unwrap();
                assert_eq!(last.map(|entry| bytes(Ok(entry))).as_ref(), there.first());
            }
            for key in 1..=4_u8 {
                let found = view.get(&[key]).unwrap();
                let found = found.map(|value| value.value().to_vec());
                assert_eq!(found.as_ref(), both.get(&vec![key]), "{case}");
            }
        }
    }
}
