//! Bodies that travel in several frames.
//!
//! In: fragments of a connection. Out: whole bodies. The first fragment says how long all of them
//! are together, which is checked before anything is kept; memory grows with what has come.

use crate::account::{Charge, MemoryAccount};
use crate::links::{Link, MemoryRange, PeerId, Sent};
use crate::wire::{FrameHeader, FrameKind, RpcId, WireReader, flag};
use crate::{DerCode, RpcError};

/// Unfinished bodies that a connection may have.
const MOST: usize = 64;
/// Memory that is taken at once for a body, in bytes.
const STEP: usize = 64 << 10;

#[derive(Debug)]
struct PartialBody {
    peer: PeerId,
    kind: FrameKind,
    rpc: RpcId,
    total: usize,
    body: Vec<u8>,
}

/// True if a frame is a part of a longer body.
#[inline]
pub(crate) fn is_fragment(header: &FrameHeader) -> bool {
    header.flags & (flag::MORE | flag::CONTINUED) != 0
}

/// Unfinished bodies.
#[derive(Debug)]
pub(crate) struct Assemblies {
    unfinished: Vec<PartialBody>,
    /// Memory of all of them.
    charge: Charge,
}

impl Assemblies {
    /// None so far; their memory is taken from this account.
    pub(crate) fn new(account: &MemoryAccount) -> Self {
        Self {
            unfinished: Vec::new(),
            charge: Charge::new(account),
        }
    }

    fn find(&self, peer: PeerId, header: &FrameHeader) -> Option<usize> {
        self.unfinished.iter().position(|partial| {
            partial.peer == peer && partial.kind == header.kind && partial.rpc == header.rpc
        })
    }

    /// Adds a fragment; the body once it is whole. A body may be as long as `longest`.
    pub(crate) fn add(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        body: &[u8],
        longest: u64,
    ) -> Result<Option<Vec<u8>>, RpcError> {
        let held = self.held() + (body.len().max(STEP)) as u64;
        if !self.charge.is_now(held) {
            return Err(RpcError::new(
                DerCode::NoMemory,
                "no memory for unfinished messages",
            ));
        }
        let at = match (self.find(peer, header), header.flags & flag::CONTINUED != 0) {
            (Some(at), true) => {
                let whole = &mut self.unfinished[at].body;
                if whole.capacity() - whole.len() < body.len() {
                    // Doubling would take twice what has come.
                    whole.reserve_exact(body.len().max(STEP));
                }
                whole.extend_from_slice(body);
                at
            }
            (None, false) => self.begin(peer, header, body, longest)?,
            _ => return Err(RpcError::protocol("a fragment out of its order")),
        };
        let partial = &self.unfinished[at];
        let is_last = header.flags & flag::MORE == 0;
        if partial.body.len() > partial.total || is_last != (partial.body.len() == partial.total) {
            return Err(RpcError::protocol("fragments of another length than said"));
        }
        let whole = is_last.then(|| self.unfinished.swap_remove(at).body);
        if whole.is_some() {
            self.charge.is_at_most(self.held());
        }
        Ok(whole)
    }

    fn begin(
        &mut self,
        peer: PeerId,
        header: &FrameHeader,
        body: &[u8],
        longest: u64,
    ) -> Result<usize, RpcError> {
        let mut reader = WireReader::new(body);
        let total = reader.u64("total")?;
        if total > longest {
            return Err(RpcError::protocol("a message is longer than the limit"));
        }
        let unfinished = self.unfinished.iter();
        if unfinished.filter(|partial| partial.peer == peer).count() >= MOST {
            return Err(RpcError::protocol("too many unfinished messages"));
        }
        self.unfinished.push(PartialBody {
            peer,
            kind: header.kind,
            rpc: header.rpc,
            total: usize::try_from(total).unwrap_or(usize::MAX),
            body: reader.rest().to_vec(),
        });
        Ok(self.unfinished.len() - 1)
    }

    /// A connection is gone.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        self.unfinished.retain(|partial| partial.peer != peer);
        self.charge.is_at_most(self.held());
    }

    fn held(&self) -> u64 {
        let bodies = self.unfinished.iter();
        bodies.map(|one| one.body.capacity() as u64).sum()
    }
}

