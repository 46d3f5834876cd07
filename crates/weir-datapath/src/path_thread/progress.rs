//! Progress of a client: its messages come back, or have stalled.
//!
//! In: when it looks, what became of them. Out: whether there was no answer for too long. Not here: what is done then.

/// State of a client's messages when one last came back, or none was waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerProgress {
    pub(super) answered: u64,
    pub(super) lost: u64,
    /// The tick of that.
    pub(super) at: u64,
    /// Since when almost all of the time is over that there may be between answers.
    pub(super) overdue: Option<u64>,
}

impl AnswerProgress {
    /// True if there was none for so many ticks. A thread that was not run meanwhile looks for answers first.
    pub(super) fn has_stalled(&mut self, now: u64, limit: u64) -> bool {
        let last_part = limit / 8;
        let waited = now.saturating_sub(self.at);
        if waited < limit - last_part {
            return false;
        }
        let overdue = *self.overdue.get_or_insert(now);
        waited >= limit && now.saturating_sub(overdue) >= last_part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_all_the_time_has_stalled_when_its_time_is_up() {
        let mut progress = AnswerProgress {
            at: 1000,
            ..AnswerProgress::default()
        };
        let stalled: Vec<u64> = (1000..2000)
            .filter(|now| progress.has_stalled(*now, 800))
            .collect();
        assert_eq!(stalled.first(), Some(&1800));
    }

    #[test]
    fn whoever_was_not_run_has_time_to_look_for_answers() {
        let mut progress = AnswerProgress::default();
        assert!(!progress.has_stalled(10_000, 800));
        assert!(!progress.has_stalled(10_099, 800));
        assert!(progress.has_stalled(10_100, 800));
    }
}
