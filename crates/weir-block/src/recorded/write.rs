//! Writing a job's operations as a pattern.
//!
//! In: operations as they complete. Out: the text, in the order in which they were issued. They
//! are kept until the end of the job, because completions overtake each other.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use weir_run::{OpTarget, OperationWriter, Traced, failure};
use weir_schema::{BlockWorkload, Failure, Job};
use weir_sys::clock::{Scale, Tick};

use super::VERSION_3;

/// The pattern of a job.
#[derive(Debug)]
pub(crate) struct PatternFile {
    path: String,
    file: File,
    /// The word for flushes.
    flush: &'static str,
    /// Worker and operation.
    operations: Vec<(u32, Traced)>,
}

impl PatternFile {
    /// Makes the file, where the job asks for it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn of(
        job: &Job,
        workload: &BlockWorkload,
    ) -> Result<Option<Box<dyn OperationWriter>>, Failure> {
        let Some(path) = &job.load().recording.record_operations_to else {
            return Ok(None);
        };
        let file = File::create(path).map_err(|error| {
            let message = format!("the pattern {path} cannot be written: {error}");
            failure("open", error.raw_os_error(), message)
        })?;
        Ok(Some(Box::new(Self {
            path: path.clone(),
            file,
            flush: flush_word(workload),
            operations: Vec::new(),
        })))
    }

    fn write(
        self,
        begin: Tick,
        scale: Scale,
        name: &dyn Fn(u32, u32) -> Option<String>,
    ) -> io::Result<()> {
        let mut out = BufWriter::new(self.file);
        writeln!(out, "{VERSION_3}")?;
        let mut names: Vec<String> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut places: HashMap<(u32, u32), usize> = HashMap::new();
        let mut last = 0;
        for (clone, op) in &self.operations {
            let at = scale.to_nanos(op.issued.since(begin)) / 1000;
            last = last.max(at);
            let OpTarget { number, offset } = op.acts_on;
            let offset = offset.unwrap_or(0);
            let key = (*clone, number);
            let place = if let Some(place) = places.get(&key) {
                *place
            } else {
                let name = name(*clone, number).unwrap_or_else(|| number.to_string());
                let place = numbers.get(&name).copied().unwrap_or(names.len());
                if place == names.len() {
                    writeln!(out, "{at} {name} add\n{at} {name} open")?;
                    numbers.insert(name.clone(), place);
                    names.push(name);
                }
                places.insert(key, place);
                place
            };
            let name = &names[place];
            match op.kind {
                0 => writeln!(out, "{at} {name} read {offset} {}", op.length)?,
                1 => writeln!(out, "{at} {name} write {offset} {}", op.length)?,
                2 => writeln!(out, "{at} {name} trim {offset} {}", op.length)?,
                _ => writeln!(out, "{at} {name} {} 0 0", self.flush)?,
            }
        }
        for name in &names {
            writeln!(out, "{last} {name} close")?;
        }
        out.flush()
    }
}

impl OperationWriter for PatternFile {
    fn note(&mut self, clone: u32, op: &Traced) {
        self.operations.push((clone, *op));
    }

    fn finish(
        mut self: Box<Self>,
        begin: Tick,
        scale: Scale,
        name: &dyn Fn(u32, u32) -> Option<String>,
    ) -> Option<String> {
        self.operations.sort_by_key(|(_, op)| op.issued);
        let path = std::mem::take(&mut self.path);
        let error = self.write(begin, scale, name).err()?;
        Some(format!("The pattern {path} is not whole: {error}."))
    }
}

/// The word for a flush in a pattern.
fn flush_word(workload: &BlockWorkload) -> &'static str {
    let flush = &workload.flush;
    if flush.fdatasync_every.is_some() && flush.fsync_every.is_none() {
        "datasync"
    } else {
        "sync"
    }
}
