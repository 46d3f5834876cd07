//! Files that a job writes while it runs: its trace and its logs.
//!
//! In: the workers' queues and counters, looked at by the run's thread. Out: files, and what is
//! wrong with them. Not here: what lines say (`log`, `trace`).

use std::sync::Arc;

use weir_schema::{Failure, Job};
use weir_sys::clock::{Scale, Tick};

use crate::execute::running::JobSetup;
use crate::live::WorkerLive;
use crate::log::{JobLogs, LogFiles, LogOrigin, LogsWritten, path, wants_operations};
use crate::runner::{OperationWriter, Prepared, failure};
use crate::trace::TraceFile;

/// The trace and the logs of a job.
#[derive(Default)]
pub(super) struct JobRecorder {
    trace: Option<TraceFile>,
    writer: Option<Box<dyn OperationWriter>>,
    logs: JobLogs,
    by_operation: bool,
    first_worker: u32,
    lives: Vec<Arc<WorkerLive>>,
    release: Option<(Tick, Scale)>,
}

impl JobRecorder {
    /// Opens the job's files.
    pub(super) fn open(setup: &JobSetup<'_>, files: &mut LogFiles) -> Result<Self, Failure> {
        let job = setup.entry.job;
        let first_worker = setup.entry.first_worker;
        let unwritable = |what: &str, path: &str, error: &std::io::Error| {
            let message = format!("the {what} {path} cannot be written: {error}");
            failure("open", error.raw_os_error(), message)
        };
        let trace = match &job.load().recording.trace {
            None => None,
            Some(trace) => Some(
                TraceFile::create(&trace.path, job.workload.kinds())
                    .map_err(|error| unwritable("trace", &trace.path, &error))?,
            ),
        };
        let writer = setup.prepared.operation_writer()?;
        let logs = JobLogs::open(job, first_worker, setup.prepared.is_inline(), files)
            .map_err(|(path, error)| unwritable("log", &path, &error))?;
        Ok(Self {
            by_operation: trace.is_some()
                || writer.is_some()
                || wants_operations(&job.load().recording),
            trace,
            writer,
            logs,
            first_worker,
            lives: Vec::new(),
            release: None,
        })
    }

    /// Every operation is to be seen alone; queues fill up fast then.
    pub(super) fn is_by_operation(&self) -> bool {
        self.by_operation
    }

    /// The workers were released.
    pub(super) fn begin(&mut self, lives: Vec<Arc<WorkerLive>>, release: Tick, origin: LogOrigin) {
        self.lives = lives;
        self.release = Some((release, origin.scale));
        self.logs.begin(origin);
    }

    pub(super) fn next_tick(&self) -> Option<Tick> {
        self.logs.next_tick()
    }

    /// Writes what has come and what is due.
    pub(super) fn write_due(&mut self, now: Tick) {
        let Some((release, scale)) = self.release else {
            return;
        };
        for (clone, live) in self.lives.iter().enumerate() {
            let Some(queue) = &live.trace else { continue };
            let number = self.first_worker + u32::try_from(clone).unwrap_or(u32::MAX);
            // What comes meanwhile is for the next time: others wait for the run's thread too.
            for _ in 0..queue.len() {
                let Some(op) = queue.pop() else { break };
                if let Some(trace) = &mut self.trace {
                    trace.write(number, &op, release, scale);
                }
                if let Some(writer) = &mut self.writer {
                    writer.note(number - self.first_worker, &op);
                }
                self.logs.operation(clone, live, &op);
            }
        }
        self.logs.look(&self.lives, now);
    }

    /// The end of every file.
    pub(super) fn finish(mut self, now: Tick, prepared: &dyn Prepared) -> LogsWritten {
        self.write_due(now);
        let mut written = self.logs.finish(&self.lives, now);
        written.wrong.extend(self.trace.and_then(TraceFile::finish));
        if let (Some(writer), Some((begin, scale))) = (self.writer, self.release) {
            let name = |clone, target| prepared.target_name(clone, target);
            written.wrong.extend(writer.finish(begin, scale, &name));
        }
        let queues = self.lives.iter().filter_map(|live| live.trace.as_ref());
        let dropped: u64 = queues.map(|queue| queue.dropped()).sum();
        if dropped > 0 {
            written.wrong.push(format!(
                "{dropped} operations are missing in its trace or logs: they came faster than \
                 they could be written."
            ));
        }
        written
    }
}

/// The files of a job that cannot be written, found before anything starts.
pub(super) fn unwritable(job: &Job, first_worker: u32) -> Vec<Failure> {
    let logs = job.load().recording.logs.iter();
    let mut paths: Vec<String> = logs
        .flat_map(|log| (0..job.clones).map(move |clone| path(log, first_worker + clone)))
        .collect();
    paths.extend(
        job.load()
            .recording
            .trace
            .iter()
            .map(|trace| trace.path.clone()),
    );
    paths.extend(job.load().recording.record_operations_to.clone());
    paths.dedup();
    paths.iter().filter_map(|path| check(path)).collect()
}

/// Failure of a log whose file cannot be written.
pub(super) fn check(path: &str) -> Option<Failure> {
    let error = crate::log::check_writable(path).err()?;
    let message = format!("the log {path} cannot be written: {error}");
    Some(failure("log", error.raw_os_error(), message))
}
