//! Facts of the machine that reading a command line may ask for.
//!
//! In: nothing. Out: the trait [`Machine`], which the program implements once over the real machine
//! and tests over made-up ones. Every method has an answer for a machine that has nothing.

use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Plan, RunResult};

/// Machine that a command line is read on.
pub trait Machine {
    /// Ranks that a launcher started; `None` without one.
    fn launcher(&self) -> Option<u32> {
        None
    }

    /// Transports of this build.
    fn transports(&self) -> TransportCatalogue {
        TransportCatalogue::default()
    }

    /// Memory, where known.
    fn memory_bytes(&self) -> Option<u64> {
        None
    }

    /// Result of a plan of which nothing has been done yet, with what the machine says of itself.
    fn blank_result(&self, plan: &Plan) -> RunResult {
        RunResult::of(plan.clone())
    }

    /// Finds out whether a file can be written.
    ///
    /// # Errors
    /// Why it cannot.
    fn check_writable(&self, _path: &str) -> Result<(), String> {
        Ok(())
    }

    /// Value of an environment variable.
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    /// Text of a file of at most `most` bytes. The file counts as read by the command: nothing
    /// that the command writes may replace it. Asked for again, the text is the same.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn file(&self, _path: &str, _most: u64) -> Result<String, String> {
        Err("no such file".to_owned())
    }
}

/// Machine of tests: the transports of samples, and so many ranks of a launcher.
#[cfg(test)]
pub(crate) struct SampleMachine(pub(crate) Option<u32>);

#[cfg(test)]
impl Machine for SampleMachine {
    fn launcher(&self) -> Option<u32> {
        self.0
    }

    fn transports(&self) -> TransportCatalogue {
        weir_schema::sample::transports()
    }
}
