//! Searches for the highest rate that is kept: between which rates it lies, and the result of all steps.
//!
//! In: rates that were kept and that were missed. Out: the next to try; one result of the runs that tried
//! them. Not here: what keeps a rate, which is the matter of each search.

use weir_schema::RunResult;

/// Bounds of the highest rate that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateBracket {
    /// The highest that was kept; 0 where none was.
    pub(crate) kept: f64,
    /// The lowest above it that was not.
    pub(crate) missed: f64,
}

impl RateBracket {
    /// The bounds with the outcome of a rate between them.
    pub(crate) fn with(self, rate: f64, is_kept: bool) -> Self {
        if is_kept {
            Self { kept: rate, ..self }
        } else {
            Self {
                missed: rate,
                ..self
            }
        }
    }

    /// The rate between them; nothing where they differ by no more than this share.
    pub(crate) fn middle(self, fine: f64) -> Option<f64> {
        let is_wide = self.missed - self.kept > fine * self.missed;
        is_wide.then(|| f64::midpoint(self.kept, self.missed))
    }
}

/// Adds the groups of a later result.
pub(crate) fn append(done: &mut RunResult, mut later: RunResult) {
    for job in later
        .plan
        .groups
        .iter_mut()
        .flat_map(|group| &mut group.jobs)
    {
        job.start.barrier = true;
    }
    done.plan.groups.append(&mut later.plan.groups);
    done.groups.append(&mut later.groups);
    done.complete &= later.complete;
    done.ended_by = done.ended_by.or(later.ended_by);
    done.duration_ns = done.duration_ns.saturating_add(later.duration_ns);
    for warning in later.warnings {
        if !done.warnings.iter().any(|known| known.id == warning.id) {
            done.warnings.push(warning);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_goes_to_the_highest_rate_that_is_kept() {
        let mut bracket = RateBracket {
            kept: 0.0,
            missed: 1000.0,
        };
        let mut steps = 0;
        while let Some(rate) = bracket.middle(0.01) {
            bracket = bracket.with(rate, rate <= 333.0);
            steps += 1;
        }
        assert!(
            bracket.kept <= 333.0 && bracket.missed > 333.0,
            "{bracket:?}"
        );
        assert!(bracket.missed - bracket.kept <= 0.01 * bracket.missed);
        assert_eq!(steps, 9);
    }
}
