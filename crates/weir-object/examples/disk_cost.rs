//! Cost of the engine `disk` beside its library alone: `disk_cost [DIR [VALUES [ROUNDS]]]`, 4 KiB values.
//!
//! Prints a line for each figure and round: its name, the microseconds of an update by the clock, and those of
//! the other side. The other sides are a bare loop over redb with the same batches, and a write and a flush of a
//! plain file. On a file system in memory the flush costs nothing, and what the model costs is seen.
//! `disk_cost DIR VALUES engine|redb BATCH` does one side alone, for whoever counts its instructions.
//! `disk_cost DIR VALUES libraries ROUNDS [SIZE]` prints for each library of this build in turn, and 1 and 64
//! updates in a commit: microseconds of an update and of a fetch in random order, milliseconds that opening takes
//! after a kill, and the bytes on the disk by those of the values.

#![expect(
    clippy::print_stdout,
    reason = "a program that prints what it measured"
)]
#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]
#![expect(clippy::unwrap_used, reason = "what fails here ends the program")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use weir_object::disk::DiskStore;
use weir_object::{
    Conditions, ContainerId, ContainerMode, DiskLibrary, Durability, Epoch, Iod, KeyAt, ObjectId,
    ObjectStore, PoolMode, PoolSpec, ValueSums, remove_pool,
};

const SIZE: usize = 4096;
const TABLE: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("bare");

/// Microseconds of a step by the clock.
fn per_step(steps: usize, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / 1e3 / steps as f64
}

/// Work of the engine.
struct Work<'a> {
    path: &'a Path,
    values: usize,
    batch: usize,
    size: usize,
    library: DiskLibrary,
}

impl Work<'_> {
    fn spec(&self, path: &Path, mode: PoolMode) -> PoolSpec {
        PoolSpec {
            path: Some(path.to_owned()),
            mode,
            uuid: Some([1; 16]),
            durability: Durability::Power,
            assume_persistent: true,
            sums: ValueSums::Crc32c,
            group_commit: self.batch > 1,
            library: self.library,
            ..PoolSpec::anonymous(16 << 30)
        }
    }

    fn open(&self, path: &Path, mode: PoolMode) -> (DiskStore, ContainerId) {
        let mut store = DiskStore::open(&self.spec(path, mode)).unwrap();
        let container = store.container([7; 16], ContainerMode::OpenOrCreate);
        (store, container.unwrap())
    }

    /// Updates in a new pool: microseconds of one.
    fn update(&self, (store, container): &mut (DiskStore, ContainerId)) -> f64 {
        let mut state = 0x5EED;
        let words = (0..32 * self.size / 8).flat_map(|_| random(&mut state).to_le_bytes());
        let data: Vec<u8> = words.collect();
        let mut ended = Vec::new();
        let each = per_step(self.values, || {
            for number in 0..self.values {
                let dkey = format!("blade-{number}");
                let data = &data[number % 32 * self.size..][..self.size];
                let iods = [Iod::single(b"akey--1", self.size as u64)];
                let epoch = Epoch(number as u64 + 1);
                let key = key(*container, &dkey);
                let _ = store
                    .update(key, &iods, epoch, Conditions::NONE, data)
                    .unwrap();
                if self.batch > 1 && (number + 1).is_multiple_of(self.batch) {
                    store.poll(&mut ended, self.batch);
                }
            }
            store.poll(&mut ended, 0);
        });
        assert!(ended.iter().all(|end| end.result.is_ok()));
        each
    }

    /// Fetches in random order: microseconds of one.
    fn fetch(&self, (store, container): &mut (DiskStore, ContainerId)) -> f64 {
        let (mut state, mut room) = (0xF00D, vec![0; self.size]);
        per_step(self.values, || {
            for _ in 0..self.values {
                let dkey = format!("blade-{}", random(&mut state) % self.values as u64);
                let mut iods = [Iod::single(b"akey--1", self.size as u64)];
                let key = key(*container, &dkey);
                let _ = store
                    .fetch(key, &mut iods, Epoch::LATEST, Conditions::NONE, &mut room)
                    .unwrap();
                assert_eq!(iods[0].found, self.size as u64);
            }
        })
    }

    /// Milliseconds that opening takes of a pool whose process ended in the middle.
    fn reopened(&self, library: &str) -> f64 {
        let words = [self.values, self.batch, self.size].map(|number| number.to_string());
        let mut child = Command::new(std::env::current_exe().unwrap());
        child
            .arg(self.path)
            .args([&words[0], "killed", &words[1], &words[2], library]);
        assert!(!child.status().unwrap().success());
        let mut opened = None;
        let took = per_step(1, || opened = Some(self.open(self.path, PoolMode::Open)));
        drop(opened);
        remove_pool(self.path).unwrap();
        took / 1e3
    }

    /// Does the updates in a new pool, and ends without closing it.
    fn abort(&self) -> ! {
        let mut store = self.open(self.path, PoolMode::Create);
        self.update(&mut store);
        std::process::abort()
    }
}

