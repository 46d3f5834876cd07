//! Round trips of everything on the wire, and what damage does to it.

use proptest::prelude::*;
use weir_schema::RpcPayloadKind;

use super::*;

fn header() -> impl Strategy<Value = FrameHeader> {
    (
        proptest::sample::select(FrameKind::ALL),
        any::<u8>(),
        any::<u16>(),
        any::<[u32; 3]>(),
    )
        .prop_map(
            |(kind, flags, word, [slot, generation, session])| FrameHeader {
                kind,
                flags: flags & flag::KNOWN,
                word,
                rpc: RpcId { slot, generation },
                session,
            },
        )
}

fn payload_kind() -> impl Strategy<Value = RpcPayloadKind> {
    proptest::sample::select(
        &[
            RpcPayloadKind::Empty,
            RpcPayloadKind::Inline,
            RpcPayloadKind::Bulk,
        ][..],
    )
}

fn hello() -> impl Strategy<Value = ClientHello> {
    (
        any::<([u8; 16], u32, u32, u64, u32, u64)>(),
        MIN_FRAME..=MAX_FRAME,
        "[a-z_]{1,64}",
        "[a-z,+]{0,40}",
        "[0-9.:/]{0,40}",
        proptest::collection::vec(any::<u8>(), 0..100),
    )
        .prop_map(|(numbers, max_frame, group, transports, called, address)| {
            let (nonce, rank, tag, features, process, boot) = numbers;
            ClientHello {
                nonce,
                rank,
                tag,
                features,
                max_frame,
                process,
                boot,
                group,
                transports,
                address,
                called,
            }
        })
}

fn hello_reply() -> impl Strategy<Value = HelloReply> {
    (
        any::<([u8; 16], [u8; 16], u32, u32, u64, u64, u32, bool)>(),
        MIN_FRAME..=MAX_FRAME,
        "[a-z+]{0,20}",
        proptest::collection::vec(any::<u8>(), 0..100),
    )
        .prop_map(|(numbers, max_frame, transport, address)| {
            let (nonce, run, rank, tags, features, max_message, credits, authenticate) = numbers;
            HelloReply {
                nonce,
                run,
                rank,
                tags,
                features,
                max_frame,
                max_message,
                credits,
                authenticate,
                transport,
                address,
            }
        })
}

fn open() -> impl Strategy<Value = OpenRequest> {
    (
        any::<(u16, u32, u32, u32, u32, Option<u8>, u8)>(),
        payload_kind(),
        payload_kind(),
        "[a-z]{0,32}",
    )
        .prop_map(|(numbers, send_kind, reply_kind, service)| {
            let (version, send_size, reply_size, buffers, credits, low_byte, verify) = numbers;
            OpenRequest {
                version,
                send_size,
                reply_size,
                send_kind,
                reply_kind,
                buffers,
                credits,
                low_byte,
                verify,
                service,
            }
        })
}

fn descriptor() -> impl Strategy<Value = BulkDescriptor> {
    (any::<u32>(), 0..u64::MAX / 2, 0..u64::MAX / 2, any::<u64>()).prop_map(
        |(registration, address, length, key)| {
            let part = BulkSegment {
                address,
                length,
                key,
            };
            BulkDescriptor::one(BulkMode::Fabric, BulkAccess::BOTH, registration, part)
        },
    )
}

