//! One log of all workers of a job.
//!
//! A window that ends with its worker is no window of a rate: only latencies have a last,
//! shorter one, whose line has the time of the worker's end.

use std::sync::Arc;

use weir_schema::{Log, LogMeasure, LogOperation, LogRecord, Logged, Recording};
use weir_stats::Histogram;
use weir_sys::clock::Tick;
use weir_units::{Bytes, Nanos};

use super::file::SharedFile;
use super::{LogOrigin, LogsWritten};
use crate::execute::last_done;
use crate::live::{KINDS, LiveKind, WorkerLive};
use crate::trace::Traced;

const MILLISECOND: u64 = 1_000_000;
/// Lines of operations are handed to the system this often.
const FLUSH: Nanos = Nanos(500_000_000);

/// Latencies that a job records.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Stages {
    /// An engine that completes inside the call has no submission latency, and its completion
    /// latency is the total one.
    inline: bool,
    slat: bool,
    clat: bool,
    lat: bool,
}

impl Stages {
    pub(super) fn of(recording: &Recording, inline: bool) -> Self {
        let Recording {
            slat, clat, lat, ..
        } = *recording;
        Self {
            inline,
            slat: slat && !inline,
            clat,
            lat,
        }
    }

    /// The latencies that a log is of, where they are recorded.
    fn snapshot(self, what: Logged, kind: &LiveKind) -> Option<Histogram> {
        let recorder = match what {
            Logged::Slat if self.slat => &kind.slat,
            Logged::Clat | Logged::Buckets { .. } if self.clat && self.inline => &kind.lat,
            Logged::Clat | Logged::Buckets { .. } if self.clat => &kind.clat,
            Logged::Lat if self.lat => &kind.lat,
            _ => return None,
        };
        recorder.snapshot()
    }
}

/// A log, its files and what was seen so far.
#[derive(Debug)]
pub(super) struct Windows {
    log: Log,
    /// Of each worker's I/O.
    priority: u16,
    files: Vec<SharedFile>,
    origin: Option<LogOrigin>,
    passed: u64,
    last: Tick,
    flush_at: Tick,
    seen: Vec<[Seen; KINDS]>,
}

/// Counts and latencies of a worker's kind at the end of the last window.
#[derive(Clone, Debug, Default)]
struct Seen {
    operations: u64,
    bytes: u64,
    latencies: Histogram,
}

impl Windows {
    pub(super) fn new(log: &Log, priority: u16, files: Vec<SharedFile>) -> Self {
        Self {
            log: log.clone(),
            priority,
            seen: vec![Default::default(); files.len()],
            files,
            origin: None,
            passed: 0,
            last: Tick(0),
            flush_at: Tick(0),
        }
    }

    pub(super) fn begin(&mut self, origin: LogOrigin) {
        self.origin = Some(origin);
        self.last = origin.begin;
        self.flush_at = origin.begin;
    }

    pub(super) fn next_tick(&self) -> Option<Tick> {
        let origin = self.origin.filter(|_| self.log.window_ns.0 > 0)?;
        let span = self.log.window_ns.0.saturating_mul(self.passed + 1);
        Some(origin.begin.after(origin.scale.to_ticks(Nanos(span))))
    }

    pub(super) fn look(&mut self, lives: &[Arc<WorkerLive>], stages: Stages, now: Tick) {
        let Some(origin) = self.origin else { return };
        if let Some(due) = self.next_tick().filter(|&tick| now >= tick) {
            for (clone, live) in lives.iter().enumerate() {
                let gone = last_done(live).is_some_and(|end| end <= due);
                let over = gone || origin.bound.is_some_and(|bound| bound <= due);
                if !over || self.is_latency() {
                    self.window(clone, live, stages, now);
                }
            }
            // Windows that were slept through are one.
            while self.next_tick().is_some_and(|tick| now >= tick) {
                self.passed += 1;
            }
            self.last = now;
        }
        if now >= self.flush_at {
            self.flush_at = now.after(origin.scale.to_ticks(FLUSH));
            self.files.iter().for_each(|f| f.borrow_mut().flush());
        }
    }

    pub(super) fn finish(&mut self, lives: &[Arc<WorkerLive>], stages: Stages, now: Tick) {
        self.look(lives, stages, now);
        if self.log.window_ns.0 > 0 && self.is_latency() {
            for (clone, live) in lives.iter().enumerate() {
                self.window(clone, live, stages, now);
            }
        }
    }

    pub(super) fn report(&self, written: &mut LogsWritten) {
        for file in &self.files {
            let mut file = file.borrow_mut();
            if !written.paths.iter().any(|p| p == file.path()) {
                written.paths.push(file.path().to_owned());
                written.wrong.extend(file.complaint());
            }
        }
    }

    /// Latencies are means, so that a window may be of any length.
    fn is_latency(&self) -> bool {
        matches!(self.log.what, Logged::Slat | Logged::Clat | Logged::Lat)
    }

