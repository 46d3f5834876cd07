//! Frames in a ring of slots: a header and what fits behind it, the rest in the slots that follow,
//! or, where it is long, in the slab.
//!
//! In: a header and the parts of a body. Out: the same at the other end, copied out before anybody
//! looks at it, since the other side may change what lies in shared memory at any time. A frame is
//! published as a whole; one that is not whole, is longer than agreed, or points out of the slab
//! breaks the connection. Not here: what frames mean, and waking the other side.

use std::collections::VecDeque;
use std::sync::Arc;

use weir_sys::ring::{Consumer, CorruptRing, MappedRing, Producer};
use weir_sys::shared_memory::SharedMemory;

use super::segment::SLAB;
use crate::RpcError;
use crate::wire::{FrameHeader, HEADER, HEADER_WORDS};

/// A slot: a cache line of most processors.
pub(super) type FrameSlot = [u64; 8];
/// Bytes of it.
const SLOT: usize = size_of::<FrameSlot>();
/// Slots of a ring: a power of two.
pub(super) const SLOTS: u32 = 2048;
/// Longest body that travels in slots, in bytes.
const INLINE: usize = 4096;
/// Room beside the header.
const BESIDE: usize = SLOT - HEADER;
/// So many slots are shown to the other side without waiting for more, so that it has work while
/// this side goes on.
const AT_ONCE: u32 = 4;

fn corrupt(error: CorruptRing) -> RpcError {
    RpcError::protocol(error.to_string())
}

fn to_slot(bytes: &[u8; SLOT]) -> FrameSlot {
    let (words, _) = bytes.as_chunks();
    std::array::from_fn(|word| u64::from_le_bytes(words[word]))
}

#[inline]
fn from_slot(slot: FrameSlot) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    for (at, word) in bytes.as_chunks_mut().0.iter_mut().zip(slot) {
        *at = word.to_le_bytes();
    }
    bytes
}

/// Slots that a body in slots takes, its header's included.
fn slots_of(length: usize) -> u32 {
    u32::try_from((HEADER + length).div_ceil(SLOT)).unwrap_or(u32::MAX)
}

/// A body in the slab.
#[derive(Clone, Copy, Debug)]
struct InSlab {
    /// The ring's index once the other side has taken it.
    taken_at: u32,
    /// Where it begins, counted on without end.
    begin: u64,
}

/// The end that sends.
#[derive(Debug)]
pub(super) struct FrameSender {
    ring: Producer<MappedRing<FrameSlot>>,
    memory: Arc<SharedMemory>,
    /// Where the slab lies.
    slab: usize,
    /// Where the next body goes, counted on without end.
    next: u64,
    in_slab: VecDeque<InSlab>,
}

impl FrameSender {
    pub(super) fn new(
        ring: Producer<MappedRing<FrameSlot>>,
        memory: Arc<SharedMemory>,
        slab: usize,
    ) -> Self {
        Self {
            ring,
            memory,
            slab,
            next: 0,
            in_slab: VecDeque::new(),
        }
    }

    /// Queues a frame; false where there is no room.
    #[inline]
    pub(super) fn send(&mut self, header: &FrameHeader, body: &[&[u8]]) -> Result<bool, RpcError> {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let announced = u32::try_from(length).unwrap_or(u32::MAX);
        let mut slot = [0; SLOT / size_of::<u64>()];
        slot[..HEADER_WORDS].copy_from_slice(&header.to_words(announced));
        let sent = if length == 0 {
            self.ring.push(slot).map_err(corrupt)?
        } else {
            self.send_body(from_slot(slot), body, length)?
        };
        if self.ring.unpublished() >= AT_ONCE {
            self.ring.publish();
        }
        Ok(sent)
    }

