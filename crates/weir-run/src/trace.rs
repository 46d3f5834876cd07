//! Per-operation traces: a preallocated queue per worker that the run drains into a file and
//! into logs.
//!
//! In: completions, from the worker. Out: a CSV line each. A worker that is faster than they are
//! written waits before its queue is full; once it is to end it waits no more, and what finds no
//! room then is counted. Not here: formats of peers' logs.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use crossbeam_queue::ArrayQueue;
use weir_schema::KindInfo;
use weir_sys::clock::{Scale, Tick};

use crate::engine::OpTarget;
use crate::live::Counter;

/// Operations that a queue holds at least: a quarter of a second at a million per second.
const ROOM: usize = 1 << 18;
/// The first line of a trace.
const HEADER: &str = "worker,kind,target,offset_bytes,length_bytes,issued_ns,lat_ns,error\n";

/// One completed operation.
#[derive(Clone, Copy, Debug)]
pub struct Traced {
    /// Its start.
    pub issued: Tick,
    /// From there to its completion.
    pub lat_ns: u64,
    /// Until it was accepted; 0 where the engine completes inside the call.
    pub slat_ns: u64,
    /// Target that it acted on.
    pub acts_on: OpTarget,
    /// Bytes.
    pub length: u32,
    /// Index of its kind.
    pub kind: u8,
    /// Class that sets it apart from others of its kind.
    pub class: u16,
    /// Error number; 0 if it did not fail.
    pub errno: i32,
}

/// A worker's queue.
#[derive(Debug)]
pub(crate) struct TraceQueue {
    queue: ArrayQueue<Traced>,
    dropped: Counter,
}

impl TraceQueue {
    /// A queue with room for at least so many.
    pub(crate) fn new(wanted: u32) -> Self {
        let room = usize::try_from(wanted).unwrap_or(ROOM).max(ROOM);
        Self {
            queue: ArrayQueue::new(room),
            dropped: Counter::default(),
        }
    }

    /// Notes an operation; the worker's thread only.
    pub(crate) fn push(&self, traced: Traced) {
        if self.queue.push(traced).is_err() {
            self.dropped.add(1);
        }
    }

    /// It is more than half full; the worker's thread only.
    pub(crate) fn is_filling(&self) -> bool {
        self.queue.len() > self.queue.capacity() / 2
    }

    /// Operations in it.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Takes an operation out; the run's thread only.
    pub(crate) fn pop(&self) -> Option<Traced> {
        self.queue.pop()
    }

    /// Operations that found no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}

/// The file of a job's trace.
#[derive(Debug)]
pub(crate) struct TraceFile {
    path: String,
    kinds: &'static [KindInfo],
    out: BufWriter<File>,
    failed: Option<io::Error>,
}

impl TraceFile {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(path: &str, kinds: &'static [KindInfo]) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        out.write_all(HEADER.as_bytes())?;
        Ok(Self {
            path: path.to_owned(),
            kinds,
            out,
            failed: None,
        })
    }

    /// Writes an operation, with times since the job's start. After an error nothing more is
    /// written.
    pub(crate) fn write(&mut self, worker: u32, op: &Traced, begin: Tick, scale: Scale) {
        if self.failed.is_some() {
            return;
        }
        let kind = self.kinds.get(usize::from(op.kind));
        let offset = op
            .acts_on
            .offset
            .map_or_else(String::new, |o| o.to_string());
        let issued = scale.to_nanos(op.issued.since(begin));
        let error = if op.errno == 0 {
            String::new()
        } else {
            op.errno.to_string()
        };
        let line = writeln!(
            self.out,
            "{worker},{},{},{},{},{issued},{},{error}",
            kind.map_or("", |info| info.name),
            op.acts_on.number,
            offset,
            op.length,
            op.lat_ns
        );
        self.failed = line.err();
    }

    /// The end of the file: what went wrong, in a sentence.
    pub(crate) fn finish(mut self) -> Option<String> {
        let flushed = self.out.flush().err();
        let error = self.failed.or(flushed)?;
        Some(format!("The trace {} is not whole: {error}.", self.path))
    }
}
