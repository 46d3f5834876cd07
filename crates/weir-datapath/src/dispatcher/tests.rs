//! Packets that a dispatcher hands to threads, drops and sends back, over a link of the test's own.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::AtomicU32;

use weir_schema::{MessageHandler, PacketHandler};
use weir_sys::clock::Clock;

use super::*;
use crate::application::{Application, ApplicationParts};
use crate::handler::plain::Same;
use crate::handler::{HandlerStart, MessageWork};
use crate::pool::{buffer_ring, plain_pools};

/// A link that gives what a test put in, and has room for what is sent back.
#[derive(Debug, Default)]
struct TestLink {
    buffers: Vec<PacketBuffer>,
    in_place: bool,
    /// Frames that lie in the link: to come, taken, sent back.
    frames: [Vec<Vec<u8>>; 3],
    room: usize,
}

impl PacketLink for TestLink {
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        let sent = packets.len();
        packets.drain(..).for_each(|buffer| pool.free(buffer));
        sent
    }

    fn receive(&mut self, _: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let came = self.buffers.len().min(most);
        into.extend(self.buffers.drain(..came));
        came
    }

    fn turns_in_place(&self) -> bool {
        self.in_place
    }

    fn take_in_place(&mut self, most: usize) -> usize {
        let [coming, taken, _] = &mut self.frames;
        if taken.is_empty() {
            *taken = coming.drain(..coming.len().min(most)).collect();
            return taken.len();
        }
        0
    }

    fn change_in_place(&mut self, change: impl FnMut(&mut [u8])) {
        self.frames[1]
            .iter_mut()
            .map(Vec::as_mut_slice)
            .for_each(change);
    }

    fn give_back(&mut self) -> usize {
        let sent = self.frames[1].len().min(self.room);
        let given: Vec<_> = self.frames[1].drain(..sent).collect();
        self.frames[2].extend(given);
        sent
    }

    fn waiting(&mut self) -> Option<(u32, u32)> {
        None
    }
}

fn dispatcher(link: TestLink, echo: bool, targets: Vec<BufferSender>) -> Dispatcher<TestLink> {
    let packet_handler = if echo {
        PacketHandler::Echo
    } else {
        PacketHandler::None
    };
    let work = PacketPathWorkload {
        packet_handler,
        ..PacketPathWorkload::default()
    };
    let route = |stream, own: &[usize]| StreamRoute {
        stream,
        own: own.to_vec(),
        other: None,
    };
    let parts = DispatcherParts {
        sources: Vec::new(),
        targets,
        routes: Routes::Stream(vec![route(1, &[0]), route(2, &[1])]),
        others: Vec::new(),
        handed: Vec::new(),
        link,
        side: PathSide::Server,
        seed: 1,
    };
    Dispatcher::new(&work, parts, Clock::detect().0.scale())
}

fn steps() -> StepClock<true> {
    StepClock::new(Clock::detect().0, 1)
}

/// Packets of these streams, each with its place in the list as the number of its message.
fn packets_of(pool: &mut Pool, streams: &[u8]) -> Vec<PacketBuffer> {
    let packet = |(stream, message): (&u8, u32)| {
        let mut buffer = pool.take().unwrap();
        let header = PacketHeader {
            stream: *stream,
            stamp: 0,
            packets: 1,
            segment: 0,
            message,
        };
        header.write(pool.memory.resize(&mut buffer, 64));
        buffer
    };
    streams.iter().zip(0..).map(packet).collect()
}

/// Numbers of the messages that came to a thread, whose buffers are freed.
fn messages(far: &mut BufferReceiver, pool: &mut Pool) -> Vec<u32> {
    let mut messages = Vec::new();
    far.pop_many(64, |buffer| {
        let header = PacketHeader::read(pool.memory.frame(&buffer)).unwrap();
        messages.push(header.message);
        pool.free(buffer);
    });
    far.release();
    messages
}

