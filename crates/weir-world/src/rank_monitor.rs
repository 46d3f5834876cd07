//! Monitor of lost ranks: those whose processes ended before their time, and those that have not
//! been heard of for too long.
//!
//! In: the ends of processes ([`crate::RankProcesses`]), heartbeats ([`crate::heartbeat`]). Out: a handle
//! that any thread may ask, and calls at the first loss. Rank 0 hears of all ranks; the others hear
//! of rank 0, and from it which rank is lost. Silence is counted in time during which this process
//! ran: where all were stopped together nobody is lost. Not here: how heartbeats travel.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::WorldError;
use crate::heartbeat::PERIOD;

/// Default limit of a rank's silence.
const USUAL_LIMIT: Duration = Duration::from_secs(60);
/// Shorter silences may be the scheduler's.
const LEAST_LIMIT: Duration = Duration::from_secs(1);

/// Additional wait of the other ranks for the first one: where ranks cannot reach each other, the
/// first one reports, and ends all.
const FIRST: Duration = Duration::from_millis(400);

type Announce = Arc<dyn Fn() + Send + Sync>;
type Callback = Box<dyn FnOnce(&WorldError) + Send>;

/// State of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RankState {
    /// It runs.
    #[default]
    Runs,
    /// It hangs in a call that does not come back, as its watchdog knows.
    Hangs,
    /// It ends in order: it will not be heard of any more.
    Leaves,
    /// It has ended without a report.
    Vanished,
}

impl RankState {
    pub(crate) fn of(number: u32) -> Option<Self> {
        let all = [Self::Runs, Self::Hangs, Self::Leaves, Self::Vanished];
        all.into_iter().find(|state| *state as u32 == number)
    }
}

/// Lost ranks, as one process knows them.
#[derive(Clone, Debug, Default)]
pub struct RankMonitor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// True once any rank is lost: read in loops.
    is_any_lost: AtomicBool,
    /// State of this process's rank: a [`RankState`].
    own: AtomicU8,
    /// Says that to the others at once.
    announce: Mutex<Option<Announce>>,
}

#[derive(Default)]
struct State {
    limit: Option<Duration>,
    /// The first loss: the others may come of it.
    first: Option<WorldError>,
    lost: BTreeMap<u32, WorldError>,
    callbacks: Vec<Callback>,
    peers: BTreeMap<u32, Peer>,
}

/// A rank that was heard of.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    state: RankState,
    silent: Duration,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shared = f.debug_struct("Shared");
        shared.field("is_any_lost", &self.is_any_lost);
        shared.finish_non_exhaustive()
    }
}

impl RankMonitor {
    /// Nobody panics while holding it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rank may be silent for so long.
    pub fn set_limit(&self, limit: Duration) {
        self.lock().limit = Some(limit);
    }

    /// Longest silence allowed to a rank.
    pub fn limit(&self) -> Duration {
        self.lock().limit()
    }

    /// The first rank that was lost, and how that showed.
    pub fn lost(&self) -> Option<WorldError> {
        if !self.0.is_any_lost.load(Ordering::Acquire) {
            return None;
        }
        self.lock().first.clone()
    }

    /// Loss of this rank, if it is lost.
    pub fn loss_of(&self, rank: u32) -> Option<WorldError> {
        if !self.0.is_any_lost.load(Ordering::Acquire) {
            return None;
        }
        self.lock().lost.get(&rank).cloned()
    }

    /// Has this called once, when the first rank is lost; at once where one is already. Any thread
    /// may call it.
    pub fn at_loss(&self, callback: impl FnOnce(&WorldError) + Send + 'static) {
        let mut state = self.lock();
        match state.first.clone() {
            Some(lost) => {
                drop(state);
                callback(&lost);
            }
            None => state.callbacks.push(Box::new(callback)),
        }
    }

