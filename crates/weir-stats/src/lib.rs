//! Histograms, percentiles, means with error, interval series, significance.
//!
//! In: measured values, counts per interval. Out: figures that say how sure they are. The
//! values are plain numbers, in whatever unit the caller counts (latencies: nanoseconds).
//! Nothing here reads a clock, a file or a socket; everything is deterministic, the resampling
//! included.
//!
//! - While a run goes on: [`Recorder`] and [`FineRecorder`], one writer, read by anyone at any time.
//! - Afterwards: [`Histogram`] (merged exactly, percentiles), [`Moments`], [`Series`], [`RowCounts`].
//! - How sure: [`BatchStore`] collects a run in bounded memory and gives every figure as an
//!   [`Estimate`] with its 95 % interval; [`warmup`] tests the warm-up; [`BetweenRuns`] adds up
//!   equal runs, [`significance`] compares two, [`change_points`] finds levels in many.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    reason = "counts become floating point where their error is stated or far below noise"
)]

mod batch;
mod between;
mod bucket;
pub mod change_points;
mod estimate;
mod fine_recorder;
mod gap;
mod histogram;
mod moments;
mod percentile;
mod percentile_interval;
mod random;
mod recorder;
mod recorder_sums;
mod row_counts;
mod series;
mod series_mean;
pub mod significance;
pub mod warmup;
mod wire;

pub use batch::{Batch, BatchError, BatchStore};
pub use between::BetweenRuns;
pub use bucket::{DEFAULT_BITS, MAX_BITS, MIN_BITS};
pub use estimate::{Estimate, NoInterval};
pub use fine_recorder::FineRecorder;
pub use gap::Gap;
pub use histogram::{Bucket, Histogram, HistogramError, Spread};
pub use moments::Moments;
pub use recorder::{Recorder, Tally};
pub use row_counts::RowCounts;
pub use series::{Series, SeriesError, SeriesPoint};
pub use series_mean::SeriesMean;
