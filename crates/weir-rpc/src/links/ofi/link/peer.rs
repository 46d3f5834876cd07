//! A peer on a fabric: the messages that are written for it, kept for it, or come from it.
//!
//! In: frames to send. Out: messages to the provider, in order. A message is marked, numbered, and
//! holds whole frames, or a part of one frame that is longer. Not here: moves (`transfers`), reading
//! (`incoming`).

use std::collections::VecDeque;
use std::time::Instant;

use super::incoming::PartialFrame;
use crate::account::{Charge, FREE, MemoryAccount};
use crate::links::PeerId;
use crate::links::ofi::endpoint::{FabricEndpoint, FabricPeer, FabricPosted, SendSlot};
use crate::links::ofi::error::FabricError;
use crate::links::ofi::remote_memory::MessagePart;
use crate::{DerCode, RpcError};

/// Bytes before the frames of a message: the connection's mark, the message's number.
pub(super) const MARKED: usize = 16;
/// Memory of a kept frame in bytes, beside a copy of an answer's buffer, which its session has paid for.
pub(super) const KEPT_FRAME: u64 = 128;
/// Places for messages that no single peer may keep occupied.
const LEFT_TO_OTHERS: usize = 16;

/// Outlook of a peer: it has something that is to be tried again, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outlook {
    /// Everything was taken.
    Clear,
    /// Not everything.
    Stalled,
}

/// Result of trying again.
#[derive(Debug, Default)]
pub(super) struct Retried {
    /// Something was taken.
    pub(super) has_moved: bool,
    /// Nothing is left.
    pub(super) is_clear: bool,
    /// The provider failed for good.
    pub(super) error: Option<FabricError>,
}

/// A message that the provider did not take yet.
type KeptMessage = (SendSlot, usize);

/// A peer.
#[derive(Debug)]
pub(super) struct FabricLinkPeer {
    pub(super) generation: u32,
    pub(super) address: FabricPeer,
    pub(super) mark: u64,
    pub(super) max_frame: u32,
    /// It is lost, as the next poll says.
    pub(super) is_broken: bool,
    pub(super) is_dirty: bool,
    /// Sends and moves that the provider took and has not ended.
    pub(super) in_flight: u32,
    /// Since when the provider has taken nothing.
    pub(super) stalled_since: Option<Instant>,
    pub(super) partial: Option<PartialFrame>,
    next_sent: u32,
    next_expected: u32,
    open: Option<KeptMessage>,
    backlog: VecDeque<KeptMessage>,
    /// Frames for which there was no room, and which cannot be refused.
    overflow: VecDeque<Vec<u8>>,
    /// Shares of the account for long messages, and for the rest.
    charges: [Charge; 2],
}

impl FabricLinkPeer {
    pub(super) fn new(
        id: PeerId,
        (address, mark): (FabricPeer, u64),
        max_frame: u32,
        account: &MemoryAccount,
    ) -> Self {
        Self {
            generation: id.generation,
            address,
            mark,
            max_frame,
            is_broken: false,
            is_dirty: false,
            in_flight: 0,
            stalled_since: None,
            partial: None,
            next_sent: 0,
            next_expected: 0,
            open: None,
            backlog: VecDeque::new(),
            overflow: VecDeque::new(),
            charges: [Charge::new(account), Charge::of_rest(account)],
        }
    }

    /// True if a frame of so many bytes can be written now.
    #[inline]
    pub(super) fn has_room(&self, endpoint: &FabricEndpoint, bytes: usize) -> bool {
        self.overflow.is_empty() && self.fits(endpoint, bytes)
    }

    #[inline]
    fn fits(&self, endpoint: &FabricEndpoint, bytes: usize) -> bool {
        let room = endpoint.sizes().message_bytes - MARKED;
        if let Some((_, end)) = &self.open
            && room + MARKED - end >= bytes
        {
            return true;
        }
        let messages = bytes.div_ceil(room);
        let left = endpoint.sends_left();
        // A peer that takes nothing leaves room for the others.
        messages <= left && (self.backlog.is_empty() || left - messages >= LEFT_TO_OTHERS)
    }

