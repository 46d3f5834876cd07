//! Verification: marks data that is written and checks data that is read.
//!
//! In: the buffer of an operation and what is known of it. Out: the buffer with
//! a header, a checksum and data from a seed in each interval; or the first
//! interval that does not hold what it should, with what kind of damage it
//! looks like. Headers, checksums and the order of checks are those of fio
//! 3.33, so that either tool checks what the other has written. Not here: when
//! blocks are read back, what a mismatch does to a job, files of dumps. Cost:
//! example `verify_cost`.

mod block_mark;
mod check;
mod crc;
mod damage;
mod digest;
mod header;
mod interval_layout;
mod md5;
mod method;
pub(crate) mod outcome;
mod pattern;
mod plan_check;
pub(crate) mod run_mark;

pub use block_mark::{Expected, Marker, Stamp};
pub use check::{IntervalFinding, WrongByte};
pub use interval_layout::UnfitInterval;
pub use method::checksum;
pub(crate) use plan_check::{are_ordered, check, check_together};
