//! A map: requests put a value under one of ten thousand keys, or ask for it.
//!
//! A payload is a byte that says which (0 put, 1 get), 16 bytes of key, 64 of value. A put is answered as
//! it came, a get with the value, or with type 2 where there is none.

use std::collections::HashMap;

use weir_run::generate::rng::Rng;

use super::{AnswerSource, HandlerStart, HandlerVerdict, MessageWork, Scan, payload_of};
use crate::pool::{PacketBuffer, PacketMemory};

const KEYS: u64 = 10_000;
const KEY: usize = 16;
const VALUE: usize = 64;
/// Bytes of a payload.
const WHOLE: usize = 1 + KEY + VALUE;
const PUT: u8 = 0;
const GET: u8 = 1;
const ABSENT: u8 = 2;

/// A thread's map; of a client, what it draws keys from.
#[derive(Debug)]
pub(crate) struct KeyValue {
    scan: Scan,
    map: HashMap<[u8; KEY], [u8; VALUE]>,
    /// Answer to the last request.
    reply: [u8; WHOLE],
    rng: Rng,
}

impl MessageWork for KeyValue {
    fn new(start: &HandlerStart<'_>) -> Self {
        Self {
            scan: Scan::new(start.work),
            map: HashMap::with_capacity(10_000),
            reply: [0; WHOLE],
            rng: Rng::new(start.seed),
        }
    }

    #[inline]
    fn request(&mut self, _: u32, payload: &mut [u8]) {
        let Some(payload) = payload.get_mut(..WHOLE) else {
            return;
        };
        let drawn = self.rng.next_u64();
        let key = drawn % KEYS;
        payload.fill(0);
        payload[0] = if drawn >> 63 == 0 { PUT } else { GET };
        payload[1..9].copy_from_slice(&key.to_le_bytes());
        payload[1 + KEY..1 + KEY + 8].copy_from_slice(&drawn.to_le_bytes());
    }

    #[inline]
    fn take(&mut self, memory: &PacketMemory, packets: &[PacketBuffer]) -> HandlerVerdict {
        self.scan.packets(memory, packets);
        let payload = packets.first().map(|packet| payload_of(memory, packet));
        let Some(payload) = payload.and_then(|payload| payload.get(..WHOLE)) else {
            return HandlerVerdict::Wrong;
        };
        self.reply.copy_from_slice(payload);
        let mut key = [0; KEY];
        key.copy_from_slice(&payload[1..=KEY]);
        let value = &mut self.reply[1 + KEY..];
        match payload[0] {
            PUT => {
                let mut kept = [0; VALUE];
                kept.copy_from_slice(value);
                self.map.insert(key, kept);
            }
            GET => match self.map.get(&key) {
                Some(kept) => value.copy_from_slice(kept),
                None => self.reply[0] = ABSENT,
            },
            _ => return HandlerVerdict::Wrong,
        }
        HandlerVerdict::Answer
    }

    #[inline]
    fn answer(&mut self, _: u32, _: AnswerSource<'_>, payload: &mut [u8]) {
        let length = payload.len().min(WHOLE);
        payload[..length].copy_from_slice(&self.reply[..length]);
        payload[length..].fill(0);
    }
}
