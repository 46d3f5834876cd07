//! Which ranks are lost: those whose processes ended before their time, and those that have not
//! been heard of for too long.
//!
//! In: the ends of processes ([`crate::Crew`]), heartbeats ([`crate::heartbeat`]). Out: a handle
//! that any thread may ask, and calls at the first loss. Rank 0 hears of all ranks; the others hear
//! of rank 0, and from it which rank is lost. Silence is counted in time during which this process
//! ran: where all were stopped together nobody is lost. Not here: how heartbeats travel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::WorldError;
use crate::heartbeat::PERIOD;

/// How long a rank may be silent where nobody has said.
const USUAL_LIMIT: Duration = Duration::from_secs(60);
/// Shorter silences may be the scheduler's.
const LEAST_LIMIT: Duration = Duration::from_secs(1);

type Callback = Box<dyn FnOnce(&WorldError) + Send>;

/// Who is lost, as one process knows it.
#[derive(Clone, Debug, Default)]
pub struct RankMonitor(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Whether any rank is lost: asked in loops.
    is_any_lost: AtomicBool,
    /// This process's rank hangs in a call, as its watchdog knows.
    hangs: AtomicBool,
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
    /// It has ended in order: it will not be heard of any more.
    has_ended: bool,
    hangs: bool,
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

    /// How long a rank may be silent.
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

    /// How this rank was lost, if it was.
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
        for callback in callbacks {
            callback(loss);
        }
    }

    /// A rank was heard of.
    pub(crate) fn heard(&self, rank: u32, hangs: bool) {
        let mut state = self.lock();
        let peer = state.peers.entry(rank).or_default();
        peer.silent = Duration::ZERO;
        peer.hangs = hangs;
    }

    /// A rank has ended in order.
    pub(crate) fn ended(&self, rank: u32) {
        self.lock().peers.entry(rank).or_default().has_ended = true;
    }

    /// So much time has passed in which others could have been heard. Those that were not for
    /// longer than the limit are lost.
    pub(crate) fn charge(&self, elapsed: Duration) {
        let mut state = self.lock();
        for peer in state.peers.values_mut().filter(|p| !p.has_ended) {
            peer.silent += elapsed;
        }
        let limit = state.limit();
        drop(state);
        self.blame_silence(limit);
    }

    /// Counts ranks as lost that have been silent for so long.
    fn blame_silence(&self, limit: Duration) {
        let mut silent: Vec<(Duration, u32)> = {
            let state = self.lock();
            let late = |(rank, peer): (&u32, &Peer)| {
                let is_late = !peer.has_ended && peer.silent > limit;
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

    /// A rank makes no progress: whoever has been silent for most of the limit is to blame.
    pub(crate) fn explain_no_progress(&self) {
        let limit = self.limit();
        self.blame_silence((limit / 2).max(PERIOD * 3).min(limit));
    }

    /// Waits until it is known whether a rank that was heard of before is lost: not where it was
    /// heard of a moment ago.
    pub(crate) fn settle(&self, rank: u32) {
        // In the worst case it has just begun to be silent.
        let last = Instant::now() + self.limit() + PERIOD * 4;
        while Instant::now() < last {
            let silent = self.lock().peers.get(&rank).map(|peer| peer.silent);
            if self.loss_of(rank).is_some() || silent.is_none_or(|s| s < PERIOD * 3) {
                return;
            }
            self.explain_no_progress();
            std::thread::sleep(PERIOD / 10);
        }
    }

    /// This process's rank hangs in a call that does not come back.
    pub(crate) fn report_hang(&self) {
        self.0.hangs.store(true, Ordering::Relaxed);
    }

    /// Whether this process's rank hangs.
    pub(crate) fn is_hanging(&self) -> bool {
        self.0.hangs.load(Ordering::Relaxed)
    }

    /// Whether another rank has said that it hangs.
    pub(crate) fn hangs(&self, rank: u32) -> bool {
        self.lock().peers.get(&rank).is_some_and(|peer| peer.hangs)
    }

    /// Whether a rank is heard of these days.
    pub(crate) fn hears(&self, rank: u32) -> bool {
        let state = self.lock();
        let peer = state.peers.get(&rank);
        !state.lost.contains_key(&rank) && peer.is_some_and(|peer| !peer.has_ended)
    }

    /// Nobody is called any more.
    pub(crate) fn forget_callbacks(&self) {
        let callbacks = std::mem::take(&mut self.lock().callbacks);
        // What they hold may use this monitor as it goes.
        drop(callbacks);
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
            monitor.heard(rank, false);
        }
        for _ in 0..5 {
            monitor.heard(1, false);
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
        monitor.heard(3, false);
        monitor.ended(3);
        monitor.charge(Duration::from_secs(100));
        assert_eq!(monitor.lost(), None);
    }

    #[test]
    fn without_progress_half_of_the_limit_is_enough() {
        let monitor = monitor(4);
        monitor.heard(1, false);
        monitor.heard(2, false);
        monitor.charge(Duration::from_millis(2500));
        monitor.heard(1, false);
        monitor.explain_no_progress();
        assert_eq!(monitor.lost(), Some(silent(2, 3)));
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
