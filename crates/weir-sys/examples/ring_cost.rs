//! Cost of a message through a ring: two threads, each on a CPU of its own, 64-byte records there
//! and back, at depth 1 and 16.
//!
//! Without arguments: nanoseconds a round trip and millions of them a second on CPUs 0 and 1, the
//! median of rounds, in shared memory and on the heap. With `DEPTH CALLER ANSWERER`: round trips a
//! second in shared memory on these CPUs, once.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::cast_precision_loss,
    reason = "a program that prints"
)]

use std::hint::spin_loop;
use std::sync::{Arc, Barrier};
use std::time::Instant;

use weir_sys::CpuList;
use weir_sys::pin::set_affinity;
use weir_sys::ring::{Consumer, HeapRingEnds, MappedRing, Producer, RingMemory, heap_ring};
use weir_sys::shared_memory::SharedMemory;

type Message = [u64; 8];

const SLOTS: u32 = 256;
const ROUNDS: usize = 7;

fn main() {
    let args = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("a number"));
    if let Ok([depth, caller, answerer]) = <[u32; 3]>::try_from(args.collect::<Vec<_>>()) {
        let ns = round(shared(), depth.into(), messages(depth), [caller, answerer]);
        println!("{:.1}", 1e9 / ns);
        return;
    }
    for depth in [1, 16] {
        let (messages, cpus) = (messages(depth), [0, 1]);
        print(
            "shared",
            depth,
            median(|| round(shared(), depth.into(), messages, cpus)),
        );
        print(
            "heap",
            depth,
            median(|| round(on_heap(), depth.into(), messages, cpus)),
        );
    }
}

fn messages(depth: u32) -> u64 {
    if depth == 1 { 1_000_000 } else { 10_000_000 }
}

type Ends<M> = (Producer<M>, Consumer<M>);

/// Rings there and back.
fn shared() -> (Ends<MappedRing<Message>>, Ends<MappedRing<Message>>) {
    let bytes = MappedRing::<Message>::bytes(SLOTS);
    let (memory, _) = SharedMemory::create("weir-ring-cost", 2 * bytes).expect("memory");
    let memory = Arc::new(memory);
    let ends = |at| {
        let ring = MappedRing::<Message>::at(&memory, at, SLOTS).expect("it fits");
        (Producer::new(ring.clone()), Consumer::new(ring))
    };
    (ends(0), ends(bytes))
}

fn on_heap() -> (HeapRingEnds<Message>, HeapRingEnds<Message>) {
    (heap_ring(SLOTS), heap_ring(SLOTS))
}

fn print(memory: &str, depth: u32, ns: f64) {
    println!(
        "{memory:8} depth {depth:2}: {ns:7.1} ns, {:6.2} M/s",
        1e3 / ns
    );
}

fn median(mut round: impl FnMut() -> f64) -> f64 {
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

/// Nanoseconds a round trip.
fn round<M: RingMemory<Record = Message> + Send>(
    (there, back): (Ends<M>, Ends<M>),
    depth: u64,
    messages: u64,
    cpus: [u32; 2],
) -> f64 {
    let (mut request, arrived) = there;
    let (reply, mut replied) = back;
    // A thread begins where its parent is pinned, and has to get away from there.
    let both_pinned = Barrier::new(2);
    let met = || both_pinned.wait();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin(cpus[1]);
            met();
            echo(arrived, reply, messages);
        });
        pin(cpus[0]);
        met();
        let (mut sent, mut done) = (0, 0);
        let begin = Instant::now();
        while done < messages {
            while sent < messages && sent - done < depth {
                let record = [sent; 8];
                assert!(
                    request.push(record).expect("sound"),
                    "the ring is longer than the depth"
                );
                sent += 1;
            }
            request.publish();
            let mut empty = true;
            while let Some(record) = replied.pop().expect("sound") {
                assert_eq!(record[7], done);
                done += 1;
                empty = false;
            }
            replied.release();
            if empty {
                spin_loop();
            }
        }
        begin.elapsed().as_nanos() as f64 / messages as f64
    })
}

fn echo<M: RingMemory<Record = Message>>(
    mut from: Consumer<M>,
    mut to: Producer<M>,
    messages: u64,
) {
    let mut done = 0;
    while done < messages {
        let before = done;
        while let Some(record) = from.pop().expect("sound") {
            while !to.push(record).expect("sound") {
                to.publish();
            }
            done += 1;
        }
        from.release();
        to.publish();
        if done == before {
            spin_loop();
        }
    }
}

fn pin(cpu: u32) {
    let cpus: CpuList = [cpu].into_iter().collect();
    set_affinity(&cpus).expect("the CPU is there");
}
