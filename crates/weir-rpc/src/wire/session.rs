//! Sessions and what travels in them: OPEN, CLOSE, pulls and pushes, pings, progress.
//!
//! In: values, or bodies. Out: the other. Not here: descriptors, the handshake.

use weir_schema::{CpuUse, RpcPayloadKind};
use weir_units::Nanos;

use super::codec::{WireError, WireField, WireReader, fields, message, message_of_numbers};

/// Longest name of a service, in bytes.
const SERVICE: usize = 32;
/// Value for buffers that may lie anywhere.
const ANYWHERE: u16 = 256;

fields! {
    RpcPayloadKind: |kind, out| out.push(match kind {
        Self::Empty => 0,
        Self::Inline => 1,
        Self::Bulk => 2,
    }), |body, what, _most| match body.u8(what)? {
        0 => Ok(Self::Empty),
        1 => Ok(Self::Inline),
        2 => Ok(Self::Bulk),
        _ => Err(WireError::Field(what)),
    };
    Option<u8>: |byte, out| byte.map_or(ANYWHERE, u16::from).put(out), |body, what, _most| {
        match body.u16(what)? {
            ANYWHERE => Ok(None),
            byte => u8::try_from(byte).map(Some).map_err(|_| WireError::Field(what)),
        }
    };
}

message! {
    /// Asks for a session.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct OpenRequest {
        /// Of the service.
        pub version: u16,
        /// Bytes of a request's payload, at most.
        pub send_size: u32,
        /// Bytes of a reply's payload, at most.
        pub reply_size: u32,
        /// Kind of requests' payloads.
        pub send_kind: RpcPayloadKind,
        /// Kind of replies' payloads.
        pub reply_kind: RpcPayloadKind,
        /// Number of buffers that the server shall hold ready.
        pub buffers: u32,
        /// Number of calls that shall be out at once.
        pub credits: u32,
        /// Low byte of the address of every buffer.
        pub low_byte: Option<u8>,
        /// Checks by the client, for reports.
        pub verify: u8,
        /// Of which service.
        pub service: String [SERVICE],
    }
}

message! {
    /// Session that a server granted. A refusal is a status and words instead.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OpenReply {
        /// The session's number; never 0.
        pub session: u32,
        /// Buffers that it has.
        pub buffers: u32,
        /// Calls that may be out at once.
        pub credits: u32,
    }
    "session" if |reply| reply.session == 0 || reply.credits == 0
}

message_of_numbers! {
    /// Report of a session that ended.
    pub struct Closed {
        /// Requests that it has taken.
        pub requests: u64,
        /// Those of them that waited for a buffer.
        pub buffer_waits: u64,
    }
}

message_of_numbers! {
    /// A range of the caller's memory that a server asks for.
    pub struct PullRange {
        /// From the start of the descriptor, in bytes.
        pub offset: u64,
        /// In bytes.
        pub length: u64,
    }
}

/// Head before bulk data in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushHead {
    /// Where the data belong, from the start of the descriptor, in bytes.
    pub offset: u64,
}

impl PushHead {
    /// Its bytes.
    pub const LENGTH: usize = 8;

    /// As bytes.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        self.offset.to_le_bytes()
    }

    /// The head, and the data behind it.
    ///
    /// # Errors
    /// There is not even a head.
    pub fn decode(body: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let mut body = WireReader::new(body);
        let offset = body.u64("offset")?;
        Ok((Self { offset }, body.rest()))
    }
}

message_of_numbers! {
    /// The body of PONG: that of PING, the server's clock, and the CPU use of the thread that
    /// answers.
    pub struct PingTimes {
        /// Body of the PING.
        pub echo: u64,
        /// `CLOCK_MONOTONIC` of the server, in nanoseconds.
        pub clock_ns: u64,
        /// Nanoseconds in user code.
        pub user_ns: u64,
        /// Nanoseconds in the kernel.
        pub system_ns: u64,
        /// Times the thread gave up the CPU.
        pub voluntary_switches: u64,
        /// Times the CPU was taken from it.
        pub involuntary_switches: u64,
    }
}

impl PingTimes {
    /// CPU use of the thread since it began.
    pub fn used(&self) -> CpuUse {
        CpuUse {
            user_ns: Nanos(self.user_ns),
            system_ns: Nanos(self.system_ns),
            voluntary_switches: self.voluntary_switches,
            involuntary_switches: self.involuntary_switches,
            ..CpuUse::default()
        }
    }
}

message_of_numbers! {
    /// Progress of an ordered test.
    pub struct ProgressNote {
        /// Calls that have ended.
        pub done: u64,
        /// Calls that there will be; 0 where nobody knows.
        pub total: u64,
    }
}
