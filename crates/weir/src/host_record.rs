//! Report of the host's activity while a plan runs, as `weir monitor --pid` of this process writes it.
//!
//! In: rounds of the run. Out: a file at the end. Not here: counters (`monitor`).

use std::sync::{Mutex, PoisonError};

use weir_doors::Refusal;
use weir_run::execute::LiveView;

use crate::measure::RunObserver;
use crate::monitor::HostWatch;
use crate::output;

/// Record of the host, from its start to the last round of the run.
pub(crate) struct HostRecord<'a> {
    file: &'a str,
    watch: Mutex<HostWatch>,
}

impl<'a> HostRecord<'a> {
    pub(crate) fn start(file: &'a str) -> Result<Self, Refusal> {
        let watch = Mutex::new(HostWatch::start(Some(std::process::id()))?);
        Ok(Self { file, watch })
    }

    /// Observer that samples the host, besides another observer.
    pub(crate) fn observer<'b>(
        &'b self,
        shown: Box<dyn RunObserver + 'b>,
    ) -> Box<dyn RunObserver + 'b> {
        let watch = &self.watch;
        Box::new(RecordingObserver { shown, watch })
    }

    /// Writes the file; 1 where it could not be written.
    pub(crate) fn write(self) -> u8 {
        let watch = self.watch.into_inner();
        let text = watch.unwrap_or_else(PoisonError::into_inner).text();
        let written = output::write_file(self.file, &text);
        u8::from(written.map_err(|why| output::error(&why)).is_err())
    }
}

struct RecordingObserver<'a> {
    shown: Box<dyn RunObserver + 'a>,
    watch: &'a Mutex<HostWatch>,
}

impl RunObserver for RecordingObserver<'_> {
    fn shown(&self) -> Option<&dyn RunObserver> {
        Some(&*self.shown)
    }

    fn observe(&self, view: &LiveView<'_>) {
        let watch = self.watch.lock();
        watch.unwrap_or_else(PoisonError::into_inner).look();
        self.shown.observe(view);
    }
}
