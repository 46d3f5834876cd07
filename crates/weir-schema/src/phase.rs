//! Phases of a job that all ranks do together, one after the other: the figures of each, and when every
//! rank was in it.
//!
//! In: what one rank measured of a phase. Out: data that merges over ranks like a job's. The
//! headline figures of a phase are among those of its job, so that whatever compares or keeps figures
//! knows them. Not here: how a phase is run.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

use crate::merge::MergeError;
use crate::outcome::Metric;
use crate::result::{JobResult, Span};

/// One repetition of a phase of a job, on all ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResult {
    /// Name of the phase: `write`, `stat`.
    pub name: String,
    /// Number of the repetition, from 0.
    pub repetition: u32,
    /// Time of each rank in the phase, in rank order.
    pub ranks: Vec<RankSpan>,
    /// Figures of the phase, as of a job of its own, over all ranks; absent where it was timed alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Box<JobResult>>,
}

/// Time of a rank in a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RankSpan {
    /// Number of the rank.
    pub rank: u32,
    /// On the clock of the run; elsewhere than on the first rank's host on the rank's own.
    pub span: Span,
    /// Parts of it, in the order in which they began: `open`, `transfer`, `close`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartSpan>,
}

/// Part of a phase on one rank: from its first worker's begin to its last one's end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartSpan {
    /// Name of the part.
    pub name: String,
    /// On the clock of its rank's span.
    pub span: Span,
}

impl PhaseResult {
    /// Its name, from the second repetition on with its number: `write #2`.
    pub fn title(&self) -> String {
        Self::title_of(&self.name, self.repetition)
    }

    /// The same of one that is still to be done.
    pub fn title_of(name: &str, repetition: u32) -> String {
        match repetition {
            0 => name.to_owned(),
            again => format!("{name} #{}", u64::from(again) + 1),
        }
    }

    /// Its headline figures under names of their own among those of the job: `write rate` where phase and
    /// kind have one name, else `fill write rate`.
    pub fn metrics(&self) -> Vec<Metric> {
        let title = self.title();
        let of_kind = format!("{} ", self.name);
        let measured = self.measured.iter().flat_map(|measured| &measured.metrics);
        let named = measured.map(|metric| {
            let what = metric.name.strip_prefix(&of_kind).unwrap_or(&metric.name);
            Metric {
                name: format!("{title} {what}"),
                ..metric.clone()
            }
        });
        named.collect()
    }

    /// The longest time of a rank in each part, in the order of the first rank that has it.
    pub fn parts(&self) -> Vec<PartSpan> {
        let mut longest: Vec<PartSpan> = Vec::new();
        for part in self.ranks.iter().flat_map(|rank| &rank.parts) {
            match longest.iter_mut().find(|known| known.name == part.name) {
                Some(known) if known.span.length() >= part.span.length() => {}
                Some(known) => known.span = part.span,
                None => longest.push(part.clone()),
            }
        }
        longest
    }
}

impl JobResult {
    /// Takes a phase in, of the same or of further ranks.
    ///
    /// # Errors
    /// Histograms or series that differ in form.
    pub fn add_phase(&mut self, theirs: PhaseResult) -> Result<(), MergeError> {
        let same =
            |p: &&mut PhaseResult| p.name == theirs.name && p.repetition == theirs.repetition;
        let Some(mine) = self.phases.iter_mut().find(same) else {
            self.phases.push(theirs);
            return Ok(());
        };
        mine.ranks.extend(theirs.ranks);
        // Ranks that are threads come in any order.
        mine.ranks.sort_by_key(|rank| rank.rank);
        match (&mut mine.measured, theirs.measured) {
            (Some(mine), Some(theirs)) => mine.merge(*theirs),
            (mine, theirs) => {
                *mine = mine.take().or(theirs);
                Ok(())
            }
        }
    }

    /// Headline figures of its phases, under their names among its own.
    pub fn phase_metrics(&self) -> impl Iterator<Item = Metric> {
        self.phases.iter().flat_map(PhaseResult::metrics)
    }

    /// Puts the headline figures of its phases among its own.
    pub(crate) fn conclude_phases(&mut self) {
        let of_phases: Vec<Metric> = self.phase_metrics().collect();
        let new: HashSet<&str> = of_phases.iter().map(|metric| &*metric.name).collect();
        self.metrics.retain(|known| !new.contains(&*known.name));
        self.metrics.extend(of_phases);
    }
}
