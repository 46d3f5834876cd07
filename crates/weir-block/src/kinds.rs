//! The kinds of operation of a job: which occur, and in which proportion.
//!
//! In: a job and its block workload. Out: what the loop is told of each kind. Not here: which kind
//! comes next ([`crate::generate::mix`]).

use weir_run::{KINDS, Measured};
use weir_schema::{BlockWorkload, Job, Kind, Schedule};

/// What each kind records; `None` for kinds that do not occur.
pub(crate) fn measured(
    job: &Job,
    workload: &BlockWorkload,
    inline: bool,
) -> [Option<Measured>; KINDS] {
    let measured = weir_run::measured(job, inline);
    let mut kinds = [None; KINDS];
    for kind in Kind::DATA {
        kinds[kind.index()] = workload.carries_out(kind).then_some(measured);
    }
    kinds[Kind::Sync.index()] = flushes(workload).then_some(measured);
    kinds
}

fn flushes(workload: &BlockWorkload) -> bool {
    let flush = &workload.flush;
    flush.fsync_every.is_some() || flush.fdatasync_every.is_some() || flush.range.is_some()
}

/// Shares of the kinds of a mix in which each has a rate of its own: in the proportion of their
/// rates no kind waits for another. `None` where the mix is the plan's.
pub(crate) fn shares_by_rate(job: &Job, workload: &BlockWorkload) -> Option<[u32; 3]> {
    /// Fine enough for any proportion of rates.
    const WHOLE: f64 = 1e6;
    let mix = &workload.mix;
    let per_s = |kind: Kind| match job.load().pacing.schedule.as_ref()? {
        Schedule::OpsPerSecond { limit_per_s, .. } => limit_per_s.get(&kind.into()).map(|r| r.0),
        Schedule::BytesPerSecond {
            limit_bytes_per_s, ..
        } => {
            let size = workload.sizes.size.of(kind).mean_bytes();
            limit_bytes_per_s.get(&kind.into()).map(|r| r.0 / size)
        }
    };
    let mixed = Kind::DATA.into_iter().filter(|kind| mix.has(*kind)).count();
    if mixed < 2 || mix.trim_then_write {
        return None;
    }
    let mut rates = [0.0; 3];
    for kind in Kind::DATA.into_iter().filter(|kind| mix.has(*kind)) {
        rates[kind.index()] = per_s(kind).filter(|rate| *rate > 0.0)?;
    }
    let total: f64 = rates.iter().sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and at most the whole"
    )]
    let share = |rate: f64| (rate / total * WHOLE).round() as u32;
    Some(rates.map(share))
}
