//! What a trial of a packet path says beside its figure: which setting to change first, how much was lost.
//!
//! In: a result. Out: a dimension of the space by the verdict of `weir diagnose`; the share of messages
//! without an answer. Other results say neither.

use weir_datapath::remote::TrialEnd;
use weir_diagnose::tune::TuneSpace;
use weir_diagnose::{Diagnosis, PathRecords};
use weir_doors::axio::work_of;
use weir_doors::diagnose::records_of;
use weir_doors::tune::keys_of_verdict;
use weir_schema::{JobResult, PathSide, RunResult};

/// The dimension that the verdict of a result names, or that of the server's own, where a daemon said it.
pub(super) fn dimension(
    result: &RunResult,
    server: Option<&TrialEnd>,
    space: &TuneSpace,
) -> Option<usize> {
    let own = diagnosis(result);
    let own = own.as_ref().map(|of| (&of.verdict, &of.critical));
    let server = server.map(|of| (&of.verdict, &of.critical));
    let both: Vec<_> = own.into_iter().chain(server).collect();
    let rules = both.iter().map(|(verdict, _)| (verdict.as_deref(), None));
    let stages = both.iter().map(|(_, critical)| (None, critical.as_deref()));
    // A rule of either side says more than a stage of this one.
    let mut keys = rules
        .chain(stages)
        .flat_map(|(rule, stage)| keys_of_verdict(rule, stage));
    let place = |key: &str| space.dimensions.iter().position(|d| d.name == key);
    keys.find_map(place)
}

/// What is diagnosed of the side that recorded a result.
pub(crate) fn diagnosis(result: &RunResult) -> Option<Diagnosis> {
    let mut paths = records_of(result).into_iter();
    let records = paths.next()?.records.ok()?;
    Some(Diagnosis::of(&PathRecords {
        iterations: Some(records.iterations),
        counted: records.local.counted,
        ..PathRecords::of_log(records.local.log)
    }))
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
