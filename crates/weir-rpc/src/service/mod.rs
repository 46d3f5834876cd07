//! A service: what a server answers requests with.
//!
//! In: requests of a session, by operation code. Out: the next step of each: fetch bulk data, send
//! bulk data, answer. A service sees payloads and buffers; framing, credits, bulk transfers,
//! time-outs and lost clients are the server's. Not here: the services (`self_test`, tests).
//!
//! A tag has one set of services, made and run by the thread that serves the tag. Callers over all links of the
//! server reach that set, so that a service needs no lock; sessions have different numbers whatever link they
//! come over. A store with several shards has a tag for each.
//!
//! A service may answer at once, or hold a call ([`NextStep::Later`]) and name it at the end of a round, in any
//! order: to commit a group, or to look up a batch. What a held call takes is bounded: its place and its payload
//! count in the server's account, its buffer in that of its session. Where there is no memory it fails; where its
//! caller or session is gone, or `ServerLimits::held` is over, it ends; the service hears `dropped` each time. Calls
//! without a session cannot be held. A value that is longer than a buffer moves in pieces: [`NextStep::Pull`] from
//! `pull_from`, [`NextStep::PushParts`] to any place of the caller's memory.
//!
//! ```
//! # use std::{io, time::Duration};
//! # use weir_rpc::service::{CallHandle, NextStep, PushPart, RpcService, ServiceCall, SessionShape};
//! # use weir_rpc::{DerCode, RpcError, wire::OpenRequest};
//! # use weir_run::{BulkPart, BulkUse, ServiceChannel};
//! /// One value. Operation 0 sets it, 1 reads it.
//! #[derive(Default)]
//! struct Store { value: Vec<u8>, batch: Vec<CallHandle> }
//!
//! impl RpcService for Store {
//!     # fn name(&self) -> &'static str { "store" }
//!     # fn version(&self) -> u16 { 1 }
//!     fn open(&mut self, _: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError> {
//!         let (buffer_bytes, longest_bulk) = (asked.reply_size.into(), Some(1 << 30));
//!         Ok(SessionShape { buffer_bytes, longest_bulk, ..SessionShape::default() })
//!     }
//!     fn needs_buffer(&self, operation: u16) -> bool { operation == 1 }
//!     fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
//!         if call.operation == 0 { self.value = call.payload.to_vec(); }
//!         self.batch.push(call.handle);
//!         NextStep::Later
//!     }
//!     # fn pulled(&mut self, _: &mut ServiceCall<'_>) -> NextStep { NextStep::Fail(DerCode::NoService) }
//!     fn answers_later(&self) -> bool { true }
//!     fn end_of_round(&mut self, ready: &mut Vec<CallHandle>) -> bool {
//!         ready.append(&mut self.batch); // after a commit of all of them
//!         false
//!     }
//!     fn resumed(&mut self, call: &mut ServiceCall<'_>) -> NextStep {
//!         if call.operation == 0 { return NextStep::Reply(0); }
//!         let (head, room) = call.buffer.split_at_mut(8);
//!         let length = self.value.len().min(room.len());
//!         head.copy_from_slice(&(self.value.len() as u64).to_le_bytes());
//!         room[..length].copy_from_slice(&self.value[..length]);
//!         call.parts.push(PushPart { from: 8, to: 0, length: length as u64 });
//!         NextStep::PushPartsAndReply(8)
//!     }
//!     fn dropped(&mut self, call: CallHandle) { self.batch.retain(|&kept| kept != call); }
//! }
//!
//! /// Sets a value of one frame and reads it into registered memory, both calls out at once.
//! fn set_and_read(channel: &mut impl ServiceChannel) -> io::Result<()> {
//!     let (memory, length) = (channel.register(4096)?, 4096);
//!     channel.request(0, 0, b"value", None)?;
//!     let part = BulkPart { memory, offset: 0, length, access: BulkUse::Put };
//!     channel.request(1, 1, b"", Some(part))?;
//!     let mut ended = 0;
//!     while ended < 2 {
//!         ended += channel.poll(Duration::from_secs(1), |slot, reply| println!("{slot}: {reply:?}"))?;
//!     }
//!     Ok(())
//! }
//! ```
//!
//! `ServerSetup::services` makes a tag's services; `RpcChannel::open` makes the channel.

pub(crate) mod payload;
pub mod self_test;

use crate::wire::{OpenRequest, RpcId};
use crate::{DerCode, RpcError};

/// Answer of a service to a request for a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionShape {
    /// Bytes of each of the session's buffers; 0 for no buffers.
    pub buffer_bytes: u64,
    /// Byte that buffers are filled with at first.
    pub fill: u8,
    /// Most bytes of the caller's memory that a request may describe: others fail with
    /// [`DerCode::RecordTooBig`]. `None`: any number.
    pub longest_bulk: Option<u64>,
}