    /// Milliseconds from the log's zero to an instant.
    fn at_ms(&self, origin: &LogOrigin, at: Tick) -> u64 {
        let since = origin.scale.to_nanos(at.since(origin.begin)) / MILLISECOND;
        if self.log.since_1970 {
            origin.unix_ms + since
        } else {
            since
        }
    }

    /// Writes what a worker did since the last window.
    fn window(&mut self, clone: usize, live: &WorkerLive, stages: Stages, now: Tick) {
        let (Some(origin), Some(file)) = (self.origin, self.files.get(clone)) else {
            return;
        };
        if origin.ramps && live.resets() == 0 {
            return;
        }
        // Rates are per whole millisecond, like the time of a line.
        let nanos = origin.scale.to_nanos(now.since(self.last));
        let over = Nanos(nanos.max(MILLISECOND) / MILLISECOND * MILLISECOND);
        let until = last_done(live).map_or(now, |end| end.min(now));
        let at_ms = self.at_ms(&origin, until);
        let mut file = file.borrow_mut();
        let kinds = live.declared.iter().zip(&live.kinds);
        for ((info, live), seen) in kinds.zip(&mut self.seen[clone]) {
            if info.is_aside {
                continue;
            }
            let since = seen.advance(live, self.log.what, stages);
            if let Some(measure) = since.measure(&self.log, over) {
                let record = LogRecord {
                    at_ms,
                    kind: info.name,
                    operation: None,
                    measure,
                };
                file.record(&self.log, &record);
            }
        }
    }

    /// Writes an operation.
    pub(super) fn operation(
        &mut self,
        clone: usize,
        live: &WorkerLive,
        op: &Traced,
        stages: Stages,
    ) {
        let (Some(origin), Some(file)) = (self.origin, self.files.get(clone)) else {
            return;
        };
        let scale = origin.scale;
        let accepted = op.issued.after(scale.to_ticks(Nanos(op.slat_ns)));
        let done = op.issued.after(scale.to_ticks(Nanos(op.lat_ns)));
        let kind = live.declared.get(usize::from(op.kind));
        let Some(kind) = kind.filter(|kind| !kind.is_aside) else {
            return;
        };
        if self.log.window_ns.0 > 0 || op.errno != 0 || done < origin.begin {
            return;
        }
        let clat = Nanos(op.lat_ns.saturating_sub(op.slat_ns));
        let length = Bytes(op.length.into());
        let (at, measure) = match self.log.what {
            Logged::Bandwidth => (done, LogMeasure::Moved(length, clat)),
            Logged::Operations => (done, LogMeasure::Completed(1, clat)),
            Logged::Slat if stages.slat => (accepted, LogMeasure::Latency(Nanos(op.slat_ns))),
            Logged::Clat if stages.clat => (done, LogMeasure::Latency(clat)),
            Logged::Lat if stages.lat => (done, LogMeasure::Latency(Nanos(op.lat_ns))),
            _ => return,
        };
        let record = LogRecord {
            at_ms: self.at_ms(&origin, at),
            kind: kind.name,
            operation: Some(LogOperation {
                offset: op.acts_on.offset.unwrap_or(0),
                length,
                priority: self.priority,
            }),
            measure,
        };
        file.borrow_mut().record(&self.log, &record);
    }
}

impl Seen {
    /// The value that a log records for this work over a time; nothing where there was no work.
    fn measure(&self, log: &Log, over: Nanos) -> Option<LogMeasure<'_>> {
        if self.operations == 0 && self.latencies.is_empty() {
            return None;
        }
        Some(match log.what {
            Logged::Bandwidth => LogMeasure::Moved(Bytes(self.bytes), over),
            Logged::Operations => LogMeasure::Completed(self.operations, over),
            Logged::Slat | Logged::Clat | Logged::Lat if log.maximum => {
                LogMeasure::Latency(Nanos(self.latencies.max()?))
            }
            Logged::Slat | Logged::Clat | Logged::Lat => {
                let count = u128::from(self.latencies.count());
                let mean = self.latencies.sum().checked_div(count)?;
                LogMeasure::Latency(Nanos(mean.try_into().ok()?))
            }
            Logged::Buckets { coarseness } => LogMeasure::Buckets {
                latencies: &self.latencies,
                mean: Bytes(self.bytes.checked_div(self.operations).unwrap_or(0)),
                coarseness,
            },
        })
    }

    /// Work since the last call; counts that fell were started anew.
    fn advance(&mut self, live: &LiveKind, what: Logged, stages: Stages) -> Self {
        let latencies = stages.snapshot(what, live).unwrap_or_default();
        let now = Self {
            operations: live.completed.get(),
            bytes: live.bytes.get(),
            latencies,
        };
        let since = Self {
            operations: now
                .operations
                .checked_sub(self.operations)
                .unwrap_or(now.operations),
            bytes: now.bytes.checked_sub(self.bytes).unwrap_or(now.bytes),
            latencies: now
                .latencies
                .since(&self.latencies)
                .unwrap_or_else(|_| now.latencies.clone()),
        };
        *self = now;
        since
    }
}
