//! Quantities with units, so that a number never loses what it counts.
//!
//! In: text such as `4 KiB`, `1.5 GB/s`, `250 ms`. Out: newtypes over plain numbers, and text
//! again: `Display` with three significant digits, `exact()` which parses back to the same
//! value, `raw()` for the bare integer. Not here: the sizes of the fio job language, whose
//! suffixes mean something else (`weir-jobfile`).
//!
//! Units are case-sensitive and complete: `KiB` is 1024 bytes, `kB` is 1000, and `4k`, which
//! could be either, is refused with both spellings offered.

#![forbid(unsafe_code)]

mod count;
mod date;
mod error;
mod number;
mod rate;
mod share;
mod size;
mod time;

pub use count::{Count, QueueDepth};
pub use date::Date;
pub use error::ParseError;
pub use rate::{BinaryRate, BytesPerSec, Iops};
pub use share::Percent;
pub use size::{Bytes, DecimalSize};
pub use time::Nanos;