fn bytes_of(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

/// Every message comes back from its bytes; cut or damaged bytes give an error or another message
/// whose bytes are the damaged ones.
fn comes_back<M: PartialEq + std::fmt::Debug>(
    message: &M,
    encode: impl Fn(&M) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Result<M, WireError>,
    damage: (prop::sample::Index, u8),
) {
    let bytes = encode(message);
    assert_eq!(decode(&bytes).as_ref(), Ok(message));
    for end in 0..bytes.len() {
        assert!(decode(&bytes[..end]).is_err(), "cut at {end}");
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(decode(&longer).is_err());
    let mut damaged = bytes;
    let at = damage.0.index(damaged.len());
    damaged[at] ^= damage.1;
    if let Ok(other) = decode(&damaged) {
        assert_eq!(encode(&other), damaged, "damage at {at}");
    }
}

proptest! {
    #[test]
    fn a_header_comes_back_and_damage_to_a_summed_one_is_seen(
        header in header(), length: u32, at in 0..HEADER, change in 1..=255_u8,
    ) {
        for summed in [false, true] {
            let bytes = header.encode(length, summed);
            prop_assert_eq!(FrameHeader::decode(&bytes, summed), Ok((header, length)));
            let mut damaged = bytes;
            damaged[at] ^= change;
            let read = FrameHeader::decode(&damaged, summed);
            prop_assert!(!summed || read.is_err(), "{read:?}");
        }
    }

    #[test]
    fn a_hello_comes_back(hello in hello(), damage: (prop::sample::Index, u8)) {
        comes_back(&hello, |m| bytes_of(|out| m.encode(out)), ClientHello::decode, damage);
    }

    #[test]
    fn an_answer_to_hello_comes_back(reply in hello_reply(), damage: (prop::sample::Index, u8)) {
        comes_back(&reply, |m| bytes_of(|out| m.encode(out)), HelloReply::decode, damage);
    }

    #[test]
    fn an_open_comes_back(open in open(), damage: (prop::sample::Index, u8)) {
        comes_back(&open, |m| bytes_of(|out| m.encode(out)), OpenRequest::decode, damage);
    }

    #[test]
    fn a_descriptor_comes_back(part in descriptor(), damage: (prop::sample::Index, u8)) {
        let decode = |body: &[u8]| {
            let mut body = WireReader::new(body);
            let part = BulkDescriptor::decode(&mut body)?;
            body.end()?;
            Ok(part)
        };
        comes_back(&part, |m| bytes_of(|out| m.encode(out)), decode, damage);
    }

    #[test]
    fn what_has_only_numbers_comes_back(a: u64, b: u64, damage: (prop::sample::Index, u8)) {
        let range = PullRange { offset: a, length: b };
        comes_back(&range, |m| m.encode().to_vec(), PullRange::decode, damage);
        let times = PingTimes { echo: a, clock_ns: b, user_ns: b, voluntary_switches: a, ..PingTimes::default() };
        comes_back(&times, |m| m.encode().to_vec(), PingTimes::decode, damage);
        let note = ProgressNote { done: a, total: b };
        comes_back(&note, |m| m.encode().to_vec(), ProgressNote::decode, damage);
        let closed = Closed { requests: a, buffer_waits: b };
        comes_back(&closed, |m| m.encode().to_vec(), Closed::decode, damage);
        let low = |number: u64| (number & 0xffff_ffff).try_into().unwrap_or(1).max(1);
        let open = OpenReply { session: low(a), buffers: low(b), credits: low(a ^ b) };
        comes_back(&open, |m| bytes_of(|out| m.encode(out)), OpenReply::decode, damage);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = ClientHello::decode(&body);
        let _ = HelloReply::decode(&body);
        let _ = OpenRequest::decode(&body);
        let _ = BulkDescriptor::decode(&mut WireReader::new(&body));
    }
}

#[test]
fn a_preamble_is_told_from_other_languages() {
    let ours = Preamble {
        major: MAJOR,
        minor: MINOR,
        flags: 2,
    };
    assert_eq!(Preamble::decode(&ours.encode()), Ok(ours));
    assert!(Preamble::decode(b"GET / HTTP/1.1\r\n").is_err());
    for zero in 14..16 {
        let mut other = ours.encode();
        other[zero] = 1;
        assert!(Preamble::decode(&other).is_err());
    }
    let reply = PreambleReply {
        major: 2,
        minor: 0,
        reason: 1,
    };
    assert_eq!(PreambleReply::decode(&reply.encode()), Some(reply));
}

#[test]
fn a_descriptor_knows_its_bounds() {
    let part = BulkSegment {
        address: 0,
        length: 100,
        key: 0,
    };
    let part = BulkDescriptor::one(BulkMode::Frames, BulkAccess::READ, 0, part);
    assert!(part.contains(0, 100) && part.contains(100, 0));
    assert!(!part.contains(1, 100) && !part.contains(u64::MAX, 1));
    assert!(part.access.allows(BulkAccess::READ) && !part.access.allows(BulkAccess::BOTH));
}
