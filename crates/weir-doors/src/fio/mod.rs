//! The door that speaks fio: its command line, its reports, its exit codes.
//!
//! In: the words after `weir fio`, or after a link named `fio`. Out: an [`Action`]; from a
//! result the texts of [`output`] and the exit code. House words stay out of what is printed.

mod announcement;
mod debug;
mod echo;
mod exit;
mod flags;
mod help;
mod log;
mod options;
pub mod output;
mod request;
#[cfg(test)]
mod tests;

use crate::door::{Door, DoorLink};

pub use announcement::announcement;
pub use debug::parsing;
pub use exit::{USAGE, complaint, exit_code};
pub use flags::FLAGS;
pub use help::HELP;
pub use log::log_line;
pub use options::{Eta, ExitStyle, FioFormat, FioOptions, IdleScope, Trigger};
pub use request::{Action, FioRun, read};

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("fio")],
    flags: FLAGS,
    words: Some(help::words),
    ..Door::new(
        "fio",
        "…",
        "the same job files with fio's command line and fio's output",
    )
};
