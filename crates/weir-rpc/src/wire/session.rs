//! Sessions and what travels in them: OPEN, CLOSE, pulls and pushes, pings, progress.
//!
//! In: values, or bodies. Out: the other. Not here: descriptors, the handshake.

use weir_schema::{CpuUse, RpcPayloadKind};
use weir_units::Nanos;

use super::codec::{WireError, WireReader, message_of_numbers, put_block};

/// Longest name of a service, in bytes.
const SERVICE: usize = 32;
/// Value for buffers that may lie anywhere.
const ANYWHERE: u16 = 256;

/// A kind of payload as a number.
fn kind_number(kind: RpcPayloadKind) -> u8 {
    match kind {
        RpcPayloadKind::Empty => 0,
        RpcPayloadKind::Inline => 1,
        RpcPayloadKind::Bulk => 2,
    }
}

/// The kind of payload that a number stands for.
fn payload_kind(number: u8, field: &'static str) -> Result<RpcPayloadKind, WireError> {
    match number {
        0 => Ok(RpcPayloadKind::Empty),
        1 => Ok(RpcPayloadKind::Inline),
        2 => Ok(RpcPayloadKind::Bulk),
        _ => Err(WireError::Field(field)),
    }
}

/// Asks for a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenRequest {
    /// Of which service.
    pub service: String,
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
}

impl OpenRequest {
    /// As bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&self.send_size.to_le_bytes());
        out.extend_from_slice(&self.reply_size.to_le_bytes());
        out.push(kind_number(self.send_kind));
        out.push(kind_number(self.reply_kind));
        out.extend_from_slice(&self.buffers.to_le_bytes());
        out.extend_from_slice(&self.credits.to_le_bytes());
        let low_byte = self.low_byte.map_or(ANYWHERE, u16::from);
        out.extend_from_slice(&low_byte.to_le_bytes());
        out.push(self.verify);
        put_block(out, self.service.as_bytes());
    }

    /// Reads the bytes of a client.
    ///
    /// # Errors
    /// It is cut, or a field is out of bounds.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = WireReader::new(body);
        let request = Self {
            version: body.u16("version")?,
            send_size: body.u32("send_size")?,
            reply_size: body.u32("reply_size")?,
            send_kind: payload_kind(body.u8("send_kind")?, "send_kind")?,
            reply_kind: payload_kind(body.u8("reply_kind")?, "reply_kind")?,
            buffers: body.u32("buffers")?,
            credits: body.u32("credits")?,
            low_byte: match body.u16("low_byte")? {
                ANYWHERE => None,
                byte => Some(u8::try_from(byte).map_err(|_| WireError::Field("low_byte"))?),
            },
            verify: body.u8("verify")?,
            service: body.text(SERVICE, "service")?,
        };
        body.end()?;
        Ok(request)
    }
}

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

impl OpenReply {
    /// As bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.session.to_le_bytes());
        out.extend_from_slice(&self.buffers.to_le_bytes());
        out.extend_from_slice(&self.credits.to_le_bytes());
    }

    /// Reads the bytes of a server.
    ///
    /// # Errors
    /// It has another length, or grants nothing.
    pub fn decode(body: &[u8]) -> Result<Self, WireError> {
        let mut body = WireReader::new(body);
        let reply = Self {
            session: body.u32("session")?,
            buffers: body.u32("buffers")?,
            credits: body.u32("credits")?,
        };
        body.end()?;
        if reply.session == 0 || reply.credits == 0 {
            return Err(WireError::Field("session"));
        }
        Ok(reply)
    }
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
