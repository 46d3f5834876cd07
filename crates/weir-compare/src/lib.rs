//! Compares results: what changed, how sure that is, and what is to be done about it.
//!
//! In: the [`Sides`], each with its [`weir_schema::RunResult`]s, and a [`Rule`]. Out: a [`Comparison`],
//! as plain data and as text for people and programs; whether conditions of `--fail-if` hold
//! ([`Condition`]). Every figure is found by its name in a job's headline figures, or follows from what
//! was counted, so that every workload can be compared. Pure functions of the data, resampling
//! included. Not here: carrying runs out, reading files.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    reason = "counts become floating point where their error is far below noise"
)]

mod compare;
mod comparison;
mod condition;
mod differences;
mod figures;
mod job;
mod judge;
mod machine;
mod one_figure;
mod page;
mod pair;
mod remarks;
mod rule;
mod table;
mod text;
mod words;

pub use compare::{CompareError, FigureSpread, Side, Sides, compare};
#[cfg(feature = "json-schema")]
pub use comparison::json_schema;
pub use comparison::{
    COMPARISON_SCHEMA, Comparison, Difference, HeldCondition, JobComparison, LatencyGap, Method,
    MetricComparison, PairComparison, RunSpread, SideSummary, Verdict,
};
pub use condition::{BlindCondition, Condition, ConditionError, blind, held};
pub use machine::{csv, json, junit, markdown};
pub use one_figure::{FigureError, one_figure};
pub use page::page_section;
pub use rule::{Rule, USUAL_ALPHA, USUAL_METRICS, is_of_loops, least_rounds, names_of_loops};
pub use text::text;
pub use words::brief_percent;

#[cfg(test)]
mod simulations;
