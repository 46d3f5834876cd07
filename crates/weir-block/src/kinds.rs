//! The kinds of operation of a job: which occur, and in which proportion.
//!
//! In: a job and its block workload. Out: what the loop is told of each kind. Not here: which kind
//! comes next ([`crate::generate::mix`]).

use weir_run::generate::arrivals::Rate;
use weir_run::{KINDS, Measured};
use weir_schema::{BlockWorkload, Job, Kind};

use crate::engine::priority::Priorities;

/// Recording settings of each kind; `None` for kinds that do not occur.
pub(crate) fn measured(
    job: &Job,
    workload: &BlockWorkload,
    inline: bool,
) -> [Option<Measured>; KINDS] {
    let measured = Measured {
        classes: Priorities::are_asked_for(&job.engine),
        ..weir_run::measured(job, inline)
    };
    let mut kinds = [None; KINDS];
    for kind in Kind::DATA {
        kinds[kind.index()] = workload.carries_out(kind).then_some(measured);
    }
    kinds[Kind::Sync.index()] = flushes(workload).then_some(measured);
    kinds
}

fn flushes(workload: &BlockWorkload) -> bool {
    let flush = &workload.flush;
    let is_all = workload.bursts.is_some_and(|bursts| bursts.flush_only);
    is_all
        || flush.fsync_every.is_some()
        || flush.fdatasync_every.is_some()
        || flush.range.is_some()
}

/// Rates of the kinds of a mix in which each has one of its own: in the order of their schedules
/// no kind waits for another. `None` where the mix is the plan's.
pub(crate) fn rates_of_mix(job: &Job, workload: &BlockWorkload) -> Option<[Option<Rate>; 3]> {
    let mix = &workload.mix;
    let occurring = || Kind::DATA.into_iter().filter(|kind| mix.has(*kind));
    if occurring().count() < 2 || mix.trim_then_write {
        return None;
    }
    let given = weir_run::rates(job);
    let mut rates = [None; 3];
    for kind in occurring() {
        rates[kind.index()] = Some((*given.get(kind.index())?)?);
    }
    Some(rates)
}
