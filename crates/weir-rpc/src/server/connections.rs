//! Number of connections, in all and from each address.
//!
//! In: who connects and who leaves. Out: whether one more may be. Not here: connections.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use weir_sys::token::GuessLimit;

use super::limits::ServerLimits;

/// Why there is no room for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoom {
    #[error(
        "this server has as many connections as it may: {0} (`weir rpc serve --max-conns` says how many)"
    )]
    All(u32),
    #[error("this address has as many connections as one may: {0}")]
    Address(u32),
}

/// Where a connection comes from; `None` for this machine.
pub(super) type SourceAddress = Option<IpAddr>;

#[derive(Debug, Default)]
struct AllSources {
    open: u32,
    each: HashMap<IpAddr, u32>,
    guesses: GuessLimit,
}

/// Counts connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<AllSources>,
}

impl Connections {
    /// Checks that one more may be; it counts from now on.
    pub(super) fn enter(&self, source: SourceAddress, limits: &ServerLimits) -> Result<(), NoRoom> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.open >= limits.connections {
            return Err(NoRoom::All(limits.connections));
        }
        if let Some(address) = source {
            let open = all.each.entry(address).or_default();
            if *open >= limits.per_address {
                return Err(NoRoom::Address(limits.per_address));
            }
            *open += 1;
        }
        all.open += 1;
        Ok(())
    }

    /// One has left.
    pub(super) fn leave(&self, source: SourceAddress) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.open = all.open.saturating_sub(1);
        if let Some(address) = source
            && let Entry::Occupied(mut open) = all.each.entry(address)
        {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
    }

    /// True if this address may prove itself now: not after many wrong proofs within a second.
    pub(super) fn may_prove(&self, source: SourceAddress) -> bool {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        source.is_none_or(|address| all.guesses.may_try(address, Instant::now()))
    }

    /// A proof was wrong.
    pub(super) fn wrong_proof(&self, source: SourceAddress) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = source {
            all.guesses.wrong(address, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_own_limit_and_this_machine_none() {
        let limits = ServerLimits {
            connections: 4,
            per_address: 1,
            ..ServerLimits::default()
        };
        let connections = Connections::default();
        let other = Some(IpAddr::from([192, 0, 2, 1]));
        let enter = |source| connections.enter(source, &limits);
        assert_eq!(enter(other), Ok(()));
        assert_eq!(enter(other), Err(NoRoom::Address(1)));
        assert!((0..3).all(|_| enter(None).is_ok()));
        assert_eq!(enter(None), Err(NoRoom::All(4)));
        connections.leave(other);
        assert_eq!(enter(other), Ok(()));
    }
}
