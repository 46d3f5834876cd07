//! Further findings from a trial of a packet path: the setting to change first, and the share of messages
//! lost.
//!
//! In: a result. Out: a dimension of the space by the verdict of `weir diagnose`; the share of messages
//! without an answer. Other results say neither.

use weir_diagnose::tune::TuneSpace;
use weir_diagnose::{Diagnosis, PathContext, RecordedPath};
use weir_doors::axio::work_of;
use weir_doors::tune::keys_of_verdict;
use weir_schema::{JobResult, PathSide, RunResult};

/// The dimension that the verdict of a result names.
pub(super) fn dimension(result: &RunResult, space: &TuneSpace) -> Option<usize> {
    let sides = diagnoses(result);
    let rules = sides.iter().map(|of| (of.verdict.as_deref(), None));
    let stages = sides.iter().map(|of| (None, of.critical.as_deref()));
    // A rule of either side says more than a stage of this one.
    let mut keys = rules
        .chain(stages)
        .flat_map(|(rule, stage)| keys_of_verdict(rule, stage));
    let place = |key: &str| space.dimensions.iter().position(|d| d.name == key);
    keys.find_map(place)
}

/// Diagnoses of the side that recorded a result, and of the other one where that is a program of its own.
fn diagnoses(result: &RunResult) -> Vec<Diagnosis> {
    let path = RecordedPath::all_of(result).into_iter().next();
    let Some(mut path) = path.and_then(|(_, path)| path.ok()) else {
        return Vec::new();
    };
    let is_alone = work_of(&result.plan).is_some_and(|work| work.side.is_some());
    path.remote = path.remote.filter(|_| is_alone);
    path.diagnoses(&PathContext::default())
}

/// Messages without an answer in time, of all that were made.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
pub(super) fn lost_share(result: &RunResult) -> Option<f64> {
    let done = result.jobs().find_map(JobResult::packet_path)?;
    let lost = done.sum(PathSide::Client, |thread| thread.lost);
    let packets = done.sum(PathSide::Client, |thread| thread.application_tx.packets);
    let parts = work_of(&result.plan).map(|work| work.packets(work.request_bytes));
    let messages = packets / u64::from(parts.unwrap_or(1).max(1));
    Some(lost as f64 / messages.max(1) as f64)
}
