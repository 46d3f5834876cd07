//! Buffers and rings between threads: what is taken comes home, and who is wired to whom.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_schema::{PacketPathWorkload, PacketStream, PathGroup, PathSide};

use crate::frame::write_ports;
use crate::link::{AnyLink, PacketLink, RingLink, RingLinkParts};
use crate::pool::{BufferReceiver, PacketBuffer, Pool, buffer_ring, plain_pools};
use crate::wiring::{SideLinks, wire};

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
    let links = <[SideLinks<AnyLink>; 2]>::default();
    let all = wire(&work, links, plain_pools(6, 64), 1);
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

/// A link to these dispatchers, with so many slots to each, and its far ends.
fn ring_link(threads: &[u8], slots: u32) -> (RingLink, Vec<BufferReceiver>) {
    let rings = threads.iter().map(|thread| (*thread, buffer_ring(slots)));
    let (to, far) = rings.map(|(thread, (to, far))| ((thread, to), far)).unzip();
    let link = RingLink::new(RingLinkParts {
        to,
        from: Vec::new(),
        first_port: 100,
        post_tx: 2,
        post_rx: 2,
    });
    (link, far)
}

/// Frames to the dispatchers of these numbers, each with its place in the list as its last byte.
fn frames_to(pool: &mut Pool, threads: &[u8]) -> Vec<PacketBuffer> {
    let frame = |(thread, place): (&u8, u8)| {
        let mut buffer = pool.take().unwrap();
        let frame = pool.memory.resize(&mut buffer, 64);
        write_ports(frame, 100, 100 + u16::from(*thread));
        frame[63] = place;
        buffer
    };
    threads.iter().zip(0..).map(frame).collect()
}

fn places(pool: &Pool, buffers: &[PacketBuffer]) -> Vec<u8> {
    let place = |buffer| pool.memory.frame(buffer)[63];
    buffers.iter().map(place).collect()
}

/// Frames that are sent at once.
struct SendCase {
    /// Numbers of dispatchers.
    threads: &'static [u8],
    /// Where each frame goes.
    frames: &'static [u8],
    /// Which of these each dispatcher gets at first.
    got: &'static [&'static [u8]],
    /// Frames that have no room.
    left: &'static [u8],
}

#[test]
fn a_link_of_rings_sends_in_order_what_has_room_and_keeps_the_rest() {
    let mut pool = plain_pools(1, 64).remove(0);
    let one = SendCase {
        threads: &[3],
        frames: &[3; 6],
        got: &[&[0, 1, 2, 3]],
        left: &[4, 5],
    };
    let two = SendCase {
        threads: &[0, 2],
        frames: &[2, 0, 2, 2, 2, 2, 0],
        got: &[&[1], &[0, 2, 3, 4]],
        left: &[5, 6],
    };
    for case in [one, two] {
        let SendCase {
            threads,
            frames,
            got,
            left,
        } = case;
        let (mut link, mut far) = ring_link(threads, 4);
        let mut packets = frames_to(&mut pool, frames);
        let sent = link.send(&mut pool, &mut packets);
        assert_eq!(sent, frames.len() - left.len());
        assert_eq!(places(&pool, &packets), left);
        let mut held = Vec::new();
        for (far, got) in far.iter_mut().zip(got) {
            let mut came = Vec::new();
            far.pop_into(64, &mut came);
            far.release();
            assert_eq!(places(&pool, &came), *got);
            held.append(&mut came);
        }
        assert_eq!(link.send(&mut pool, &mut packets), left.len());
        for far in &mut far {
            far.pop_into(64, &mut held);
        }
        held.drain(..).for_each(|buffer| pool.free(buffer));
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
fn as_many_buffers_are_taken_as_are_asked_for_or_are_there() {
    let mut pool = plain_pools(1, 64).remove(0);
    let mut taken = Vec::new();
    pool.take_many(40, &mut taken);
    assert_eq!((taken.len(), pool.in_use()), (40, 40));
    pool.take_many(40, &mut taken);
    assert_eq!((taken.len(), pool.in_use()), (64, 64));
    taken.drain(..).for_each(|buffer| pool.free(buffer));
    assert_eq!(pool.in_use(), 0);
}