    /// A rank is lost.
    pub(crate) fn report_loss(&self, rank: u32, loss: &WorldError) {
        let mut state = self.lock();
        if state.lost.contains_key(&rank) {
            return;
        }
        state.lost.insert(rank, loss.clone());
        if state.first.is_some() {
            return;
        }
        state.first = Some(loss.clone());
        let callbacks = std::mem::take(&mut state.callbacks);
        drop(state);
        self.0.is_any_lost.store(true, Ordering::Release);
        self.announce();
        for callback in callbacks {
            callback(loss);
        }
    }

    /// A rank was heard of.
    pub(crate) fn heard(&self, rank: u32, state: RankState) {
        let peer = Peer {
            state,
            silent: Duration::ZERO,
        };
        self.lock().peers.insert(rank, peer);
        if state == RankState::Vanished {
            let detail = "it ended without a report".to_owned();
            self.report_loss(rank, &WorldError::Gone { peer: rank, detail });
        }
    }

    /// These ranks will be heard of: their silence counts from here on.
    pub(crate) fn expect(&self, ranks: Range<u32>) {
        let mut state = self.lock();
        for rank in ranks {
            state.peers.entry(rank).or_default();
        }
    }

    /// A rank has ended in order.
    pub(crate) fn ended(&self, rank: u32) {
        self.heard(rank, RankState::Leaves);
    }

    /// So much time has passed in which others could have been heard. Those that were not for
    /// longer than the limit are lost.
    pub(crate) fn charge(&self, elapsed: Duration) {
        let mut state = self.lock();
        for peer in state.peers.values_mut().filter(|p| p.is_expected()) {
            peer.silent += elapsed;
        }
        let limit = state.limit();
        drop(state);
        self.blame_silence(limit, limit + FIRST);
    }

    /// Counts ranks as lost that have been silent for so long; the first rank has a limit of its
    /// own.
    fn blame_silence(&self, limit: Duration, limit_of_first: Duration) {
        let mut silent: Vec<(Duration, u32)> = {
            let state = self.lock();
            let late = |(rank, peer): (&u32, &Peer)| {
                let limit = if *rank == 0 { limit_of_first } else { limit };
                let is_late = peer.is_expected() && peer.silent > limit;
                (is_late && !state.lost.contains_key(rank)).then_some((peer.silent, *rank))
            };
            state.peers.iter().filter_map(late).collect()
        };
        // The one that has been silent for longest, for the others may wait for it.
        silent.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        for (silent, peer) in silent {
            let seconds = (silent + Duration::from_millis(500)).as_secs();
            self.report_loss(peer, &WorldError::Silent { peer, seconds });
        }
    }

    /// A rank makes no progress: whoever has been silent for most of the limit is to blame. Whether
    /// that is known: where it may be the first rank, it will be soon.
    pub(crate) fn explain_no_progress(&self) -> bool {
        let limit = self.limit();
        let most = (limit / 2).max(PERIOD * 3).min(limit);
        self.blame_silence(most, limit + FIRST);
        let state = self.lock();
        let first = state.peers.get(&0);
        let is_silent = first.is_some_and(|peer| peer.is_expected() && peer.silent > most);
        !is_silent || state.first.is_some()
    }

    /// Waits until it is known whether a rank that was heard of before is lost: not where it was
    /// heard of a moment ago.
    pub(crate) fn settle(&self, rank: u32) {
        // In the worst case it has just begun to be silent.
        let last = Instant::now() + self.limit() + FIRST + PERIOD * 4;
        while Instant::now() < last {
            let silent = self.lock().peers.get(&rank).map(|peer| peer.silent);
            if self.loss_of(rank).is_some() || silent.is_none_or(|s| s < PERIOD * 3) {
                return;
            }
            std::thread::sleep(PERIOD / 10);
        }
    }

    /// It is so with the rank of this process from here on, as the others hear.
    pub(crate) fn set_own_state(&self, state: RankState) {
        if self.0.own.swap(state as u8, Ordering::Relaxed) != state as u8 {
            self.announce();
        }
    }

    pub(crate) fn own_state(&self) -> RankState {
        RankState::of(self.0.own.load(Ordering::Relaxed).into()).unwrap_or_default()
    }

    /// Sets the function that sends news of this process to the others at once.
    pub(crate) fn announce_by(&self, announce: impl Fn() + Send + Sync + 'static) {
        *self.announcer() = Some(Arc::new(announce));
    }

