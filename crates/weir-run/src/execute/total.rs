//! Logs of the bandwidth of the whole run: a record each half second, whatever runs.
//!
//! In: the workers' counters, of jobs that run and of those that have ended. Out: three files,
//! of reads, writes and trims. Not here: logs of a job (`log`).

use std::io;

use weir_schema::{Kind, Log, LogFormat, LogMeasure, LogRecord, Logged, TotalLog};
use weir_sys::clock::{Scale, Tick};
use weir_units::{Bytes, Nanos};

use crate::execute::running::{EndedJob, RunningJob};
use crate::log::LogFile;

const PERIOD: Nanos = Nanos(500_000_000);

/// The logs of a run.
#[derive(Debug)]
pub(super) struct BandwidthLog {
    files: [LogFile; 3],
    origin: Tick,
    last: Tick,
    bytes: [u64; 3],
    periods: u64,
    scale: Scale,
}

/// The files of a run's logs, by kind.
pub(super) fn paths(log: &TotalLog) -> [&str; 3] {
    Kind::DATA.map(|kind| log.paths.of(kind).as_str())
}

impl BandwidthLog {
    /// Makes the files.
    pub(super) fn open(
        log: &TotalLog,
        origin: Tick,
        scale: Scale,
        format: LogFormat,
    ) -> io::Result<Self> {
        let [read, write, trim] = paths(log).map(|path| LogFile::create(path, format));
        Ok(Self {
            files: [read?, write?, trim?],
            origin,
            last: origin,
            bytes: [0; 3],
            periods: 0,
            scale,
        })
    }

    fn next_tick(&self) -> Tick {
        let span = PERIOD.0.saturating_mul(self.periods + 1);
        self.origin.after(self.scale.to_ticks(Nanos(span)))
    }

    /// Writes a record if one is due.
    pub(super) fn look(&mut self, now: Tick, bytes: impl FnOnce() -> [u64; 3]) {
        if now < self.next_tick() {
            return;
        }
        while now >= self.next_tick() {
            self.periods += 1;
        }
        let over = Nanos(self.scale.to_nanos(now.since(self.last)));
        let at_ms = self.scale.to_nanos(now.since(self.origin)) / 1_000_000;
        let bytes = bytes();
        for (kind, file) in Kind::DATA.into_iter().zip(&mut self.files) {
            // Counts fall at the end of a ramp.
            let moved = bytes[kind.index()].saturating_sub(self.bytes[kind.index()]);
            let record = LogRecord {
                at_ms,
                kind,
                operation: None,
                measure: LogMeasure::Moved(Bytes(moved), over),
            };
            file.record(&columns(), &record);
            file.flush();
        }
        self.bytes = bytes;
        self.last = now;
    }

    /// What is wrong with the files, in sentences.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.files
            .iter_mut()
            .filter_map(LogFile::complaint)
            .collect()
    }
}

/// What its records look like.
fn columns() -> Log {
    Log {
        what: Logged::Bandwidth,
        path: String::new(),
        window_ns: PERIOD,
        maximum: false,
        offset: false,
        hex_priority: false,
        since_1970: false,
    }
}

/// Bytes that every worker so far has moved, by kind.
pub(super) fn bytes(running: &[RunningJob], ended: &[EndedJob]) -> [u64; 3] {
    let live = running.iter().flat_map(RunningJob::workers);
    let gone = ended.iter().flat_map(|job| &job.workers);
    let mut sums = [0; 3];
    for worker in live.chain(gone) {
        for (sum, kind) in sums.iter_mut().zip(&worker.live.kinds) {
            *sum += kind.bytes.get();
        }
    }
    sums
}
