//! Exit codes of the door, and its messages about runs that failed.

use weir_schema::{RunResult, latency_bandwidth_figures};

use super::output::measured;
use crate::beff;

/// Exit code as of effective bandwidth: 1 wrong bytes or a failed run; 2 and 3 where nothing was measured,
/// for a reason of the plan or the machine; 128 + signal.
pub fn exit_code(result: &RunResult) -> u8 {
    let wrong = measured(result).is_some_and(|done| done.wrong_bytes > 0);
    match beff::exit_code(result) {
        0 => u8::from(wrong),
        code => code,
    }
}

/// Text for standard error about a result.
pub fn complaints(result: &RunResult) -> String {
    let mut out = beff::complaints(result);
    let Some(done) = measured(result) else {
        return out;
    };
    if done.wrong_bytes > 0 {
        push!(
            out,
            "error: {} first or last bytes of messages were not what was sent\n",
            done.wrong_bytes
        );
    }
    let is_reported = !result.complete || result.failed_jobs() > 0;
    if !is_reported && latency_bandwidth_figures(done).is_none() {
        out += "error: the run ended before all was measured; --format json has what was\n";
    }
    out
}
