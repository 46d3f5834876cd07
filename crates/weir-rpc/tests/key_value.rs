//! A key-value service: what another family needs of calls, and nothing of it in the machinery.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_schema::{RpcPayloadKind, RpcServiceTime};

use crate::testbed::{client_setup, endpoints, payload, server_setup};
use weir_rpc::client::channel::RpcChannel;
use weir_rpc::links::stream::StreamLink;
use weir_rpc::server::RpcServer;
use weir_rpc::service::{NextStep, RpcService, ServiceCall, SessionShape};
use weir_rpc::wire::OpenRequest;
use weir_rpc::{DerCode, RpcError};
use weir_run::{BulkPart, BulkUse, ServiceChannel};

const PUT: u16 = 1;
const GET: u16 = 2;
const PUT_BULK: u16 = 3;
const GET_BULK: u16 = 4;

type Values = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// Values by key. A key is the payload of a call, before `=` where a value follows.
struct KeyValueService {
    values: Values,
    buffer: u64,
}

impl KeyValueService {
    /// Copies a value into the call's buffer and says how long it is.
    fn find(&self, call: &mut ServiceCall<'_>) -> Result<u64, DerCode> {
        let values = self.values.lock().unwrap();
        let value = values.get(call.payload).ok_or(DerCode::NotThere)?;
        let place = call
            .buffer
            .get_mut(..value.len())
            .ok_or(DerCode::Overflow)?;
        place.copy_from_slice(value);
        Ok(value.len() as u64)
    }
}

impl RpcService for KeyValueService {
    fn name(&self) -> &'static str {
        "key-value"
    }

    fn version(&self) -> u16 {
        1
    }

    fn open(&mut self, _: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
        self.buffer = u64::from(asked.reply_size);
        Ok(SessionShape {
            buffer_bytes: self.buffer,
            fill: 0,
            longest_bulk: Some(1 << 20),
        })
    }

    fn needs_buffer(&self, operation: u16) -> bool {
        operation != PUT
    }

    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        match call.operation {
            PUT => {
                let Some(at) = call.payload.iter().position(|&byte| byte == b'=') else {
                    return NextStep::Fail(DerCode::Invalid);
                };
                let (key, value) = (call.payload[..at].to_vec(), call.payload[at + 1..].to_vec());
                self.values.lock().unwrap().insert(key, value);
                NextStep::Reply(0)
            }
            GET => self.find(call).map_or_else(NextStep::Fail, NextStep::Reply),
            PUT_BULK => NextStep::Pull(call.bulk.unwrap_or(0)),
            GET_BULK => self
                .find(call)
                .map_or_else(NextStep::Fail, NextStep::PushAndReply),
            _ => NextStep::Fail(DerCode::NoService),
        }
    }

    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let length = usize::try_from(call.bulk.unwrap_or(0)).unwrap();
        let value = call.buffer[..length].to_vec();
        self.values
            .lock()
            .unwrap()
            .insert(call.payload.to_vec(), value);
        NextStep::Reply(0)
    }
}

fn server(values: &Values) -> RpcServer {
    let values = Arc::clone(values);
    let mut setup = server_setup(1, RpcServiceTime::None);
    setup.services = Box::new(move |_, _| {
        vec![Box::new(KeyValueService {
            values: Arc::clone(&values),
            buffer: 0,
        })]
    });
    RpcServer::start(setup).unwrap()
}

fn channel(server: &RpcServer) -> RpcChannel<StreamLink> {
    let none = payload((RpcPayloadKind::Empty, 0), (RpcPayloadKind::Empty, 0));
    let setup = client_setup(endpoints(server, 1), none);
    let asked = OpenRequest {
        service: "key-value".to_owned(),
        version: 1,
        send_size: 1000,
        reply_size: 1 << 20,
        buffers: 2,
        credits: 4,
        ..OpenRequest::default()
    };
    RpcChannel::open(
        StreamLink::new().unwrap(),
        &setup.dial,
        &setup.endpoints[0],
        &asked,
    )
    .unwrap()
}

/// Waits for so many answers, by slot.
fn answers(channel: &mut impl ServiceChannel, count: usize) -> HashMap<u32, Result<Vec<u8>, i64>> {
    let mut all = HashMap::new();
    while all.len() < count {
        let taken = channel.poll(Duration::from_secs(10), |slot, reply| {
            all.insert(slot, reply.map(<[u8]>::to_vec));
        });
        taken.unwrap();
    }
    all
}

#[test]
fn values_come_back_by_key_inline_and_in_bulk() {
    let values = Values::default();
    let server = server(&values);
    let mut channel = channel(&server);
    channel.request(0, PUT, b"a=one", None).unwrap();
    assert_eq!(answers(&mut channel, 1)[&0], Ok(Vec::new()));
    let memory = channel.register(1 << 20).unwrap();
    let long: Vec<u8> = (0..700_000_u32).map(|at| at.to_le_bytes()[0]).collect();
    channel.memory(memory)[..long.len()].copy_from_slice(&long);
    let bulk = BulkPart {
        memory,
        offset: 0,
        length: long.len() as u64,
        access: BulkUse::Get,
    };
    channel.request(3, PUT_BULK, b"b", Some(bulk)).unwrap();
    channel.request(0, GET, b"a", None).unwrap();
    channel.request(1, GET, b"c", None).unwrap();
    let all = answers(&mut channel, 3);
    assert_eq!(all[&0], Ok(b"one".to_vec()));
    assert_eq!(all[&1], Err(-1005));
    assert_eq!(all[&3], Ok(Vec::new()));
    assert!(values.lock().unwrap()[&b"b"[..]] == long);
    channel.memory(memory).fill(0);
    let back = BulkPart {
        memory,
        offset: 0,
        length: 1 << 20,
        access: BulkUse::Put,
    };
    channel.request(2, GET_BULK, b"b", Some(back)).unwrap();
    channel.request(0, GET, b"b", None).unwrap();
    let all = answers(&mut channel, 2);
    assert_eq!(all[&2], Ok(Vec::new()));
    assert!(channel.memory(memory)[..long.len()] == long);
    assert!(all[&0].as_deref() == Ok(&long));
}

#[test]
fn a_server_that_ends_fails_what_is_out_and_refuses_more() {
    let server = server(&Values::default());
    let mut channel = channel(&server);
    server.stop().unwrap();
    let sent = channel.request(0, GET, b"a", None);
    if sent.is_ok() {
        assert_eq!(answers(&mut channel, 1)[&0], Err(-1006));
    }
    assert!(channel.request(0, GET, b"a", None).is_err());
}
