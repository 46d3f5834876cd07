//! Cost of the engine `mem` beside plain copies and beside limits: `mem_cost [DIR [VALUES [SMALL [ROUNDS]]]]`.
//!
//! Prints a line for each figure and round: its name, the figure, and the copy or limit that it stands beside.
//! VALUES are of 4 KiB; SMALL values of 128 B are opened again, 0 leaves that out. `cargo xtask bench object`
//! reads the lines.

#![expect(
    clippy::print_stdout,
    reason = "a program that prints what it measured"
)]
#![expect(clippy::cast_precision_loss, reason = "figures of three digits")]
#![expect(clippy::unwrap_used, reason = "what fails here ends the program")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use weir_object::mem::{CHUNK, Mapping, Medium, MemStore, footprint};
use weir_object::{
    Conditions, ContainerId, ContainerMode, Durability, Epoch, FetchRequest, Iod, KeyAt, ObjectId,
    ObjectStore, PoolMode, PoolSpec, Prefault, StoreStats, Ticket, ValueSums,
};

const SIZE: usize = 4096;
const MIB: usize = 1 << 20;
const SMALL: usize = 128;
const OBJECT: ObjectId = ObjectId { hi: 0, lo: 1 };
/// Updates per second of the tuning guide.
const GUIDE: f64 = 80_335.11;
/// Seconds that opening may take after a clean end, and after a kill.
const OPENING: [f64; 2] = [2.0, 8.0];

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

