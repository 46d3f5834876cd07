//! Engines for files and for block and character devices, and everything about their targets.
//!
//! In: a job whose workload is block I/O. Out: operations carried out, through the worker loop of
//! `weir-run`; facts about the targets and what spoils the numbers. Not here: when operations go
//! and how they are recorded (`weir-run`); words of any dialect.
//!
//! An engine is one file below `engine` and one line in its registry. Which operation comes next
//! is of `source`, with the generators of `generate`; `verify` marks and checks data; `recorded`
//! reads and writes patterns of operations.
#![deny(unsafe_code)]

mod buffer_total;
mod engine;
pub mod generate;
mod kinds;
mod make;
mod memory;
pub mod op;
mod plan_settings;
mod prepared;
mod rank_part;
pub mod recorded;
mod runner;
pub mod source;
mod target;
mod thread_placement;
pub mod verify;

#[cfg(feature = "vfio")]
pub use engine::vfio::{KEEPER, keep_drive};
pub use engine::{availability, catalogue};
pub use runner::Block;
