//! Work of doors that is no measurement of a plan.
//!
//! In: a [`Tool`]. Out: the exit code. Not here: which arguments ask for it (`weir-doors`).

use weir_doors::request::{Request, Tool};
use weir_doors::{DoorCall, Refusal, top};

use crate::{
    Outcome, calibrate, checksum_speed, clock_test, driver, idleness, kio, output, printed,
    stage_timing, transport_test,
};

/// Carries out a tool.
pub(crate) fn run(tool: Tool, request: &Request) -> Outcome {
    driver::print_notes(request);
    match tool {
        Tool::Calibrate => calibrate::run(),
        Tool::TestTransports => Ok(transport_test::run()),
        Tool::KernelModule(asked) => kio::carry_out(&asked),
        Tool::StageTiming => stage_timing::run(),
        Tool::Checksums(methods) => Ok(checksum_speed::run(&methods)),
        Tool::ClockTest => clock_test::run(),
        Tool::InflateLog(path) => inflate_log(&path),
        Tool::IdleUnit => Ok(printed(&idleness::unit().text())),
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

/// Prints the text of a compressed log.
fn inflate_log(path: &str) -> Outcome {
    let refuse = |error: std::io::Error| {
        Refusal::usage(format!("{path}: {error}")).by_peer(format!("fio: {path}: {error}"))
    };
    let file = std::fs::File::open(path).map_err(refuse)?;
    let mut is_good = true;
    let print = |piece: &[u8]| is_good &= output::print_bytes(piece);
    weir_run::inflate_log(file, print).map_err(refuse)?;
    Ok(u8::from(!is_good))
}
