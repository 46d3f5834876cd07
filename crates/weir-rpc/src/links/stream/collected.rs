//! A handler that keeps what came: for links that use streams as their control plane.
//!
//! In: calls of a link. Out: the same as owned events, in order, for the link to hand on.

use crate::RpcError;
use crate::links::{Link, LinkHandler, PeerId};
use crate::wire::FrameHeader;

/// An event of a link.
#[derive(Debug)]
pub enum CollectedEvent {
    /// A frame.
    Message(PeerId, FrameHeader, Vec<u8>),
    /// A connection ended.
    Lost(PeerId, RpcError),
}

/// Keeps events. Control frames are few, so that owning them costs little.
#[derive(Debug, Default)]
pub struct Collected {
    /// In the order in which they came.
    pub events: Vec<CollectedEvent>,
}

impl<L: Link> LinkHandler<L> for Collected {
    fn message(&mut self, _: &mut L, peer: PeerId, header: &FrameHeader, body: &[u8]) {
        let event = CollectedEvent::Message(peer, *header, body.to_vec());
        self.events.push(event);
    }

    fn lost(&mut self, _: &mut L, peer: PeerId, why: RpcError) {
        self.events.push(CollectedEvent::Lost(peer, why));
    }
}