fn spec(
    path: &Path,
    values: usize,
    durability: Durability,
    mode: PoolMode,
    size: usize,
) -> PoolSpec {
    let plan = footprint(values as u64, size as u64, 27);
    PoolSpec {
        path: Some(path.to_owned()),
        // The log has to have room twice, since passes write it anew.
        bytes: plan * 2 + (16 << 20),
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
    for &number in order {
        step(number);
    }
    started.elapsed().as_nanos() as f64 / order.len() as f64
}

fn print(name: &str, figure: f64, beside: f64) {
    println!("{name} {figure} {beside}");
}

/// A new pool with values in the order of their keys; nanoseconds of an update.
fn filled(
    path: &Path,
    values: usize,
    durability: Durability,
    size: usize,
) -> (MemStore, Keys, f64) {
    let spec = spec(path, values, durability, PoolMode::Create, size);
    let mut store = MemStore::open(&spec).unwrap();
    let container = store.container([7; 16], ContainerMode::Create).unwrap();
    let akey = format!("akey--{}", values + 1);
    let keys = Keys { container, akey };
    let (data, order) = (vec![0x5A; size], (0..values).collect::<Vec<_>>());
    let mut epoch = 1;
    let ns = per_step(&order, |number| {
        epoch += 1;
        let iod = [Iod::single(keys.akey.as_bytes(), size as u64)];
        let key = &mut [0; 16];
        let key = keys.at(number, key);
        let done = store.update(key, &iod, Epoch(epoch), Conditions::NONE, &data);
        assert_eq!(done, Ok(Ticket::Done(size as u64)));
    });
    (store, keys, ns)
}

/// Nanoseconds of a fetch in this order.
fn fetched(store: &mut MemStore, keys: &Keys, order: &[usize], size: usize) -> f64 {
    let mut data = vec![0; size];
    per_step(order, |number| {
        let mut iods = [Iod::single(keys.akey.as_bytes(), size as u64)];
        let key = &mut [0; 16];
        let (key, none) = (keys.at(number, key), Conditions::NONE);
        let done = store.fetch(key, &mut iods, Epoch::LATEST, none, &mut data);
        assert_eq!(done, Ok(Ticket::Done(size as u64)));
    })
}

/// The same by eight at once.
fn fetched_in_batches(store: &mut MemStore, keys: &Keys, order: &[usize]) -> f64 {
    let mut data = vec![0; 8 * SIZE];
    let batches: Vec<usize> = (0..order.len() / 8).collect();
    let ns = per_step(&batches, |batch| {
        let numbers = &order[batch * 8..batch * 8 + 8];
        let mut iods = [[Iod::single(keys.akey.as_bytes(), SIZE as u64)]; 8];
        let parts = data.as_chunks_mut::<SIZE>().0;
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
        let done = Ok(Ticket::Done(SIZE as u64));
        assert!(requests.iter().all(|one| one.result == done));
    });
    ns / 8.0
}

/// Nanoseconds of a copy between a pool's mapping and memory, by its place: out of it, and into it.
fn copied(path: &Path, order: &[usize], size: usize) -> [f64; 2] {
    let spec = spec(path, order.len(), Durability::Process, PoolMode::Open, size);
    let mut medium = Mapping::new(&spec).unwrap();
    medium.populate(0, medium.len()).unwrap();
    let mut data = vec![0x5A; size];
    let at = |number: usize| CHUNK + (number * size) as u64;
    let out = per_step(order, |number| {
        data.copy_from_slice(medium.bytes(at(number), size));
    });
    let into = per_step(order, |number| {
        medium.bytes_mut(at(number), size).copy_from_slice(&data);
    });
    [out, into]
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

/// Values of 4 KiB, at the instructions of power, then at process.
fn pages(path: &Path, values: usize) {
    let (store, _, ns) = filled(path, values, Durability::Power, SIZE);
    print("update-power", 1e9 / ns, GUIDE);
    drop(store);
    std::fs::remove_file(path).unwrap();
    let (in_order, random) = ((0..values).collect::<Vec<_>>(), shuffled(values));
    let (mut store, keys, update) = filled(path, values, Durability::Process, SIZE);
    let ordered = fetched(&mut store, &keys, &in_order, SIZE);
    let scattered = fetched(&mut store, &keys, &random, SIZE);
    let batched = fetched_in_batches(&mut store, &keys, &random);
    let stats = store.stats();
    drop(store);
    // The copies into the mapping overwrite the pool: they are the last.
    let [copy_random, _] = copied(path, &random, SIZE);
    let [copy, copy_into] = copied(path, &in_order, SIZE);
    print("update-copy", update, copy_into);
    print("fetch-order-copy", ordered, copy);
    print("fetch-random-copy", scattered, copy_random);
    print("fetch-batched-copy", batched, copy_random);
    print("memory", taken(&stats), (values * SIZE) as f64);
    std::fs::remove_file(path).unwrap();
}

fn taken(stats: &StoreStats) -> f64 {
    (stats.value_bytes + stats.log_bytes + stats.index_bytes) as f64
}

/// Values of 1 MiB beside copies of as many.
fn large(path: &Path, values: usize) {
    let order: Vec<usize> = (0..values).collect();
    let (mut store, keys, update) = filled(path, values, Durability::Process, MIB);
    let fetch = fetched(&mut store, &keys, &order, MIB);
    drop(store);
    let [out, into] = copied(path, &order, MIB);
    let mib_per_s = |ns: f64| 1e9 / ns;
    print("update-1MiB", mib_per_s(update), mib_per_s(into));
    print("fetch-1MiB", mib_per_s(fetch), mib_per_s(out));
    std::fs::remove_file(path).unwrap();
}

/// Opening of a pool of many small values, which another process has left: closed, then killed.
fn reopened(path: &Path, values: usize) {
    for (how, limit) in ["close", "kill"].into_iter().zip(OPENING) {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.arg(how).arg(path).arg(values.to_string());
        let is_killed = child.status().unwrap().code().is_none();
        assert_eq!(is_killed, how == "kill");
        let started = Instant::now();
        let store = MemStore::open(&spec(
            path,
            values,
            Durability::Process,
            PoolMode::Open,
            SMALL,
        ));
        let seconds = started.elapsed().as_secs_f64();
        assert_eq!(store.unwrap().stats().versions, values as u64);
        print(&format!("open-after-{how}"), seconds, limit);
        std::fs::remove_file(path).unwrap();
    }
}

/// The other process of `reopened`.
fn leave(how: &str, path: &Path, values: usize) {
    let (store, ..) = filled(path, values, Durability::Process, SMALL);
    if how == "close" {
        Box::new(store).close().unwrap();
    } else {
        // Nothing of the store is told, as by a signal from elsewhere.
        std::process::abort();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual: usize| {
        let word = arguments.get(place);
        word.map_or(usual, |word| word.parse().unwrap())
    };
    let first = arguments.first().map_or("/dev/shm", String::as_str);
    if let "close" | "kill" = first {
        return leave(first, Path::new(&arguments[1]), number(2, 0));
    }
    let path = PathBuf::from(first).join(format!("weir_mem_cost.{}", std::process::id()));
    let (values, small) = (number(1, 1_000_000), number(2, 0));
    for _ in 0..number(3, 1) {
        pages(&path, values);
        large(&path, values / 1024 + 1);
        if small > 0 {
            reopened(&path, small);
        }
    }
}
