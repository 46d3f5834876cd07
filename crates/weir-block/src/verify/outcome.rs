//! Verification around a worker's loop: what it begins with, and what its end amounts to.
//!
//! In: a job that verifies, its worker's findings. Out: what the source needs; the failure of bad
//! data; states of jobs, stored and loaded. Not here: marks and checks.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use weir_run::{Findings, LoopStop, WorkerContext, failure};
use weir_schema::{
    BlockWorkload, Failure, Finding, Job, Kind, Mismatch, SaveState, Verify, VerifyState,
};

use crate::engine::Warnings;
use crate::source::{EarlierWrites, Verification};
use crate::verify::run_mark::RunMark;

/// A longer file is no state.
const LONGEST: u64 = 1 << 30;

/// Seed of a worker's random numbers.
#[derive(Clone, Copy)]
pub(crate) struct StreamSeed {
    pub(crate) seed: u64,
    pub(crate) worker: u32,
}

impl StreamSeed {
    /// That of a worker which begins anew.
    pub(crate) fn of(worker: &WorkerContext<'_>) -> Self {
        Self {
            seed: worker.seed,
            worker: worker.number,
        }
    }
}

/// A job that verifies.
pub(crate) struct VerifiedJob<'a> {
    pub(crate) job: &'a Job,
    pub(crate) workload: &'a BlockWorkload,
    pub(crate) verify: &'a Verify,
    pub(crate) directory: &'a Path,
    pub(crate) mark: RunMark,
}

impl VerifiedJob<'_> {
    /// Seed and number that the worker draws from, and the rules by which its data is marked and
    /// checked.
    pub(crate) fn begin(
        &self,
        worker: &WorkerContext<'_>,
        names: Vec<String>,
        written: &Arc<OnceLock<EarlierWrites>>,
    ) -> Result<(StreamSeed, Verification), Failure> {
        let mut streams = StreamSeed::of(worker);
        let mut mark = self.mark;
        let mut earlier = None;
        if self.verify.load_state {
            let state = load(self.job, self.verify, self.directory, worker.number)?;
            streams = StreamSeed {
                seed: state.seed,
                worker: state.worker,
            };
            mark = RunMark {
                written: state.run_id,
                required: state.run_id,
            };
            earlier = Some(EarlierWrites {
                writes: state.writes,
                lost: state.lost,
            });
        }
        let passes_asked = &self.workload.passes;
        let verification = Verification {
            mark,
            findings: Arc::clone(&worker.live.findings),
            names,
            directory: store(self.verify, self.directory),
            passes: 1,
            goes_on: self.job.load().errors.go_on_mismatch,
            is_endless: passes_asked.time_based,
            earlier,
            written: Arc::clone(written),
        };
        Ok((streams, verification))
    }

    /// End of a worker after its checks; stores its state where that is wanted.
    pub(crate) fn end(
        &self,
        stop: LoopStop,
        streams: StreamSeed,
        findings: &Findings,
        written: Option<&EarlierWrites>,
        warnings: &Warnings,
    ) -> Result<LoopStop, Failure> {
        self.save(&stop, streams, written)?;
        if let Some(why) = findings.lost_dump() {
            let cause = format!("A dump of bad data cannot be stored: {why}.");
            warnings.add("dump-lost", cause);
        }
        if let Some(first) = findings.list().into_iter().next() {
            return Err(mismatch(first, findings.operations()));
        }
        if findings.is_unchecked() && stop == LoopStop::TimeUp {
            let cause = "The time was up before everything that was written had been read back: \
                         the rest was not verified.";
            warnings.add("unverified", cause.to_owned());
        }
        Ok(stop)
    }

    fn save(
        &self,
        stop: &LoopStop,
        StreamSeed { seed, worker }: StreamSeed,
        written: Option<&EarlierWrites>,
    ) -> Result<(), Failure> {
        let wanted = match self.verify.save_state {
            SaveState::Never => false,
            SaveState::Interrupted => *stop == LoopStop::Asked,
            SaveState::Always => true,
        };
        // Later passes overwrite what earlier ones wrote: there is no one sequence to check.
        let one_pass = self.workload.passes.loops <= 1;
        if !wanted || !one_pass || !self.workload.carries_out(Kind::Write) {
            return Ok(());
        }
        let Some(written) = written else {
            return Ok(());
        };
        let name = &self.job.name;
        let state = VerifyState {
            seed,
            run_id: self.mark.written,
            writes: written.writes,
            lost: written.lost.clone(),
            ..VerifyState::new(name, worker, self.verify.method)
        };
        let path = store(self.verify, self.directory).join(VerifyState::file_name(name, worker));
        let text = state.to_json();
        let text = text.map_err(|e| failure("verify", None, e.to_string()))?;
        std::fs::write(&path, text).map_err(|e| {
            let message = format!("the state {} cannot be stored: {e}", path.display());
            failure("verify", e.raw_os_error(), message)
        })
    }
}

/// Directory of dumps and states.
pub(crate) fn store(verify: &Verify, directory: &Path) -> PathBuf {
    directory.join(verify.directory.as_deref().unwrap_or_default())
}

/// Loads the state of a worker.
///
/// # Errors
/// It is not there, or is not this job's.
pub(crate) fn load(
    job: &Job,
    verify: &Verify,
    directory: &Path,
    worker: u32,
) -> Result<VerifyState, Failure> {
    let path = store(verify, directory).join(VerifyState::file_name(&job.name, worker));
    let refused = |errno, why: String| {
        let message = format!("the state {}: {why}", path.display());
        failure("verify", errno, message)
    };
    let unread = |e: std::io::Error| refused(e.raw_os_error(), format!("cannot be read: {e}"));
    let length = std::fs::metadata(&path).map_err(unread)?.len();
    if length > LONGEST {
        return Err(refused(None, format!("{length} bytes are no state")));
    }
    let text = std::fs::read(&path).map_err(unread)?;
    let state = VerifyState::from_json(&text).map_err(|e| refused(None, e.to_string()))?;
    if state.method != verify.method {
        let (was, is) = (state.method.name(), verify.method.name());
        return Err(refused(
            None,
            format!("its data is verified by {was}, not by {is}"),
        ));
    }
    Ok(state)
}

/// The failure of a worker whose data was not what was written.
pub(crate) fn mismatch(first: Mismatch, operations: u64) -> Failure {
    let more = if operations > 1 {
        format!(", the first of {operations} bad blocks")
    } else {
        String::new()
    };
    let message = format!(
        "{}: the data at offset {} is not what was written ({} verification; {}){more}",
        first.target,
        first.offset_bytes.0,
        first.method.name(),
        first.damage.sentence(),
    );
    Failure {
        target: Some(first.target.clone()),
        kind: Some(first.kind.into()),
        offset_bytes: Some(first.offset_bytes),
        length_bytes: Some(first.length_bytes),
        finding: Some(Finding::Mismatch(Box::new(first))),
        ..failure("mismatch", Some(libc::EILSEQ), message)
    }
}