    fn announcer(&self) -> MutexGuard<'_, Option<Announce>> {
        let announce = self.0.announce.lock();
        announce.unwrap_or_else(PoisonError::into_inner)
    }

    fn announce(&self) {
        let announce = self.announcer().clone();
        if let Some(announce) = announce {
            announce();
        }
    }

    /// Last reported state of another rank; nothing where it was never heard of, or is lost.
    pub(crate) fn state_of(&self, rank: u32) -> Option<RankState> {
        let state = self.lock();
        let peer = state.peers.get(&rank)?;
        (!state.lost.contains_key(&rank)).then_some(peer.state)
    }

    /// Nobody is called any more: what is called may hold this monitor.
    pub(crate) fn forget_callbacks(&self) {
        let callbacks = std::mem::take(&mut self.lock().callbacks);
        drop(callbacks);
        *self.announcer() = None;
    }
}

impl Peer {
    fn is_expected(&self) -> bool {
        self.state != RankState::Leaves
    }
}

impl State {
    fn limit(&self) -> Duration {
        self.limit.unwrap_or(USUAL_LIMIT).max(LEAST_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn monitor(limit: u64) -> RankMonitor {
        let monitor = RankMonitor::default();
        monitor.set_limit(Duration::from_secs(limit));
        monitor
    }

    fn silent(peer: u32, seconds: u64) -> WorldError {
        WorldError::Silent { peer, seconds }
    }

    #[test]
    fn a_rank_that_is_silent_for_longer_than_the_limit_is_lost() {
        let monitor = monitor(2);
        for rank in [1, 2] {
            monitor.heard(rank, RankState::Runs);
        }
        for _ in 0..5 {
            monitor.heard(1, RankState::Runs);
            monitor.charge(Duration::from_millis(400));
            assert_eq!(monitor.lost(), None);
        }
        monitor.charge(Duration::from_millis(400));
        assert_eq!(monitor.lost(), Some(silent(2, 2)));
        assert_eq!(monitor.loss_of(1), None);
    }

    #[test]
    fn a_rank_that_was_never_heard_of_or_ended_in_order_is_not_lost() {
        let monitor = monitor(1);
        monitor.heard(3, RankState::Runs);
        monitor.ended(3);
        monitor.charge(Duration::from_secs(100));
        assert_eq!(monitor.lost(), None);
    }

    #[test]
    fn without_progress_half_of_the_limit_is_enough() {
        let monitor = monitor(4);
        monitor.heard(1, RankState::Runs);
        monitor.heard(2, RankState::Runs);
        monitor.charge(Duration::from_millis(2500));
        monitor.heard(1, RankState::Runs);
        monitor.explain_no_progress();
        assert_eq!(monitor.lost(), Some(silent(2, 3)));
    }

    #[test]
    fn the_first_rank_is_given_a_little_longer() {
        let monitor = monitor(2);
        monitor.heard(0, RankState::Runs);
        assert!(monitor.explain_no_progress());
        monitor.charge(Duration::from_millis(2300));
        assert!(!monitor.explain_no_progress());
        assert_eq!(monitor.lost(), None);
        monitor.charge(Duration::from_millis(200));
        assert_eq!(monitor.lost(), Some(silent(0, 3)));
        assert!(monitor.explain_no_progress());
    }

    #[test]
    fn the_first_loss_is_the_one_that_counts_and_calls_once() {
        let monitor = monitor(1);
        let calls = Arc::new(AtomicU32::new(0));
        let count = || {
            let calls = Arc::clone(&calls);
            move |_: &WorldError| {
                calls.fetch_add(1, Ordering::Relaxed);
            }
        };
        monitor.at_loss(count());
        monitor.report_loss(2, &silent(2, 1));
        monitor.report_loss(1, &silent(1, 1));
        assert_eq!(monitor.lost(), Some(silent(2, 1)));
        assert_eq!(monitor.loss_of(1), Some(silent(1, 1)));
        monitor.at_loss(count());
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