/// A request on its way through a service.
#[derive(Debug)]
pub struct ServiceCall<'a> {
    /// Which session; 0 for requests without one.
    pub session: u32,
    /// Which operation of the service.
    pub operation: u16,
    /// The caller's name for this call.
    pub rpc: RpcId,
    /// Checks that the caller wants: bits of `wire::flag`.
    pub flags: u8,
    /// The payload that came with the request.
    pub payload: &'a [u8],
    /// Bytes of the caller's memory that the request describes.
    pub bulk: Option<u64>,
    /// The call's buffer of the session; empty where the operation needs none.
    pub buffer: &'a mut [u8],
    /// The sum (CRC32C) of the payload, inline or bulk, that the caller said, where it did.
    pub checksum: Option<u32>,
    /// The sum of the reply's payload, to be sent with the answer.
    pub reply_checksum: Option<u32>,
    /// This call, for a service that answers it later or in several steps.
    pub handle: CallHandle,
    /// First byte of the caller's memory that [`NextStep::Pull`] fetches; 0 unless the service says another.
    pub pull_from: u64,
    /// Parts for [`NextStep::PushParts`] and [`NextStep::PushPartsAndReply`], [`MOST_PARTS`] at most; empty at
    /// first.
    pub parts: &'a mut Vec<PushPart>,
}

/// Name of a call that takes more than one step. It names nothing any more once the call has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallHandle {
    /// The link's number with its poller.
    pub(crate) link: usize,
    pub(crate) token: u64,
}

/// Parts that one step of a call may push.
pub const MOST_PARTS: usize = 16;

/// Bytes of a call's buffer that go to a place in the caller's memory. What no part names stays untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushPart {
    /// From the start of the buffer.
    pub from: u64,
    /// From the start of the caller's memory.
    pub to: u64,
    /// Number of bytes.
    pub length: u64,
}

/// Next step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Fetch this many bytes of the caller's memory into the buffer, then call `pulled`.
    Pull(u64),
    /// Write this many bytes of the buffer into the caller's memory, then answer without payload.
    PushAndReply(u64),
    /// Write the call's parts into the caller's memory, then call `resumed`: a value that is longer than the
    /// buffer, or has more than [`MOST_PARTS`], goes piece by piece.
    PushParts,
    /// Write the call's parts into the caller's memory, then answer with this many bytes of the buffer.
    PushPartsAndReply(u64),
    /// Nothing now: the service names the call in `end_of_round`, this time or another. The call keeps its
    /// buffer, and its payload counts as kept, which the service has to do if it needs it.
    Later,
    /// Answer with this many bytes of the buffer.
    Reply(u64),
    /// Answer that it failed.
    Fail(DerCode),
}

/// Service that answers requests. Each tag of a rank has its own.
pub trait RpcService: Send {
    /// As clients ask for it; at most 32 bytes.
    fn name(&self) -> &'static str;

    /// Clients with another version are refused.
    fn version(&self) -> u16;

    /// A client asks for a session, which will have this number.
    ///
    /// # Errors
    /// Why not: what it asks for makes no sense.
    fn open(&mut self, session: u32, asked: &OpenRequest) -> Result<SessionShape, RpcError>;

    /// True if an operation needs one of the session's buffers. A request without a free one waits.
    fn needs_buffer(&self, operation: u16) -> bool;

    /// Takes a request that has its buffer.
    fn request(&mut self, call: &mut ServiceCall<'_>) -> NextStep;

    /// Goes on once the bytes of [`NextStep::Pull`] are in the buffer.
    fn pulled(&mut self, call: &mut ServiceCall<'_>) -> NextStep;

    /// True if it answers calls later, so that the end of rounds concerns it.
    fn answers_later(&self) -> bool {
        false
    }

    /// A round of calls is over: the service has all that came over all links. The time to commit, or to look a
    /// batch up. Calls put into `ready` go on with `resumed`, in this order. True if the service holds others
    /// and shall be asked again within a millisecond, whether or not something comes.
    fn end_of_round(&mut self, _ready: &mut Vec<CallHandle>) -> bool {
        false
    }

    /// Goes on with a call that `end_of_round` has named, or whose parts ([`NextStep::PushParts`]) are on their
    /// way, so that its buffer is free.
    fn resumed(&mut self, _call: &mut ServiceCall<'_>) -> NextStep {
        NextStep::Fail(DerCode::Other)
    }

    /// A call has ended without an answer of the service: the caller gave it up, its session or connection is
    /// gone, there was no memory, or it was held for too long. The service may not have seen it yet.
    fn dropped(&mut self, _call: CallHandle) {}

    /// A session has ended.
    fn closed(&mut self, _session: u32) {}
}
