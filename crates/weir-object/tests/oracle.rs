//! The engine against a model that keeps every version in one list.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::precedence,
    clippy::decimal_bitwise_operands,
    clippy::manual_is_multiple_of,
    clippy::maybe_infinite_iter,
    clippy::many_single_char_names,
    clippy::needless_pass_by_value,
    clippy::wildcard_imports,
    clippy::print_stderr,
    clippy::too_many_lines,
    unreachable_pub,
    missing_docs,
    reason = "tests"
)]

#[allow(dead_code, reason = "other tests use the rest of it")]
mod loopback;
mod model;

use loopback::remote;
use model::{Model, Random, dkey, dkeys, object, settle, step};
use weir_object::disk::DiskStore;
use weir_object::mem::MemStore;
use weir_object::*;

/// A directory in memory, where there is one: a flush costs nothing there.
fn quick_dir() -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}

/// Random operations on an engine, with its store closed and opened in between.
fn compared<S: ObjectStore>(
    seed: u64,
    operations: u64,
    spec: PoolSpec,
    open: impl Fn(&PoolSpec) -> Result<S>,
    target_of: impl Fn(&S, ObjectId, &[u8]) -> Option<usize>,
) {
    let name = format!("weir_object_oracle.{}.{seed}", std::process::id());
    let dir = quick_dir().join(name);
    std::fs::create_dir(&dir).unwrap();
    let mut spec = PoolSpec {
        path: Some(dir.join("pool")),
        ..spec
    };
    let mut store = open(&spec).unwrap();
    spec.mode = PoolMode::Open;
    let targets = dkeys().filter_map(|place| {
        let target = target_of(&store, object(place.0), &dkey(place.1))?;
        Some((place, target))
    });
    let mut model = Model {
        targets: targets.collect(),
        ..Model::default()
    };
    let mut random = Random(seed);
    let mut container = store.container([1; 16], ContainerMode::Create).unwrap();
    for number in 0..operations {
        let turn = random.below(1_000);
        if turn == 1 {
            // What is in another container, which comes and goes, is not seen.
            settle(&mut store, &mut model);
            let other = store.container([2; 16], ContainerMode::Create).unwrap();
            let mut of_other = Model {
                targets: model.targets.clone(),
                ..Model::default()
            };
            for at in 0..5 {
                step(&mut store, &mut of_other, other, &mut Random(number + at));
            }
            settle(&mut store, &mut of_other);
            store.snapshot(other, Epoch(number + 1)).unwrap();
            store.drop_container(other).unwrap();
        }
        if turn == 0 {
            settle(&mut store, &mut model);
            // A store that is only dropped leaves no image of its index.
            if number % 2 == 0 {
                Box::new(store).close().unwrap();
            } else {
                drop(store);
            }
            store = open(&spec).unwrap();
            assert!(!store.stats().log_damaged, "operation {number}");
            container = store.container([1; 16], ContainerMode::Open).unwrap();
        }
        step(&mut store, &mut model, container, &mut random);
    }
    settle(&mut store, &mut model);
    Box::new(store).close().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(
        model.compared > operations / 10,
        "only {} reads found something",
        model.compared
    );
}

fn one_target<S>(_: &S, _: ObjectId, _: &[u8]) -> Option<usize> {
    None
}

/// Ten times as many where time does not matter.
fn long() -> u64 {
    if std::env::var_os("WEIR_LONG").is_some() {
        10
    } else {
        1
    }
}

#[test]
fn random_operations_on_mem_give_what_the_model_gives() {
    for (seed, sums) in [
        (1, ValueSums::None),
        (2, ValueSums::Crc32c),
        (3, ValueSums::Xxh3),
    ] {
        let spec = PoolSpec {
            durability: Durability::Process,
            sums,
            ..PoolSpec::anonymous(256 << 20)
        };
        compared(seed, long() * 100_000 / 3, spec, MemStore::open, one_target);
    }
}

#[test]
fn random_operations_on_disk_give_what_the_model_gives() {
    let cases = [
        (4, ValueSums::Crc32c, false, DiskLibrary::Redb),
        (5, ValueSums::Xxh3, true, DiskLibrary::Redb),
        (8, ValueSums::Crc32c, false, DiskLibrary::Fjall),
        (9, ValueSums::Crc32c, true, DiskLibrary::Fjall),
        (10, ValueSums::Crc32c, false, DiskLibrary::Lmdb),
        (11, ValueSums::Crc32c, true, DiskLibrary::Lmdb),
    ];
    let there = |case: &(_, _, _, DiskLibrary)| case.3.lacks().is_none();
    for (seed, sums, group_commit, library) in cases.into_iter().filter(there) {
        let spec = PoolSpec {
            durability: Durability::Power,
            // Files of tests lie in memory, where commits are quick.
            assume_persistent: true,
            sums,
            group_commit,
            library,
            ..PoolSpec::anonymous(256 << 20)
        };
        compared(seed, long() * 10_000 / 2, spec, DiskStore::open, one_target);
    }
}

#[test]
fn random_operations_on_targets_give_what_the_model_gives() {
    for (seed, in_flight) in [(6, 0), (7, 8)] {
        let spec = PoolSpec {
            durability: Durability::Process,
            ..PoolSpec::anonymous(128 << 20)
        };
        let open = |spec: &PoolSpec| {
            let targets = ["0", "1"].map(|target| {
                MemStore::open(&PoolSpec {
                    path: spec.path.as_ref().map(|path| path.with_extension(target)),
                    ..spec.clone()
                })
            });
            let targets: Result<Vec<_>> = targets.into_iter().collect();
            Ok(remote(
                targets?.into_iter().map(Some).collect(),
                in_flight,
                0,
            ))
        };
        compared(
            seed,
            long() * 100_000 / 2,
            spec,
            open,
            |store, object, dkey| Some(store.target_of(object, dkey)),
        );
    }
}
