//! Cost of the engine `disk` beside its library alone: `disk_cost [DIR [VALUES [ROUNDS]]]`, 4 KiB values.
//!
//! Prints a line for each figure and round: its name, the microseconds of an update by the clock, and those of
//! the other side. The other sides are a bare loop over redb with the same batches, and a write and a flush of a
//! plain file. On a file system in memory the flush costs nothing, and what the model costs is seen.
//! `disk_cost DIR VALUES engine|redb BATCH` does one side alone, for whoever counts its instructions.

#![expect(
    clippy::print_stdout,
    reason = "a program that prints what it measured"
)]
#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]
#![expect(clippy::unwrap_used, reason = "what fails here ends the program")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use weir_object::disk::DiskStore;
use weir_object::{
    Conditions, ContainerMode, Durability, Epoch, Iod, KeyAt, ObjectId, ObjectStore, PoolSpec,
    ValueSums,
};

const SIZE: usize = 4096;
const TABLE: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("bare");

/// Microseconds of a step by the clock.
fn per_step(steps: usize, work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_nanos() as f64 / 1e3 / steps as f64
}

fn engine(path: &Path, values: usize, batch: usize, data: &[u8]) -> f64 {
    let spec = PoolSpec {
        path: Some(path.to_owned()),
        durability: Durability::Power,
        assume_persistent: true,
        sums: ValueSums::Crc32c,
        group_commit: batch > 1,
        ..PoolSpec::anonymous(16 << 30)
    };
    let mut store = DiskStore::open(&spec).unwrap();
    let container = store.container([7; 16], ContainerMode::Create).unwrap();
    let object = ObjectId { hi: 0, lo: 1 };
    let mut ended = Vec::new();
    let each = per_step(values, || {
        for number in 0..values {
            let dkey = format!("blade-{number}");
            let dkey = dkey.as_bytes();
            let key = KeyAt {
                container,
                object,
                dkey,
            };
            let iods = [Iod::single(b"akey--1", SIZE as u64)];
            let epoch = Epoch(number as u64 + 1);
            let _ = store
                .update(key, &iods, epoch, Conditions::NONE, data)
                .unwrap();
            if batch > 1 && (number + 1).is_multiple_of(batch) {
                store.poll(&mut ended, batch);
            }
        }
        store.poll(&mut ended, 0);
    });
    assert!(ended.iter().all(|end| end.result.is_ok()));
    Box::new(store).close().unwrap();
    std::fs::remove_file(path).unwrap();
    each
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
            engine(&path, values, number(3, 1), &data);
        }
        Some("redb") => {
            bare(&path, values, number(3, 1), &data);
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
    let each = engine(path, values, 1, data);
    print("disk-flush", each, flush);
    print("disk-redb-1", each, bare(path, values, 1, data));
    let many = engine(path, values, 64, data);
    print("disk-redb-64", many, bare(path, values, 64, data));
}
