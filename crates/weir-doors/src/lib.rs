//! The doors: each one's flags, its way to a plan, its output dialect, its help.
//!
//! In: argument words, or a stored result. Out: what the words ask for ([`fio::Action`],
//! [`run::Action`], picked by [`top::verb`]), or text in the door's dialect. Doors know no
//! engine and touch nothing: files, streams, clocks and exit belong to the program.
#![forbid(unsafe_code)]

/// Appends formatted text to a string, which cannot fail.
macro_rules! push {
    ($out:expr, $($text:tt)+) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)+);
    }};
}

pub mod beff;
mod date;
pub mod fio;
pub mod flags;
mod mpi;
pub mod net;
pub mod new;
mod refusal;
pub mod run;
pub mod top;

pub use refusal::Refusal;