/// Sends a payload of any length from memory, in as many frames as it takes, all of them at once:
/// they refer to the memory and hold no copy.
pub(crate) fn send_payload<L: Link>(
    link: &mut L,
    peer: PeerId,
    header: &FrameHeader,
    head: &[u8],
    from: MemoryRange,
    max_frame: u32,
) -> Sent {
    let total = head.len() as u64 + from.length;
    if total <= u64::from(max_frame) {
        return link.send_memory(peer, header, head, from);
    }
    let more = FrameHeader {
        flags: header.flags | flag::MORE,
        ..*header
    };
    let mut first = [0; 8 + 512];
    let (length, rest) = first.split_at_mut(8);
    length.copy_from_slice(&total.to_le_bytes());
    rest[..head.len()].copy_from_slice(head);
    let first = &first[..8 + head.len()];
    let mut piece = MemoryRange {
        length: u64::from(max_frame) - first.len() as u64,
        ..from
    };
    let mut sent = link.send_memory(peer, &more, first, piece);
    let end = from.offset + from.length;
    while sent == Sent::Queued && piece.offset + piece.length < end {
        piece.offset += piece.length;
        piece.length = u64::from(max_frame).min(end - piece.offset);
        let last = piece.offset + piece.length == end;
        sent = link.send_memory(peer, &continued(header, !last), &[], piece);
    }
    sent
}

fn continued(header: &FrameHeader, more: bool) -> FrameHeader {
    FrameHeader {
        flags: header.flags | flag::CONTINUED | if more { flag::MORE } else { 0 },
        ..*header
    }
}

/// Sends a body of any length, in as many frames as it takes.
pub(crate) fn send_whole<L: Link>(
    link: &mut L,
    peer: PeerId,
    header: &FrameHeader,
    body: &[u8],
    max_frame: u32,
) -> Sent {
    let most = max_frame as usize;
    if body.len() <= most {
        return link.send(peer, header, &[body]);
    }
    let more = FrameHeader {
        flags: header.flags | flag::MORE,
        ..*header
    };
    let total = (body.len() as u64).to_le_bytes();
    let (first, mut rest) = body.split_at(most - total.len());
    let mut sent = link.send(peer, &more, &[&total, first]);
    while sent == Sent::Queued && !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(most));
        rest = behind;
        sent = link.send(peer, &continued(header, !rest.is_empty()), &[piece]);
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId {
        index: 0,
        generation: 1,
    };

    fn all_of(room: u64) -> Assemblies {
        Assemblies::new(&MemoryAccount::new(room))
    }

    fn header(flags: u8) -> FrameHeader {
        FrameHeader {
            flags,
            ..FrameHeader::plain(FrameKind::Request)
        }
    }

    /// The first fragment of a message that shall have so many bytes.
    fn begun(all: &mut Assemblies, total: u64, body: &[u8]) -> Result<(), DerCode> {
        let body = [&total.to_le_bytes()[..], body].concat();
        let added = all.add(PEER, &header(flag::MORE), &body, 10);
        added
            .map(|whole| assert_eq!(whole, None))
            .map_err(|why| why.code)
    }

    #[test]
    fn a_message_is_as_long_as_it_was_said_to_be() {
        for (flags, last, right) in [
            (0, 4, Ok(Some(10))),
            (0, 3, Err(DerCode::Protocol)),
            (0, 5, Err(DerCode::Protocol)),
            (flag::MORE, 3, Ok(None)),
            (flag::MORE, 4, Err(DerCode::Protocol)),
            (flag::MORE, 5, Err(DerCode::Protocol)),
        ] {
            let mut all = all_of(1 << 20);
            assert_eq!(begun(&mut all, 10, &[1; 6]), Ok(()));
            let ended = all.add(PEER, &header(flag::CONTINUED | flags), &vec![2; last], 10);
            let ended = ended.map(|whole| whole.map(|body| body.len()));
            assert_eq!(ended.map_err(|why| why.code), right, "{flags} {last}");
        }
    }

    #[test]
    fn messages_that_are_too_long_or_too_many_are_not_begun() {
        let mut all = all_of(1 << 20);
        assert_eq!(begun(&mut all, 11, &[1; 6]), Err(DerCode::Protocol));
        let alone = all.add(PEER, &header(flag::CONTINUED), &[1; 6], 10);
        assert_eq!(alone.unwrap_err().code, DerCode::Protocol);
        let mut all = all_of(1 << 20);
        let mut slot = 0;
        let refused = loop {
            let rpc = RpcId {
                slot,
                generation: 1,
            };
            let header = FrameHeader {
                rpc,
                ..header(flag::MORE)
            };
            if let Err(why) = all.add(PEER, &header, &10_u64.to_le_bytes(), 10) {
                break why.code;
            }
            slot += 1;
        };
        assert_eq!((refused, slot), (DerCode::Protocol, 64));
        all.forget(PEER);
        assert_eq!(begun(&mut all, 10, &[1; 6]), Ok(()));
        // All of them together have what the account has left.
        let account = MemoryAccount::new(STEP as u64 + 100);
        let mut all = Assemblies::new(&account);
        assert_eq!(begun(&mut all, 10, &[1; 6]), Ok(()));
        assert!(account.take(100));
        assert_eq!(begun(&mut all, 10, &[1; 6]), Err(DerCode::NoMemory));
        all.forget(PEER);
        assert_eq!(account.left(), STEP as u64);
    }
}
