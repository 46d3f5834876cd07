//! Every order in which two threads can come to pass a few records: run by `cargo xtask test --all`.
//! A read that the processor moves behind a later write is not among them: that slots are given back
//! only after they were read stands on the Release in `Consumer::release` alone.

use loom::thread;

use super::heap_ring;

#[test]
fn records_come_whole_and_in_order_through_a_ring_that_goes_round() {
    loom::model(|| {
        let (mut producer, mut consumer) = heap_ring::<[u64; 2]>(2);
        let writer = thread::spawn(move || {
            for number in 1..=3 {
                while !producer.push([number, number]).unwrap() {
                    thread::yield_now();
                }
                producer.publish();
            }
        });
        for number in 1..=3 {
            let record = loop {
                if let Some(record) = consumer.pop().unwrap() {
                    break record;
                }
                thread::yield_now();
            };
            assert_eq!(record, [number, number]);
            consumer.release();
        }
        writer.join().unwrap();
    });
}

#[test]
fn a_batch_is_seen_as_a_whole() {
    loom::model(|| {
        let (mut producer, mut consumer) = heap_ring::<u32>(2);
        let writer = thread::spawn(move || {
            assert!(producer.push(1).unwrap());
            assert!(producer.push(2).unwrap());
            producer.publish();
        });
        let seen = consumer.available().unwrap();
        assert!(seen == 0 || seen == 2);
        writer.join().unwrap();
    });
}

#[test]
fn batches_that_go_round_come_whole_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = heap_ring::<u32>(2);
        let writer = thread::spawn(move || {
            let mut records = &[1, 2, 3][..];
            while !records.is_empty() {
                let next = &records[..records.len().min(2)];
                let pushed = producer.push_many(next, |record| *record).unwrap();
                producer.publish();
                records = &records[pushed as usize..];
                if pushed == 0 {
                    thread::yield_now();
                }
            }
        });
        let mut got = Vec::new();
        while got.len() < 3 {
            let count = consumer.pop_many(3, |record| got.push(record)).unwrap();
            assert!(count <= 2);
            consumer.release();
            if count == 0 {
                thread::yield_now();
            }
        }
        assert_eq!(got, [1, 2, 3]);
        writer.join().unwrap();
    });
}

#[test]
fn a_consumer_that_goes_to_sleep_over_a_record_is_woken() {
    loom::model(|| {
        let (mut producer, mut consumer) = heap_ring::<u32>(1);
        let writer = thread::spawn(move || {
            assert!(producer.push(7).unwrap());
            producer.publish();
            producer.consumer_sleeps()
        });
        let sleeps = consumer.announce_sleep().unwrap();
        let wakes = writer.join().unwrap();
        assert!(!sleeps || wakes, "it sleeps and nobody wakes it");
    });
}

#[test]
fn a_producer_that_goes_to_sleep_over_a_free_slot_is_woken() {
    loom::model(|| {
        let (mut producer, mut consumer) = heap_ring::<u32>(1);
        assert!(producer.push(7).unwrap());
        producer.publish();
        let reader = thread::spawn(move || {
            assert_eq!(consumer.pop().unwrap(), Some(7));
            consumer.release();
            consumer.producer_sleeps()
        });
        let sleeps = producer.announce_sleep(1).unwrap();
        let wakes = reader.join().unwrap();
        assert!(!sleeps || wakes, "it sleeps and nobody wakes it");
    });
}
