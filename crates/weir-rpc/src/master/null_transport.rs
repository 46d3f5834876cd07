//! The transport without a network: every call is answered by the next look.
//!
//! In: calls. Out: their completions. What a loop takes over it is the loop's own cost.

use std::io;

use crate::transport::{Requested, RpcCounters, RpcTransport};

/// Answers every call by itself.
#[derive(Debug)]
pub struct NullTransport {
    /// Slots: first those handed over, then those requested since.
    queue: Box<[u32]>,
    queued: usize,
    handed_over: usize,
    /// Result of every call.
    result: i64,
}

impl NullTransport {
    /// With room for so many calls at once, each of which moves so many bytes.
    pub fn new(slots: u32, bytes: u64) -> Self {
        Self {
            queue: vec![0; slots as usize].into(),
            queued: 0,
            handed_over: 0,
            result: i64::try_from(bytes).unwrap_or(i64::MAX),
        }
    }
}

impl RpcTransport for NullTransport {
    #[inline]
    fn request(&mut self, _endpoint: u32, slot: u32) -> Requested {
        // No slot is in the queue twice, so there is room.
        if let Some(place) = self.queue.get_mut(self.queued) {
            *place = slot;
            self.queued += 1;
        }
        Requested::Queued
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        self.handed_over = self.queued;
        Ok(())
    }

    #[inline]
    fn poll(
        &mut self,
        _timeout_ns: Option<u64>,
        at_most: u32,
        mut done: impl FnMut(u32, i64),
    ) -> io::Result<u32> {
        let count = self.handed_over.min(at_most as usize);
        let answered = self.queue.get(..count).unwrap_or_default();
        for slot in answered {
            done(*slot, self.result);
        }
        if count < self.queued {
            self.queue.copy_within(count..self.queued, 0);
        }
        self.queued -= count;
        self.handed_over -= count;
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn is_up(&self, _endpoint: u32) -> bool {
        true
    }

    fn counters(&self) -> RpcCounters {
        RpcCounters::default()
    }

    fn close(self) -> io::Result<RpcCounters> {
        Ok(RpcCounters::default())
    }
}
