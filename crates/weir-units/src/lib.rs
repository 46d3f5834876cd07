//! Quantities with units, so that a number never loses what it counts.
//!
//! In: plain numbers, as newtypes. Out: text, as `4.00 KiB`, `1.50 GB/s`, `250 ms`: `Display` with
//! three significant digits, `exact()` with all of a size; `raw()` for the bare integer. Units are
//! complete: `KiB` is 1024 bytes, `kB` is 1000. [`parse`] reads quantities of command lines. Not here:
//! the grammars of peers' files.

#![forbid(unsafe_code)]

mod count;
mod date;
mod number;
pub mod parse;
mod rate;
mod share;
mod size;
mod time;

/// Describes a type in the JSON Schemas of plans and results. Without the feature `json-schema` it
/// derives nothing.
#[cfg(feature = "json-schema")]
pub use schemars::JsonSchema;
#[cfg(not(feature = "json-schema"))]
pub use weir_no_schema::JsonSchema;

pub use count::{Count, QueueDepth};
pub use date::Date;
pub use rate::{BinaryRate, BytesPerSec, Iops};
pub use share::Percent;
pub use size::{Bytes, DecimalSize};
pub use time::Nanos;
