//! Peers of servers that say what they like, frame by frame.

use std::time::Duration;

use weir_net::rpc::client::{ControlStream, open_control};
use weir_net::rpc::link::LinkGreeting;
use weir_net::rpc::self_test;
use weir_net::rpc::server::RpcServer;
use weir_net::rpc::wire::PayloadKind::{Bulk, Empty};
use weir_net::rpc::wire::{FrameHeader, FrameKind, OpenReply, OpenRequest};
use weir_net::rpc::{DerCode, RpcError};

use super::{client_setup, endpoints, payload};

/// A connection to tag 0 whose handshake is done.
pub(crate) fn greeted(server: &RpcServer) -> ControlStream {
    let setup = client_setup(endpoints(server, 1), payload((Empty, 0), (Empty, 0)));
    open_control(&setup.dial, &setup.endpoints[0], LinkGreeting::default())
        .unwrap()
        .0
}

pub(crate) fn header(kind: FrameKind) -> FrameHeader {
    FrameHeader::plain(kind)
}

/// Asks for a session: what the server makes of it.
pub(crate) fn open(
    control: &mut ControlStream,
    asked: &OpenRequest,
) -> Result<OpenReply, RpcError> {
    let mut body = Vec::new();
    asked.encode(&mut body);
    control.send(&header(FrameKind::Open), &body)?;
    loop {
        let (header, body) = control.receive(Duration::from_secs(10))?.unwrap();
        if header.kind == FrameKind::OpenAck && header.word == 0 {
            return Ok(OpenReply::decode(&body)?);
        }
        if header.kind == FrameKind::OpenAck {
            let words = String::from_utf8(body).unwrap();
            return Err(RpcError::new(DerCode::from_status(header.word), words));
        }
    }
}

/// A session of one call, whose request is 1 MiB of bulk.
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
