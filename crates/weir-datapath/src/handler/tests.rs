//! Handlers do their work on packets of memory of their own.
#![allow(clippy::unwrap_used, reason = "tests")]

use weir_run::generate::rng::Rng;
use weir_schema::PacketPathWorkload;
use weir_units::Bytes;

use super::file_read::FileRead;
use super::file_write::FileWrite;
use super::inflate::{Inflate, packed_text};
use super::key_value::KeyValue;
use super::plain::Same;
use super::touch::Touch;
use super::*;
use crate::frame::{MESSAGE_AT, PAYLOAD_AT, part_of};
use crate::pool::{BUFFER_BYTES, Pool, plain_pools};

struct Bench {
    work: PacketPathWorkload,
    pool: Pool,
    content: Vec<u8>,
}

impl Bench {
    fn new(bytes: u64) -> Self {
        let work = PacketPathWorkload {
            request_bytes: Bytes(bytes),
            response_bytes: Bytes(bytes),
            ..PacketPathWorkload::default()
        };
        Self {
            pool: plain_pools(1, 2048).remove(0),
            content: packed_text(usize::try_from(bytes).unwrap() * 9 / 10),
            work,
        }
    }

    fn handler<W: MessageWork>(&self) -> W {
        W::new(&HandlerStart {
            work: &self.work,
            seed: 7,
            content: &self.content,
        })
    }

    /// A request, as a client makes it.
    fn request(&mut self, client: &mut impl MessageWork) -> Vec<PacketBuffer> {
        let bytes = self.work.request_bytes;
        let packets = self.work.packets(bytes);
        let mut all = Vec::new();
        for segment in 0..packets {
            let mut buffer = self.pool.take().unwrap();
            let length = MESSAGE_AT + part_of(&self.work, bytes.0, segment, packets);
            let frame = self.pool.memory.resize(&mut buffer, length);
            client.request(segment, &mut frame[PAYLOAD_AT..]);
            all.push(buffer);
        }
        all
    }
}

/// Takes messages of one to four packets of any length and content, and answers them.
struct AnyFrames;

impl HandlerCall for AnyFrames {
    type Output = ();

    fn call<W: MessageWork>(self) {
        let mut bench = Bench::new(2048);
        bench.work.region_bytes = Bytes(4096);
        let mut server: W = bench.handler();
        let mut rng = Rng::new(31);
        let mut any = |below: usize| usize::try_from(rng.below(below as u64)).unwrap();
        for _ in 0..2000 {
            let packets = 1 + any(4);
            let mut message = Vec::new();
            for _ in 0..packets {
                let mut buffer = bench.pool.take().unwrap();
                // The longest ones, and such as end in a header, often.
                let length = match any(3) {
                    0 => BUFFER_BYTES - any(4),
                    1 => any(PAYLOAD_AT + 64),
                    _ => any(BUFFER_BYTES + 1),
                };
                let frame = bench.pool.memory.resize(&mut buffer, length);
                let is_small = any(2) == 0;
                for byte in &mut *frame {
                    *byte = u8::try_from(any(if is_small { 4 } else { 256 })).unwrap();
                }
                message.push(buffer);
            }
            server.take(&bench.pool.memory, &message);
            let mut answer = [0; BUFFER_BYTES];
            let room = &mut answer[..any(BUFFER_BYTES + 1)];
            let first = payload_of(&bench.pool.memory, &message[0]);
            server.answer(0, AnswerSource::Payload(first), room);
            server.answer(1, AnswerSource::Payload(&[]), room);
            server.answer(0, AnswerSource::InPlace, room);
            message.drain(..).for_each(|buffer| bench.pool.free(buffer));
        }
    }
}

#[test]
fn every_handler_survives_messages_of_any_length_and_content() {
    for handler in MessageHandler::ALL {
        with_handler(*handler, AnyFrames);
    }
}

#[test]
fn a_packet_longer_than_a_slot_is_cut_and_counts_as_wrong() {
    let mut bench = Bench::new(86);
    bench.work.region_bytes = Bytes(2048);
    let mut server: FileWrite = bench.handler();
    for (length, verdict) in [
        (PAYLOAD_AT + 2048, HandlerVerdict::Answer),
        (PAYLOAD_AT + 2049, HandlerVerdict::Wrong),
    ] {
        let mut buffer = bench.pool.take().unwrap();
        bench.pool.memory.resize(&mut buffer, length).fill(7);
        assert_eq!(server.take(&bench.pool.memory, &[buffer]), verdict);
        assert_eq!(server.region(), [7; 2048]);
    }
}

#[test]
fn touching_writes_a_kibibyte_of_the_region_per_packet_and_walks_on() {
    let mut bench = Bench::new(86);
    let mut client: Touch = bench.handler();
    let mut server: Touch = bench.handler();
    let request = bench.request(&mut client);
    for packets in 1..=3 {
        assert_eq!(
            server.take(&bench.pool.memory, &request),
            HandlerVerdict::Answer
        );
        assert_eq!(server.written(), (packets * 128, packets * 128));
    }
}

#[test]
fn writing_copies_each_packet_into_the_next_slot() {
    let mut bench = Bench::new(16384);
    let mut client: FileWrite = bench.handler();
    let mut server: FileWrite = bench.handler();
    let request = bench.request(&mut client);
    assert_eq!(request.len(), 9);
    assert_eq!(
        server.take(&bench.pool.memory, &request),
        HandlerVerdict::Answer
    );
    let slots: Vec<usize> = server
        .region()
        .chunks(2048)
        .map(|slot| slot.split(|byte| *byte == b'a').count() - 1)
        .collect();
    assert_eq!(slots.len(), 128);
    // 2004 bytes of payload, the last of them 0; 208 in the last packet.
    assert_eq!(
        slots[..10],
        [2003, 2003, 2003, 2003, 2003, 2003, 2003, 2003, 207, 0]
    );
}

