//! A wait for another rank that ends: at its deadline, or when that rank is lost.
//!
//! In: until when, and who is waited for. Out: how long to sleep at most before asking again. Time
//! in which this process was stopped does not count: whoever was stopped with it could not answer.

use std::time::{Duration, Instant};

use crate::{RankMonitor, WorldError};

/// Longest sleep: what the news of a loss may have to wait for.
const SLICE: Duration = Duration::from_millis(100);
/// A sleep that took longer than this was the process's stop.
const STOPPED: Duration = Duration::from_secs(1);

/// A wait for one rank.
#[derive(Debug)]
pub(crate) struct Deadline<'a> {
    peer: u32,
    begun: Instant,
    until: Instant,
    /// Time of the last question.
    last: Instant,
    monitor: Option<&'a RankMonitor>,
}

impl<'a> Deadline<'a> {
    pub(crate) fn new(peer: u32, until: Instant, monitor: Option<&'a RankMonitor>) -> Self {
        let now = Instant::now();
        Self {
            peer,
            begun: now,
            until,
            last: now,
            monitor,
        }
    }

    /// Longest sleep left; an error when the wait is over.
    pub(crate) fn left(&mut self) -> Result<Duration, WorldError> {
        self.left_at(Instant::now())
    }

    fn left_at(&mut self, now: Instant) -> Result<Duration, WorldError> {
        let slept = now.duration_since(self.last);
        self.last = now;
        if slept > STOPPED {
            self.until += slept.saturating_sub(SLICE);
        }
        if let Some(loss) = self.monitor.and_then(|m| m.loss_of(self.peer)) {
            return Err(loss);
        }
        if now >= self.until {
            return Err(WorldError::Late {
                peer: self.peer,
                seconds: now.duration_since(self.begun).as_secs(),
            });
        }
        Ok(SLICE.min(self.until - now))
    }

    /// It ends no earlier than then.
    pub(crate) fn extend(&mut self, until: Instant) {
        self.until = self.until.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_process_was_stopped_does_not_count() {
        let begun = Instant::now();
        let after = |ms| begun + Duration::from_millis(ms);
        let mut wait = Deadline::new(3, after(300), None);
        assert_eq!(wait.left_at(after(100)), Ok(SLICE));
        assert_eq!(wait.left_at(after(60_100)), Ok(SLICE));
        assert_eq!(wait.left_at(after(60_150)), Ok(SLICE / 2));
        let late = wait.left_at(after(60_250)).unwrap_err();
        assert_eq!(late.to_string(), "rank 3 did not answer within 60 s");
    }

    #[test]
    fn it_ends_when_the_rank_is_lost() {
        let monitor = RankMonitor::default();
        let later = Instant::now() + Duration::from_secs(3600);
        let mut wait = Deadline::new(3, later, Some(&monitor));
        let loss = |peer| WorldError::Silent { peer, seconds: 1 };
        monitor.report_loss(2, &loss(2));
        assert_eq!(wait.left(), Ok(SLICE));
        monitor.report_loss(3, &loss(3));
        assert_eq!(wait.left(), Err(loss(3)));
    }
}
