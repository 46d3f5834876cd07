//! Cost of the engine `mem` beside plain copies: `mem_cost [DIR [VALUES]]`, 4 KiB values.
//!
//! Prints rates of updates and fetches on one core, and fetches as a ratio of copies from the same
//! mapping in the same order. Figures depend on the machine; the ratios less so.

#![expect(
    clippy::print_stdout,
    reason = "a program that prints what it measured"
)]
#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "numbers of values that fit a pool"
)]
#![expect(clippy::too_many_lines, reason = "a table, row by row")]
#![expect(
    clippy::needless_for_each,
    clippy::semicolon_if_nothing_returned,
    reason = "loops of one call"
)]
#![expect(clippy::unwrap_used, reason = "what fails here ends the program")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use weir_object::mem::{Mapping, Medium, MemStore, footprint};
use weir_object::{
    Conditions, ContainerId, ContainerMode, Durability, Epoch, FetchRequest, Iod, KeyAt, ObjectId,
    ObjectStore, PoolMode, PoolSpec, Prefault, Ticket, ValueSums,
};

const SIZE: u64 = 4096;
const OBJECT: ObjectId = ObjectId { hi: 0, lo: 1 };

/// Keys as the reference names them, made in place so that no look-up of a key is timed.
struct Keys {
    container: ContainerId,
    akey: String,
}

/// Room for a distribution key.
type KeyBytes = [u8; 16];

impl Keys {
    fn at<'a>(&self, number: usize, room: &'a mut KeyBytes) -> KeyAt<'a> {
        let (mut rest, mut first) = (number + 1, room.len());
        while rest > 0 {
            first -= 1;
            room[first] = b'0' + u8::try_from(rest % 10).unwrap();
            rest /= 10;
        }
        first -= 6;
        room[first..first + 6].copy_from_slice(b"blade-");
        KeyAt {
            container: self.container,
            object: OBJECT,
            dkey: &room[first..],
        }
    }
}

fn spec(path: PathBuf, values: u64, durability: Durability, mode: PoolMode, size: u64) -> PoolSpec {
    let plan = footprint(values, size, 27);
    PoolSpec {
        path: Some(path),
        bytes: plan + plan / 16 + (16 << 20),
        durability,
        assume_persistent: true,
        prefault: if mode == PoolMode::Create {
            Prefault::Plan(plan)
        } else {
            Prefault::None
        },
        mode,
        sums: ValueSums::None,
        ..PoolSpec::anonymous(0)
    }
}

/// Runs a step for each of the given numbers; nanoseconds of one by the clock.
fn per_step(order: &[usize], mut step: impl FnMut(usize)) -> f64 {
    let started = Instant::now();
    order.iter().for_each(|&number| step(number));
    started.elapsed().as_nanos() as f64 / order.len() as f64
}

fn print(name: &str, ns: f64) {
    println!("{name:34} {ns:8.0} ns {:9.0} /s", 1e9 / ns);
}

fn fill(store: &mut MemStore, keys: &Keys, order: &[usize], data: &[u8], name: &str) {
    let mut epoch = 1;
    let size = data.len() as u64;
    let ns = per_step(order, |number| {
        epoch += 1;
        let iod = [Iod::single(keys.akey.as_bytes(), size)];
        let done = store.update(
            keys.at(number, &mut [0; 16]),
            &iod,
            Epoch(epoch),
            Conditions::NONE,
            data,
        );
        assert_eq!(done, Ok(Ticket::Done(size)));
    });
    print(name, ns);
}

fn fetch(store: &mut MemStore, keys: &Keys, order: &[usize], data: &mut [u8], name: &str) -> f64 {
    let ns = per_step(order, |number| {
        let mut iods = [Iod::single(keys.akey.as_bytes(), SIZE)];
        let done = store.fetch(
            keys.at(number, &mut [0; 16]),
            &mut iods,
            Epoch::LATEST,
            Conditions::NONE,
            data,
        );
        assert_eq!(done, Ok(Ticket::Done(SIZE)));
    });
    print(name, ns);
    ns
}

