//! Errors and notes that are collected while a request is compiled.

use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Fault};

/// Errors that are kept; the rest is only counted.
pub(crate) const MAX_ERRORS: usize = 500;

/// Errors and notes in the order of their discovery.
#[derive(Debug, Default)]
pub(crate) struct CompileReport {
    pub errors: Vec<Diagnostic>,
    pub notes: Vec<String>,
    known: HashSet<String>,
    more: usize,
}

impl CompileReport {
    pub(crate) fn push(&mut self, error: Diagnostic) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.more += 1;
        }
    }

    /// Adds a note unless it is there already.
    pub(crate) fn note(&mut self, note: String) {
        if self.known.insert(note.clone()) {
            self.notes.push(note);
        }
    }

    /// All errors, each source's in the order of its lines; the last one says how many were left out.
    pub(crate) fn into_errors(mut self) -> Vec<Diagnostic> {
        let mut sources: Vec<Option<String>> = Vec::new();
        for error in &self.errors {
            if !sources.contains(&error.source) {
                sources.push(error.source.clone());
            }
        }
        let place = |e: &Diagnostic| (sources.iter().position(|s| *s == e.source), e.line);
        self.errors.sort_by_cached_key(place);
        if self.more > 0 {
            let message = format!("{} more errors are not shown", self.more);
            self.errors
                .push(Diagnostic::general(Fault::new("job.more", message)));
        }
        self.errors
    }
}
