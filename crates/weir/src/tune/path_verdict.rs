//! The setting to change first, by a trial of a packet path.
//!
//! In: a result. Out: a dimension of the space by the verdict of `weir diagnose`. Other results have none.

use weir_diagnose::tune::TuneSpace;
use weir_diagnose::{Diagnosis, PathContext, RecordedPath};
use weir_doors::axio::work_of;
use weir_doors::tune::keys_of_verdict;
use weir_schema::RunResult;

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
