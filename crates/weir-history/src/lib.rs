//! The history: a database of what was measured, so that a figure can be held against those of other
//! days.
//!
//! In: results as they are measured. Out: results by id, label or age; series of one figure over the
//! runs of one plan on one machine, with the runs at which it changed. Not here: when a result is
//! kept and what a door makes of it (the program), how results are compared with each other.
//!
//! One database file, of `SQLite`. A process opens it when its run is over, and several may do so
//! at once; no transaction is open while something is measured.
#![forbid(unsafe_code)]

mod entry;
mod error;
mod export;
mod find;
mod fingerprint;
mod list;
mod open;
mod prune;
mod rows;
mod spread;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod trend;
mod ulid;
mod write;

pub use entry::{Entry, MetricRow};
pub use error::HistoryError;
pub use export::{ExportFilter, csv_header};
pub use find::RunName;
pub use fingerprint::{machine_key, plan_fingerprint};
pub use list::{ListFilter, ListRow, Listed};
pub use open::{History, is_database};
pub use prune::{PruneRule, Pruned};
pub use rows::{RunRow, SeriesKey};
pub use spread::MetricSpread;
pub use text::{HistoryText, date};
pub use trend::{Change, LEAST_CHANGE, SeriesRun, Trend};
pub use ulid::{FEWEST_CHARACTERS, SHOWN_CHARACTERS, is_id_prefix, is_short_id, new_id};
