//! The instrument's own cost: the same loop over an engine that does nothing, for a moment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use weir_schema::{BLOCK_KINDS, Instrument};
use weir_sys::clock::{SharedScale, Tick};
use weir_units::Nanos;

use crate::engine::{Engine, OpTarget, Operation, Submit};
use crate::execute::RunControl;
use crate::generate::rng::Rng;
use crate::live::{KINDS, Measured, WorkerLive};
use crate::pacer::PacerPlan;
use crate::source::Source;
use crate::worker::{LoopContext, LoopPlan, drive};

const MOMENT: Nanos = Nanos(2_000_000);

/// An operation of a page.
#[derive(Clone, Copy, Default)]
struct Page {
    offset: u64,
    length: u32,
}

impl Operation for Page {
    #[inline]
    fn kind_index(&self) -> usize {
        0
    }

    #[inline]
    fn length(&self) -> u32 {
        self.length
    }

    #[inline]
    fn acts_on(&self) -> OpTarget {
        OpTarget {
            number: 0,
            offset: Some(self.offset),
        }
    }
}

/// Completes at once and touches nothing.
struct Nothing;

impl Engine for Nothing {
    type Op = Page;
    type Setup = ();
    const INLINE: bool = true;

    fn attach((): ()) -> io::Result<Self> {
        Ok(Self)
    }

    #[inline]
    fn submit(&mut self, _slot: u32, op: &Page) -> Submit {
        Submit::Done(op.length().into())
    }
}

/// Random offsets without end.
struct Anywhere(Rng);

impl Source for Anywhere {
    type Op = Page;

    #[inline]
    fn next(&mut self, _slot: u32) -> Option<Page> {
        let offset = self.0.below(1 << 20) << 12;
        Some(Page {
            offset,
            length: 4096,
        })
    }
}

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
    let live = WorkerLive::new(BLOCK_KINDS, kinds);
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
    drive(&mut Nothing, &mut Anywhere(Rng::new(1)), &plan, worker);
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
