//! Parts that the fuzz targets share: a machine made of data, and the rules for every outcome.
//!
//! In: requests and documents that a target made of its input. Out: nothing, or a panic that
//! names the rule that was broken. Not here: the targets, one file each.
#![forbid(unsafe_code)]

mod machine;
mod outcome;
mod sample;

pub use machine::{Memory, catalogue, compile_in};
pub use outcome::{check, check_diagnostics, check_plan};
pub use sample::{plan, result};
