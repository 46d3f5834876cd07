//! A client's endpoints and connections: who is up, and how many calls each may still take.
//!
//! In: sessions that open, calls that begin and end, connections that are lost. Out: whether a call
//! may go out. Not here: sending it.

use weir_schema::CpuUse;

use super::ServerEndpoint;
use crate::DerCode;
use crate::links::PeerId;

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionStage {
    /// There is none; it may be tried again.
    Down,
    /// A thread is making one.
    Dialling,
    /// It is there.
    Up,
    /// It is there, but the server is about to leave.
    Leaving,
}

/// The connection to a rank and tag.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) endpoint: ServerEndpoint,
    pub(super) stage: ConnectionStage,
    pub(super) peer: PeerId,
    pub(super) max_frame: u32,
    /// The longest in-line payload that its server takes, in bytes.
    pub(super) max_message: u64,
    /// Calls that are out on it.
    pub(super) out: u32,
    /// When something last came, in nanoseconds of the client's clock.
    pub(super) heard_ns: u64,
    /// Time that the first connection took.
    pub(super) connect_ns: Option<u64>,
    pub(super) pinged: bool,
    /// CPU use of its server's thread as of the latest answer.
    pub(super) used: Option<CpuUse>,
    /// When it may be tried again, and how long to wait after that.
    pub(super) retry_ns: u64,
    pub(super) pause_ns: u64,
    /// The places of its endpoints.
    pub(super) endpoints: Vec<u32>,
}

/// Stage of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointStage {
    /// It cannot be called.
    Down,
    /// Its session is being opened.
    Opening,
    /// It can be called.
    Up,
}

/// An entry of the list of endpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientEndpoint {
    pub(super) stage: EndpointStage,
    /// Why it cannot be called, where that is so.
    pub(super) why_down: DerCode,
    pub(super) connection: u32,
    /// The place of its rank among those that have a limit.
    pub(super) rank: u32,
    /// 0 where calls need none.
    pub(super) session: u32,
    pub(super) credits: u32,
    /// Calls that were given up and whose answers have not come.
    pub(super) abandoned: u32,
}

/// All of them.
#[derive(Debug)]
pub(super) struct EndpointTable {
    pub(super) endpoints: Vec<ClientEndpoint>,
    pub(super) connections: Vec<ClientConnection>,
    /// The connection at a link's place.
    by_peer: Vec<u32>,
    /// Calls that each rank may still take.
    pub(super) rank_credits: Vec<u32>,
    /// Calls that may still go out.
    pub(super) quota: u32,
}

/// Where there is no limit. Far from the end, so that counting never reaches it.
pub(super) const NO_LIMIT: u32 = u32::MAX / 2;

/// A limit, where 0 stands for none.
fn or_any(limit: u32) -> u32 {
    if limit == 0 {
        NO_LIMIT
    } else {
        limit.min(NO_LIMIT)
    }
}

impl EndpointTable {
    pub(super) fn new(
        list: &[ServerEndpoint],
        own_connections: bool,
        credits_per_rank: u32,
        quota: u32,
    ) -> Self {
        let mut table = Self {
            endpoints: Vec::with_capacity(list.len()),
            connections: Vec::new(),
            by_peer: Vec::new(),
            rank_credits: Vec::new(),
            quota: or_any(quota),
        };
        let mut ranks = std::collections::HashMap::new();
        let mut connections = std::collections::HashMap::new();
        for (place, endpoint) in (0_u32..).zip(list) {
            let next = u32::try_from(ranks.len()).unwrap_or(u32::MAX);
            let rank = *ranks.entry(endpoint.endpoint.rank).or_insert(next);
            if rank == next {
                table.rank_credits.push(or_any(credits_per_rank));
            }
            let next = u32::try_from(connections.len()).unwrap_or(u32::MAX);
            let own = own_connections.then_some(place);
            let connection = *connections.entry((endpoint.endpoint, own)).or_insert(next);
            if connection == next {
                table.connections.push(ClientConnection {
                    endpoint: endpoint.clone(),
                    stage: ConnectionStage::Down,
                    peer: PeerId::default(),
                    max_frame: 0,
                    max_message: 0,
                    out: 0,
                    heard_ns: 0,
                    connect_ns: None,
                    pinged: false,
                    used: None,
                    retry_ns: 0,
                    pause_ns: 0,
                    endpoints: Vec::new(),
                });
            }
            table.connections[connection as usize].endpoints.push(place);
            table.endpoints.push(ClientEndpoint {
                stage: EndpointStage::Down,
                why_down: DerCode::Unreachable,
                connection,
                rank,
                session: 0,
                credits: 0,
                abandoned: 0,
            });
        }
        table
    }

