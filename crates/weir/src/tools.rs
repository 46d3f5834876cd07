//! Work of doors that is no measurement of a plan.
//!
//! In: a [`Tool`]. Out: the exit code. Not here: which arguments ask for it (`weir-doors`).

use weir_doors::request::{Request, Tool};
use weir_doors::{DoorCall, Refusal, top};

use crate::{Outcome, calibrate, driver, kio, stage_timing, transport_test};

/// Carries out a tool.
pub(crate) fn run(tool: Tool, request: &Request) -> Outcome {
    driver::print_notes(request);
    match tool {
        Tool::Calibrate => calibrate::run(),
        Tool::TestTransports => Ok(transport_test::run()),
        Tool::KernelModule(asked) => kio::carry_out(&asked),
        Tool::StageTiming => stage_timing::run(),
        Tool::OtherDoor { before, verb, args } => {
            let code = driver::emit(&before);
            if code > 0 {
                return Ok(code);
            }
            let door = top::door(verb);
            let door = door.ok_or_else(|| Refusal::usage(format!("no verb `{verb}`")))?;
            let link = None;
            crate::carry_out(&DoorCall { door, link, args })
        }
    }
}
