//! Cost of three key-value libraries at the work of the store on a disk: `libraries [DIR [VALUES [ROUNDS]]]`.
//!
//! Prints a line for each round, batch and library: microseconds of an update by the clock, durable when its
//! batch is committed; of a fetch in random order; and the bytes of all files by those of the values. Rounds
//! take the libraries in turn. Values are 4 KiB of random bytes below keys as long as the engine's.

#![expect(
    clippy::print_stdout,
    reason = "a program that prints what it measured"
)]
#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]
#![expect(clippy::unwrap_used, reason = "what fails here ends the program")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use heed::types::Bytes;

const SIZE: usize = 4096;
const TABLE: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("values");

/// A library with one table of values.
trait Library {
    /// Writes values and makes them last.
    fn commit(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]);
    /// Length of the value of a key.
    fn fetch(&mut self, key: &[u8]) -> usize;
}

struct Redb(redb::Database);

impl Library for Redb {
    fn commit(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) {
        let change = self.0.begin_write().unwrap();
        let mut table = change.open_table(TABLE).unwrap();
        for (key, value) in pairs {
            table.insert(&key[..], &value[..]).unwrap();
        }
        drop(table);
        change.commit().unwrap();
    }

    fn fetch(&mut self, key: &[u8]) -> usize {
        use redb::ReadableDatabase as _;
        let table = self.0.begin_read().unwrap().open_table(TABLE).unwrap();
        table.get(key).unwrap().unwrap().value().to_vec().len()
    }
}

struct Fjall(fjall::Database, fjall::Keyspace);

impl Library for Fjall {
    fn commit(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) {
        let batch = self.0.batch();
        let mut batch = batch.durability(Some(fjall::PersistMode::SyncData));
        for (key, value) in pairs {
            batch.insert(&self.1, &key[..], &value[..]);
        }
        batch.commit().unwrap();
    }

    fn fetch(&mut self, key: &[u8]) -> usize {
        self.1.get(key).unwrap().unwrap().to_vec().len()
    }
}

struct Lmdb(heed::Env, heed::Database<Bytes, Bytes>);

impl Library for Lmdb {
    fn commit(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) {
        let mut change = self.0.write_txn().unwrap();
        for (key, value) in pairs {
            self.1.put(&mut change, key, value).unwrap();
        }
        change.commit().unwrap();
    }

    fn fetch(&mut self, key: &[u8]) -> usize {
        let read = self.0.read_txn().unwrap();
        self.1.get(&read, key).unwrap().unwrap().to_vec().len()
    }
}

fn open(name: &str, folder: &Path) -> Box<dyn Library> {
    match name {
        "redb" => Box::new(Redb(redb::Database::create(folder.join("file")).unwrap())),
        "fjall" => {
            let database = fjall::Database::builder(folder).open().unwrap();
            let values = fjall::KeyspaceCreateOptions::default;
            let values = database.keyspace("values", values).unwrap();
            Box::new(Fjall(database, values))
        }
        _ => {
            let mut options = heed::EnvOpenOptions::new();
            options.map_size(16 << 30);
            // SAFETY: the folder is this program's own.
            let env = unsafe { options.open(folder) }.unwrap();
            let mut change = env.write_txn().unwrap();
            let values = env.create_database(&mut change, None).unwrap();
            change.commit().unwrap();
            Box::new(Lmdb(env, values))
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn key(number: u64) -> Vec<u8> {
    format!("{:20}blade-{number}..akey--1..{:17}", "", "").into_bytes()
}

fn bytes_below(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| {
        let facts = entry.metadata().unwrap();
        if facts.is_dir() {
            bytes_below(&entry.path())
        } else {
            facts.blocks() * 512
        }
    });
    sizes.sum()
}

/// Microseconds of an update and of a fetch, and bytes on the disk for each of a value.
fn measured(name: &str, folder: &Path, values: u64, batch: u64) -> [f64; 3] {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).unwrap();
    let mut library = open(name, folder);
    let (mut state, mut written) = (0x5EED, 0.0);
    for first in (0..values).step_by(usize::try_from(batch).unwrap()) {
        let value = |state: &mut u64| {
            (0..SIZE / 8)
                .flat_map(|_| random(state).to_le_bytes())
                .collect()
        };
        let numbers = first..(first + batch).min(values);
        let pairs: Vec<_> = numbers
            .map(|number| (key(number), value(&mut state)))
            .collect();
        let began = Instant::now();
        library.commit(&pairs);
        written += began.elapsed().as_nanos() as f64;
    }
    let began = Instant::now();
    for _ in 0..values {
        assert_eq!(library.fetch(&key(random(&mut state) % values)), SIZE);
    }
    let fetched = began.elapsed().as_nanos() as f64;
    drop(library);
    let bytes = bytes_below(folder) as f64;
    fs::remove_dir_all(folder).unwrap();
    let count = values as f64;
    [
        written / 1e3 / count,
        fetched / 1e3 / count,
        bytes / count / SIZE as f64,
    ]
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual| words.get(place).map_or(usual, |word| word.parse().unwrap());
    let folder = words.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("weir_libraries.{}", std::process::id()));
    let (values, rounds) = (number(1, 20_000), number(2, 9));
    for _ in 0..rounds {
        for batch in [1, 64] {
            for name in ["redb", "fjall", "lmdb"] {
                // One waiting flushes each value.
                let values = if batch == 1 { values / 10 } else { values };
                let [update, fetch, bytes] = measured(name, &folder, values, batch);
                println!(
                    "{name} batch {batch} update {update:.2} fetch {fetch:.2} bytes {bytes:.2}"
                );
            }
        }
    }
}