    /// A connection has this place of the link from now on.
    pub(super) fn connect(&mut self, connection: u32, peer: PeerId) {
        let index = peer.index as usize;
        if self.by_peer.len() <= index {
            self.by_peer.resize(index + 1, u32::MAX);
        }
        self.by_peer[index] = connection;
        self.connections[connection as usize].peer = peer;
    }

    /// Why none of a connection's endpoints can be called.
    pub(super) fn set_why_down(&mut self, connection: u32, code: DerCode) {
        for &place in &self.connections[connection as usize].endpoints {
            self.endpoints[place as usize].why_down = code;
        }
    }

    /// The connection of a peer.
    #[inline]
    pub(super) fn of_peer(&self, peer: PeerId) -> Option<u32> {
        let connection = *self.by_peer.get(peer.index as usize)?;
        let known = self.connections.get(connection as usize)?;
        let there = matches!(known.stage, ConnectionStage::Up | ConnectionStage::Leaving);
        (known.peer == peer && there).then_some(connection)
    }

    /// The endpoint whose session this is.
    pub(super) fn of_session(&self, connection: u32, session: u32) -> Option<u32> {
        let known = &self.connections[connection as usize];
        let mut endpoints = known.endpoints.iter().copied();
        endpoints.find(|&place| self.endpoints[place as usize].session == session)
    }

    /// True if another call may go to an endpoint now.
    #[inline]
    pub(super) fn may_call(&self, endpoint: u32) -> bool {
        let entry = &self.endpoints[endpoint as usize];
        entry.credits > 0 && self.quota > 0 && self.rank_credits[entry.rank as usize] > 0
    }

    /// A call goes out.
    #[inline]
    pub(super) fn take(&mut self, endpoint: u32) {
        let entry = &mut self.endpoints[endpoint as usize];
        entry.credits -= 1;
        self.rank_credits[entry.rank as usize] -= 1;
        self.quota -= 1;
        self.connections[entry.connection as usize].out += 1;
    }

    /// A call was answered, so that the server has its credit again.
    #[inline]
    pub(super) fn give(&mut self, endpoint: u32) {
        let entry = &mut self.endpoints[endpoint as usize];
        entry.credits += 1;
        self.rank_credits[entry.rank as usize] += 1;
        self.quota += 1;
        let connection = &mut self.connections[entry.connection as usize];
        connection.out = connection.out.saturating_sub(1);
    }

    /// A call was given up; the server has its credit until it answers.
    pub(super) fn abandon(&mut self, endpoint: u32) {
        self.endpoints[endpoint as usize].abandoned += 1;
    }

    /// The answer to a call that was given up has come.
    pub(super) fn recover(&mut self, endpoint: u32) {
        let entry = &mut self.endpoints[endpoint as usize];
        if entry.abandoned > 0 {
            entry.abandoned -= 1;
            self.give(endpoint);
        }
    }

    /// No answer will come any more.
    pub(super) fn recover_all(&mut self, connection: u32) {
        for place in 0..self.connections[connection as usize].endpoints.len() {
            let endpoint = self.connections[connection as usize].endpoints[place];
            while self.endpoints[endpoint as usize].abandoned > 0 {
                self.recover(endpoint);
            }
        }
    }

    /// Some endpoint can be called.
    pub(super) fn any_up(&self) -> bool {
        self.endpoints
            .iter()
            .any(|endpoint| endpoint.stage == EndpointStage::Up)
    }
}

#[cfg(test)]
mod tests {
    use weir_schema::RpcEndpoint;

    use super::*;

    fn endpoint(rank: u32, tag: u32) -> ServerEndpoint {
        ServerEndpoint {
            endpoint: RpcEndpoint { rank, tag },
            address: "tcp://127.0.0.1:1".parse().unwrap(),
            nonce: None,
        }
    }

    #[test]
    fn entries_of_one_tag_share_a_connection_and_those_of_a_rank_its_limit() {
        let list = [
            endpoint(2, 0),
            endpoint(2, 1),
            endpoint(2, 0),
            endpoint(3, 0),
        ];
        assert_eq!(EndpointTable::new(&list, true, 0, 0).connections.len(), 4);
        let mut table = EndpointTable::new(&list, false, 2, 3);
        assert_eq!(table.connections.len(), 3);
        for entry in &mut table.endpoints {
            entry.credits = 8;
        }
        table.take(0);
        table.take(1);
        assert!(!table.may_call(2) && table.may_call(3));
        table.take(3);
        table.give(0);
        assert!(table.may_call(2));
        assert_eq!(table.quota, 1);
    }
}