fn fetch_batches(store: &mut MemStore, keys: &Keys, order: &[usize]) {
    let mut data = vec![0; 8 * SIZE as usize];
    let batches: Vec<usize> = (0..order.len() / 8).collect();
    let ns = per_step(&batches, |batch| {
        let numbers = &order[batch * 8..batch * 8 + 8];
        let mut iods = [[Iod::single(keys.akey.as_bytes(), SIZE)]; 8];
        let parts = data.as_chunks_mut::<{ SIZE as usize }>().0;
        let mut names = [[0; 16]; 8];
        let mut each = numbers
            .iter()
            .zip(iods.iter_mut())
            .zip(names.iter_mut().zip(parts));
        let mut requests = std::array::from_fn::<_, 8, _>(|_| {
            let ((&number, iods), (name, data)) = each.next().unwrap();
            FetchRequest {
                key: keys.at(number, name),
                iods,
                epoch: Epoch::LATEST,
                conditions: Conditions::NONE,
                data,
                result: Ok(Ticket::Done(0)),
            }
        });
        store.fetch_batch(&mut requests);
        assert!(
            requests
                .iter()
                .all(|one| one.result == Ok(Ticket::Done(SIZE)))
        );
    });
    print("fetch random, batches of 8", ns / 8.0);
}

fn shuffled(len: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut state = 88_172_645_463_325_252_u64;
    for at in (1..len).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(at, usize::try_from(state % (at as u64 + 1)).unwrap());
    }
    order
}

fn open(dir: &Path, values: usize, durability: Durability, size: u64) -> (MemStore, Keys, PathBuf) {
    let path = dir.join(format!("weir_mem_cost.{}", std::process::id()));
    let spec = spec(
        path.clone(),
        values as u64,
        durability,
        PoolMode::Create,
        size,
    );
    let mut store = MemStore::open(&spec).unwrap();
    let container = store.container([7; 16], ContainerMode::Create).unwrap();
    let akey = format!("akey--{}", values + 1);
    (store, Keys { container, akey }, path)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().unwrap_or_else(|| "/dev/shm".to_owned()));
    let values: usize = arguments
        .next()
        .map_or(1_000_000, |count| count.parse().unwrap());
    let small: usize = arguments.next().map_or(0, |count| count.parse().unwrap());
    let (in_order, random) = ((0..values).collect::<Vec<_>>(), shuffled(values));
    let mut data = vec![0x5A_u8; SIZE as usize];
    let (mut store, keys, path) = open(&dir, values, Durability::Power, SIZE);
    fill(
        &mut store,
        &keys,
        &in_order,
        &data,
        "update, instructions of power",
    );
    drop(store);
    std::fs::remove_file(&path).unwrap();
    let (mut store, keys, path) = open(&dir, values, Durability::Process, SIZE);
    fill(&mut store, &keys, &in_order, &data, "update, process");
    let ordered = fetch(
        &mut store,
        &keys,
        &in_order,
        &mut data,
        "fetch in key order",
    );
    let scattered = fetch(&mut store, &keys, &random, &mut data, "fetch random");
    fetch_batches(&mut store, &keys, &random);
    let stats = store.stats();
    drop(store);
    let mut medium = Mapping::new(&spec(
        path.clone(),
        values as u64,
        Durability::Process,
        PoolMode::Open,
        SIZE,
    ))
    .unwrap();
    medium.populate(0, medium.len()).unwrap();
    let mut copy_all = |order: &[usize]| {
        per_step(order, |number| {
            data.copy_from_slice(medium.bytes((number as u64 + 512) * SIZE, SIZE as usize))
        })
    };
    let (copy, copy_random) = (copy_all(&in_order), copy_all(&random));
    drop(medium);
    print("copy in order, same mapping", copy);
    print("copy random, same mapping", copy_random);
    println!("fetch in order / copy in order {:.2}", ordered / copy);
    println!(
        "fetch random / copy random     {:.2}",
        scattered / copy_random
    );
    let memory = stats.value_bytes + stats.log_bytes + stats.index_bytes;
    println!(
        "memory per stored byte         {:.3}",
        memory as f64 / (values as u64 * SIZE) as f64
    );
    println!(
        "prefault                       {:.3} s",
        stats.prefault_ns as f64 / 1e9
    );
    std::fs::remove_file(&path).unwrap();
    if small > 0 {
        reopen(&dir, small);
    }
}

/// Opening of a pool of many small values.
fn reopen(dir: &Path, values: usize) {
    let (mut store, keys, path) = open(dir, values, Durability::Process, 64);
    let order: Vec<usize> = (0..values).collect();
    fill(&mut store, &keys, &order, &[1; 64], "update of 64 B");
    store.close().unwrap();
    let store = MemStore::open(&spec(
        path.clone(),
        values as u64,
        Durability::Process,
        PoolMode::Open,
        64,
    ))
    .unwrap();
    let stats = store.stats();
    assert_eq!(stats.versions, values as u64);
    println!(
        "opening {values} keys        {:.3} s",
        stats.recovery_ns as f64 / 1e9
    );
    std::fs::remove_file(&path).unwrap();
}
