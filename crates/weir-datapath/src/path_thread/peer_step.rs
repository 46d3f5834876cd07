//! Keeping step with the other side, where that is a run of its own: the beginning, the end, and
//! what the server counted. One thread of a side has the connection; the others see what it came to.

use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_run::{WorkerContext, failure};
use weir_schema::{Failure, PathSide};
use weir_units::Nanos;

use super::Pipeline;
use crate::handler::MessageWork;
use crate::link::PacketLink;
use crate::peer::PeerLine;

/// Time that the other side may take to come to the same point.
const PATIENCE: Duration = Duration::from_secs(30);
/// Least time that a server may take to say what it counted.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);
/// Between signs of life of a client.
pub(super) const ALIVE: Nanos = Nanos(500_000_000);
/// Least time that a server waits for one.
pub(super) const LEAST_SILENCE: Nanos = Nanos::from_secs(2);
/// Time that a word takes which the wire loses three times: TCP sends again after 0.2 s, then after twice that.
pub(super) const RESENT: Nanos = Nanos::from_secs(2);
/// Between looks of threads that wait for the beginning.
const PAUSE: Duration = Duration::from_micros(50);

impl<W: MessageWork, L: PacketLink> Pipeline<'_, W, L> {
    /// Waits until both sides may begin; whether they may.
    pub(super) fn wait_for_other_side(&mut self, worker: &WorkerContext<'_>) -> bool {
        let is_asked = || worker.stop.load(Ordering::Relaxed) != 0;
        if let Some(peer) = &mut self.parts.peer {
            let said = peer.say(&PeerLine::Ready);
            match said.and_then(|()| peer.wait(PATIENCE, &is_asked)) {
                Ok(Some(PeerLine::Ready)) => self.shared.is_open.store(true, Ordering::Relaxed),
                Ok(None) if is_asked() => {}
                Ok(_) => {
                    let why = format!("{} does not become ready", peer.name());
                    self.shared.fail(failure("peer", None, why));
                }
                Err(why) => self.shared.fail(why),
            }
        }
        while !self.shared.is_open.load(Ordering::Relaxed) {
            if is_asked() || self.shared.ends.load(Ordering::Relaxed) {
                self.shared.ends.store(true, Ordering::Relaxed);
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }

    /// Looks now and then whether the other side says something; a client says that it goes on.
    pub(super) fn hear_other_side(&mut self, now: u64) {
        if self.parts.peer.is_none() || now < self.next_hearing {
            return;
        }
        self.next_hearing = now.saturating_add(self.times.hearing);
        let mut result = Ok(true);
        // All that has come is heard before anybody is found silent.
        while let Ok(true) = result {
            if self.shared.other_ended.load(Ordering::Relaxed) {
                return;
            }
            result = self.hear_line(now);
        }
        let result = result.and_then(|_| match self.parts.side {
            PathSide::Client => self.show_alive(now),
            PathSide::Server => self.miss_sign(now),
        });
        if let Err(why) = result {
            self.shared.fail(why);
        }
    }

    /// Takes a line of the other side, where one has come; whether one has.
    fn hear_line(&mut self, now: u64) -> Result<bool, Failure> {
        let Some(peer) = &mut self.parts.peer else {
            return Ok(false);
        };
        let Some(line) = peer.hear()? else {
            return Ok(false);
        };
        let why = match (line, self.parts.side) {
            (PeerLine::Alive, PathSide::Server) => {
                self.last_sign = now;
                return Ok(true);
            }
            (PeerLine::End, PathSide::Server) => {
                self.shared.other_ended.store(true, Ordering::Relaxed);
                self.shared.waiting_clients.store(0, Ordering::Relaxed);
                return Ok(true);
            }
            (PeerLine::Failed(why), _) => format!("{} failed: {why}", peer.name()),
            _ => format!("the server {} ended before its client", peer.name()),
        };
        Err(failure("peer", None, why))
    }

    fn show_alive(&mut self, now: u64) -> Result<(), Failure> {
        let is_due = now.saturating_sub(self.last_sign) >= self.times.alive;
        let Some(peer) = self.parts.peer.as_mut().filter(|_| is_due) else {
            return Ok(());
        };
        self.last_sign = now;
        peer.say(&PeerLine::Alive)
    }

    /// A client that shows no sign of life is not waited for until the run's end.
    fn miss_sign(&self, now: u64) -> Result<(), Failure> {
        let is_missed = now.saturating_sub(self.last_sign) > self.times.silence;
        let Some(peer) = self.parts.peer.as_ref().filter(|_| is_missed) else {
            return Ok(());
        };
        let span = self.work.stall_timeout_ns.max(LEAST_SILENCE);
        let why = format!(
            "the client {} shows no sign of life for {span}: it hangs, or is stopped",
            peer.name()
        );
        Err(failure("peer", None, why))
    }

    /// Tells the other side that nothing comes any more: a client when it has all its answers, a server only
    /// where it ends early.
    pub(super) fn end_for_other_side(&mut self, worker: &WorkerContext<'_>) {
        let Some(peer) = &mut self.parts.peer else {
            return;
        };
        if let Some(why) = self.shared.own_failure() {
            // One that is gone cannot hear it; the run fails by this reason whether it does or not.
            let _ = peer.say(&PeerLine::Failed(why));
            return;
        }
        let is_early = worker.stop.load(Ordering::Relaxed) != 0;
        let tells = self.parts.side == PathSide::Client || is_early;
        if tells && !self.shared.ends.load(Ordering::Relaxed) {
            // One that is gone is found out when its counts are waited for.
            let _ = peer.say(&PeerLine::End);
        }
    }

    /// A server whose client never said that it ended, although that was due, has lost it.
    pub(super) fn miss_client(&mut self) {
        if let Some(peer) = &self.parts.peer {
            let why = format!(
                "the client {} was to end by now and does not say so: it hangs, or is stopped",
                peer.name()
            );
            self.shared.fail(failure("peer", None, why));
        }
    }

    /// A server says what it counted, a client takes that.
    pub(super) fn exchange_counts(&mut self) {
        let Some(mut peer) = self.parts.peer.take() else {
            return;
        };
        if self.shared.ends.load(Ordering::Relaxed) {
            return;
        }
        if self.parts.side == PathSide::Server {
            // A client that waits no longer is gone, though it once said that it had ended.
            let heard = peer.hear().and_then(|line| match line {
                Some(PeerLine::Failed(why)) => {
                    let why = format!("{} failed: {why}", peer.name());
                    Err(failure("peer", None, why))
                }
                _ => peer.say(&PeerLine::Counted(self.shared.iterations())),
            });
            if let Err(why) = heard {
                self.shared.fail(why);
            }
            return;
        }
        let was_asked = || self.was_asked_before(self.times.last_counts);
        let patience = Duration::from_nanos(self.work.stall_timeout_ns.0).max(LEAST_PATIENCE);
        let counted = match peer.wait(patience, &was_asked) {
            Ok(Some(PeerLine::Counted(counted))) => counted,
            Ok(None) if was_asked() => {
                self.is_cut_short = true;
                return;
            }
            Ok(_) => {
                let why = format!(
                    "the server {} does not say within {patience:?} what it counted: it hangs, or is stopped",
                    peer.name()
                );
                return self.shared.fail(failure("peer", None, why));
            }
            Err(why) => return self.shared.fail(why),
        };
        let most = self.work.iterations as usize;
        for (at, iteration) in counted.into_iter().take(most).enumerate() {
            let threads = iteration.threads.into_iter();
            let servers = threads.filter(|thread| thread.side == PathSide::Server);
            servers.for_each(|thread| self.shared.count(at, thread));
        }
    }
}
