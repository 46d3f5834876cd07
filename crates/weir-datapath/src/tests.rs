//! Buffers and rings between threads: what is taken comes home, and who is wired to whom.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_schema::{PacketPathWorkload, PacketStream, PathGroup, PathSide};

use crate::link::LinkChoice;
use crate::pool::plain_pools;
use crate::wiring::wire;

#[test]
fn a_buffer_that_another_thread_frees_comes_home() {
    let mut all = plain_pools(2, 64);
    let (mut other, mut home) = (all.remove(1), all.remove(0));
    let buffers: Vec<_> = (0..64).map(|_| home.take().unwrap()).collect();
    assert!(home.take().is_none());
    assert_eq!(home.in_use(), 64);
    let there = std::thread::spawn(move || {
        for buffer in buffers {
            other.free(buffer);
        }
        other.publish();
        other
    });
    let other = there.join().unwrap();
    assert_eq!(other.in_use(), 0);
    assert!(home.has(64));
    assert_eq!(home.in_use(), 0);
}

#[test]
fn what_is_written_into_a_buffer_is_read_by_who_gets_it() {
    let mut pool = plain_pools(1, 64).remove(0);
    let mut buffer = pool.take().unwrap();
    pool.memory.resize(&mut buffer, 64).fill(7);
    pool.memory.resize(&mut buffer, 32);
    assert_eq!(pool.memory.frame(&buffer), [7; 32]);
    let (mut sender, mut receiver) = crate::pool::buffer_ring(4);
    sender.push(buffer).unwrap();
    assert!(receiver.pop().is_none(), "it was not published");
    sender.publish();
    assert_eq!(receiver.look(), 1);
    let buffer = receiver.pop().unwrap();
    assert_eq!(pool.memory.frame(&buffer), [7; 32]);
    pool.free(buffer);
}

#[test]
fn threads_of_a_group_share_a_dispatcher_and_do_each_stage_once() {
    let stream = |id, threads: Vec<u8>, dispatcher| PacketStream {
        id,
        groups: vec![PathGroup {
            threads,
            dispatcher,
        }],
        ..PacketStream::default()
    };
    let work = PacketPathWorkload {
        streams: vec![stream(2, vec![3], 0), stream(1, vec![0, 1], 0)],
        pool_buffers: 64,
        ..PacketPathWorkload::default()
    };
    let all = wire(&work, &LinkChoice::Ring, 1).unwrap().0;
    let of = |side| all.iter().filter(move |one| one.side == side);
    for side in [PathSide::Client, PathSide::Server] {
        let numbers: Vec<u8> = of(side).map(|one| one.thread).collect();
        assert_eq!(numbers, [0, 1, 3]);
        let stages: Vec<usize> = of(side).map(|one| one.stages.len()).collect();
        // Thread 0 dispatches for all three, the others have messages alone.
        assert_eq!(stages, [4, 2, 2]);
        let dispatchers: Vec<bool> = of(side).map(|one| one.dispatcher.is_some()).collect();
        assert_eq!(dispatchers, [true, false, false]);
        assert!(of(side).all(|one| one.application.is_some()));
    }
}
