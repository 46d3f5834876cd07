//! How many connections there are, in all and from each address.
//!
//! In: who connects and who leaves. Out: whether one more may be. Not here: connections.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::limits::ServerLimits;

/// Wrong proofs that an address may send within a second.
const TRIES: u32 = 10;

/// Where a connection comes from; `None` for this machine.
pub(super) type Source = Option<IpAddr>;

#[derive(Debug, Default)]
struct SourceCount {
    open: u32,
    wrong: u32,
    since: Option<Instant>,
}

#[derive(Debug, Default)]
struct AllSources {
    open: u32,
    each: HashMap<IpAddr, SourceCount>,
}

/// Counts connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<AllSources>,
}

impl Connections {
    /// Whether one more may be; it counts from now on.
    pub(super) fn enter(&self, source: Source, limits: &ServerLimits) -> bool {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.open >= limits.connections {
            return false;
        }
        if let Some(address) = source {
            let count = all.each.entry(address).or_default();
            if count.open >= limits.per_address {
                return false;
            }
            count.open += 1;
        }
        all.open += 1;
        true
    }

    /// One has left.
    pub(super) fn leave(&self, source: Source) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.open = all.open.saturating_sub(1);
        if let Some(address) = source
            && let Some(count) = all.each.get_mut(&address)
        {
            count.open = count.open.saturating_sub(1);
            if count.open == 0 && count.wrong == 0 {
                all.each.remove(&address);
            }
        }
    }

    /// Whether this address may prove itself now: not after many wrong proofs within a second.
    pub(super) fn may_prove(&self, source: Source) -> bool {
        let Some(address) = source else { return true };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.each.entry(address).or_default();
        if count
            .since
            .is_none_or(|since| since.elapsed() > Duration::from_secs(1))
        {
            count.wrong = 0;
        }
        count.wrong < TRIES
    }

    /// A proof was wrong.
    pub(super) fn wrong_proof(&self, source: Source) {
        let Some(address) = source else { return };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.each.entry(address).or_default();
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
        assert!(connections.enter(other, &limits));
        assert!(!connections.enter(other, &limits));
        assert!((0..3).all(|_| connections.enter(None, &limits)));
        assert!(!connections.enter(None, &limits));
        connections.leave(other);
        assert!(connections.enter(other, &limits));
    }

    #[test]
    fn an_address_guesses_ten_times_a_second() {
        let connections = Connections::default();
        let other = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..TRIES {
            assert!(connections.may_prove(other));
            connections.wrong_proof(other);
        }
        assert!(!connections.may_prove(other));
        assert!(connections.may_prove(None));
    }
}
