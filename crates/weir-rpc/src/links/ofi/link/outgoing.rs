//! Outgoing side of a fabric: frames and moves, now or when the provider takes them.
//!
//! In: frames, moves. Out: the same in order for each peer, or the peer's loss where its provider
//! takes nothing for too long. Not here: how messages are written (`peer`), what comes (`incoming`).

use std::time::Instant;

use super::OfiLink;
use super::peer::Outlook;
use super::transfers;
use crate::links::ofi::error::FabricError;
use crate::links::ofi::remote_memory::MessagePart;
use crate::links::{MemoryRange, MoveDirection, PeerId, Sent};
use crate::wire::{BulkDescriptor, FrameHeader, HEADER};
use crate::{DerCode, RpcError};

impl<const RMA: bool> OfiLink<RMA> {
    /// Hands an open message, and what was kept before, to the provider.
    pub(super) fn push_out(&mut self, index: u32) {
        let Some((_, peer)) = self.peers.at(index) else {
            return;
        };
        let done = peer.post(&mut self.endpoint, index);
        self.settle(index, done);
    }

    /// Keeps in mind what is left to do for a peer.
    pub(super) fn settle(&mut self, index: u32, outlook: Result<Outlook, FabricError>) {
        match outlook {
            Ok(Outlook::Clear) => {}
            Ok(Outlook::Stalled) => {
                if !self.stalled.contains(&index) {
                    self.stalled.push(index);
                }
            }
            Err(error) => {
                if let Some((peer, _)) = self.peers.at(index) {
                    self.break_off(peer, error.into());
                }
            }
        }
    }

    /// Tries again what the provider did not take.
    pub(super) fn try_again(&mut self) {
        let now = Instant::now();
        let mut at = 0;
        while let Some(&index) = self.stalled.get(at) {
            let Some((id, peer)) = self.peers.at(index) else {
                self.stalled.swap_remove(at);
                continue;
            };
            let patience = self.settings.patience;
            let messages = peer.retry(&mut self.endpoint, index);
            let moves = self
                .moves
                .retry(&mut self.endpoint, id, &mut peer.in_flight);
            let has_moved = messages.has_moved || moves.has_moved;
            if has_moved || peer.stalled_since.is_none() {
                peer.stalled_since = Some(now);
            }
            let since = peer.stalled_since.unwrap_or(now);
            let error = messages.error.or(moves.error);
            if let Some(error) = error {
                self.break_off(id, error.into());
            } else if messages.is_clear && moves.is_clear {
                peer.stalled_since = None;
                self.stalled.swap_remove(at);
                continue;
            } else if now.duration_since(since) > patience {
                let text = format!(
                    "the fabric has taken nothing for this peer for {} s",
                    patience.as_secs_f64()
                );
                self.break_off(id, RpcError::new(DerCode::Unreachable, text));
            }
            at += 1;
        }
    }

    #[inline]
    pub(super) fn send_parts(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        body: &[MessagePart<'_>],
    ) -> Sent {
        let Some(found) = self.peers.get(peer).filter(|found| !found.is_broken) else {
            return Sent::Gone;
        };
        let length: usize = body.iter().map(MessagePart::len).sum();
        let encoded = header.encode(u32::try_from(length).unwrap_or(u32::MAX), false);
        if !found.has_room(&self.endpoint, HEADER + length) {
            if header.waits_for_room() {
                return Sent::Full;
            }
            if let Err(why) = found.keep(&self.endpoint, &encoded, body) {
                self.break_off(peer, why);
                return Sent::Gone;
            }
            self.settle(peer.index, Ok(Outlook::Stalled));
            return Sent::Queued;
        }
        if !found.is_dirty {
            found.is_dirty = true;
            self.dirty.push(peer.index);
        }
        let parts = std::iter::once(MessagePart::Bytes(&encoded)).chain(body.iter().copied());
        let written = found.write_frame(&mut self.endpoint, peer.index, HEADER + length, parts);
        self.settle(peer.index, written);
        Sent::Queued
    }

    pub(super) fn begin_move(
        &mut self,
        direction: MoveDirection,
        peer: PeerId,
        remote: (&BulkDescriptor, u64),
        own: MemoryRange,
        token: u64,
    ) -> Sent {
        let Some(found) = self.peers.get(peer).filter(|found| !found.is_broken) else {
            return Sent::Gone;
        };
        let Some(mut wanted) = transfers::wanted(direction, remote, own) else {
            self.moves.refuse(peer, token);
            return Sent::Queued;
        };
        wanted.peer = found.address;
        let begun = self.moves.begin(
            &mut self.endpoint,
            (direction, wanted),
            (peer, token),
            &mut found.in_flight,
        );
        match begun {
            Ok(Some(outlook)) => self.settle(peer.index, Ok(outlook)),
            Ok(None) => return Sent::Full,
            Err(error) => self.settle(peer.index, Err(error)),
        }
        Sent::Queued
    }
}
