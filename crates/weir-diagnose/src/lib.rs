//! Diagnosis of a packet path's bottleneck; the search for better settings of any command.
//!
//! In: the text of what was recorded of a packet path: the log with its tables ([`StageTables`]), the report
//! of the host ([`HostReport`]), what pcm and perf print; or the stored result, with what the run itself counted
//! ([`RecordedPath`]). Out: a [`Diagnosis`], as data and as text. Every
//! figure is a value or says why there is none ([`Reading`]). The search is in [`tune`]. Pure functions of the data. Not here:
//! reading files, words of command lines.
#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    reason = "counts become floating point where their error is far below noise"
)]

/// Appends formatted text to a string, which cannot fail.
macro_rules! push {
    ($out:expr, $($text:tt)+) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)+);
    }};
}

mod config_text;
mod counted;
mod diagnosis;
mod evidence;
mod host_text;
mod inputs;
mod reading;
mod recorded_path;
mod reference;
mod rules;
mod stage_tables;
mod text;
mod truth;
pub mod tune;

pub use config_text::ConfigText;
pub use counted::CountedFigures;
pub use diagnosis::{
    DIAGNOSIS_SCHEMA, Diagnosis, DiagnosisRule, DiagnosisSide, PathContext, RuleState,
};
pub use evidence::PathEvidence;
pub use host_text::{
    HOST_SCHEMA, HostFigure, HostMeasurement, INTERFACE_DROPS, NodeParts, RUN_DELAY, STEAL,
};
pub use inputs::{
    HostReport, InputError, IoRates, NodeBandwidth, PcieCounts, PerfCounts, SocketCounts,
    node_bandwidths, node_traffic,
};
pub use reading::Reading;
pub use recorded_path::RecordedPath;
pub use reference::{PathClass, ReferenceFinding};
pub use stage_tables::{StageRow, StageTable, StageTables, WorkspaceFigures};
pub use text::text;

#[cfg(test)]
mod tests;
