//! The self-test as a service: seven operations, by how request and reply travel.
//!
//! In: requests. Out: replies of the session's size, from buffers that were filled when it opened.
//! Payloads are checked where the caller asks for it. A server may be asked to be busy for a while
//! with each request, for experiments with queues. Not here: the client's side.

use std::time::{Duration, Instant};

use weir_run::generate::rng::Rng;
use weir_schema::{RpcPayloadKind, RpcServiceTime};

use crate::service::payload::{fill, follows, payload_sum};
use crate::service::{NextStep, RpcService, ServiceCall, SessionShape};
use crate::wire::{OpenRequest, flag};
use crate::{DerCode, RpcError};

/// The service's name.
pub const NAME: &str = "selftest";
/// Its version.
pub const VERSION: u16 = 1;
/// Fill of the server's buffers.
pub const SERVER_FILL: u8 = 0xa7;
/// Fill of the client's buffers.
pub const CLIENT_FILL: u8 = 0xc5;

/// The operation for how request and reply travel: one without bulk data each for the four pairs,
/// and three with.
pub fn operation(send: RpcPayloadKind, reply: RpcPayloadKind) -> u16 {
    use RpcPayloadKind::{Bulk, Empty, Inline};
    match (send, reply) {
        (Empty, Empty) => 0,
        (Empty, Inline) => 1,
        (Inline, Empty) => 2,
        (Inline, Inline) => 3,
        (Inline, Bulk) => 4,
        (Bulk, Inline) => 5,
        (Empty | Bulk, Bulk) | (Bulk, Empty) => 6,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct TestSession {
    send: u64,
    reply: u64,
    send_kind: RpcPayloadKind,
    reply_kind: RpcPayloadKind,
}

/// The self-test of a tag.
#[derive(Debug)]
pub struct SelfTestService {
    /// By the session's number.
    sessions: Vec<TestSession>,
    time: RpcServiceTime,
    random: Rng,
}

impl SelfTestService {
    /// With a time that each request takes; `seed` is for the distributions.
    pub fn new(time: RpcServiceTime, seed: u64) -> Self {
        Self {
            sessions: Vec::new(),
            time,
            random: Rng::new(seed),
        }
    }

    fn session(&self, call: &ServiceCall<'_>) -> TestSession {
        let session = self.sessions.get(call.session as usize);
        session.copied().unwrap_or_default()
    }

    /// Is busy for as long as it was asked to be.
    #[inline]
    fn work(&mut self) {
        if self.time != RpcServiceTime::None {
            self.work_now();
        }
    }

    #[cold]
    fn work_now(&mut self) {
        let begin = Instant::now();
        let span: Duration = match self.time {
            RpcServiceTime::None => return,
            RpcServiceTime::Constant(span) => span.into(),
            RpcServiceTime::Exponential(mean) => {
                Duration::from(mean).mul_f64(-(1.0 - self.random.unit()).ln())
            }
            RpcServiceTime::Bimodal {
                first,
                probability,
                second,
            } => {
                let is_first = self.random.unit() < probability;
                if is_first { first } else { second }.into()
            }
        };
        while begin.elapsed() < span {
            std::hint::spin_loop();
        }
    }

    /// Makes the reply, once the request's payload is there.
    fn reply(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        self.work();
        let session = self.session(call);
        let size = usize::try_from(session.reply).unwrap_or(0);
        if session.reply_kind != RpcPayloadKind::Empty {
            let Some(reply) = call.buffer.get_mut(..size) else {
                return NextStep::Fail(DerCode::Invalid);
            };
            if call.flags & flag::PATTERN != 0 {
                fill(reply, call.rpc);
            }
            if call.checksum.is_some() {
                call.reply_checksum = Some(payload_sum(reply));
            }
        }
        match session.reply_kind {
            RpcPayloadKind::Empty => NextStep::Reply(0),
            RpcPayloadKind::Inline => NextStep::Reply(session.reply),
            RpcPayloadKind::Bulk => NextStep::PushAndReply(session.reply),
        }
    }
}

/// True if a payload is what its sender meant it to be.
fn is_right(payload: &[u8], call: &ServiceCall<'_>) -> bool {
    let right_sum = call.checksum.is_none_or(|sum| sum == payload_sum(payload));
    right_sum && (call.flags & flag::PATTERN == 0 || follows(payload, call.rpc))
}

impl RpcService for SelfTestService {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u16 {
        VERSION
    }

    fn open(&mut self, session: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
        let sizes = [
            (asked.send_kind, asked.send_size),
            (asked.reply_kind, asked.reply_size),
        ];
        if sizes
            .iter()
            .any(|&(kind, size)| (kind == RpcPayloadKind::Empty) != (size == 0))
        {
            let message = "an empty payload has no bytes, and no other is empty";
            return Err(RpcError::new(DerCode::Invalid, message));
        }
        let place = session as usize;
        if self.sessions.len() <= place {
            self.sessions.resize(place + 1, TestSession::default());
        }
        let (send, reply) = (u64::from(asked.send_size), u64::from(asked.reply_size));
        self.sessions[place] = TestSession {
            send,
            reply,
            send_kind: asked.send_kind,
            reply_kind: asked.reply_kind,
        };
        let buffer_bytes = if asked.send_kind == RpcPayloadKind::Bulk {
            send.max(reply)
        } else {
            reply
        };
        Ok(SessionShape {
            buffer_bytes,
            fill: SERVER_FILL,
            longest_bulk: None,
        })
    }

    #[inline]
    fn needs_buffer(&self, operation: u16) -> bool {
        !matches!(operation, 0 | 2)
    }

    #[inline]
    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        if call.operation == 0 {
            self.work();
            return NextStep::Reply(0);
        }
        let session = self.session(call);
        if operation(session.send_kind, session.reply_kind) != call.operation {
            return NextStep::Fail(DerCode::Invalid);
        }
        if session.send_kind == RpcPayloadKind::Bulk {
            return NextStep::Pull(session.send);
        }
        if call.payload.len() as u64 != session.send {
            return NextStep::Fail(DerCode::Invalid);
        }
        if !is_right(call.payload, call) {
            return NextStep::Fail(DerCode::Mismatch);
        }
        self.reply(call)
    }

    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
        let size = usize::try_from(self.session(call).send).unwrap_or(0);
        let payload = call.buffer.get(..size);
        if !payload.is_some_and(|payload| is_right(payload, call)) {
            return NextStep::Fail(DerCode::Mismatch);
        }
        self.reply(call)
    }
}
