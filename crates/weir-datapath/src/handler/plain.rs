//! Handlers without memory: no answer, a filled one, the same payload again.

use super::{AnswerSource, HandlerStart, HandlerVerdict, MessageWork, Scan, same_payload};
use crate::frame::fill;
use crate::pool::{PacketBuffer, PacketMemory};

/// Frees messages.
#[derive(Debug)]
pub(crate) struct Discard;

impl MessageWork for Discard {
    fn new(_: &HandlerStart<'_>) -> Self {
        Self
    }

    #[inline]
    fn take(&mut self, _: &PacketMemory, _: &[PacketBuffer]) -> HandlerVerdict {
        HandlerVerdict::Silence
    }

    fn answer(&mut self, _: u32, _: AnswerSource<'_>, _: &mut [u8]) {}
}

/// Reads a message and answers with a filling.
#[derive(Debug)]
pub(crate) struct Fill(Scan);

impl MessageWork for Fill {
    fn new(start: &HandlerStart<'_>) -> Self {
        Self(Scan::new(start.work))
    }

    #[inline]
    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict {
        self.0.packets(memory, packets);
        HandlerVerdict::Answer
    }

    #[inline]
    fn answer(&mut self, _: u32, _: AnswerSource<'_>, payload: &mut [u8]) {
        fill(payload);
    }
}

/// Reads a message and answers with its payload.
#[derive(Debug)]
pub(crate) struct Same(Scan);

impl MessageWork for Same {
    fn new(start: &HandlerStart<'_>) -> Self {
        Self(Scan::new(start.work))
    }

    #[inline]
    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict {
        self.0.packets(memory, packets);
        HandlerVerdict::Answer
    }

    #[inline]
    fn answer(&mut self, _: u32, request: AnswerSource<'_>, payload: &mut [u8]) {
        same_payload(request, payload);
    }
}
