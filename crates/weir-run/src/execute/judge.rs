//! Meaning of a worker's end: its state, and the failure in words.
//!
//! In: why a loop ended. Out: [`State`] and [`Failure`] with place and errno.

use weir_schema::{Failure, Finding, KindName, State};
use weir_units::Bytes;

use crate::worker::{LoopStop, OpFailure, OpFault};

/// State and failure from what the thread said.
pub(super) fn judge(
    stop: Result<LoopStop, Failure>,
    asked: Option<State>,
    target: impl Fn(&OpFailure) -> FailedTarget,
) -> (State, Option<Failure>) {
    match stop {
        Err(failure) => (State::Failed, Some(failure)),
        Ok(LoopStop::WorkDone | LoopStop::TimeUp) => (State::Done, None),
        Ok(LoopStop::Asked) => (asked.unwrap_or(State::Stopped), None),
        Ok(LoopStop::Failed(at)) => {
            let target = target(&at);
            (State::Failed, Some(describe(&at, target)))
        }
    }
}

/// Facts about a failed operation's target.
pub(super) struct FailedTarget {
    pub(super) name: Option<String>,
    /// The kind of operation.
    pub(super) kind: Option<KindName>,
    /// Possible cause of the failure.
    pub(super) remark: Option<String>,
    /// Action of the operation on it, where it moved no data.
    pub(super) action: Option<&'static str>,
}

/// A failed operation in words.
pub(super) fn describe(at: &OpFailure, target: FailedTarget) -> Failure {
    let FailedTarget {
        name: target,
        kind,
        remark,
        action,
    } = target;
    let errno = at.fault.errno();
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let place = target.as_deref().unwrap_or("the target");
    let operation = in_words(at, kind.as_ref(), target.as_deref());
    let moved = at.moved;
    let (cause, message) = match at.fault {
        OpFault::Errno(_) if let Some(action) = action => {
            ("name", format!("{action} {place}: {text}"))
        }
        OpFault::Errno(_) => ("io", format!("{operation}: {text}")),
        OpFault::EndOfTarget => (
            "end",
            format!("{operation}: no more data after {moved} bytes"),
        ),
        OpFault::TooSlow { took, limit } => (
            "max_latency",
            format!(
                "{operation} took {} ns, more than the {} ns allowed",
                took.0, limit.0
            ),
        ),
        OpFault::Engine(_) => ("engine", format!("the engine could not go on: {text}")),
    };
    let message = match remark {
        Some(remark) => format!("{remark}: {message}"),
        None => message,
    };
    Failure {
        errno: Some(errno),
        target,
        kind,
        offset_bytes: at.acts_on.offset.map(Bytes),
        length_bytes: Some(Bytes(at.length.into())),
        finding: match at.fault {
            OpFault::TooSlow { took, limit } => Some(Finding::LatencyAboveMaximum {
                limit_ns: limit,
                found_ns: took,
            }),
            _ => None,
        },
        ..Failure::new(cause, message)
    }
}

/// The operation, as far as it has parts to name: `read of 4096 bytes at offset 0 of a file`.
fn in_words(at: &OpFailure, kind: Option<&KindName>, target: Option<&str>) -> String {
    let kind = kind.map_or("operation", KindName::as_str);
    let length = at.length;
    match (at.acts_on.offset, target) {
        (Some(offset), target) => {
            let target = target.unwrap_or("the target");
            format!("{kind} of {length} bytes at offset {offset} of {target}")
        }
        (None, Some(target)) => format!("{kind} of {target}"),
        (None, None) => kind.to_owned(),
    }
}
