//! Engines for files and for block and character devices, and everything about their targets.
//!
//! In: a job whose workload is block I/O. Out: operations carried out, through the worker loop of
//! `weir-run`; facts about the targets and what spoils the numbers. Not here: which operation
//! comes next, when, and how it is recorded (`weir-run`); words of any dialect.
//!
//! An engine is one file below `engine` and one line in its registry.
#![deny(unsafe_code)]

mod engine;
mod make;
mod memory;
mod place;
mod rank_part;
mod ready;
mod recorded;
mod runner;
mod target;
mod verified;
mod verify;

pub use engine::{availability, catalogue};
pub use runner::Block;