/// Libraries that this build has.
fn libraries() -> impl Iterator<Item = (&'static str, DiskLibrary)> {
    let all = [
        ("redb", DiskLibrary::Redb),
        ("fjall", DiskLibrary::Fjall),
        ("lmdb", DiskLibrary::Lmdb),
    ];
    all.into_iter()
        .filter(|(_, library)| library.lacks().is_none())
}

fn key(container: ContainerId, dkey: &str) -> KeyAt<'_> {
    KeyAt {
        container,
        object: ObjectId { hi: 0, lo: 1 },
        dkey: dkey.as_bytes(),
    }
}

/// Microseconds of an update.
fn engine(path: &Path, values: usize, batch: usize) -> f64 {
    let library = DiskLibrary::Redb;
    let work = &Work {
        path,
        values,
        batch,
        size: SIZE,
        library,
    };
    let mut store = work.open(path, PoolMode::Create);
    let each = work.update(&mut store);
    Box::new(store.0).close().unwrap();
    remove_pool(path).unwrap();
    each
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The engine over each library.
fn each_library(path: &Path, values: usize, size: usize) {
    for batch in [1, 64] {
        for (name, library) in libraries() {
            let work = &Work {
                path,
                // One waiting flushes each value.
                values: if batch == 1 { values / 10 } else { values },
                batch,
                size,
                library,
            };
            let mut store = work.open(path, PoolMode::Create);
            let (update, fetch) = (work.update(&mut store), work.fetch(&mut store));
            let used = work.spec(path, PoolMode::Open).bytes - store.0.stats().free_bytes;
            let bytes = used as f64 / (work.values * size) as f64;
            Box::new(store.0).close().unwrap();
            remove_pool(path).unwrap();
            let opened = work.reopened(name);
            println!(
                "{name} batch {batch} update {update:.2} fetch {fetch:.2} opened {opened:.2} bytes {bytes:.2}"
            );
        }
    }
}

fn bare(path: &Path, values: usize, batch: usize, data: &[u8]) -> f64 {
    let database = redb::Database::create(path).unwrap();
    let each = per_step(values, || {
        for first in (0..values).step_by(batch) {
            let change = database.begin_write().unwrap();
            let mut table = change.open_table(TABLE).unwrap();
            for number in first..(first + batch).min(values) {
                // As long as the engine's keys, in the same order.
                let key = format!("{:20}blade-{number}..akey--1..{:17}", "", "");
                table.insert(key.as_bytes(), data).unwrap();
            }
            drop(table);
            change.commit().unwrap();
        }
    });
    drop(database);
    std::fs::remove_file(path).unwrap();
    each
}

fn flushed(path: &Path, values: usize, data: &[u8]) -> f64 {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = file.unwrap();
    for number in 0..values {
        file.write_all_at(data, (number * SIZE) as u64).unwrap();
    }
    file.sync_all().unwrap();
    let each = per_step(values, || {
        for number in 0..values {
            file.write_all_at(data, (number * SIZE) as u64).unwrap();
            file.sync_data().unwrap();
        }
    });
    std::fs::remove_file(path).unwrap();
    each
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |place: usize| arguments.get(place).map(String::as_str);
    let number = |place, usual: usize| word(place).map_or(usual, |word| word.parse().unwrap());
    let dir = Path::new(word(0).unwrap_or("/dev/shm"));
    let path = dir.join(format!("weir_disk_cost.{}", std::process::id()));
    let (values, data) = (number(1, 20_000), vec![0x5A_u8; SIZE]);
    match word(2) {
        Some("engine") => {
            engine(&path, values, number(3, 1));
        }
        Some("redb") => {
            bare(&path, values, number(3, 1), &data);
        }
        Some("killed") => {
            let named = |(name, _): &(&str, _)| word(5) == Some(name);
            let (_, library) = libraries().find(named).unwrap();
            Work {
                path: dir,
                values,
                batch: number(3, 1),
                size: number(4, SIZE),
                library,
            }
            .abort();
        }
        Some("libraries") => {
            for _ in 0..number(3, 9) {
                each_library(&path, values, number(4, SIZE));
            }
        }
        _ => {
            for _ in 0..number(2, 1) {
                round(&path, values, &data);
            }
        }
    }
}

/// Both sides of each figure.
fn round(path: &Path, values: usize, data: &[u8]) {
    let print = |name: &str, disk: f64, other: f64| println!("{name} {disk:.2} {other:.2}");
    let flush = flushed(path, values, data);
    let each = engine(path, values, 1);
    print("disk-flush", each, flush);
    print("disk-redb-1", each, bare(path, values, 1, data));
    let many = engine(path, values, 64);
    print("disk-redb-64", many, bare(path, values, 64, data));
}
