//! Causes that end jobs before their own bounds: the end of others, and the end of the run.

use std::sync::atomic::Ordering;

use weir_schema::{ExitAll, State};
use weir_sys::clock::Tick;

use super::{Entry, Run, RunControl};

impl Run<'_> {
    /// Ends the jobs that shall last as long as the others, once the last of these has ended.
    pub(super) fn stop_companions(&mut self, now: Tick) {
        let companions = self.running.iter_mut();
        let mut companions = companions
            .filter(|j| j.job.end.until_other_jobs_end && !j.is_held())
            .peekable();
        if companions.peek().is_none() {
            return;
        }
        let mut others = self
            .entries
            .iter()
            .filter(|e| !e.job.end.until_other_jobs_end);
        let has_ended = |e: &Entry<'_>| self.ended.iter().any(|x| x.index == e.index as usize);
        if others.clone().next().is_none() || !others.all(has_ended) {
            return;
        }
        for job in companions {
            job.stop(now, State::Done);
        }
    }

    /// Stops the jobs that the end of this one ends.
    pub(super) fn stop_jobs_after(
        &mut self,
        entry: Entry<'_>,
        failed: bool,
        control: &RunControl<'_>,
    ) {
        let Some(exit_all) = entry.job.end.exit_all else {
            return;
        };
        let stops = |group: usize| match exit_all {
            ExitAll::Group => group == entry.group,
            ExitAll::GroupOnError => failed && group == entry.group,
            ExitAll::Running | ExitAll::Everything => true,
        };
        let now = control.clock.now();
        self.running
            .iter_mut()
            .filter(|j| stops(j.group()))
            .for_each(|j| j.stop(now, State::Stopped));
        self.ranks
            .iter_mut()
            .filter(|j| stops(j.group()))
            .for_each(|j| j.stop(now, State::Stopped, 0));
        self.stop_batch(stops);
        if exit_all == ExitAll::Everything {
            self.cancelled = true;
        }
    }

    /// Ends what runs as its time would, and starts nothing else.
    pub(super) fn end_early(&mut self, now: Tick) {
        if self.ended_early.is_some() {
            return;
        }
        self.ended_early = Some(self.timeline.since(self.origin, now));
        self.cancelled = true;
        self.running
            .iter_mut()
            .for_each(|j| j.stop(now, State::Done));
        // What ranks do together has no time that could be over.
        self.ranks
            .iter_mut()
            .for_each(|j| j.stop(now, State::Stopped, 0));
    }

    pub(super) fn cancel(&mut self, control: &RunControl<'_>) {
        self.cancelled = true;
        let now = control.clock.now();
        self.running
            .iter_mut()
            .for_each(|j| j.stop(now, State::Stopped));
        if control.ranks.has_lost_rank() {
            // What ranks do together ends by itself then, and says where it was.
            return;
        }
        let signal = control.signals.number.load(Ordering::Relaxed);
        self.ranks
            .iter_mut()
            .for_each(|j| j.stop(now, State::Stopped, signal));
    }
}