#[test]
fn a_map_answers_what_was_put_last_and_says_what_is_not_there() {
    let mut bench = Bench::new(97);
    let mut client: KeyValue = bench.handler();
    let mut server: KeyValue = bench.handler();
    let mut request = bench.request(&mut client);
    let mut ask = |kind: u8, key: u8, value: u8| {
        let frame = bench.pool.memory.frame_mut(&mut request[0]);
        frame[PAYLOAD_AT..].fill(0);
        frame[PAYLOAD_AT] = kind;
        frame[PAYLOAD_AT + 1] = key;
        frame[PAYLOAD_AT + 17] = value;
        let verdict = server.take(&bench.pool.memory, &request);
        let mut answer = [0; 81];
        server.answer(0, AnswerSource::InPlace, &mut answer);
        (verdict, answer[0], answer[17])
    };
    assert_eq!(ask(1, 5, 0), (HandlerVerdict::Answer, 2, 0));
    assert_eq!(ask(0, 5, 77), (HandlerVerdict::Answer, 0, 77));
    assert_eq!(ask(0, 6, 78), (HandlerVerdict::Answer, 0, 78));
    assert_eq!(ask(1, 5, 0), (HandlerVerdict::Answer, 1, 77));
    assert_eq!(ask(9, 5, 0).0, HandlerVerdict::Wrong);
}

#[test]
fn packed_text_of_two_mebibytes_is_inflated_and_one_wrong_byte_is_found() {
    let mut bench = Bench::new(2 << 20);
    let mut client: Inflate = bench.handler();
    let mut server: Inflate = bench.handler();
    let mut request = bench.request(&mut client);
    assert_eq!(request.len(), 1039);
    assert_eq!(
        server.take(&bench.pool.memory, &request),
        HandlerVerdict::Answer
    );
    let frame = bench.pool.memory.frame_mut(&mut request[500]);
    frame[PAYLOAD_AT + 1000] ^= 1;
    assert_eq!(
        server.take(&bench.pool.memory, &request),
        HandlerVerdict::Wrong
    );
}

#[test]
fn text_that_becomes_longer_than_it_says_or_than_is_allowed_is_wrong() {
    let mut bench = Bench::new(4096);
    let mut server: Inflate = bench.handler();
    let zeros = vec![0; 4096 * 64];
    let mut packed = vec![0; 4000];
    let mut packer = flate2::Compress::new(flate2::Compression::best(), false);
    packer
        .compress(&zeros, &mut packed, flate2::FlushCompress::Finish)
        .unwrap();
    let length = u32::try_from(packer.total_out()).unwrap();
    for claimed in [100_u32, 4096 * 64] {
        let mut content = length.to_le_bytes().to_vec();
        content.extend(claimed.to_le_bytes());
        content.extend([0; 4]);
        content.extend(&packed);
        bench.content = content;
        let mut client: Inflate = bench.handler();
        let request = bench.request(&mut client);
        assert_eq!(
            server.take(&bench.pool.memory, &request),
            HandlerVerdict::Wrong
        );
    }
}

#[test]
fn reading_answers_with_one_piece_of_the_region_after_the_other() {
    let bench = Bench::new(22);
    let mut server: FileRead = bench.handler();
    let (mut first, mut second) = ([0; 2004], [0; 2004]);
    server.answer(0, AnswerSource::InPlace, &mut first);
    server.answer(1, AnswerSource::InPlace, &mut second);
    assert_eq!(&first[..3], b"abc");
    // 2004 = 77 · 26 + 2
    assert_eq!(&second[..3], b"cde");
}

#[test]
fn the_same_payload_comes_back_and_what_is_longer_is_filled() {
    let bench = Bench::new(86);
    let mut server: Same = bench.handler();
    let mut answer = [0; 6];
    server.answer(0, AnswerSource::Payload(b"wxyz"), &mut answer);
    assert_eq!(&answer, b"wxyza\0");
}

#[test]
fn the_smallest_request_of_packed_text_is_sound_and_holds_some() {
    const HEAD: usize = 12;
    let facts = weir_schema::MessageHandler::Inflate.facts();
    let least = usize::try_from(facts.least_request.0).unwrap();
    let text_of = |bytes| {
        let content = packed_text(bytes);
        u32::from_le_bytes(content[4..8].try_into().unwrap())
    };
    // Packers differ by a byte in what a letter needs; a build may have either.
    let first = (0..64).find(|bytes| text_of(HEAD + bytes) > 0);
    let first = first.map(|bytes| HEAD + bytes);
    assert!(
        first.is_some_and(|first| (least - 1..=least).contains(&first)),
        "{first:?}"
    );
    let mut bench = Bench::new(least as u64 + 16);
    bench.content = Inflate::content(&bench.work);
    let mut client: Inflate = bench.handler();
    let mut server: Inflate = bench.handler();
    let request = bench.request(&mut client);
    assert_eq!(
        server.take(&bench.pool.memory, &request),
        HandlerVerdict::Answer
    );
    for buffer in request {
        bench.pool.free(buffer);
    }
}
