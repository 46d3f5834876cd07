//! Lost connections, which are made again.
//!
//! In: a client with connections that are down. Out: one of them after the other is tried, on a thread of its own. Not
//! here: making a connection (`dial`).

use std::sync::mpsc::TryRecvError;
use std::time::Instant;

use super::super::dial::dial_aside;
use super::super::endpoints::{ClientConnection, ConnectionStage};
use super::RpcClient;
use crate::RpcError;
use crate::links::{Link, NewPeer};
use crate::wire::HelloReply;

/// First and longest pause between two tries.
const PAUSE_NS: (u64, u64) = (10_000_000, 1_000_000_000);

impl<L: Link> RpcClient<L> {
    /// Tries lost connections again, on a thread of its own, one after the other.
    pub(super) fn reconnect(&mut self) {
        if self.state.table.any_up() {
            self.down_since = None;
        } else {
            self.down_since.get_or_insert_with(Instant::now);
        }
        if let Some(dialling) = &self.dialling {
            match dialling.try_recv() {
                Ok((connection, result)) => {
                    self.dialling = None;
                    self.dialled(connection, result);
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.dialling = None,
            }
        }
        let now = self.state.now_ns;
        let mut connections = self.state.table.connections.iter_mut();
        let down = |known: &&mut ClientConnection| {
            known.stage == ConnectionStage::Down && known.retry_ns <= now
        };
        let Some(known) = connections.find(down) else {
            return;
        };
        let lookup = self.lookup.as_ref();
        if let Some(found) = lookup.and_then(|lookup| lookup(&known.endpoint)) {
            known.endpoint = found;
        }
        let Ok(greeting) = self.link.greeting() else {
            return;
        };
        let Some(&first) = known.endpoints.first() else {
            return;
        };
        known.stage = ConnectionStage::Dialling;
        let connection = self.state.table.endpoints[first as usize].connection;
        let endpoint = self.state.table.connections[connection as usize]
            .endpoint
            .clone();
        let setup = self.state.setup.dial.clone();
        self.dialling = dial_aside(setup, connection, endpoint, greeting);
    }

    fn dialled(&mut self, connection: u32, result: Result<(NewPeer, HelloReply), RpcError>) {
        let joined = result.and_then(|(peer, reply)| self.join(connection, peer, &reply));
        let now = self.state.now_ns;
        let known = &mut self.state.table.connections[connection as usize];
        match joined {
            Ok(()) => known.pause_ns = 0,
            Err(error) => {
                known.stage = ConnectionStage::Down;
                known.pause_ns = (2 * known.pause_ns).clamp(PAUSE_NS.0, PAUSE_NS.1);
                known.retry_ns = now + known.pause_ns;
                self.state.last_loss = Some(error);
            }
        }
    }
}
