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

mod model;

use model::{Model, Random, step};
use weir_object::mem::MemStore;
use weir_object::*;

fn operations() -> u64 {
    if std::env::var_os("WEIR_LONG").is_some() {
        1_000_000
    } else {
        100_000
    }
}

#[test]
fn random_operations_in_any_order_of_epochs_give_what_the_model_gives() {
    for (seed, sums) in [
        (1, ValueSums::None),
        (2, ValueSums::Crc32c),
        (3, ValueSums::Xxh3),
    ] {
        let path =
            std::env::temp_dir().join(format!("weir_object_oracle.{}.{seed}", std::process::id()));
        let mut spec = PoolSpec {
            path: Some(path.clone()),
            durability: Durability::Process,
            sums,
            ..PoolSpec::anonymous(256 << 20)
        };
        let mut store = MemStore::open(&spec).unwrap();
        spec.mode = PoolMode::Open;
        let mut model = Model::default();
        let mut random = Random(seed);
        let mut container = store.container([1; 16], ContainerMode::Create).unwrap();
        for number in 0..operations() / 3 {
            if random.below(1_000) == 0 {
                store.close().unwrap();
                store = MemStore::open(&spec).unwrap();
                assert!(!store.stats().log_damaged, "operation {number}");
                container = store.container([1; 16], ContainerMode::Open).unwrap();
            }
            step(&mut store, &mut model, container, &mut random);
        }
        std::fs::remove_file(&path).unwrap();
        assert!(
            model.compared > operations() / 30,
            "only {} reads found something",
            model.compared
        );
    }
}
