//! The latencies of one stage of one kind of operation.
//!
//! In: a latency per operation, or a whole histogram of a loop elsewhere. Out: snapshots, from any
//! thread. Not here: which stages are recorded.

use weir_stats::{Histogram, Recorder};

/// The histogram of one latency stage, if it is recorded.
#[derive(Debug, Default)]
pub enum StageRecorder {
    /// Not recorded.
    #[default]
    Off,
    /// Recorded.
    Plain(Box<Recorder<false>>),
    /// Recorded with exact squares.
    Squares(Box<Recorder<true>>),
}

impl StageRecorder {
    pub(crate) fn new(on: bool, squares: bool) -> Self {
        match (on, squares) {
            (false, _) => Self::Off,
            (true, false) => Self::Plain(Box::default()),
            (true, true) => Self::Squares(Box::default()),
        }
    }

    /// Counts a latency; the writer's thread only.
    #[inline]
    pub fn record(&self, nanos: u64) {
        match self {
            Self::Off => {}
            Self::Plain(recorder) => recorder.record(nanos),
            Self::Squares(recorder) => recorder.record(nanos),
        }
    }

    /// The recorder without squares, if it is that.
    pub(crate) fn plain(&self) -> Option<&Recorder<false>> {
        match self {
            Self::Plain(recorder) => Some(recorder),
            Self::Off | Self::Squares(_) => None,
        }
    }

    /// The recorder with exact squares, if it is that.
    pub(crate) fn squares(&self) -> Option<&Recorder<true>> {
        match self {
            Self::Squares(recorder) => Some(recorder),
            Self::Off | Self::Plain(_) => None,
        }
    }

    /// Takes a whole histogram; the writer's thread only.
    pub fn add(&self, counted: &Histogram) {
        match self {
            Self::Off => {}
            Self::Plain(recorder) => recorder.add(counted),
            Self::Squares(recorder) => recorder.add(counted),
        }
    }

    /// Values recorded so far, from any thread.
    pub fn snapshot(&self) -> Option<Histogram> {
        match self {
            Self::Off => None,
            Self::Plain(recorder) => Some(recorder.snapshot()),
            Self::Squares(recorder) => Some(recorder.snapshot()),
        }
    }

    pub(crate) fn reset(&self) {
        match self {
            Self::Off => {}
            Self::Plain(recorder) => recorder.reset(),
            Self::Squares(recorder) => recorder.reset(),
        }
    }
}
