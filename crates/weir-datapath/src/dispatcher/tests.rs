//! What a dispatcher hands to threads, drops and sends back, over a link of the test's own.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_schema::PacketHandler;
use weir_sys::clock::Clock;

use super::*;
use crate::pool::{buffer_ring, plain_pools};

/// What comes is given, and room for what is sent back.
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

#[test]
fn each_packet_goes_to_its_thread_and_what_finds_no_room_is_dropped_and_counted() {
    let mut pool = plain_pools(1, 64).remove(0);
    // Streams of packets as they come; of stream 3 nobody knows.
    let streams = [1, 1, 2, 3, 3, 1, 1, 1, 2, 1];
    let buffers = streams.iter().zip(0..).map(|(stream, message)| {
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
    });
    let link = TestLink {
        buffers: buffers.collect(),
        ..TestLink::default()
    };
    let (targets, mut far): (Vec<_>, Vec<_>) = [buffer_ring(4), buffer_ring(4)].into_iter().unzip();
    let mut dispatcher = dispatcher(link, false, targets);
    let mut counts = ThreadCounts::default();
    assert_eq!(
        dispatcher.receive(&mut pool, 1, &mut steps(), &mut counts),
        10
    );
    let came = far.iter_mut().map(|far| {
        let mut messages = Vec::new();
        far.pop_many(64, |buffer| {
            let header = PacketHeader::read(pool.memory.frame(&buffer)).unwrap();
            messages.push(header.message);
            pool.free(buffer);
        });
        messages
    });
    // The first has room for four of its six.
    assert_eq!(came.collect::<Vec<_>>(), [vec![0, 1, 5, 6], vec![2, 8]]);
    assert_eq!((counts.dispatch_drops, counts.strays), (2, 2));
    assert_eq!(pool.in_use(), 0);
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
