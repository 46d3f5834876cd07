//! When less than a batch is taken all the same: after it has waited for some time.

/// Since when something waits for a batch to become full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushTimer {
    since: Option<u64>,
}

impl FlushTimer {
    /// True if what is there is to be taken at this tick: a whole batch, or what has waited so long.
    #[inline]
    pub(crate) fn is_due(&mut self, have: usize, batch: usize, now: u64, patience: u64) -> bool {
        if have >= batch || have == 0 {
            self.since = None;
            return have > 0;
        }
        let since = *self.since.get_or_insert(now);
        let is_due = now.saturating_sub(since) >= patience;
        if is_due {
            self.since = None;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_a_batch_waits_for_its_time_and_no_longer() {
        let mut timer = FlushTimer::default();
        assert!(!timer.is_due(0, 4, 100, 10));
        assert!(timer.is_due(4, 4, 100, 10));
        assert!(!timer.is_due(3, 4, 100, 10));
        assert!(!timer.is_due(3, 4, 109, 10));
        assert!(timer.is_due(3, 4, 110, 10));
        // What comes next waits anew.
        assert!(!timer.is_due(1, 4, 111, 10));
    }
}
