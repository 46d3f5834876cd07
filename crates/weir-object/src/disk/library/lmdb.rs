//! LMDB: pages of a mapped file in a directory of its own.
//!
//! In: keys, changes. Out: values. The pool's length is the mapping's.

#![expect(unsafe_code, reason = "who opens a mapping vouches for its file")]

use std::cell::OnceCell;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{Env, EnvOpenOptions, MdbError, RoTxn, WithoutTls};

use super::{Changes, Committed, Entries, Value, code_of_place, full};
use crate::prelude::*;

/// Bytes of a page, in which mappings are counted.
const PAGE: u64 = 4096;

struct Lmdb {
    /// The keys as last committed; it goes before the environment.
    read: OnceCell<RoTxn<'static, WithoutTls>>,
    env: Env<WithoutTls>,
    keys: heed::Database<Bytes, Bytes>,
    limit: u64,
}

fn failed(error: heed::Error) -> ObjectError {
    let code = match &error {
        heed::Error::Io(why) => code_of_place(why),
        _ => ObjectCode::Io,
    };
    super::failed("LMDB", code, error)
}

pub(super) fn open(directory: &Path, limit: u64) -> Result<Box<dyn Committed>> {
    let room = local(limit.next_multiple_of(PAGE));
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(room);
    // SAFETY: whoever opens it holds the lock of the pool, beside whose file the directory lies.
    let env = unsafe { options.open(directory) }.map_err(failed)?;
    let mut change = env.write_txn().map_err(failed)?;
    let keys = env.create_database(&mut change, None).map_err(failed)?;
    change.commit().map_err(failed)?;
    Ok(Box::new(Lmdb {
        read: OnceCell::new(),
        env,
        keys,
        limit,
    }))
}

impl Lmdb {
    fn read(&self) -> Result<&RoTxn<'static, WithoutTls>> {
        if let Some(read) = self.read.get() {
            return Ok(read);
        }
        let read = self.env.clone().static_read_txn().map_err(failed)?;
        Ok(self.read.get_or_init(|| read))
    }
}

impl Committed for Lmdb {
    fn longest(&self) -> usize {
        self.env.max_key_size()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value<'_>>> {
        let value = self.keys.get(self.read()?, key).map_err(failed)?;
        Ok(value.map(Value::Plain))
    }

    fn range(&self, from: &[u8], below: &[u8], is_back: bool) -> Result<Entries<'_>> {
        let range = &(Bound::Included(from), Bound::Excluded(below));
        let entry = |found: heed::Result<(_, _)>| {
            let (key, value) = found.map_err(failed)?;
            Ok((Value::Plain(key), Value::Plain(value)))
        };
        let read = self.read()?;
        if is_back {
            let entries = self.keys.rev_range(read, range).map_err(failed)?;
            return Ok(Box::new(entries.map(entry)));
        }
        let entries = self.keys.range(read, range).map_err(failed)?;
        Ok(Box::new(entries.map(entry)))
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        let limit = self.limit;
        let failed = |error| match error {
            heed::Error::Mdb(MdbError::MapFull) => {
                super::failed("LMDB", ObjectCode::NoSpace, full(limit))
            }
            other => failed(other),
        };
        // An older view would keep pages from being used again.
        self.read.take();
        let mut change = self.env.write_txn().map_err(failed)?;
        for (key, value) in changes {
            match value {
                Some(value) => self.keys.put(&mut change, key, value),
                None => self.keys.delete(&mut change, key).map(drop),
            }
            .map_err(failed)?;
        }
        change.commit().map_err(failed)
    }

    fn compact(&mut self) -> Result<()> {
        // Its file does not get shorter. What a commit freed can be used from the second one after it.
        let key = vec![u8::MAX];
        self.commit(&Changes::from([(key.clone(), Some(Vec::new()))]))?;
        self.commit(&Changes::from([(key, None)]))
    }
}