#[test]
fn a_frame_longer_than_the_longest_packet_goes_nowhere() {
    let mut pool = plain_pools(1, 64).remove(0);
    let mut buffers = packets_of(&mut pool, &[1, 1, 1]);
    let longest = MESSAGE_AT + PacketPathWorkload::default().part_bytes() as usize;
    pool.memory.resize(&mut buffers[0], longest + 1);
    pool.memory.resize(&mut buffers[1], longest);
    let link = TestLink {
        buffers,
        ..TestLink::default()
    };
    let (near, mut far) = buffer_ring(16);
    let mut dispatcher = dispatcher(link, false, vec![near]);
    let mut counts = ThreadCounts::default();
    dispatcher.receive(&mut pool, 0, &mut steps(), &mut counts);
    assert_eq!(counts.sums.strays, 1);
    assert_eq!(messages(&mut far, &mut pool), [1, 2]);
}

#[test]
fn each_packet_goes_to_its_thread_and_what_finds_no_room_is_dropped_and_counted() {
    let mut pool = plain_pools(1, 64).remove(0);
    // Streams of packets as they come; of stream 3 nobody knows.
    let streams = [1, 1, 2, 3, 3, 1, 1, 1, 2, 1];
    let link = TestLink {
        buffers: packets_of(&mut pool, &streams),
        ..TestLink::default()
    };
    let (targets, mut far): (Vec<_>, Vec<_>) = [buffer_ring(4), buffer_ring(4)].into_iter().unzip();
    let mut dispatcher = dispatcher(link, false, targets);
    let mut counts = ThreadCounts::default();
    assert_eq!(
        dispatcher.receive(&mut pool, 1, &mut steps(), &mut counts),
        10
    );
    let came = far.iter_mut().map(|far| messages(far, &mut pool));
    // The first has room for four of its six.
    assert_eq!(came.collect::<Vec<_>>(), [vec![0, 1, 5, 6], vec![2, 8]]);
    assert_eq!((counts.sums.dispatch_drops, counts.sums.strays), (2, 2));
    // All that the link gave, those without room too.
    assert_eq!(counts.link_rx.packets(), 10);
    assert_eq!(pool.in_use(), 0);
}

#[test]
fn a_ring_that_is_full_costs_its_own_thread_packets_and_no_other() {
    let mut pool = plain_pools(1, 64).remove(0);
    let (targets, mut far): (Vec<_>, Vec<_>) = [buffer_ring(4), buffer_ring(4)].into_iter().unzip();
    let link = TestLink {
        buffers: packets_of(&mut pool, &[1; 4]),
        ..TestLink::default()
    };
    let mut dispatcher = dispatcher(link, false, targets);
    let (mut steps, mut counts) = (steps(), ThreadCounts::default());
    dispatcher.receive(&mut pool, 1, &mut steps, &mut counts);
    assert_eq!((counts.sums.dispatch_drops, pool.in_use()), (0, 4));
    // No room for any of the first; the second has room behind and between what is dropped.
    dispatcher.link.buffers = packets_of(&mut pool, &[1, 1, 2, 1, 2, 1, 1, 2]);
    dispatcher.receive(&mut pool, 2, &mut steps, &mut counts);
    assert_eq!((counts.sums.dispatch_drops, counts.sums.strays), (5, 0));
    assert_eq!(pool.in_use(), 7);
    let came: Vec<Vec<u32>> = far.iter_mut().map(|far| messages(far, &mut pool)).collect();
    assert_eq!(came, [vec![0, 1, 2, 3], vec![2, 4, 7]]);
    // With room again it gets what comes.
    dispatcher.link.buffers = packets_of(&mut pool, &[2, 1]);
    dispatcher.receive(&mut pool, 3, &mut steps, &mut counts);
    let came: Vec<Vec<u32>> = far.iter_mut().map(|far| messages(far, &mut pool)).collect();
    assert_eq!(
        (came, counts.sums.dispatch_drops),
        (vec![vec![1], vec![0]], 5)
    );
    assert_eq!(pool.in_use(), 0);
}

/// A client of a stream, of the thread before its number, and the far ends of its rings.
fn client(
    work: &PacketPathWorkload,
    stream: u8,
) -> (Application<Same>, BufferReceiver, BufferSender) {
    let (tx, far_tx) = buffer_ring(64);
    let (far_rx, rx) = buffer_ring(64);
    let parts = ApplicationParts {
        side: PathSide::Client,
        stream,
        thread: stream - 1,
        peers: vec![0],
        turn: (usize::from(stream) - 1, 2),
        tx,
        rx,
    };
    let handler = Same::new(&HandlerStart {
        work,
        seed: 1,
        content: &[],
    });
    let scale = Clock::detect().0.scale();
    (
        Application::new(work, parts, handler, scale),
        far_tx,
        far_rx,
    )
}

