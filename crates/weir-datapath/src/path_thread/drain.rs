//! The end of a thread: it waits for answers that are under way, meets the others, and frees what it holds.
//!
//! Whoever asks it to end does not wait for messages that are lost: answers that are under way come at once,
//! and what has no answer then is lost.

use std::sync::atomic::Ordering;

use weir_run::WorkerContext;
use weir_schema::PathSide;
use weir_units::Nanos;

use super::Pipeline;
use super::progress::AnswerProgress;
use crate::handler::MessageWork;
use crate::link::PacketLink;

/// Time that a thread that was asked to end waits for answers.
pub(super) const LAST_ANSWERS: Nanos = Nanos(100_000_000);
/// Time that a client that was asked to end waits for what its server counted.
pub(super) const LAST_COUNTS: Nanos = Nanos(500_000_000);

impl<W: MessageWork, L: PacketLink> Pipeline<'_, W, L> {
    /// It was asked to end, and so many ticks have gone by since it saw that.
    pub(super) fn was_asked_before(&self, ticks: u64) -> bool {
        if self.stop.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let now = self.clock.now().0;
        let since = self.asked.get().unwrap_or(now);
        self.asked.set(Some(since));
        now.saturating_sub(since) >= ticks
    }

    /// Goes on without new messages until no client waits for an answer.
    pub(super) fn drain(&mut self) {
        let is_lone_server = self.work.side == Some(PathSide::Server);
        let (patience, when_asked) = if is_lone_server {
            // Its client has to have given up before, and its word may have to be sent more than once; it hears at
            // once of an end that comes early.
            let before = self.times.drain.saturating_mul(2);
            let word = self.times.catch_up.saturating_add(self.times.resent);
            (before.saturating_add(word), 0)
        } else {
            (self.times.drain, self.times.last_answers)
        };
        self.is_making = false;
        let start = self.clock.now();
        let mut waiting = AnswerProgress {
            at: start.0,
            ..AnswerProgress::default()
        };
        let mut has_all = self.parts.side == PathSide::Server || self.parts.application.is_none();
        let mut now = start.0;
        while !self.shared.ends.load(Ordering::Relaxed) {
            if self.pass(&mut now) == 0 {
                std::thread::yield_now();
                now = self.clock.now().0;
            }
            self.hear_other_side(now);
            let waits = self.parts.application.as_ref();
            let waits = waits.is_some_and(|part| part.outstanding.count() > 0);
            if !has_all && !waits {
                has_all = true;
                self.shared.waiting_clients.fetch_sub(1, Ordering::Relaxed);
            }
            if self.shared.waiting_clients.load(Ordering::Relaxed) == 0 {
                break;
            }
            if self.was_asked_before(when_asked) {
                self.is_cut_short = true;
                break;
            }
            if waiting.has_stalled(self.clock.now().0, patience) {
                if is_lone_server {
                    self.miss_client();
                }
                break;
            }
        }
    }

    /// A client that none of its messages came back to has stalled, however short the run was.
    fn miss_answers(&self) {
        let Some(part) = self.parts.application.as_ref() else {
            return;
        };
        let has_lost = self.lost + self.counts.sums.lost > 0 || part.outstanding.count() > 0;
        // Or it has waited for a larger window all the time, and begun nothing.
        let has_waited = self.last.as_ref();
        let has_waited = has_waited.is_some_and(|last| last.rounds_without_credit > 0);
        let is_silent = (has_lost || has_waited) && self.answered + self.counts.answered == 0;
        let is_client = self.parts.side == PathSide::Client && self.work.is_answered();
        let is_over = self.shared.ends.load(Ordering::Relaxed) || self.was_asked_before(0);
        if is_client && is_silent && !is_over {
            let span = self.work.duration_ns.0;
            let span = Nanos(span.saturating_mul(self.work.iterations.into()));
            self.stall(span, 0);
        }
    }

    /// Frees everything, once all threads have stopped, and says what never came home.
    pub(super) fn close(&mut self, worker: &WorkerContext<'_>) {
        let patience = self.times.drain;
        self.miss_answers();
        self.shared.meet(0, &self.clock, patience);
        self.end_for_other_side(worker);
        if let Some(part) = &mut self.parts.application {
            part.close(&mut self.parts.pool, &mut self.counts);
        }
        if let Some(part) = &mut self.parts.dispatcher {
            part.close(&mut self.parts.pool);
        }
        self.parts.pool.publish();
        if let Some(mut last) = self.last.take() {
            // What became known only after its end.
            last.lost += self.counts.sums.lost;
            last.late += self.counts.sums.late;
            last.incomplete += self.counts.sums.incomplete;
            last.wrong += self.counts.sums.wrong;
            last.strays += self.counts.sums.strays;
            last.sink_drops += self.counts.sums.sink_drops;
            last.answered_after_end += self.counts.answered;
            if !self.counts.latency.is_empty() {
                worker.live.kinds[0].lat.add(&self.counts.latency);
                let all = last.latency.get_or_insert_default();
                // Both are made alike.
                let _ = all.merge(&self.counts.latency);
            }
            self.shared.count(self.iteration as usize, last);
        }
        if self.shared.meet(1, &self.clock, patience) {
            self.parts.pool.collect();
            self.shared.add_in_use(self.parts.pool.in_use());
            self.exchange_counts();
        }
    }
}
