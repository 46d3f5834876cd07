//! Message handlers: what a server does with a message and puts into its answer, and what a client puts
//! into a request.
//!
//! A handler is a file with a [`MessageWork`] and a line in `message_handlers!` of `weir-schema`; it is compiled
//! into a loop of its own. In: the packets of a message. Out: payloads. Not here: headers, buffers, when it
//! is called.

mod file_read;
mod file_write;
mod inflate;
mod key_value;
pub(crate) mod plain;
mod touch;

use std::sync::atomic::{AtomicU8, Ordering};

use weir_schema::{MessageHandler, PacketPathWorkload, message_handlers};

use crate::frame::payload;
use crate::pool::{PacketBuffer, PacketMemory};

/// Verdict of a handler on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerVerdict {
    /// It is answered.
    Answer,
    /// It is answered, and its content was not what it should be.
    Wrong,
    /// It is not answered.
    Silence,
}

/// Where the payload of an answer comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerSource<'a> {
    /// The answer is written over the request, whose payload is there already.
    InPlace,
    /// The request's payload.
    Payload(&'a [u8]),
}

/// Values that a handler's memory is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandlerStart<'a> {
    pub(crate) work: &'a PacketPathWorkload,
    /// Of the thread.
    pub(crate) seed: u64,
    /// Content of requests, where that was made before the run.
    pub(crate) content: &'a [u8],
}

/// Work of a handler on messages.
pub(crate) trait MessageWork: Send + 'static {
    /// Content of requests, where that is made once before the run.
    fn content(_work: &PacketPathWorkload) -> Vec<u8> {
        Vec::new()
    }

    /// The memory of one thread.
    fn new(start: &HandlerStart<'_>) -> Self;

    /// A client fills a packet of a request.
    #[inline]
    fn request(&mut self, _segment: u32, payload: &mut [u8]) {
        crate::frame::fill(payload);
    }

    /// A server takes the packets of a message.
    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict;

    /// It fills a packet of the answer.
    fn answer(&mut self, segment: u32, request: AnswerSource<'_>, payload: &mut [u8]);
}

/// Has every byte of every packet pass through a register and a store, as the older program does.
#[derive(Debug)]
pub(crate) struct Scan {
    is_on: bool,
    /// Stores to what other threads might see are not left out by a compiler.
    sink: Box<AtomicU8>,
}

impl Scan {
    pub(crate) fn new(work: &PacketPathWorkload) -> Self {
        Self {
            is_on: work.scan,
            sink: Box::default(),
        }
    }

    /// All bytes of the frames.
    #[inline]
    pub(crate) fn packets(&self, memory: &PacketMemory, packets: &[PacketBuffer]) {
        if !self.is_on {
            return;
        }
        for packet in packets {
            for byte in memory.frame(packet) {
                self.sink.store(*byte, Ordering::Relaxed);
            }
        }
    }
}

/// The request's payload, or a filling where it is not there, and in what is longer than it.
#[inline]
fn same_payload(request: AnswerSource<'_>, answer: &mut [u8]) {
    if let AnswerSource::Payload(payload) = request {
        let length = payload.len().min(answer.len());
        answer[..length].copy_from_slice(&payload[..length]);
        if answer.len() > length {
            crate::frame::fill(&mut answer[length..]);
        }
    }
}

/// The payload of a packet.
#[inline]
fn payload_of<'a>(memory: &'a PacketMemory, packet: &'a PacketBuffer) -> &'a [u8] {
    payload(memory.frame(packet))
}

/// Zeros, as many as the region of a thread has, at least so many.
fn region(work: &PacketPathWorkload, least: usize) -> Vec<u8> {
    let asked = usize::try_from(work.region_bytes.0).unwrap_or(least);
    vec![0; asked.max(least)]
}

/// Call with the type of a handler.
pub(crate) trait HandlerCall {
    type Output;

    fn call<W: MessageWork>(self) -> Self::Output;
}

macro_rules! types_of_handlers {
    ($($(#[$doc:meta])+ $module:ident::$word:ident = $facts:expr,)*) => {
        /// Calls with the type that a plan's word means.
        pub(crate) fn with_handler<C: HandlerCall>(handler: MessageHandler, call: C) -> C::Output {
            match handler {
                $(MessageHandler::$word => call.call::<$module::$word>(),)*
            }
        }
    };
}
message_handlers!(types_of_handlers);

#[cfg(test)]
mod tests;
