//! A search over runs in this process: one run after the other, until the search ends.
//!
//! In: a search, a way to carry out a plan. Out: one result of all runs. Not here: which plans there are
//! (`weir-doors`), printing.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use weir_doors::Refusal;
use weir_doors::search::{RunSearch, SearchEnd};
use weir_schema::{EndedBy, Plan, RunResult};

use crate::measure::{self, MeasureRequest, RunObserver};
use crate::signals;
use crate::turns::pause;

/// Function that makes the settings of the command line in a plan of the search.
pub(crate) type AdjustPlan<'a> = &'a (dyn Fn(Plan) -> Result<Plan, Refusal> + Sync);
/// The observer of a run.
pub(crate) type MakeRunObserver<'a> = &'a (dyn Fn(&Plan) -> Box<dyn RunObserver + 'a> + Sync);

/// Searches; a signal ends it with the results so far.
pub(crate) fn run(
    mut search: Box<dyn RunSearch>,
    adjust: AdjustPlan<'_>,
    observer: MakeRunObserver<'_>,
) -> Result<SearchEnd, Refusal> {
    let caught = signals::catch(None, None)?;
    let mut has_run = false;
    while let Some(plan) = search.next_plan() {
        if has_run {
            pause(search.rest(), &caught);
            if caught.interrupted() {
                break;
            }
        }
        has_run = true;
        search.take(one(&adjust(plan)?, observer)?);
    }
    let Some(mut end) = search.end() else {
        return Err(Refusal::usage("there is nothing to search"));
    };
    let result = &mut end.result;
    if caught.interrupted() && result.ended_by.is_none() {
        // Between two runs.
        let signal = caught.number.load(Ordering::Relaxed);
        result.ended_by = Some(EndedBy { signal });
        result.complete = false;
    }
    Ok(end)
}

/// The result of one run.
fn one(plan: &Plan, observer: MakeRunObserver<'_>) -> Result<RunResult, Refusal> {
    let found = Mutex::new(None);
    let keep = |result: &RunResult| {
        *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.clone());
        Ok(0)
    };
    let make = || Ok(plan.clone());
    let observe = |plan: &Plan| observer(plan);
    let code = measure::measure_alone(&MeasureRequest::of(&make, &observe, &keep))?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A world that came apart has said why.
    found.ok_or_else(|| Refusal::new(code.max(1), ""))
}
