//! Emulated cards: a sparse memory each, and channels with a time of their own.
//!
//! In: names. Out: the card of a name, the same for every job of the run; its channel of a name.
//! The memory is a file that lives nowhere but in memory, so that what was never written costs
//! nothing and reads as zeros. Not here: operations and what goes wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// Every value behind these locks is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Owner of an emulated memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// Every channel that names this card.
    Card(String),
    /// One channel alone.
    Channel(String),
}

/// The cards of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct EmulatedCards(Arc<Mutex<BTreeMap<Owner, Arc<EmulatedCard>>>>);

impl EmulatedCards {
    /// The card of this owner; made when it is first asked for.
    ///
    /// # Errors
    /// No memory, or the card is there with another size.
    pub(super) fn card(&self, owner: Owner, size: u64) -> io::Result<Arc<EmulatedCard>> {
        let mut cards = lock(&self.0);
        if let Some(card) = cards.get(&owner) {
            if card.size != size {
                let there = card.size;
                return Err(io::Error::other(format!(
                    "the card has {there} bytes already, not {size}: give all its channels one size"
                )));
            }
            return Ok(Arc::clone(card));
        }
        let card = Arc::new(EmulatedCard::new(size)?);
        cards.insert(owner, Arc::clone(&card));
        Ok(card)
    }

    /// True if the fault has struck; `None` if there is no such card.
    pub(super) fn has_struck(&self, owner: &Owner, fault: &str) -> Option<bool> {
        let cards = lock(&self.0);
        cards
            .get(owner)
            .map(|card| lock(&card.struck).contains(fault))
    }
}

/// A card.
#[derive(Debug)]
pub(super) struct EmulatedCard {
    pub(super) memory: OwnedFd,
    pub(super) size: u64,
    channels: Mutex<BTreeMap<String, Arc<Channel>>>,
    /// Faults that have struck, by their text.
    struck: Mutex<BTreeSet<String>>,
}

impl EmulatedCard {
    fn new(size: u64) -> io::Result<Self> {
        let memory = memfd_create("weir-card", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, size)?;
        Ok(Self {
            memory,
            size,
            channels: Mutex::default(),
            struck: Mutex::default(),
        })
    }

    pub(super) fn channel(&self, name: &str) -> Arc<Channel> {
        let mut channels = lock(&self.channels);
        Arc::clone(channels.entry(name.to_owned()).or_default())
    }

    /// Notes that a fault strikes; false if it did before, on whatever channel.
    pub(super) fn strikes(&self, fault: &str) -> bool {
        lock(&self.struck).insert(fault.to_owned())
    }
}

/// A channel: what passes through it passes one after the other.
#[derive(Debug, Default)]
pub(super) struct Channel(Mutex<Occupancy>);

#[derive(Debug, Default)]
struct Occupancy {
    operations: u64,
    /// Time at which the last byte given to it will have passed.
    free_at: Option<Instant>,
    stalled_until: Option<Instant>,
}

/// A place in a channel's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Time at which the last byte has passed.
    pub(super) end: Instant,
    /// It waits for a channel that answers nothing.
    pub(super) is_stalled: bool,
}

impl Channel {
    /// Counts an operation; its number, from 1.
    pub(super) fn count(&self) -> u64 {
        let mut state = lock(&self.0);
        state.operations += 1;
        state.operations
    }

    /// From now on the channel answers nothing for so long.
    pub(super) fn stall(&self, now: Instant, pause: Duration) {
        lock(&self.0).stalled_until = Some(now + pause);
    }

    /// Takes so much of its time, behind what it has been given before.
    pub(super) fn pass(&self, now: Instant, takes: Duration) -> Passage {
        let mut state = lock(&self.0);
        let stalled = state.stalled_until.filter(|&until| until > now);
        let start = now
            .max(state.free_at.unwrap_or(now))
            .max(stalled.unwrap_or(now));
        let end = start + takes;
        // Operations that are given up must not keep the channel busy beyond its stall.
        if stalled.is_none() {
            state.free_at = Some(end);
        }
        Passage {
            end,
            is_stalled: stalled.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn what_passes_a_channel_passes_one_after_the_other() {
        let (channel, now) = (Channel::default(), Instant::now());
        assert_eq!(channel.pass(now, 2 * MS).end, now + 2 * MS);
        assert_eq!(channel.pass(now, 3 * MS).end, now + 5 * MS);
        assert_eq!(channel.pass(now + 7 * MS, MS).end, now + 8 * MS);
    }

    #[test]
    fn a_stall_holds_everything_until_it_ends() {
        let (channel, now) = (Channel::default(), Instant::now());
        channel.stall(now, 10 * MS);
        let held = channel.pass(now + MS, MS);
        assert_eq!((held.end, held.is_stalled), (now + 11 * MS, true));
        let after = channel.pass(now + 12 * MS, MS);
        assert_eq!((after.end, after.is_stalled), (now + 13 * MS, false));
    }

    #[test]
    fn a_name_means_one_card_of_one_size() {
        let cards = EmulatedCards::default();
        let owner = || Owner::Card("a".to_owned());
        let first = cards.card(owner(), 4096).unwrap();
        assert!(Arc::ptr_eq(&first, &cards.card(owner(), 4096).unwrap()));
        assert!(cards.card(owner(), 8192).is_err());
        let own = cards.card(Owner::Channel("a".to_owned()), 8192).unwrap();
        assert!(!Arc::ptr_eq(&first, &own));
    }

    #[test]
    fn a_fault_strikes_a_card_once() {
        let cards = EmulatedCards::default();
        let owner = Owner::Card("a".to_owned());
        assert_eq!(cards.has_struck(&owner, "flip@1m"), None);
        let card = cards.card(owner.clone(), 4096).unwrap();
        assert_eq!(cards.has_struck(&owner, "flip@1m"), Some(false));
        assert!(card.strikes("flip@1m") && !card.strikes("flip@1m"));
        assert_eq!(cards.has_struck(&owner, "flip@1m"), Some(true));
    }
}