    fn send_body(
        &mut self,
        mut first: [u8; SLOT],
        body: &[&[u8]],
        length: usize,
    ) -> Result<bool, RpcError> {
        if length > BESIDE {
            return self.send_long(first, body, length);
        }
        let mut at = HEADER;
        for part in body {
            first[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        self.ring.push(to_slot(&first)).map_err(corrupt)
    }

    fn send_long(
        &mut self,
        mut block: [u8; SLOT],
        body: &[&[u8]],
        length: usize,
    ) -> Result<bool, RpcError> {
        if length > INLINE {
            return self.send_in_slab(block, body, length);
        }
        if !self.ring.has_room(slots_of(length)).map_err(corrupt)? {
            return Ok(false);
        }
        let mut filled = HEADER;
        for mut part in body.iter().copied() {
            while !part.is_empty() {
                let (now, rest) = part.split_at(part.len().min(SLOT - filled));
                block[filled..filled + now.len()].copy_from_slice(now);
                filled += now.len();
                part = rest;
                if filled == SLOT {
                    self.ring.push(to_slot(&block)).map_err(corrupt)?;
                    filled = 0;
                }
            }
        }
        if filled > 0 {
            self.ring.push(to_slot(&block)).map_err(corrupt)?;
        }
        Ok(true)
    }

    fn send_in_slab(
        &mut self,
        mut first: [u8; SLOT],
        body: &[&[u8]],
        length: usize,
    ) -> Result<bool, RpcError> {
        if length > SLAB {
            return Err(RpcError::protocol("a frame is longer than the slab"));
        }
        self.ring.look().map_err(corrupt)?;
        let taken = self.ring.taken();
        let is_taken = |one: &InSlab| taken.wrapping_sub(one.taken_at) <= u32::MAX / 2;
        while self.in_slab.front().is_some_and(is_taken) {
            self.in_slab.pop_front();
        }
        // In one piece: what does not fit before the slab's end goes to its start.
        let (slab, length_64) = (SLAB as u64, length as u64);
        let left = slab - self.next % slab;
        let begin = if left < length_64 {
            self.next + left
        } else {
            self.next
        };
        let oldest = self.in_slab.front().map_or(begin, |one| one.begin);
        if begin + length_64 - oldest > slab || !self.ring.has_room(1).map_err(corrupt)? {
            return Ok(false);
        }
        let offset = usize::try_from(begin % slab).unwrap_or(0);
        let mut at = self.slab + offset;
        for part in body {
            self.memory.copy_in(part, at);
            at += part.len();
        }
        first[HEADER..HEADER + 8].copy_from_slice(&(offset as u64).to_le_bytes());
        self.ring.push(to_slot(&first)).map_err(corrupt)?;
        self.in_slab.push_back(InSlab {
            taken_at: self.ring.next_index(),
            begin,
        });
        self.next = (begin + length_64).next_multiple_of(SLOT as u64);
        Ok(true)
    }

    /// Shows the other side all that was queued; whether it sleeps and has to be woken, for what
    /// was shown before as well.
    #[inline]
    pub(super) fn publish(&mut self) -> bool {
        self.ring.publish();
        self.ring.consumer_sleeps()
    }
}

/// The end that receives.
#[derive(Debug)]
pub(super) struct FrameReceiver {
    ring: Consumer<MappedRing<FrameSlot>>,
    memory: Arc<SharedMemory>,
    /// Where the slab lies.
    slab: usize,
    max_frame: u32,
}

impl FrameReceiver {
    pub(super) fn new(
        ring: Consumer<MappedRing<FrameSlot>>,
        memory: Arc<SharedMemory>,
        slab: usize,
        max_frame: u32,
    ) -> Self {
        Self {
            ring,
            memory,
            slab,
            max_frame,
        }
    }

    /// Looks for frames; whether there are any.
    #[inline]
    pub(super) fn look(&mut self) -> Result<bool, RpcError> {
        Ok(self.ring.available().map_err(corrupt)? > 0)
    }

    /// True if there are more frames of those that the last look found.
    #[inline]
    pub(super) fn has_more(&self) -> bool {
        self.ring.known() > 0
    }

    /// The next frame and its body's length; the body is at the start of `into`, which grows to
    /// the longest so far.
    #[inline]
    pub(super) fn receive(
        &mut self,
        into: &mut Vec<u8>,
    ) -> Result<Option<(FrameHeader, usize)>, RpcError> {
        let Some(slot) = self.ring.pop().map_err(corrupt)? else {
            return Ok(None);
        };
        let [zero, one, two, ..] = slot;
        let (header, length) = FrameHeader::from_words([zero, one, two])?;
        if length == 0 {
            return Ok(Some((header, 0)));
        }
        self.receive_body(slot, length, into)?;
        Ok(Some((header, length as usize)))
    }

    fn receive_body(
        &mut self,
        slot: FrameSlot,
        length: u32,
        into: &mut Vec<u8>,
    ) -> Result<(), RpcError> {
        let block = from_slot(slot);
        let beside = &block[HEADER..];
        if length > self.max_frame {
            return Err(RpcError::protocol("a frame is longer than agreed"));
        }
        let length = length as usize;
        if into.len() < length.max(INLINE) {
            into.resize(length.max(INLINE), 0);
        }
        if length <= BESIDE {
            into[..BESIDE].copy_from_slice(beside);
        } else if length <= INLINE {
            self.receive_slots(beside, &mut into[..length])?;
        } else {
            self.receive_from_slab(beside, &mut into[..length])?;
        }
        Ok(())
    }

    fn receive_slots(&mut self, beside: &[u8], into: &mut [u8]) -> Result<(), RpcError> {
        let (first, rest) = into.split_at_mut(BESIDE);
        first.copy_from_slice(beside);
        for piece in rest.chunks_mut(SLOT) {
            let slot = self.ring.pop().map_err(corrupt)?;
            let slot = slot.ok_or_else(|| RpcError::protocol("a frame is cut"))?;
            piece.copy_from_slice(&from_slot(slot)[..piece.len()]);
        }
        Ok(())
    }

    fn receive_from_slab(&mut self, beside: &[u8], into: &mut [u8]) -> Result<(), RpcError> {
        let offset = beside
            .first_chunk()
            .map_or(u64::MAX, |at| u64::from_le_bytes(*at));
        let offset = usize::try_from(offset).ok().filter(|&at| {
            let end = at.checked_add(into.len());
            end.is_some_and(|end| end <= SLAB)
        });
        let offset = offset.ok_or_else(|| RpcError::protocol("a frame lies outside the slab"))?;
        self.memory.copy_out(self.slab + offset, into);
        Ok(())
    }

    /// Gives the room of what was received back.
    #[inline]
    pub(super) fn release(&mut self) {
        self.ring.release();
    }

    /// Asks to be woken for the next frame; false where there is one.
    pub(super) fn announce_sleep(&mut self) -> Result<bool, RpcError> {
        self.ring.announce_sleep().map_err(corrupt)
    }

    /// Needs no waking any more.
    pub(super) fn end_sleep(&self) {
        self.ring.end_sleep();
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment;
    use super::*;
    use crate::DerCode;
    use crate::links::LinkSide;
    use crate::wire::FrameKind;
    use proptest::prelude::*;
    use std::sync::atomic::Ordering;

    const MOST: u32 = 1 << 20;

    fn connection() -> (Arc<SharedMemory>, FrameSender, FrameReceiver) {
        let (memory, file) = segment::create().unwrap();
        let theirs = segment::open(&file).unwrap();
        let (sender, _) = segment::ends(&memory, LinkSide::Client, MOST).unwrap();
        let (_, receiver) = segment::ends(&theirs, LinkSide::Server, MOST).unwrap();
        (memory, sender, receiver)
    }

    fn header(number: u16) -> FrameHeader {
        FrameHeader {
            word: number,
            ..FrameHeader::plain(FrameKind::Request)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn frames_of_all_lengths_arrive_as_they_were_sent(
            steps in proptest::collection::vec(
                (prop_oneof![0..50_usize, 0..5_000_usize, 0..1_000_000_usize], 0..4_usize), 1..60,
            ),
        ) {
            let (_, mut sender, mut receiver) = connection();
            let (mut sent, mut into) = (VecDeque::new(), Vec::new());
            let mut number = 0_u16;
            for (length, receives) in steps {
                let body: Vec<u8> = (0..length).map(|n| n.to_le_bytes()[0] ^ number.to_le_bytes()[0]).collect();
                let (one, two) = body.split_at(length / 3);
                if sender.send(&header(number), &[one, two]).unwrap() {
                    sent.push_back((number, body));
                    number += 1;
                } else {
                    prop_assert!(!sent.is_empty(), "an empty ring has room");
                }
                prop_assert!(!sender.publish());
                for _ in 0..receives {
                    let frame = receiver.receive(&mut into).unwrap();
                    let frame = frame.map(|(header, length)| (header.word, into[..length].to_vec()));
                    prop_assert_eq!(frame, sent.pop_front());
                }
                receiver.release();
            }
        }
    }

    #[test]
    fn a_slab_that_is_full_takes_frames_again_once_they_are_received() {
        let (_, mut sender, mut receiver) = connection();
        let (body, mut into) = (vec![7; 1_000_000], Vec::new());
        let mut queued = 0;
        while sender.send(&header(queued), &[&body]).unwrap() {
            queued += 1;
        }
        assert_eq!(queued, 4);
        sender.publish();
        for round in 0..20 {
            let (header_of, length) = receiver.receive(&mut into).unwrap().unwrap();
            assert_eq!((header_of.word, length), (round, body.len()));
            assert!(
                !sender.send(&header(queued), &[&body]).unwrap(),
                "not yet given back"
            );
            receiver.release();
            assert!(sender.send(&header(queued), &[&body]).unwrap());
            sender.publish();
            queued += 1;
        }
    }

    #[test]
    fn frames_show_before_all_are_queued_and_their_sleeper_is_woken_all_the_same() {
        let (_, mut sender, mut receiver) = connection();
        assert!(receiver.announce_sleep().unwrap());
        for number in 0..u16::try_from(AT_ONCE).unwrap() {
            assert!(!receiver.look().unwrap());
            assert!(sender.send(&header(number), &[]).unwrap());
        }
        assert!(receiver.look().unwrap());
        assert!(sender.publish(), "who waits has to be woken");
        assert!(!sender.publish(), "but once");
    }

    /// Refusal by the receiver of a first slot with this length and these bytes beside it.
    fn refusal(length: u32, beside: u64) -> RpcError {
        let (memory, _, mut receiver) = connection();
        let mut slot = [0; SLOT];
        slot[..HEADER].copy_from_slice(&header(0).encode(length, false));
        slot[HEADER..HEADER + 8].copy_from_slice(&beside.to_le_bytes());
        memory.copy_in(&slot, 512);
        memory.word(0).store(1, Ordering::Release);
        receiver.receive(&mut Vec::new()).unwrap_err()
    }

    #[test]
    fn what_cannot_be_is_refused_without_reading_elsewhere() {
        for (length, beside, says) in [
            (MOST + 1, 0, "longer than agreed"),
            (u32::MAX, 0, "longer than agreed"),
            (100, 0, "is cut"),
            (4_096, 0, "is cut"),
            (5_000, u64::MAX, "outside the slab"),
            (5_000, SLAB as u64 - 4_999, "outside the slab"),
        ] {
            let error = refusal(length, beside);
            assert_eq!(error.code, DerCode::Protocol);
            assert!(error.message.contains(says), "{length}: {error}");
        }
        let (memory, mut sender, mut receiver) = connection();
        memory.word(0).store(SLOTS + 1, Ordering::Release);
        let error = receiver.receive(&mut Vec::new()).unwrap_err();
        assert!(error.message.contains("the other end of a ring"), "{error}");
        memory.word(128).store(1, Ordering::Release);
        let body = vec![0; 100_000];
        assert!(
            sender.send(&header(0), &[&body]).is_err(),
            "taken before it was sent"
        );
    }
}
