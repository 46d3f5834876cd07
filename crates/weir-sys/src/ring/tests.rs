//! A ring as a queue, with whatever the other end may write, and between processes.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::shared_memory::SharedMemory;

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    Publish,
    Pop(u32),
    PushMany(u32),
    PopMany(u32),
    PopInto(u32),
    Release,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (1..6_u32).prop_map(Step::Push),
        Just(Step::Publish),
        (1..6_u32).prop_map(Step::Pop),
        (0..12_u32).prop_map(Step::PushMany),
        (0..12_u32).prop_map(Step::PopMany),
        (0..12_u32).prop_map(Step::PopInto),
        Just(Step::Release),
    ];
    proptest::collection::vec(step, 0..if cfg!(miri) { 20 } else { 200 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 256 }))]
    #[test]
    fn a_ring_is_a_queue_of_what_is_published_and_not_released(
        log in 0..4_u32, steps in steps(),
    ) {
        let capacity = 1_usize << log;
        let (mut producer, mut consumer) = heap_ring::<u64>(1 << log);
        // Pushed and not published; published and not popped; popped and not released.
        let (mut hidden, mut queue) = (VecDeque::new(), VecDeque::new());
        let (mut popped, mut number) = (0_usize, 0_u64);
        for step in steps {
            match step {
                Step::Push(times) => for _ in 0..times {
                    let has_room = hidden.len() + queue.len() + popped < capacity;
                    prop_assert_eq!(producer.push(number).unwrap(), has_room);
                    if has_room {
                        hidden.push_back(number);
                        number += 1;
                    }
                },
                Step::Publish => {
                    prop_assert_eq!(producer.publish(), !hidden.is_empty());
                    queue.append(&mut hidden);
                }
                Step::Pop(times) => for _ in 0..times {
                    let expected = queue.pop_front();
                    popped += usize::from(expected.is_some());
                    prop_assert_eq!(consumer.pop().unwrap(), expected);
                },
                Step::PushMany(most) => {
                    let room = capacity - hidden.len() - queue.len() - popped;
                    let records: Vec<u64> = (number..number + u64::from(most)).collect();
                    let pushed = producer.push_many(&records, |record| *record).unwrap();
                    prop_assert_eq!(pushed as usize, room.min(most as usize));
                    number += u64::from(pushed);
                    hidden.extend(&records[..pushed as usize]);
                }
                Step::PopMany(most) => {
                    let mut got = Vec::new();
                    let count = consumer.pop_many(most, |record| got.push(record)).unwrap();
                    let expected = queue.drain(..queue.len().min(most as usize));
                    let expected: Vec<u64> = expected.collect();
                    prop_assert_eq!((count as usize, &got), (expected.len(), &expected));
                    popped += expected.len();
                }
                Step::PopInto(most) => {
                    let mut got = vec![0];
                    let count = consumer.pop_into(most, &mut got, |record| record + 1).unwrap();
                    let expected = queue.drain(..queue.len().min(most as usize));
                    let expected: Vec<u64> = std::iter::once(0).chain(expected.map(|r| r + 1)).collect();
                    prop_assert_eq!((count as usize, &got), (expected.len() - 1, &expected));
                    popped += expected.len() - 1;
                }
                Step::Release => {
                    prop_assert_eq!(consumer.release(), popped > 0);
                    popped = 0;
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps shared memory")]
    fn whatever_the_other_end_writes_is_an_error_or_a_record(
        published in any::<u32>(), taken in any::<u32>(), sleeps in any::<u32>(),
    ) {
        let (memory, ring) = mapped(4);
        let mut producer = Producer::new(ring.clone());
        let mut consumer = Consumer::new(ring);
        prop_assert!(producer.push([1; 8]).unwrap());
        for (line, word) in [published, taken, sleeps, sleeps].into_iter().enumerate() {
            memory.word(line * 128).store(word, Ordering::Relaxed);
        }
        prop_assert_eq!(producer.look().is_ok(), 1_u32.wrapping_sub(taken) <= 4);
        prop_assert_eq!(consumer.look().is_ok(), published <= 4);
        for _ in 0..10 {
            let _ = producer.push([2; 8]);
            let _ = consumer.pop();
        }
        prop_assert_eq!(producer.consumer_sleeps(), sleeps != 0);
    }
}

fn mapped(slots: u32) -> (Arc<SharedMemory>, MappedRing<[u64; 8]>) {
    let bytes = MappedRing::<[u64; 8]>::bytes(slots);
    let (memory, _) = SharedMemory::create("weir-ring-test", bytes).unwrap();
    let memory = Arc::new(memory);
    let ring = MappedRing::at(&memory, 0, slots).unwrap();
    (memory, ring)
}

#[test]
fn indexes_go_round_after_four_thousand_million_records() {
    let (mut producer, mut consumer) = heap_ring::<u32>(2);
    for line in [PUBLISHED, TAKEN] {
        consumer.memory.words()[line][0].store(u32::MAX, Ordering::Relaxed);
    }
    (producer.pushed, producer.published, producer.taken) = (u32::MAX, u32::MAX, u32::MAX);
    (consumer.popped, consumer.published, consumer.released) = (u32::MAX, u32::MAX, u32::MAX);
    for number in 0..10 {
        assert!(producer.push(number).unwrap() && producer.push(number + 1).unwrap());
        assert!(!producer.push(0).unwrap());
        producer.publish();
        assert_eq!(consumer.pop().unwrap(), Some(number));
        assert_eq!(consumer.pop().unwrap(), Some(number + 1));
        assert_eq!(consumer.pop().unwrap(), None);
        consumer.release();
    }
}

#[test]
fn an_index_that_runs_backwards_or_beyond_is_an_error_that_names_both() {
    let (mut producer, mut consumer) = heap_ring::<u32>(4);
    for number in 0..3 {
        assert!(producer.push(number).unwrap());
    }
    producer.publish();
    assert_eq!(consumer.look(), Ok(3));
    let published = &producer.memory.words()[PUBLISHED][0];
    published.store(2, Ordering::Relaxed);
    let error = consumer.look().unwrap_err();
    assert_eq!((error.found, error.own, error.capacity), (2, 0, 4));
    published.store(5, Ordering::Relaxed);
    let text = consumer.look().unwrap_err().to_string();
    assert_eq!(
        text,
        "the other end of a ring of 4 says 5 where this one is at 0"
    );
}

#[test]
fn lines_are_apart_and_slots_follow_them() {
    assert_eq!(size_of::<RingWords>(), 512);
    assert_eq!(MappedRing::<[u64; 8]>::bytes(4), 512 + 256);
    assert_eq!(MappedRing::<u32>::bytes(4096), 512 + 16_384);
}

#[test]
#[cfg_attr(miri, ignore = "maps shared memory")]
fn a_ring_lies_within_its_memory_on_a_line() {
    let memory = Arc::new(SharedMemory::create("weir-ring-test", 4_096).unwrap().0);
    let at = |offset, slots| MappedRing::<[u64; 8]>::at(&memory, offset, slots).is_ok();
    assert!(at(128, 32));
    for (offset, slots) in [
        (64, 32),
        (0, 33),
        (0, 64),
        (4_096 - 512, 1),
        (usize::MAX - 127, 1),
    ] {
        assert!(!at(offset, slots), "{slots} slots at {offset}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "sleeps in the kernel")]
fn ends_that_sleep_wake_each_other() {
    const RECORDS: u64 = 20_000;
    let (mut producer, mut consumer) = heap_ring::<u64>(2);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..RECORDS {
                while !producer.push(number).unwrap() {
                    producer.wait_for_room(1, None).unwrap();
                }
                producer.publish_and_wake();
            }
        });
        for number in 0..RECORDS {
            let record = loop {
                match consumer.pop().unwrap() {
                    Some(record) => break record,
                    None => consumer.wait(None).map(drop).unwrap(),
                }
            };
            assert_eq!(record, number);
            consumer.release_and_wake();
        }
        assert!(!consumer.wait(Some(Duration::from_millis(1))).unwrap());
    });
}

/// Set where the test's own program is started again as the other process.
const OTHER: &str = "WEIR_RING_TEST_MEMORY";
const SLOTS: u32 = 8;
const ROUNDS: u64 = 5_000;

/// The rings there and back.
fn both_ways(memory: &Arc<SharedMemory>) -> [MappedRing<[u64; 8]>; 2] {
    let bytes = MappedRing::<[u64; 8]>::bytes(SLOTS);
    [0, bytes].map(|at| MappedRing::at(memory, at, SLOTS).unwrap())
}

fn pair_len() -> usize {
    2 * MappedRing::<[u64; 8]>::bytes(SLOTS)
}

/// Takes records and sends each back with its words turned round.
fn echo(path: &str) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let memory = Arc::new(SharedMemory::open(&file, 0, pair_len()).unwrap());
    let [there, back] = both_ways(&memory);
    let (mut consumer, mut producer) = (Consumer::new(there), Producer::new(back));
    for _ in 0..ROUNDS {
        let mut record = loop {
            match consumer.pop().unwrap() {
                Some(record) => break record,
                None => consumer.wait(None).map(drop).unwrap(),
            }
        };
        consumer.release_and_wake();
        record.reverse();
        while !producer.push(record).unwrap() {
            producer.wait_for_room(1, None).unwrap();
        }
        producer.publish_and_wake();
    }
}

#[test]
#[cfg_attr(miri, ignore = "starts a process")]
fn two_processes_pass_records_both_ways() {
    if let Ok(path) = std::env::var(OTHER) {
        return echo(&path);
    }
    let (memory, file) = SharedMemory::create("weir-ring-test", pair_len()).unwrap();
    let memory = Arc::new(memory);
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "ring::tests::two_processes_pass_records_both_ways",
        ])
        .env(OTHER, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let [there, back] = both_ways(&memory);
    let (mut producer, mut consumer) = (Producer::new(there), Consumer::new(back));
    let (mut sent, mut came) = (0, 0);
    while came < ROUNDS {
        // As many as fit, then one look for what came back.
        while sent < ROUNDS
            && producer
                .push(std::array::from_fn(|n| sent + n as u64))
                .unwrap()
        {
            sent += 1;
        }
        producer.publish_and_wake();
        while let Some(record) = consumer.pop().unwrap() {
            assert_eq!(record, std::array::from_fn(|n| came + 7 - n as u64));
            came += 1;
        }
        consumer.release_and_wake();
        if came < sent {
            consumer.wait(None).unwrap();
        }
    }
    assert!(other.wait().unwrap().success());
}