#[test]
fn answers_of_two_streams_in_one_burst_give_each_its_own_credits_back() {
    let mut pool = plain_pools(1, 64).remove(0);
    let mut work = PacketPathWorkload {
        in_flight: 8,
        handler: MessageHandler::Same,
        ..PacketPathWorkload::default()
    };
    work.batches.application_tx = 8;
    work.batches.application_rx = 1;
    let (mut first, mut from_first, to_first) = client(&work, 1);
    let (mut second, mut from_second, to_second) = client(&work, 2);
    let (mut steps, mut counts) = (steps(), ThreadCounts::default());
    for one in [&mut first, &mut second] {
        assert_eq!(one.transmit(&mut pool, 1, &mut steps, &mut counts), 8);
        assert_eq!((one.outstanding.room(), one.outstanding.count()), (0, 8));
    }
    // An answer bears what its request does.
    let mut burst = Vec::new();
    for stream in [2, 1, 1, 2, 1, 1, 1] {
        let from = if stream == 1 {
            &mut from_first
        } else {
            &mut from_second
        };
        burst.extend(from.pop());
    }
    let mut threads = Box::new([Route::Nowhere; 16]);
    threads[..2].copy_from_slice(&[Route::Own(0), Route::Own(1)]);
    let parts = DispatcherParts {
        sources: Vec::new(),
        targets: vec![to_first, to_second],
        routes: Routes::Origin(threads),
        others: Vec::new(),
        handed: Vec::new(),
        link: TestLink {
            buffers: burst,
            ..TestLink::default()
        },
        side: PathSide::Client,
        seed: 1,
    };
    let (clock, _) = Clock::detect();
    let mut dispatcher = Dispatcher::new(&work, parts, clock.scale());
    assert_eq!(dispatcher.receive(&mut pool, 2, &mut steps, &mut counts), 7);
    for (one, answers) in [(&mut first, 5), (&mut second, 2)] {
        let mut counts = ThreadCounts::default();
        let stop = AtomicU32::new(0);
        let taken = one.receive(&mut pool, 3, &clock, &mut steps, &mut counts, &stop);
        assert_eq!(
            (taken, counts.answered, counts.sums.late),
            (answers, answers as u64, 0)
        );
        let window = (one.outstanding.room(), one.outstanding.count());
        assert_eq!(window, (answers, 8 - answers));
    }
    assert_eq!(pool.in_use(), 16 - 7);
}

#[test]
fn an_echo_in_place_sends_back_what_has_room_before_it_takes_more() {
    let mut pool = plain_pools(1, 64).remove(0);
    let frame = |number: u8| {
        let mut frame = vec![0; 64];
        frame[..14].copy_from_slice(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[63] = number;
        frame
    };
    let link = TestLink {
        in_place: true,
        frames: [(0..40).map(frame).collect(), Vec::new(), Vec::new()],
        room: 20,
        ..TestLink::default()
    };
    let mut dispatcher = dispatcher(link, true, Vec::new());
    let mut counts = ThreadCounts::default();
    let (mut taken, mut sent) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        taken.push(dispatcher.receive(&mut pool, 1, &mut steps(), &mut counts));
        sent.push(dispatcher.transmit(&mut pool, 1, &mut steps(), &mut counts));
    }
    assert_eq!(taken, [32, 0, 8, 0, 0]);
    assert_eq!(sent, [20, 12, 8, 0, 0]);
    let back = &dispatcher.link.frames[2];
    for (back, number) in back.iter().zip(0..) {
        let expected = frame(number);
        assert_eq!(back[..6], expected[6..12]);
        assert_eq!(back[6..12], expected[..6]);
        assert_eq!(back[26..34], [10, 0, 0, 2, 10, 0, 0, 1]);
        assert_eq!(
            back[34..],
            expected[34..],
            "in order, and nothing else changed"
        );
    }
    assert_eq!(back.len(), 40);
}
