//! Facts of the machine that reading a command line may ask for.
//!
//! In: nothing. Out: the trait [`Machine`], which the program implements once over the real machine
//! and tests over made-up ones. Every method has an answer for a machine that has nothing.

use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{Job, Kind, Plan, RankTags, RpcWorkload, RunResult};

use crate::kio::{ModuleFacts, TargetFacts};
use crate::rows::UnfitRows;

use crate::axio::MachineFacts;

/// Kind of what is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Nothing,
    /// A file.
    File,
    /// A directory.
    Directory,
    /// Something else.
    Other,
}

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

    /// The same of a file whose first line is `head`; of another no more than that is read.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn file_under(&self, _head: &str, path: &str, most: u64) -> Result<String, String> {
        self.file(path, most)
    }

    /// Kind of what is at a path.
    fn path_kind(&self, _path: &str) -> PathKind {
        PathKind::Nothing
    }

    /// Finds out whether rows under this head can be added to a file.
    ///
    /// # Errors
    /// Why they cannot.
    fn check_rows(&self, _path: &str, _head: &str) -> Result<(), UnfitRows> {
        Ok(())
    }

    /// Seconds that local time is ahead of UTC.
    fn utc_offset_s(&self) -> i64 {
        0
    }

    /// Facts about the kernel module for block I/O.
    fn kernel_module(&self) -> ModuleFacts {
        ModuleFacts::default()
    }

    /// Facts about the block device or file of a path.
    ///
    /// # Errors
    /// Why it is none.
    fn target(&self, _path: &str) -> Result<TargetFacts, String> {
        Err("no such file".to_owned())
    }

    /// Data that a device nobody uses seems to hold.
    fn held_data(&self, _path: &str) -> Option<&'static str> {
        None
    }

    /// The first operations of a worker: kinds and offsets.
    fn first_operations(&self, _job: &Job, _worker: u32, _count: u32) -> Vec<(Kind, u64)> {
        Vec::new()
    }

    /// Text of standard input of at most `most` bytes, to its end or to a line `end`.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn standard_input(&self, _most: u64) -> Result<String, String> {
        Err("there is none".to_owned())
    }

    /// Whether standard input was read to a line `end`: the run then lasts as long as it does.
    fn is_input_held(&self) -> bool {
        false
    }

    /// CPUs and memory that a packet path can have.
    fn path_facts(&self) -> MachineFacts {
        MachineFacts::default()
    }

    /// Ranks of the group of servers that a workload names.
    ///
    /// # Errors
    /// Why they are not known.
    fn group_members(&self, _work: &RpcWorkload) -> Result<Vec<RankTags>, String> {
        Err("there is no group of servers".to_owned())
    }

    /// Files that a process may have open; any number where it is none.
    fn most_open_files(&self) -> Option<u64> {
        None
    }

    /// A seed that differs from call to call.
    fn seed(&self) -> u64 {
        1
    }

    /// Links of packets of this build, each with why this machine lacks it.
    fn packet_links(&self) -> Vec<(&'static str, Option<String>)> {
        Vec::new()
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

    fn target(&self, _path: &str) -> Result<TargetFacts, String> {
        Ok(TargetFacts::sample())
    }
}
