//! The instrument's own cost: the same loop over an engine that does nothing, for a moment.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_schema::{Instrument, KindInfo, Moves};
use weir_sys::clock::{SharedScale, Tick};
use weir_units::Nanos;

use crate::call::{Call, Caller, Calls};
use crate::execute::RunControl;
use crate::generate::rng::Rng;
use crate::live::{KINDS, Measured, WorkerLive};
use crate::pacer::PacerPlan;
use crate::worker::{LoopContext, LoopPlan, drive};

const MOMENT: Nanos = Nanos(2_000_000);

/// What is counted.
const KINDS_OF_CALLS: &[KindInfo] = &[KindInfo::new("call", Moves::In)];

/// Measures the loop's own cost, if it is wanted.
pub(super) fn measure(control: &RunControl<'_>) -> Instrument {
    if !control.calibrate {
        return Instrument {
            absent: Some("not asked for".to_owned()),
            ..Instrument::default()
        };
    }
    let recorded = Measured {
        latency: true,
        ..Measured::default()
    };
    let mut kinds = [None; KINDS];
    kinds[0] = Some(recorded);
    let live = WorkerLive::new(KINDS_OF_CALLS, kinds);
    let stop = AtomicU32::new(0);
    let release = control.clock.now();
    let worker = LoopContext {
        clock: &control.clock,
        scale: Arc::new(SharedScale::new(control.clock.scale())),
        stop: &stop,
        live: &live,
        release,
        pacing: PacerPlan::default(),
    };
    let plan = LoopPlan {
        runtime: Some(MOMENT),
        ..LoopPlan::default()
    };
    // Random offsets without end, for a function that touches nothing.
    let mut rng = Rng::new(1);
    let mut calls = Calls(std::iter::repeat_with(move || {
        black_box(rng.below(1 << 20) << 12);
        Call {
            kind: 0,
            length: 4096,
        }
    }));
    drive(
        &mut Caller(|call: &Call| Ok(call.length)),
        &mut calls,
        &plan,
        worker,
    );
    let took = control
        .clock
        .scale()
        .to_nanos(Tick(live.last_done.get()).since(release));
    let operations = live.kinds[0].completed.get().max(1);
    Instrument {
        ns_per_op: Some(took as f64 / operations as f64),
        absent: None,
        timer_slack_ns: weir_sys::pin::timer_slack().ok(),
        peak_memory_bytes: None,
    }
}
