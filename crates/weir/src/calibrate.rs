//! `weir run --calibrate`: the cost of the instrument, and nothing else.

use weir_schema::{Plan, RunResult};

use crate::measure::{self, MeasureRequest, Silent};
use crate::{Outcome, printed};

/// Measures the loop's own cost and nothing else.
pub(crate) fn run() -> Outcome {
    let plan = Plan {
        name: "calibrate".to_owned(),
        door: "run".to_owned(),
        ..Plan::default()
    };
    measure::measure(&MeasureRequest::of(
        &|| Ok(plan.clone()),
        &|_| Box::new(Silent),
        &|result| {
            let clock = &result.clock;
            let loop_cost = result.instrument.ns_per_op.unwrap_or(f64::NAN);
            let text = format!(
                "clock       {} ({})\nclock read  {:.1} ns\nloop        {loop_cost:.1} ns per operation\n",
                source_name(result),
                clock.reason,
                clock.read_ns
            );
            Ok(printed(&text))
        },
    ))
}

fn source_name(result: &RunResult) -> &'static str {
    match result.clock.source {
        weir_schema::ClockSource::Tsc => "tsc",
        weir_schema::ClockSource::Cntvct => "cntvct",
        weir_schema::ClockSource::Monotonic => "monotonic",
        weir_schema::ClockSource::Simulated => "simulated",
    }
}
