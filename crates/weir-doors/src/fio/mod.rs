//! The door that speaks fio: its command line, its reports, its exit codes.
//!
//! In: the arguments after `weir fio`, or after a link named `fio`. Out: a [`Request`](crate::Request);
//! from a result the texts of [`output`] and the exit code. House words stay out of what is printed in
//! the peer's formats.

mod announcement;
mod debug;
mod echo;
mod exit;
mod flags;
mod help;
mod log;
mod observer;
mod options;
pub mod output;
mod print;
mod reader;
mod request;
#[cfg(test)]
mod tests;

use std::fmt::Display;

use crate::door::{Door, DoorLink, Manner, Measures};
use crate::refusal::Refusal;

pub use announcement::announcement;
pub use exit::{complaint, exit_code};
pub use flags::FLAGS;
pub use log::log_line;
pub use options::{Eta, ExitStyle, FioFormat, FioOptions, IdleScope};
pub use request::jobs;

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("fio")],
    flags: FLAGS,
    measures: Some(MEASURES),
    words: Some(help::words),
    ..Door::new(
        "fio",
        "…",
        "the same job files with fio's command line, and by its name fio's output",
    )
};

const MEASURES: Measures = Measures {
    manner: Manner::Own(reader::read),
    print: Some(|result, given, machine| Ok(print::print(result, given, machine))),
    observe: Some(observer::observer),
    peers_form: print::peers_form,
    peer_code: |_, _, _| 1,
    help: include_str!("help.md"),
    examples: &[
        "weir fio --name=a --filename=/tmp/a --size=64m --rw=randread --runtime=5",
        "weir fio job.fio --output-format=json --output=result.json",
        "weir fio job.fio --set bs=128k --repeat 5",
        "weir fio --showcmd job.fio",
        "weir fio --cmdhelp=rw",
    ],
    ..Measures::new(request::read)
};

/// A refusal, which fio begins with its name.
fn refuse(why: impl Display) -> Refusal {
    Refusal::usage(&why).by_peer(format!("fio: {why}"))
}
