//! A poller without threads and sockets, for tests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use weir_schema::{RpcEndpoint, RpcPoll};

use super::inbox::{Arrival, PollerInbox};
use super::poller::{Poller, PollerRound};
use super::start::ServerShared;
use super::tags::ServedTag;
use super::{NoMasters, RankSetup, ServerLimits, ServerSetup, ServicesOfTag};
use crate::links::{Link, NewPeer};

/// Memory that sessions may take.
const MEMORY: u64 = 1 << 30;

/// A poller of rank 0.
pub(crate) struct SimulatedServer<L> {
    poller: Poller<L>,
    tags: Vec<ServedTag>,
    shared: Arc<ServerShared>,
}

impl<L: Link> SimulatedServer<L> {
    pub(crate) fn new(link: L, tags: u32, services: &ServicesOfTag) -> Self {
        let ranks = vec![RankSetup {
            rank: 0,
            tags,
            addresses: Vec::new(),
        }];
        let setup = ServerSetup {
            group: "g".to_owned(),
            ranks,
            pollers: 1,
            cpus: Vec::new(),
            poll: RpcPoll::Busy,
            services: Box::new(|_, _| Vec::new()),
            domain: None,
            limits: ServerLimits {
                memory: MEMORY,
                ..ServerLimits::default()
            },
            token: None,
            masters: Arc::new(NoMasters),
            log: Box::new(|_| {}),
        };
        let shared = Arc::new(ServerShared::new(setup, [0; 16]));
        let served = (0..tags).map(|tag| ServedTag {
            endpoint: RpcEndpoint { rank: 0, tag },
            services: services(0, tag),
        });
        let inbox = Arc::new(PollerInbox::default());
        let poller = Poller::new(link, (0, 1), Arc::clone(&shared), inbox);
        let tags = served.collect();
        Self {
            poller,
            tags,
            shared,
        }
    }

    pub(crate) fn join(&mut self, peer: NewPeer, tag: u32) {
        self.poller.join(Arrival {
            link: 0,
            peer,
            tag: tag as usize,
            source: None,
        });
    }

    pub(crate) fn round(&mut self) {
        self.poller.round(None, &mut self.tags).unwrap();
    }

    pub(crate) fn protocol_errors(&self) -> u64 {
        self.shared.counters.protocol_errors.load(Relaxed)
    }

    pub(crate) fn memory_taken(&self) -> u64 {
        MEMORY - self.shared.memory.left()
    }
}
