//! Writing a job's operations as a pattern.
//!
//! In: operations as they complete. Out: the text, in the order in which they were issued. They
//! are kept until the end of the job, because completions overtake each other.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};

use weir_sys::clock::{Scale, Tick};

use super::VERSION_3;
use crate::trace::Traced;

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
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn create(path: &str, flush: &'static str) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: File::create(path)?,
            flush,
            operations: Vec::new(),
        })
    }

    /// Notes an operation.
    pub(crate) fn note(&mut self, clone: u32, op: &Traced) {
        self.operations.push((clone, *op));
    }

    /// Writes the file: what went wrong, in a sentence.
    pub(crate) fn finish(
        mut self,
        begin: Tick,
        scale: Scale,
        name: impl Fn(u32, u32) -> Option<String>,
    ) -> Option<String> {
        self.operations.sort_by_key(|(_, op)| op.issued);
        let path = std::mem::take(&mut self.path);
        let error = self.write(begin, scale, name).err()?;
        Some(format!("The pattern {path} is not whole: {error}."))
    }

    fn write(
        self,
        begin: Tick,
        scale: Scale,
        name: impl Fn(u32, u32) -> Option<String>,
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
            let key = (*clone, op.target);
            let place = if let Some(place) = places.get(&key) {
                *place
            } else {
                let name = name(*clone, op.target).unwrap_or_else(|| op.target.to_string());
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
                0 => writeln!(out, "{at} {name} read {} {}", op.offset, op.length)?,
                1 => writeln!(out, "{at} {name} write {} {}", op.offset, op.length)?,
                2 => writeln!(out, "{at} {name} trim {} {}", op.offset, op.length)?,
                _ => writeln!(out, "{at} {name} {} 0 0", self.flush)?,
            }
        }
        for name in &names {
            writeln!(out, "{last} {name} close")?;
        }
        out.flush()
    }
}
