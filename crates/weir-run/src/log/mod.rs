//! Logs of a job as it runs: a record per operation, or per window.
//!
//! In: completed operations from the workers' queues, and the workers' counters and histograms
//! at the end of each window, both read by the run's thread. Out: records in files. The workers'
//! path is the one of the trace; windows cost it nothing. Not here: how a record is put into words
//! (the run is given a [`weir_schema::LogFormat`]), the run's total bandwidth (`execute::bandwidth_log`).

mod file;
mod windows;

use std::io;
use std::sync::Arc;

use weir_schema::{Job, Log, Logged, Recording};
use weir_sys::clock::{Scale, Tick};
use weir_sys::priority::io_priority;

use crate::live::WorkerLive;
use crate::trace::Traced;

pub use file::inflate_log;
pub(crate) use file::{LogFile, LogFiles, check_writable};
use windows::{Stages, Windows};

/// The logs of a job.
#[derive(Debug, Default)]
pub(crate) struct JobLogs {
    logs: Vec<Windows>,
    stages: Stages,
}

/// Begin of a job's logs, and the scale of their times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogOrigin {
    /// The end of ramp.
    pub(crate) begin: Tick,
    /// Time at which the job's time is up.
    pub(crate) bound: Option<Tick>,
    /// There is a ramp, whose end the workers count as a reset.
    pub(crate) ramps: bool,
    pub(crate) scale: Scale,
    /// `begin`, in milliseconds since 1970.
    pub(crate) unix_ms: u64,
}

/// Result of writing a job's logs.
#[derive(Debug, Default)]
pub(crate) struct LogsWritten {
    /// The files.
    pub(crate) paths: Vec<String>,
    /// Errors, in sentences.
    pub(crate) wrong: Vec<String>,
}

/// The file of a worker's log, by the worker's number from 0.
pub(crate) fn path(log: &Log, worker: u32) -> String {
    let number = worker.saturating_add(1).to_string();
    log.path.replace("$worker", &number)
}

/// Every operation is to be seen alone.
pub(crate) fn wants_operations(recording: &Recording) -> bool {
    let alone = |log: &Log| log.window_ns.0 == 0 && !matches!(log.what, Logged::Buckets { .. });
    recording.logs.iter().any(alone)
}

impl JobLogs {
    /// Opens the files of every worker; the one that cannot be written, and why.
    pub(crate) fn open(
        job: &Job,
        first_worker: u32,
        inline: bool,
        files: &mut LogFiles,
    ) -> Result<Self, (String, io::Error)> {
        let priority = job.placement.io_priority;
        let priority = priority.map_or(0, |given| io_priority(given.class, given.level));
        let mut logs = Vec::new();
        for log in &job.load().recording.logs {
            let mut of_workers = Vec::new();
            for clone in 0..job.clones {
                let path = path(log, first_worker + clone);
                of_workers.push(
                    files
                        .open(&path, log.compressed)
                        .map_err(|error| (path, error))?,
                );
            }
            logs.push(Windows::new(log, priority, of_workers));
        }
        Ok(Self {
            logs,
            stages: Stages::of(&job.load().recording, inline),
        })
    }

    /// The job was released.
    pub(crate) fn begin(&mut self, origin: LogOrigin) {
        for log in &mut self.logs {
            log.begin(origin);
        }
    }

    /// End of the next window.
    pub(crate) fn next_tick(&self) -> Option<Tick> {
        self.logs.iter().filter_map(Windows::next_tick).min()
    }

    /// Writes what is due.
    pub(crate) fn look(&mut self, lives: &[Arc<WorkerLive>], now: Tick) {
        for log in &mut self.logs {
            log.look(lives, self.stages, now);
        }
    }

    /// Writes an operation of a worker.
    pub(crate) fn operation(&mut self, clone: usize, live: &WorkerLive, op: &Traced) {
        for log in &mut self.logs {
            log.operation(clone, live, op, self.stages);
        }
    }

    /// The end: what is left of the last window.
    pub(crate) fn finish(mut self, lives: &[Arc<WorkerLive>], now: Tick) -> LogsWritten {
        let mut written = LogsWritten::default();
        for log in &mut self.logs {
            log.finish(lives, self.stages, now);
            log.report(&mut written);
        }
        written
    }
}
