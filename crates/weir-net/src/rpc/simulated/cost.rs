//! What a call costs both sides together, on one thread, in processor time: so that other programs
//! on the machine do not count. Beside it stands the same batch of bytes written and read plainly.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rustix::time::{ClockId, clock_gettime};

use crate::rpc::client::{CallPayload, ClientSetup, DialSetup, RpcClient, RpcEndpoint, VerifyMode};
use crate::rpc::link::{LinkGreeting, LinkSide, NewPeer};
use crate::rpc::self_test::{SelfTestService, ServiceTime};
use crate::rpc::server::{PollMode, SimulatedServer};
use crate::rpc::stream::StreamLink;
use crate::rpc::transport::RpcTransport;
use crate::rpc::wire::{HelloReply, MAX_FRAME, features};

/// Processor time of this thread.
#[expect(clippy::cast_precision_loss, reason = "spans of seconds")]
fn used_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

fn new_peer(stream: UnixStream, side: LinkSide) -> NewPeer {
    NewPeer {
        side,
        stream: stream.into(),
        early: Vec::new(),
        max_frame: MAX_FRAME,
        features: features::ALL,
        greeting: LinkGreeting::default(),
    }
}

fn calls(slots: u32, rounds: u32) -> f64 {
    let setup = ClientSetup {
        dial: DialSetup {
            group: "g".to_owned(),
            token: None,
            within: std::time::Duration::from_secs(1),
        },
        own_connections: false,
        endpoints: vec![RpcEndpoint {
            rank: 0,
            tag: 0,
            address: "tcp://127.0.0.1:1".parse().unwrap(),
            nonce: None,
        }],
        slots,
        payload: CallPayload::default(),
        buffers: 1,
        credits: slots,
        credits_per_rank: 0,
        quota: 0,
        verify: VerifyMode::Off,
        eager: false,
        timeout: std::time::Duration::from_secs(60),
        reconnect: None,
        low_byte: None,
        poll: PollMode::Busy,
    };
    let service = |_, _| -> Vec<Box<dyn crate::rpc::service::RpcService>> {
        vec![Box::new(SelfTestService::new(ServiceTime::None, 1))]
    };
    let mut server = SimulatedServer::new(StreamLink::new().unwrap(), 1, &service);
    let link = StreamLink::new().unwrap();
    let mut client = RpcClient::attach_with(link, setup, Box::new(|| 0), |_, _| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        server.join(new_peer(theirs, LinkSide::Server), 0);
        let reply = HelloReply {
            nonce: [0; 16],
            rank: 0,
            tags: 1,
            features: features::ALL,
            max_frame: MAX_FRAME,
            max_message: 1 << 20,
            credits: slots,
            authenticate: false,
            transport: "tcp".to_owned(),
            address: Vec::new(),
        };
        Ok((new_peer(ours, LinkSide::Client), reply))
    })
    .unwrap();
    let began = used_ns();
    for _ in 0..rounds {
        for slot in 0..slots {
            client.request(0, slot);
        }
        client.flush().unwrap();
        server.round();
        let mut done = 0;
        client.poll(Some(0), slots, |_, _| done += 1).unwrap();
        assert_eq!(done, slots);
    }
    (used_ns() - began) / f64::from(rounds) / f64::from(slots)
}

fn plain(slots: u32, rounds: u32) -> f64 {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    let batch = vec![0; 24 * slots as usize];
    let mut buffer = vec![0; 64 << 10];
    let began = used_ns();
    for _ in 0..rounds {
        ours.write_all(&batch).unwrap();
        let came = theirs.read(&mut buffer).unwrap();
        theirs.write_all(&buffer[..came]).unwrap();
        assert_eq!(ours.read(&mut buffer).unwrap(), batch.len());
    }
    (used_ns() - began) / f64::from(rounds) / f64::from(slots)
}

#[test]
#[ignore = "prints what a call costs"]
fn a_call_costs() {
    for slots in [1, 16, 64] {
        let rounds = 2_000_000 / slots.max(8);
        let (call, bytes) = (calls(slots, rounds), plain(slots, rounds));
        println!("{slots:3} in flight: {call:7.1} ns a call, {bytes:7.1} ns for its bytes");
    }
}
