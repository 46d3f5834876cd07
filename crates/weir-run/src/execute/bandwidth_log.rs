//! Logs of the bandwidth of the whole run: a record each half second, whatever runs.
//!
//! In: the workers' counters, of jobs that run and of those that have ended. Out: three files,
//! of reads, writes and trims. Not here: logs of a job (`log`).

use std::io;

use weir_schema::{ByKind, KindName, Log, LogFormat, LogMeasure, LogRecord, Logged, TotalLog};
use weir_sys::clock::{Scale, Tick};
use weir_units::{Bytes, Nanos};

use crate::execute::running::{EndedJob, RunningJob};
use crate::log::LogFile;

const PERIOD: Nanos = Nanos(500_000_000);

/// The logs of a run.
#[derive(Debug)]
pub(super) struct BandwidthLog {
    files: Vec<(KindName, LogFile)>,
    origin: Tick,
    last: Tick,
    bytes: ByKind<u64>,
    periods: u64,
    scale: Scale,
}

/// The files of a run's logs, by kind.
pub(super) fn paths(log: &TotalLog) -> impl Iterator<Item = &str> {
    log.paths.values().map(String::as_str)
}

impl BandwidthLog {
    /// Makes the files.
    pub(super) fn open(
        log: &TotalLog,
        origin: Tick,
        scale: Scale,
        format: LogFormat,
    ) -> io::Result<Self> {
        let file = |(kind, path): (&KindName, &String)| {
            Ok((kind.clone(), LogFile::create(path, false, format)?))
        };
        let files: io::Result<_> = log.paths.iter().map(file).collect();
        Ok(Self {
            files: files?,
            origin,
            last: origin,
            bytes: ByKind::new(),
            periods: 0,
            scale,
        })
    }

    fn next_tick(&self) -> Tick {
        let span = PERIOD.0.saturating_mul(self.periods + 1);
        self.origin.after(self.scale.to_ticks(Nanos(span)))
    }

    /// Writes a record if one is due.
    pub(super) fn write_if_due(&mut self, now: Tick, bytes: impl FnOnce() -> ByKind<u64>) {
        if now < self.next_tick() {
            return;
        }
        while now >= self.next_tick() {
            self.periods += 1;
        }
        let over = Nanos(self.scale.to_nanos(now.since(self.last)));
        let at_ms = self.scale.to_nanos(now.since(self.origin)) / 1_000_000;
        let bytes = bytes();
        let count = |of: &ByKind<u64>, name| of.get(name).copied().unwrap_or(0);
        for (kind, file) in &mut self.files {
            // Counts fall at the end of a ramp.
            let moved = count(&bytes, kind).saturating_sub(count(&self.bytes, kind));
            let record = LogRecord {
                at_ms,
                kind: kind.as_str(),
                operation: None,
                measure: LogMeasure::Moved(Bytes(moved), over),
            };
            file.record(&columns(), &record);
            file.flush();
        }
        self.bytes = bytes;
        self.last = now;
    }

    /// Errors of the files, in sentences.
    pub(super) fn finish(mut self) -> Vec<String> {
        self.files
            .iter_mut()
            .filter_map(|(_, file)| file.complaint())
            .collect()
    }
}

/// Format of the records.
fn columns() -> Log {
    Log {
        what: Logged::Bandwidth,
        path: String::new(),
        window_ns: PERIOD,
        maximum: false,
        offset: false,
        hex_priority: false,
        since_1970: false,
        compressed: false,
    }
}

/// Bytes that every worker so far has moved, by kind.
pub(super) fn bytes(running: &[Box<RunningJob>], ended: &[EndedJob]) -> ByKind<u64> {
    let live = running.iter().flat_map(|job| job.workers());
    let gone = ended.iter().flat_map(|job| &job.workers);
    let mut sums = ByKind::new();
    for worker in live.chain(gone) {
        for (info, kind) in worker.live.declared.iter().zip(&worker.live.kinds) {
            *sums.entry(info.into()).or_default() += kind.bytes.get();
        }
    }
    sums
}
