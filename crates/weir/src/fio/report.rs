//! Where the fio door's report goes: standard output, or a file that is whole whenever it is
//! there.
//!
//! In: texts and results. Out: the report, and beside it what standard error gets. Not here: the
//! texts themselves (`weir-doors`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir_doors::Refusal;
use weir_doors::fio::output::{self as texts, Idleness};
use weir_doors::fio::{FioOptions, USAGE};
use weir_schema::RunResult;

use crate::output;

/// The report of a run.
pub(super) struct FioReport<'a> {
    options: &'a FioOptions,
    texts: texts::FioTextOptions,
    /// What the file will hold.
    text: Mutex<String>,
    /// A report of a run that goes on was among it.
    has_partial: AtomicBool,
    /// Standard output did not take it.
    lost: AtomicBool,
}

impl<'a> FioReport<'a> {
    pub(super) fn new(options: &'a FioOptions, texts: texts::FioTextOptions) -> Self {
        Self {
            options,
            texts,
            text: Mutex::default(),
            has_partial: AtomicBool::default(),
            lost: AtomicBool::default(),
        }
    }

    /// What went wrong: before the report where people read it, else on standard error.
    pub(super) fn say(&self, text: &str) {
        if self.options.is_for_programs() {
            output::error(text);
        } else {
            self.add(text);
        }
    }

    /// What belongs to the normal report alone.
    pub(super) fn print(&self, text: &str) {
        if !self.options.is_for_programs() {
            self.add(text);
        }
    }

    /// A full report of a run that goes on.
    pub(super) fn interim(&self, result: &RunResult) {
        self.has_partial.store(true, Ordering::Relaxed);
        let options = texts::FioTextOptions {
            partial: true,
            ..self.texts
        };
        self.add(&self.document(result, options, None));
        // The last report tells what is wrong with the file.
        let _ = self.save();
    }

    /// The report of a run that has ended.
    pub(super) fn finish(
        &self,
        result: &RunResult,
        idleness: Option<&Idleness>,
    ) -> Result<(), Refusal> {
        self.add(&self.document(result, self.texts, idleness));
        self.save()
    }

    fn add(&self, text: &str) {
        if self.options.output.is_some() {
            self.text().push_str(text);
        } else if !self.lost.load(Ordering::Relaxed) {
            self.lost.store(!output::print(text), Ordering::Relaxed);
        }
    }

    /// Nobody panics while holding it.
    fn text(&self) -> MutexGuard<'_, String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self) -> Result<(), Refusal> {
        let Some(path) = &self.options.output else {
            // It has been told already.
            let refusal = || Refusal::new(USAGE, "");
            return if self.lost.load(Ordering::Relaxed) {
                Err(refusal())
            } else {
                Ok(())
            };
        };
        output::write_file(path, self.text().as_bytes())
            .map_err(|message| Refusal::new(USAGE, message))
    }

    fn document(
        &self,
        result: &RunResult,
        texts: texts::FioTextOptions,
        idleness: Option<&Idleness>,
    ) -> String {
        let several = self.has_partial.load(Ordering::Relaxed);
        self.options.document(result, texts, several, idleness)
    }
}
