//! weir's own renderings of a result, and the progress line while a run goes on.
//!
//! In: a [`weir_schema::RunResult`] (or a [`progress::Snapshot`]) and a [`Style`]. Out: text, JSON, CSV,
//! Markdown, a page of HTML, plots.
//! Everything is a pure function of these, so that each rendering can be made again later from
//! a stored result. Not here: printing, terminals, files; the output of peers (`weir-doors`);
//! the wording of warnings, which whoever raises them brings along.
#![forbid(unsafe_code)]

/// Appends formatted text to a string, which cannot fail.
macro_rules! push {
    ($out:expr, $($text:tt)+) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)+);
    }};
}

mod color;
mod csv;
mod entry;
mod errno;
mod figures;
mod html;
mod json;
mod layout;
mod markdown;
mod number_format;
mod path_stages;
mod phrases;
mod plot;
pub mod progress;
pub mod prometheus;
mod style;
mod sweep;
mod text;

pub use color::clean;
pub use csv::{csv, csv_series};
pub use html::{LineTone, PageSection, SectionLine, SectionPart, html, runs_section};
pub use json::json;
pub use markdown::markdown;
pub use number_format::NumberFormat;
pub use plot::{LabelledResult, PlotChoice, svg};
pub use style::{ColorChoice, Flags, Style, Terminal};
pub use text::{runs_text, text};

#[cfg(test)]
mod sample;
