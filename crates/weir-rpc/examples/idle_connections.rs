//! Connections that nobody talks on: `idle_connections ADDRESS COUNT` connects as often to tag 0 of
//! the server of group `daos_server` there, opens a session on each, says `connected` and holds all
//! of them until its standard input ends.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use weir_rpc::client::{ControlStream, DialSetup, ServerEndpoint, open_control};
use weir_rpc::links::LinkGreeting;
use weir_rpc::service::self_test;
use weir_rpc::wire::{FrameHeader, FrameKind, OpenRequest};
use weir_schema::{RpcEndpoint, RpcPayloadKind};

const WITHIN: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, count] = &args[..] else {
        return Err("idle_connections ADDRESS COUNT".into());
    };
    let setup = DialSetup {
        group: "daos_server".to_owned(),
        token: None,
        from: Vec::new(),
        within: WITHIN,
    };
    let endpoint = ServerEndpoint {
        endpoint: RpcEndpoint { rank: 0, tag: 0 },
        address: address.parse()?,
        nonce: None,
    };
    let idle: Result<Vec<_>, _> = (0..count.parse::<u32>()?)
        .map(|_| connection(&setup, &endpoint))
        .collect();
    let idle = idle?;
    writeln!(std::io::stdout(), "connected")?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(idle);
    Ok(())
}

/// A connection with a session for calls without payload.
fn connection(
    setup: &DialSetup,
    endpoint: &ServerEndpoint,
) -> Result<ControlStream, Box<dyn Error>> {
    let (mut control, _) = open_control(setup, endpoint, LinkGreeting::default(), &|| false)?;
    let asked = OpenRequest {
        service: self_test::NAME.to_owned(),
        version: self_test::VERSION,
        send_size: 0,
        reply_size: 0,
        send_kind: RpcPayloadKind::Empty,
        reply_kind: RpcPayloadKind::Empty,
        buffers: 1,
        credits: 1,
        low_byte: None,
        verify: 0,
    };
    let mut body = Vec::new();
    asked.encode(&mut body);
    control.send(&FrameHeader::plain(FrameKind::Open), &body)?;
    match control.receive(WITHIN)? {
        Some((header, _)) if header.kind == FrameKind::OpenAck && header.word == 0 => Ok(control),
        _ => Err("the server opened no session".into()),
    }
}
