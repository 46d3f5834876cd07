//! A connection whose frames a test writes down.

use std::time::Duration;

use weir_rpc::client::{ControlStream, open_control};
use weir_rpc::links::LinkGreeting;
use weir_rpc::server::RpcServer;
use weir_rpc::service::self_test;
use weir_rpc::wire::{
    BulkAccess, BulkDescriptor, BulkMode, BulkSegment, FrameHeader, FrameKind, OpenReply,
    OpenRequest, RpcId, flag,
};
use weir_rpc::{DerCode, RpcError};
use weir_schema::RpcPayloadKind::{Bulk, Empty};

use super::{client_setup, endpoints, payload};

/// Limit of the wait for a frame.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn greeted(server: &RpcServer) -> ControlStream {
    let setup = client_setup(endpoints(server, 1), payload((Empty, 0), (Empty, 0)));
    open_control(
        &setup.dial,
        &setup.endpoints[0],
        LinkGreeting::default(),
        &|| false,
    )
    .unwrap()
    .0
}

pub(crate) fn header(kind: FrameKind) -> FrameHeader {
    FrameHeader::plain(kind)
}

pub(crate) fn open(
    control: &mut ControlStream,
    asked: &OpenRequest,
) -> Result<OpenReply, RpcError> {
    let mut body = Vec::new();
    asked.encode(&mut body);
    control.send(&header(FrameKind::Open), &body)?;
    loop {
        let (header, body) = control.receive(PATIENCE)?.expect("an answer");
        if header.kind == FrameKind::OpenAck && header.word == 0 {
            return Ok(OpenReply::decode(&body)?);
        }
        if header.kind == FrameKind::OpenAck {
            let words = String::from_utf8(body).unwrap();
            return Err(RpcError::new(DerCode::from_status(header.word), words));
        }
    }
}

pub(crate) fn bulk_session() -> OpenRequest {
    OpenRequest {
        service: self_test::NAME.to_owned(),
        version: self_test::VERSION,
        send_size: 1 << 20,
        send_kind: Bulk,
        buffers: 1,
        credits: 1,
        ..OpenRequest::default()
    }
}

/// The call of a session in a slot, of operation 6: data go from memory to memory.
pub(crate) fn bulk_call(session: u32, slot: u32) -> FrameHeader {
    FrameHeader {
        word: 6,
        flags: flag::BULK,
        session,
        rpc: RpcId {
            slot,
            generation: 1,
        },
        ..header(FrameKind::Request)
    }
}

/// Description of the caller's memory, as a request has it.
pub(crate) fn described(length: u64, access: BulkAccess) -> Vec<u8> {
    let part = BulkSegment {
        address: 0,
        length,
        key: 0,
    };
    let mut body = Vec::new();
    BulkDescriptor::one(BulkMode::Frames, access, 0, part).encode(&mut body);
    body
}

/// The next frame; there has to be one.
pub(crate) fn next(control: &mut ControlStream) -> (FrameHeader, Vec<u8>) {
    control.receive(PATIENCE).unwrap().expect("a frame")
}
