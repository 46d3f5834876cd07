//! Recipe of a worker's source: all values that it is built from.
//!
//! In: a job that is ready, a worker, where it may go. Out: a [`Recipe`]. Not here: limits
//! ([`super::limits`]), the source itself (`source`).

use std::sync::{Arc, OnceLock};

use weir_run::generate::Streams;
use weir_run::{WorkerContext, failure};
use weir_schema::Failure;

use super::PreparedBlockJob;
use crate::engine::priority::Priorities;
use crate::kinds::rates_of_mix;
use crate::memory::buffers;
use crate::recorded::tape;
use crate::source::{BetweenPasses, CheckedTarget, EarlierWrites, Extent, Recipe};
use crate::verify::outcome::{StreamSeed, VerifiedJob};

impl PreparedBlockJob {
    /// Recipe of a worker's source on these grounds.
    pub(super) fn recipe<'a>(
        &'a self,
        worker: &WorkerContext<'_>,
        stage: u64,
        grounds: &'a [Extent],
        passes: BetweenPasses,
        written: &Arc<OnceLock<EarlierWrites>>,
    ) -> Result<Recipe<'a>, Failure> {
        let extents = self.extents(worker.clone);
        let buffers = buffers(
            &self.workload,
            &self.directory,
            worker,
            self.depth(),
            extents.iter().map(|e| e.length).sum(),
        )?;
        let begin = |v: VerifiedJob<'_>| v.begin(worker, self.names(worker.clone), written);
        let mut verified = self.verified().map(begin).transpose()?;
        if let Some((_, verification)) = &mut verified
            && self.workload.reads_back()
        {
            verification.passes = self.checked_passes(&extents);
        }
        let begun = verified.as_ref().map(|(streams, _)| *streams);
        let StreamSeed {
            seed,
            worker: number,
        } = begun.unwrap_or(StreamSeed::of(worker));
        Ok(Recipe {
            workload: &self.workload,
            extents: grounds,
            seed,
            worker: number,
            rates: rates_of_mix(&self.job, &self.workload),
            limits: self.limits_of_stage(&extents, stage, worker.live.issued()),
            buffers,
            passes,
            verification: verified.map(|v| v.1),
            recorded: tape(self.recorded.as_ref())?,
            findings: self.workload.content.sectors.map(|_| CheckedTarget {
                findings: Arc::clone(&worker.live.findings),
                goes_on: self.workload.load.errors.go_on_mismatch,
                name: self
                    .names(worker.clone)
                    .into_iter()
                    .next()
                    .unwrap_or_default(),
            }),
            priorities: Priorities::of(&self.job.engine, Streams::new(seed, number))
                .map_err(|wrong| failure("plan", Some(libc::EINVAL), wrong))?,
        })
    }
}
