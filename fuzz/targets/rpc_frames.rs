//! Frames of remote procedure calls, as a peer may send them.
//!
//! The input is a stream of frames, of which the first byte says whether headers carry sums. What
//! is read is written again and has to be the same bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_rpc::wire::{
    Auth, BulkDescriptor, ClientHello, Closed, FrameHeader, FrameKind, HEADER, HelloReply,
    OpenReply, OpenRequest, PREAMBLE, PingTimes, Preamble, PreambleReply, ProgressNote, PullRange,
    PushHead, WireReader, flag,
};

fuzz_target!(|data: &[u8]| {
    if let Some(bytes) = data.first_chunk::<PREAMBLE>() {
        if let Ok(preamble) = Preamble::decode(bytes) {
            assert_eq!(preamble.encode(), *bytes);
        }
        let _ = PreambleReply::decode(bytes);
    }
    let Some((&first, mut rest)) = data.split_first() else {
        return;
    };
    let summed = first & 1 != 0;
    while let Some(bytes) = rest.first_chunk::<HEADER>() {
        let Ok((header, length)) = FrameHeader::decode(bytes, summed) else {
            return;
        };
        assert_eq!(header.encode(length, summed), *bytes);
        let end = HEADER.saturating_add(length as usize).min(rest.len());
        body(&header, &rest[HEADER..end]);
        rest = &rest[end..];
    }
});

/// A message's bytes.
fn bytes(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes);
    bytes
}

fn body(header: &FrameHeader, body: &[u8]) {
    let again = match header.kind {
        FrameKind::Hello => ClientHello::decode(body).map(|m| bytes(|out| m.encode(out))),
        FrameKind::HelloAck => HelloReply::decode(body).map(|m| bytes(|out| m.encode(out))),
        FrameKind::Auth => Auth::decode(body).map(|m| bytes(|out| m.encode(out))),
        FrameKind::Open => OpenRequest::decode(body).map(|m| bytes(|out| m.encode(out))),
        FrameKind::OpenAck => OpenReply::decode(body).map(|m| bytes(|out| m.encode(out))),
        FrameKind::CloseAck => Closed::decode(body).map(|m| m.encode().to_vec()),
        FrameKind::BulkPull => PullRange::decode(body).map(|m| m.encode().to_vec()),
        FrameKind::Pong => PingTimes::decode(body).map(|m| m.encode().to_vec()),
        FrameKind::Progress => ProgressNote::decode(body).map(|m| m.encode().to_vec()),
        FrameKind::BulkData | FrameKind::BulkPush => {
            PushHead::decode(body).map(|(head, data)| [&head.encode()[..], data].concat())
        }
        FrameKind::Request if header.flags & flag::BULK != 0 => {
            let mut reader = WireReader::new(body);
            BulkDescriptor::decode(&mut reader).map(|descriptor| {
                let mut again = bytes(|out| descriptor.encode(out));
                again.extend_from_slice(reader.rest());
                again
            })
        }
        _ => return,
    };
    if let Ok(again) = again {
        assert_eq!(again, body, "{header:?}");
    }
}
