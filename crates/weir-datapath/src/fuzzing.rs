//! Greetings of both sides, and packets that a link delivers, for fuzz targets.
//!
//! In: bytes of the other side. Out: whether it is in; a panic where a rule is broken.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use weir_schema::{MessageHandler, PacketHandler, PacketPathWorkload, PathSide, PoolPages};
use weir_sys::clock::Clock;
use weir_units::{Bytes, Nanos};

use crate::application::{Application, ApplicationParts};
use crate::counts::{StepClock, ThreadCounts};
use crate::dispatcher::{Dispatcher, DispatcherParts, Route, Routes, StreamRoute, ThreadSource};
use crate::flush::FlushTimer;
use crate::handler::{HandlerCall, HandlerStart, MessageWork, with_handler};
use crate::link::PacketLink;
pub use crate::peer::fuzzing::{MeetingServer, greeting, is_server};
use crate::pool::{BUFFER_BYTES, PacketBuffer, Pool, buffer_ring, pools};

/// A link that delivers any frames.
struct DeliveringLink<'a> {
    bytes: &'a [u8],
}

impl PacketLink for DeliveringLink<'_> {
    fn send(&mut self, pool: &mut Pool, packets: &mut Vec<PacketBuffer>) -> usize {
        let sent = packets.len();
        for packet in &*packets {
            assert!(pool.memory.frame(packet).len() <= BUFFER_BYTES);
        }
        packets.drain(..).for_each(|buffer| pool.free(buffer));
        sent
    }

    /// Two bytes of length, and one that says how much of the frame follows; the rest is that byte again and again.
    fn receive(&mut self, pool: &mut Pool, into: &mut Vec<PacketBuffer>, most: usize) -> usize {
        let before = into.len();
        while into.len() - before < most
            && let Some((&[low, high, own], rest)) = self.bytes.split_first_chunk::<3>()
            && let Some(mut buffer) = pool.take()
        {
            let length = usize::from(u16::from_le_bytes([low, high])) % (BUFFER_BYTES + 1);
            let (head, rest) = rest.split_at(usize::from(own).min(rest.len()));
            let frame = pool.memory.resize(&mut buffer, length);
            frame.fill(own);
            let given = head.len().min(length);
            frame[..given].copy_from_slice(&head[..given]);
            self.bytes = rest;
            into.push(buffer);
        }
        into.len() - before
    }

    fn waiting(&mut self) -> Option<(u32, u32)> {
        None
    }
}

fn clock() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(|| Clock::detect().0)
}

/// A thread of a side that takes what a link delivers, handles it and answers.
struct AnyPackets<'a> {
    work: &'a PacketPathWorkload,
    side: PathSide,
    bytes: &'a [u8],
}

impl HandlerCall for AnyPackets<'_> {
    type Output = ();

    fn call<W: MessageWork>(self) {
        let made = pools(1, 256, PoolPages::Off);
        let Some(mut pool) = made.ok().and_then(|(mut pools, _)| pools.pop()) else {
            return;
        };
        let clock = clock();
        let scale = clock.scale();
        let (tx, from_thread) = buffer_ring(64);
        let (to_thread, rx) = buffer_ring(64);
        let source = ThreadSource {
            ring: from_thread,
            timer: FlushTimer::default(),
        };
        let content = W::content(self.work);
        let handler = W::new(&HandlerStart {
            work: self.work,
            seed: 7,
            content: &content,
        });
        let parts = ApplicationParts {
            side: self.side,
            stream: 1,
            thread: 0,
            peers: vec![0],
            turn: (0, 1),
            tx,
            rx,
        };
        let mut thread = Application::new(self.work, parts, handler, scale);
        let mut threads = Box::new([Route::Nowhere; 16]);
        threads[0] = Route::Own(0);
        let route = StreamRoute {
            stream: 1,
            own: vec![0],
            other: None,
        };
        let parts = DispatcherParts {
            sources: vec![source],
            targets: vec![to_thread],
            routes: match self.side {
                PathSide::Client => Routes::Origin(threads),
                PathSide::Server => Routes::Stream(vec![route]),
            },
            others: Vec::new(),
            handed: Vec::new(),
            link: DeliveringLink { bytes: self.bytes },
            side: self.side,
            seed: 1,
        };
        let mut dispatcher = Dispatcher::new(self.work, parts, scale);
        let mut counts = ThreadCounts::default();
        let (mut steps, stop) = (StepClock::<true>::new(clock, 1), AtomicU32::new(0));
        for now in 1..64 {
            thread.transmit(&mut pool, now, &mut steps, &mut counts);
            dispatcher.transmit(&mut pool, now, &mut steps, &mut counts);
            dispatcher.receive(&mut pool, now, &mut steps, &mut counts);
            thread.receive(&mut pool, now, &clock, &mut steps, &mut counts, &stop);
        }
        thread.close(&mut pool, &mut counts);
        dispatcher.close(&mut pool);
        assert_eq!(pool.in_use(), 0, "every buffer comes home");
    }
}

/// Frames of any length and content, as a link may deliver them, to the handler that the first bytes choose.
pub fn packets(bytes: &[u8]) {
    let Some((&[first, sizes, batch], bytes)) = bytes.split_first_chunk::<3>() else {
        return;
    };
    let handler = MessageHandler::ALL[usize::from(first >> 2) % MessageHandler::ALL.len()];
    let message = [22, 86, 1458, 16 << 10][usize::from(sizes & 3)];
    let answer = [22, 86, 1458, 100 << 10][usize::from(sizes >> 2 & 3)];
    let mut work = PacketPathWorkload {
        handler,
        packet_handler: [PacketHandler::None, PacketHandler::Echo][usize::from(first & 1)],
        request_bytes: Bytes(message),
        response_bytes: Bytes(answer),
        packet_bytes: [64, 576, 1500, 2048][usize::from(sizes >> 4 & 3)],
        long_responses: sizes >> 6 & 1 == 1,
        new_buffers: sizes >> 7 == 1,
        region_bytes: Bytes(4096),
        in_flight: 4,
        flush_ns: Nanos::ZERO,
        ..PacketPathWorkload::default()
    };
    work.batches.application_tx = 1;
    work.batches.application_rx = 1 + u32::from(batch % 4);
    work.batches.dispatch_rx = 1 + u32::from(batch >> 2 & 31);
    // A plan without room for what its handler needs is refused.
    if !work.short_messages().is_empty() {
        return;
    }
    let side = [PathSide::Client, PathSide::Server][usize::from(first >> 1 & 1)];
    with_handler(
        handler,
        AnyPackets {
            work: &work,
            side,
            bytes,
        },
    );
}
