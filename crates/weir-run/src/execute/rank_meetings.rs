//! Other ranks that carry the same plan out: where they wait for each other.
//!
//! All ranks come together twice for the first job and for each job that waits for everything before
//! it, so that the steps of a sweep do not overlap: when what comes before has ended, and before the
//! release. Where they share files, the first rank makes them before the others look at them. Every
//! rank comes to the same number of meetings, whatever happened on it, so that nobody waits in vain.

use weir_schema::Plan;

/// The other ranks.
#[derive(Clone, Copy)]
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct OtherRanks<'a> {
    /// Returns when every rank has called it; an error says who is missing.
    pub meet: &'a dyn Fn() -> Result<(), String>,
    /// Maker of the targets.
    pub makes: TargetMaker,
}

/// Maker of a job's targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetMaker {
    /// Every rank has its own.
    Own,
    /// This rank, for all.
    First,
    /// The first rank; this one comes after it.
    After,
}

/// The meetings of a run.
pub(super) struct RankMeetings<'a> {
    other_ranks: Option<OtherRanks<'a>>,
    /// Jobs, by number, before whose release all ranks meet; those still to come.
    before: Vec<usize>,
    /// Reason that there are no more meetings.
    pub(super) broken: Option<String>,
}

impl<'a> RankMeetings<'a> {
    pub(super) fn new(plan: &Plan, other_ranks: Option<OtherRanks<'a>>) -> Self {
        let jobs = plan.jobs().enumerate();
        let openers = jobs.filter(|(number, (_, job))| *number == 0 || job.start.barrier);
        Self {
            other_ranks,
            before: openers.map(|(number, _)| number).collect(),
            broken: None,
        }
    }

    /// True if the ranks meet for a batch of jobs, which then counts as met.
    pub(super) fn are_due_for(&mut self, batch: &[usize]) -> bool {
        let planned = self.before.len();
        self.before.retain(|job| !batch.contains(job));
        self.other_ranks.is_some() && self.before.len() < planned
    }

    /// Before the targets of a batch are made: nothing of an earlier one goes on anywhere.
    pub(super) fn before_making(&mut self) {
        self.meet();
        if self.makes() == Some(TargetMaker::After) {
            self.meet();
        }
    }

    /// After the targets of a batch were made.
    pub(super) fn after_making(&mut self) {
        if self.makes() == Some(TargetMaker::First) {
            self.meet();
        }
    }

    pub(super) fn meet(&mut self) {
        let Some(other_ranks) = self.other_ranks.filter(|_| self.broken.is_none()) else {
            return;
        };
        self.broken = (other_ranks.meet)().err();
    }

    fn makes(&self) -> Option<TargetMaker> {
        self.other_ranks.map(|o| o.makes)
    }

    /// Comes to the meetings that are left, for the sake of the others.
    pub(super) fn finish(mut self) {
        if self.other_ranks.is_none() {
            return;
        }
        for _ in std::mem::take(&mut self.before) {
            self.before_making();
            self.after_making();
            self.meet();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Number of meetings that a rank comes to when it carries these batches out, of the jobs 0, 2
    /// and 3 that all others wait before.
    fn meetings(makes: TargetMaker, batches: &[&[usize]], fails_at: Option<u32>) -> u32 {
        let met = Cell::new(0);
        let meet = || {
            met.set(met.get() + 1);
            if fails_at == Some(met.get()) {
                return Err("rank 1 is gone".to_owned());
            }
            Ok(())
        };
        let mut meetings = RankMeetings {
            other_ranks: Some(OtherRanks { meet: &meet, makes }),
            before: vec![0, 2, 3],
            broken: None,
        };
        for batch in batches {
            if meetings.are_due_for(batch) {
                meetings.before_making();
                meetings.after_making();
                meetings.meet();
            }
        }
        meetings.finish();
        met.get()
    }

    #[test]
    fn every_rank_comes_equally_often_however_far_it_gets() {
        let whole: &[&[usize]] = &[&[0, 1], &[2], &[], &[3, 4]];
        for batches in [whole, &whole[..1], &[]] {
            assert_eq!(meetings(TargetMaker::Own, batches, None), 6);
            assert_eq!(meetings(TargetMaker::First, batches, None), 9);
            assert_eq!(meetings(TargetMaker::After, batches, None), 9);
        }
    }

    #[test]
    fn a_job_that_waits_for_nothing_has_no_meeting() {
        assert_eq!(meetings(TargetMaker::Own, &[&[1], &[4], &[1, 4]], None), 6);
    }

    #[test]
    fn nobody_waits_again_for_ranks_that_are_gone() {
        assert_eq!(meetings(TargetMaker::Own, &[&[0], &[2]], Some(2)), 2);
    }
}
