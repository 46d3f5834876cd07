//! Number of connections, in all and from each address.
//!
//! In: who connects and who leaves. Out: whether one more may be. Not here: connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::limits::ServerLimits;

/// Wrong proofs that an address may send within a second.
const TRIES: u32 = 10;
/// Time that a wrong proof counts.
const WATCH: Duration = Duration::from_secs(1);
/// Addresses without connections that are remembered for their wrong proofs.
const REMEMBERED: usize = 4096;

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
struct SourceCount {
    open: u32,
    wrong: u32,
    since: Option<Instant>,
}

impl SourceCount {
    /// Wrong proofs count no longer once their time is over.
    fn forgive(&mut self) {
        if self.since.is_none_or(|since| since.elapsed() > WATCH) {
            self.wrong = 0;
        }
    }
}

#[derive(Debug, Default)]
struct AllSources {
    open: u32,
    each: HashMap<IpAddr, SourceCount>,
    /// Addresses that are remembered though they have no connection.
    remembered: usize,
}

impl AllSources {
    /// The last connection of an address has left.
    fn forget(&mut self, address: IpAddr) {
        if self.remembered >= REMEMBERED {
            self.each.retain(|_, count| {
                count.forgive();
                count.open > 0 || count.wrong > 0
            });
            let others = self.each.iter().filter(|(other, _)| **other != address);
            self.remembered = others.filter(|(_, count)| count.open == 0).count();
        }
        // Whoever has so many addresses is not stopped by counting them.
        let room = self.remembered < REMEMBERED;
        match self.each.get(&address) {
            Some(count) if count.wrong > 0 && room => self.remembered += 1,
            _ => drop(self.each.remove(&address)),
        }
    }
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
            let is_remembered = all.each.contains_key(&address);
            let count = all.each.entry(address).or_default();
            if count.open >= limits.per_address {
                return Err(NoRoom::Address(limits.per_address));
            }
            count.open += 1;
            let returns = is_remembered && count.open == 1;
            all.remembered -= usize::from(returns);
        }
        all.open += 1;
        Ok(())
    }

    /// One has left.
    pub(super) fn leave(&self, source: SourceAddress) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.open = all.open.saturating_sub(1);
        if let Some(address) = source
            && let Some(count) = all.each.get_mut(&address)
        {
            count.open = count.open.saturating_sub(1);
            if count.open == 0 {
                all.forget(address);
            }
        }
    }

    /// True if this address may prove itself now: not after many wrong proofs within a second.
    pub(super) fn may_prove(&self, source: SourceAddress) -> bool {
        let Some(address) = source else { return true };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.each.get_mut(&address).is_none_or(|count| {
            count.forgive();
            count.wrong < TRIES
        })
    }

    /// A proof was wrong, of a connection that is there.
    pub(super) fn wrong_proof(&self, source: SourceAddress) {
        let Some(address) = source else { return };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = all.each.get_mut(&address) else {
            return;
        };
        if count.wrong == 0 {
            count.since = Some(Instant::now());
        }
        count.wrong += 1;
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

    #[test]
    fn an_address_guesses_ten_times_a_second() {
        let connections = Connections::default();
        let limits = ServerLimits::default();
        let other = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..TRIES {
            // With a connection for each.
            connections.enter(other, &limits).unwrap();
            assert!(connections.may_prove(other));
            connections.wrong_proof(other);
            connections.leave(other);
        }
        connections.enter(other, &limits).unwrap();
        assert!(!connections.may_prove(other));
        assert!(connections.may_prove(None));
    }

    #[test]
    fn addresses_that_guess_and_never_come_back_are_forgotten() {
        let connections = Connections::default();
        let limits = ServerLimits::default();
        let guess = |number: u32| {
            let source = Some(IpAddr::from(number.to_be_bytes()));
            connections.enter(source, &limits).unwrap();
            connections.wrong_proof(source);
            connections.leave(source);
        };
        let most = u32::try_from(REMEMBERED).unwrap();
        (0..most + 1000).for_each(guess);
        // One that returns is remembered once.
        (0..most + 1000).for_each(guess);
        let all = connections.all.lock().unwrap();
        assert_eq!((all.each.len(), all.open), (all.remembered, 0));
        assert!(
            (1..=REMEMBERED).contains(&all.remembered),
            "{}",
            all.remembered
        );
    }
}
