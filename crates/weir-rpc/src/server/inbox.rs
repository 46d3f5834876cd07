//! Inbox of a poller: connections, answers of masters, the order to stop, from other threads.
//!
//! In: orders from any thread. Out: orders to the poller, who is woken. Cost: one relaxed look per
//! round while there are none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::connections::SourceAddress;
use crate::links::{LinkWaker, NewPeer, PeerId};
use crate::wire::{FrameHeader, FrameKind, RpcId};

/// A connection for a poller.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) link: usize,
    pub(super) peer: NewPeer,
    /// Which of the server's tags, over all ranks.
    pub(super) tag: usize,
    pub(super) source: SourceAddress,
}

/// Order for a poller.
#[derive(Debug)]
pub(super) enum PollerOrder {
    /// Serve it.
    Join(Box<Arrival>),
    /// Send a body that may be long.
    Send {
        link: usize,
        peer: PeerId,
        header: FrameHeader,
        body: Vec<u8>,
    },
    /// Announce to everybody that the server leaves.
    GoAway,
    /// End.
    Stop,
}

/// Orders for one poller.
#[derive(Debug, Default)]
pub(super) struct PollerInbox {
    /// There are some. Pairs with the lock, which orders the rest.
    full: AtomicBool,
    orders: Mutex<Vec<PollerOrder>>,
    wakers: Mutex<Vec<LinkWaker>>,
}

impl PollerInbox {
    pub(super) fn post(&self, order: PollerOrder) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push(order);
        self.full.store(true, Ordering::Release);
        drop(orders);
        let wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        for waker in wakers.iter() {
            waker.wake();
        }
    }

    pub(super) fn set_wakers(&self, wakers: Vec<LinkWaker>) {
        *self.wakers.lock().unwrap_or_else(PoisonError::into_inner) = wakers;
    }

    /// Takes all orders; none most of the time.
    #[inline]
    pub(super) fn take(&self) -> Vec<PollerOrder> {
        if !self.full.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        self.full.store(false, Ordering::Release);
        std::mem::take(&mut orders)
    }
}

/// The way from a running test back to who ordered it. Any thread may use it.
#[derive(Clone, Debug)]
pub struct MasterAnswers {
    pub(super) inbox: Arc<PollerInbox>,
    pub(super) link: usize,
    pub(super) peer: PeerId,
    pub(super) rpc: RpcId,
}

impl MasterAnswers {
    /// Sends PROGRESS, RESULT or another frame of that family. A status other than 0 says that the
    /// test failed, in the words of the body. It is lost where the connection is.
    pub fn send(&self, kind: FrameKind, status: u16, body: Vec<u8>) {
        let header = FrameHeader::of_call(kind, self.rpc, 0).with_word(status);
        self.inbox.post(PollerOrder::Send {
            link: self.link,
            peer: self.peer,
            header,
            body,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MasterAnswers {
        /// Answers that go to nobody, to be looked at.
        pub(crate) fn collected() -> Self {
            Self {
                inbox: Arc::default(),
                link: 0,
                peer: PeerId::default(),
                rpc: RpcId::default(),
            }
        }

        /// Kinds and statuses of those that came since the last look.
        pub(crate) fn taken(&self) -> Vec<(FrameKind, u16)> {
            let sent = |order| match order {
                PollerOrder::Send { header, .. } => Some((header.kind, header.word)),
                _ => None,
            };
            self.inbox.take().into_iter().filter_map(sent).collect()
        }
    }
}
