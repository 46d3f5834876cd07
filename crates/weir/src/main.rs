//! weir: picks the door, wires engines to the plan, sets the exit code.
//!
//! The program's contact with the outside beside the targets: arguments, environment, standard streams,
//! report files, signals.
#![forbid(unsafe_code)]

mod calibrate;
mod checksum_speed;
mod clock_test;
mod command_turn;
mod compare;
mod destination;
mod diagnose;
mod doctor;
mod driver;
mod engines;
mod environment;
mod held_input;
mod history;
mod host_record;
mod house_report;
mod idleness;
mod import;
mod input;
mod kio;
#[cfg_attr(not(feature = "tui"), path = "live_absent.rs")]
mod live;
mod machine;
mod manual;
mod measure;
mod monitor;
mod mpi;
mod new;
mod no_result;
mod nvme;
mod obj;
mod output;
mod peer_observer;
mod picture;
mod progress;
mod ranks;
mod repeat;
mod report;
mod rows;
mod rpc;
mod runners;
mod scratch;
mod search;
mod session;
mod show;
mod signals;
mod stage_timing;
mod stall;
mod stopping;
mod store_channel;
mod store_service;
mod stored;
mod targets;
mod tools;
mod topo;
mod transport_test;
mod trigger;
mod tune;
mod turns;
mod watch;
mod web;
mod world;
mod written_files;

use std::process::ExitCode;

use weir_doors::top::{self, Call};
use weir_doors::{DoorCall, Refusal};
use weir_world::Launcher;

/// Exit code of a command that ran. A hung worker may leave threads behind, so the process ends without
/// waiting for them.
pub(crate) type Outcome = Result<u8, Refusal>;

fn main() -> ExitCode {
    signals::outlive_file_limits();
    let arguments: Result<Vec<String>, _> = std::env::args_os()
        .map(std::ffi::OsString::into_string)
        .collect();
    let outcome = match arguments {
        Ok(arguments) => dispatch(&arguments),
        Err(word) => Err(Refusal::usage(format!(
            "the argument {} is not UTF-8",
            word.display()
        ))),
    };
    let code = outcome.unwrap_or_else(|refusal| {
        output::error(&refusal.message);
        refusal.code
    });
    ExitCode::from(code)
}

/// Function that carries out a door's arguments.
type CarryOut = fn(&[String]) -> Outcome;

/// Doors that need more of this machine than a plan does.
const TOOLS: &[(&str, CarryOut)] = &[
    ("rpc", rpc::run),
    ("obj", obj::run),
    ("show", show::run),
    ("report", report::run),
    ("history", history::run),
    ("compare", compare::run),
    ("import", import::run),
    ("monitor", monitor::run),
    ("diagnose", diagnose::run),
    ("tune", tune::run),
    ("doctor", doctor::run),
    ("topo", topo::run),
    ("new", new::run),
    ("engines", |_| Ok(printed(&engines::page()))),
    ("mpi", |_| mpi::info()),
    ("man", manual::man),
    ("completions", manual::completions),
];

/// Doors that print the same in every process of a launcher.
const MEASURES_NOTHING: &[&str] = &[
    "engines",
    "show",
    "report",
    "history",
    "import",
    "diagnose",
    "doctor",
    "topo",
    "man",
    "completions",
];

fn dispatch(arguments: &[String]) -> Outcome {
    // A run's own process, which outlives it.
    #[cfg(feature = "vfio")]
    if let [_, word, address] = arguments
        && word == weir_block::KEEPER
    {
        return Ok(weir_block::keep_drive(address));
    }
    turns::end_with_parent()?;
    let call = top::call(arguments);
    // What all processes of a launcher would say alike one of them says.
    let alike = match &call {
        Err(_) | Ok(Call::Print(_)) => true,
        Ok(Call::Door(call)) => MEASURES_NOTHING.contains(&call.door.verb),
    };
    if alike && !prints_for_all() {
        return Ok(0);
    }
    match call? {
        Call::Print(text) => Ok(printed(&text)),
        Call::Door(call) => carry_out(&call),
    }
}

/// Carries out a call of a door.
pub(crate) fn carry_out(call: &DoorCall) -> Outcome {
    match TOOLS.iter().find(|(verb, _)| *verb == call.door.verb) {
        Some((_, carry)) => carry(&call.args),
        None => driver::run(call),
    }
}

/// True if this process prints for all that a launcher started. A process without a launcher does.
pub(crate) fn prints_for_all() -> bool {
    Launcher::of_this_process().is_none_or(|launcher| launcher.prints_for_all())
}

/// Prints a requested text and returns the exit code.
pub(crate) fn printed(text: &str) -> u8 {
    u8::from(!output::print(text))
}
