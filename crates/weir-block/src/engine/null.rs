//! The empty engine: completes at once and touches no data. It measures the loop itself.
//!
//! In: operations. Out: completions of their full length, inside the call for a queue depth of 1,
//! else by way of a queue. Not here: how it does nothing (`weir-run`).

use weir_run::LoopStop;
use weir_run::null::Slots;
use weir_schema::Failure;
use weir_schema::catalogue::{ActsOn, EngineInfo};
use weir_sys::Availability;

use super::{EngineEntry, EngineRun, EngineSetup, Opens, run_engine};
use crate::op::BlockOp;

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "null",
        summary: "completes at once and moves no data: the cost of the loop itself",
        settings: &[],
        synchronous: false,
        acts_on: ActsOn::Size,
    },
    availability: || Availability::Ready,
    is_inline: |depth| depth == 1,
    opens: Opens::AsNeeded,
    drive,
};

pub(super) type NullInline = weir_run::null::NullInline<BlockOp, EngineSetup>;
pub(super) type NullQueued = weir_run::null::NullQueued<BlockOp, EngineSetup>;

impl Slots for EngineSetup {
    fn slots(&self) -> u32 {
        self.depth
    }
}

fn drive(ride: EngineRun<'_, '_>) -> Result<LoopStop, Failure> {
    if ride.setup.depth == 1 {
        run_engine::<NullInline>(ride)
    } else {
        run_engine::<NullQueued>(ride)
    }
}
