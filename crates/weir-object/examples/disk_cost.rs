//! Cost of the engine `disk` beside its library alone: `disk_cost [DIR [VALUES]]`, 4 KiB values.
//!
//! Prints the time of an update by the clock and of the processor, one commit for each and one for 64: of the
//! engine, of a bare loop over redb with the same batches, and of a write and a flush of a plain file. On a
//! file system in memory the flush costs nothing, and what the model costs is seen.

#![expect(
    clippy::print_stdout,
    reason = "a program that prints what it measured"
)]
#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]
#![expect(clippy::unwrap_used, reason = "what fails here ends the program")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use weir_object::disk::DiskStore;
use weir_object::{
    Conditions, ContainerMode, Durability, Epoch, Iod, KeyAt, ObjectId, ObjectStore, PoolSpec,
    ValueSums,
};

const SIZE: usize = 4096;
const TABLE: redb::TableDefinition<'_, &[u8], &[u8]> = redb::TableDefinition::new("bare");

/// Nanoseconds of a step by the clock and of the processor.
fn per_step(name: &str, steps: usize, work: impl FnOnce()) -> [f64; 2] {
    let cpu = || {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
    };
    let (began, cpu_began) = (Instant::now(), cpu());
    work();
    let took = [began.elapsed().as_nanos() as f64, cpu() - cpu_began];
    let each = took.map(|ns| ns / steps as f64 / 1e3);
    println!(
        "{name:34} {:10.1} us {:10.1} us of the processor",
        each[0], each[1]
    );
    each
}

fn engine(path: &Path, values: usize, batch: usize, data: &[u8]) -> [f64; 2] {
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
    let name = format!("disk, {batch} for each commit");
    let mut ended = Vec::new();
    let each = per_step(&name, values, || {
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
    store.close().unwrap();
    std::fs::remove_file(path).unwrap();
    each
}

fn bare(path: &Path, values: usize, batch: usize, data: &[u8]) -> [f64; 2] {
    let database = redb::Database::create(path).unwrap();
    let name = format!("redb, {batch} for each commit");
    let each = per_step(&name, values, || {
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

fn flushed(path: &Path, values: usize, data: &[u8]) -> [f64; 2] {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(path);
    let file = file.unwrap();
    for number in 0..values {
        file.write_all_at(data, (number * SIZE) as u64).unwrap();
    }
    file.sync_all().unwrap();
    let each = per_step("pwrite and fdatasync", values, || {
        for number in 0..values {
            file.write_all_at(data, (number * SIZE) as u64).unwrap();
            file.sync_data().unwrap();
        }
    });
    std::fs::remove_file(path).unwrap();
    each
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| "/dev/shm".to_owned()));
    let values = arguments
        .next()
        .map_or(20_000, |count| count.parse().unwrap());
    let path = dir.join(format!("weir_disk_cost.{}", std::process::id()));
    let data = vec![0x5A_u8; SIZE];
    let floor = flushed(&path, values, &data);
    for batch in [1, 64] {
        let (disk, redb) = (
            engine(&path, values, batch, &data),
            bare(&path, values, batch, &data),
        );
        println!(
            "disk / redb, {batch:2} for each commit     {:.2} by the clock, {:.2} of the processor",
            disk[0] / redb[0],
            disk[1] / redb[1]
        );
        if batch == 1 {
            println!(
                "disk / pwrite and fdatasync       {:.2}",
                disk[0] / floor[0]
            );
        }
    }
}