    /// Adds a frame, for which there is room, to the open message.
    #[inline]
    pub(super) fn write_frame<'part>(
        &mut self,
        endpoint: &mut FabricEndpoint,
        index: u32,
        bytes: usize,
        parts: impl Iterator<Item = MessagePart<'part>>,
    ) -> Result<Outlook, FabricError> {
        let room = endpoint.sizes().message_bytes;
        let mut outlook = Outlook::Clear;
        if let Some((_, end)) = &self.open
            && room - end < bytes
        {
            outlook = self.post(endpoint, index)?;
        }
        for mut part in parts {
            loop {
                let Some((slot, end)) = self.open.take().or_else(|| {
                    let slot = endpoint.take_send()?;
                    Some((slot, MARKED))
                }) else {
                    let text = "no place is left for a message of the fabric";
                    return Err(FabricError::Invalid(text.to_owned()));
                };
                let (now, later) = part.split_at(room - end);
                endpoint.fill(&slot, end, now);
                self.open = Some((slot, end + now.len()));
                if later.is_empty() {
                    break;
                }
                part = later;
                outlook = self.post(endpoint, index)?;
            }
        }
        Ok(outlook)
    }

    /// True if frames for which there was no room are kept.
    pub(super) fn is_congested(&self) -> bool {
        !self.overflow.is_empty()
    }

    /// Takes from the account what is kept for the peer.
    ///
    /// # Errors
    /// That has not so much left.
    pub(super) fn charge(&mut self) -> Result<(), RpcError> {
        let partial = self.partial.as_ref();
        let partial = partial.map_or(0, |partial| partial.head.capacity() as u64);
        let is_taken = |(charge, held): (&mut Charge, u64)| {
            charge.is_at_most(held.saturating_sub(FREE));
            charge.is_now(held.saturating_sub(FREE))
        };
        let held = [partial, self.overflow.len() as u64 * KEPT_FRAME];
        let are_taken = self.charges.iter_mut().zip(held).all(is_taken);
        let why = || RpcError::new(DerCode::NoMemory, "no memory for frames of this peer");
        are_taken.then_some(()).ok_or_else(why)
    }

    /// Keeps a frame for which there is no room.
    ///
    /// # Errors
    /// The account has no memory for it.
    #[cold]
    pub(super) fn keep(
        &mut self,
        endpoint: &FabricEndpoint,
        header: &[u8],
        body: &[MessagePart<'_>],
    ) -> Result<(), RpcError> {
        let mut frame = header.to_vec();
        for part in body {
            endpoint.add_part(*part, &mut frame);
        }
        self.overflow.push_back(frame);
        self.charge()
    }

    /// Sends the open message.
    #[inline]
    pub(super) fn post(
        &mut self,
        endpoint: &mut FabricEndpoint,
        index: u32,
    ) -> Result<Outlook, FabricError> {
        self.is_dirty = false;
        if let Some((slot, len)) = self.open.take() {
            let prefix = endpoint.send_bytes(&slot);
            prefix[..8].copy_from_slice(&self.mark.to_le_bytes());
            prefix[8..12].copy_from_slice(&self.next_sent.to_le_bytes());
            prefix[12..MARKED].fill(0);
            self.next_sent = self.next_sent.wrapping_add(1);
            let refused = if self.backlog.is_empty() {
                self.hand_over(endpoint, index, (slot, len))?
            } else {
                Some((slot, len))
            };
            self.backlog.extend(refused);
        }
        Ok(if self.backlog.is_empty() && self.overflow.is_empty() {
            Outlook::Clear
        } else {
            Outlook::Stalled
        })
    }

    /// Gives a message to the provider, and back what it does not take.
    #[inline]
    fn hand_over(
        &mut self,
        endpoint: &mut FabricEndpoint,
        index: u32,
        (slot, len): KeptMessage,
    ) -> Result<Option<KeptMessage>, FabricError> {
        match endpoint.inject_slot(&slot, len, self.address) {
            Ok(None) => {}
            Ok(Some(FabricPosted::Again)) => return Ok(Some((slot, len))),
            Ok(Some(FabricPosted::Taken)) => {
                endpoint.give_send_back(slot);
                return Ok(None);
            }
            Err(error) => {
                endpoint.give_send_back(slot);
                return Err(error);
            }
        }
        let owner = owner(index, self.generation);
        let refused = endpoint.send(slot, len, self.address, owner)?;
        if refused.is_none() {
            self.in_flight += 1;
        }
        Ok(refused.map(|slot| (slot, len)))
    }

    /// Tries again what the provider did not take.
    pub(super) fn retry(&mut self, endpoint: &mut FabricEndpoint, index: u32) -> Retried {
        let mut retried = Retried::default();
        while let Some(kept) = self.backlog.pop_front() {
            match self.hand_over(endpoint, index, kept) {
                Ok(None) => retried.has_moved = true,
                Ok(Some(kept)) => {
                    self.backlog.push_front(kept);
                    return retried;
                }
                Err(error) => {
                    retried.error = Some(error);
                    return retried;
                }
            }
        }
        while let Some(frame) = self.overflow.pop_front() {
            if !self.fits(endpoint, frame.len()) {
                self.overflow.push_front(frame);
                return retried;
            }
            // It has become less.
            let _ = self.charge();
            let part = std::iter::once(MessagePart::Bytes(&frame));
            if let Err(error) = self.write_frame(endpoint, index, frame.len(), part) {
                retried.error = Some(error);
                return retried;
            }
            retried.has_moved = true;
        }
        match self.post(endpoint, index) {
            Ok(outlook) => retried.is_clear = outlook == Outlook::Clear,
            Err(error) => retried.error = Some(error),
        }
        retried
    }

    /// True if a message with this number is the next one, which it counts then.
    #[inline]
    pub(super) fn expects(&mut self, number: u32) -> bool {
        let is_next = number == self.next_expected;
        if is_next {
            self.next_expected = number.wrapping_add(1);
        }
        is_next
    }

    /// Gives back the places of messages that will not be sent.
    pub(super) fn drop_messages(&mut self, endpoint: &mut FabricEndpoint) {
        for (slot, _) in self.open.take().into_iter().chain(self.backlog.drain(..)) {
            endpoint.give_send_back(slot);
        }
    }
}

/// Number by which the endpoint remembers a peer's sends.
fn owner(index: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(index)
}

/// The peer whose send it was.
pub(super) fn owned_by(owner: u64) -> PeerId {
    #[expect(clippy::cast_possible_truncation, reason = "both halves of one number")]
    PeerId {
        index: owner as u32,
        generation: (owner >> 32) as u32,
    }
}
