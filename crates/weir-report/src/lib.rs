//! weir's own renderings of a result, and the progress line while a run goes on.
//!
//! In: a [`weir_schema::RunResult`] (or a [`progress::Snapshot`]) and a [`Style`]. Out: text.
//! Everything is a pure function of these, so that each rendering can be made again later from
//! a stored result. Not here: printing, terminals, files; the output of peers (`weir-doors`);
//! the wording of warnings, which whoever raises them brings along.
#![forbid(unsafe_code)]

mod color;
mod entry;
mod errno;
mod json;
mod layout;
mod number_format;
mod phrases;
pub mod progress;
pub mod prometheus;
mod style;
mod text;

pub use color::clean;
pub use json::json;
pub use style::{ColorChoice, Flags, Style, Terminal};
pub use text::{runs_text, text};

#[cfg(test)]
mod sample;
