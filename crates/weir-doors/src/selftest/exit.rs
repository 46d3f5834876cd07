//! The exit code, by weir's numbers or by those of the older program.

use weir_schema::{ErrorCode, JobResult, RpcMaster, RunResult, rpc_error_code};

use super::{LogSettings, RateGoal, log_settings, rate_search};
use crate::args::DoorCall;
use crate::given::Given;
use crate::house::{self, Strict};
use crate::machine::Machine;
use crate::refusal::{LACKS, Refusal, USAGE};

/// The variable that asks for the exit codes of the older program.
const CODES: &str = "WEIR_COMPAT_EXIT";
/// An error of weir itself.
const INTERNAL: u8 = 4;
/// Exit codes of arguments that cannot be used, servers that cannot be reached, everything else.
const INVALID: i32 = -1003;
pub(super) const UNREACHABLE: i32 = -1006;
pub(super) const MISCELLANEOUS: i32 = -1025;

/// 0 good; 1 failures; 2 a plan that cannot be carried out; 3 servers that cannot be reached or let nobody
/// in; 4 an error of weir itself; 128 + signal.
pub fn exit_code(result: &RunResult, goal: Option<&RateGoal>, strict: &Strict) -> u8 {
    let code = house::exit_code(result, strict);
    let is_internal = |job: &JobResult| job.failure.as_ref().is_some_and(|f| f.cause == "panic");
    if code == 1 && result.jobs().any(is_internal) {
        return INTERNAL;
    }
    let all: Vec<&RpcMaster> = masters(result).collect();
    let lacks = |master: &&RpcMaster| {
        master
            .failure
            .as_ref()
            .is_some_and(|f| ["missing", "authentication"].contains(&f.cause.as_str()))
    };
    if code == 1 && !all.is_empty() && all.iter().all(lacks) {
        return LACKS;
    }
    if let Some(goal) = goal.filter(|_| code <= 1) {
        // RPCs that fail where there are too many are what is looked for.
        return u8::from(!rate_search::has_all(result, goal));
    }
    code
}

fn masters(result: &RunResult) -> impl Iterator<Item = &RpcMaster> {
    result
        .jobs()
        .filter_map(JobResult::rpc)
        .flat_map(|done| &done.masters)
}

/// The log that environment variables ask for.
///
/// # Errors
/// A variable, also that of exit codes, has a value that it does not take.
pub(super) fn variables(machine: &dyn Machine) -> Result<Option<LogSettings>, Refusal> {
    match machine.variable(CODES).as_deref() {
        None | Some("" | "cart") => log_settings(&|name| machine.variable(name)),
        Some(other) => Err(Refusal::usage(format!(
            "the variable {CODES}={other}: it takes cart; without it exit codes are weir's"
        ))),
    }
}

/// The exit code of a refusal in the style that is asked for.
pub(super) fn peer_code(code: u8, call: &DoorCall, machine: &dyn Machine) -> u8 {
    in_style_of(code, None, call.link.is_some() && asks_cart(machine))
}

/// True where exit codes are those of the older program, which is called by its name.
pub(super) fn is_cart(given: &Given, machine: &dyn Machine) -> bool {
    given.link.is_some() && asks_cart(machine)
}

fn asks_cart(machine: &dyn Machine) -> bool {
    machine.variable(CODES).as_deref() == Some("cart")
}

/// The same code as the older program has it, where that is asked for: the low byte of the error's
/// number. Of a run with failures the one that came most often counts.
pub fn in_style_of(code: u8, result: Option<&RunResult>, is_cart: bool) -> u8 {
    let number = match code {
        _ if !is_cart => return code,
        1 => result.and_then(most_frequent).unwrap_or(MISCELLANEOUS),
        USAGE => INVALID,
        LACKS => UNREACHABLE,
        INTERNAL => MISCELLANEOUS,
        // Good, or a signal.
        other => return other,
    };
    number.to_le_bytes()[0]
}

/// The code that most RPCs failed with.
pub(super) fn most_frequent(result: &RunResult) -> Option<i32> {
    let codes = masters(result).flat_map(|master| &master.endpoints);
    let codes = codes.flat_map(|one| &one.failed);
    let (code, _) = codes.max_by_key(|(_, count)| **count)?;
    match code {
        ErrorCode::Errno(number) => Some(*number),
        ErrorCode::Named(name) => rpc_error_code(name),
    }
}
