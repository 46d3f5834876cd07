//! Facts of the machine that reading a command line may ask for.
//!
//! In: nothing. Out: the trait [`Machine`], which the program implements once over the real machine
//! and tests over made-up ones. Every method has an answer for a machine that has nothing.

use weir_jobfile::{CompileRequest, Compiled, Diagnostic};
use weir_schema::catalogue::{Catalogue, TransportCatalogue};
use weir_schema::{Job, Kind, Plan, RankTags, RpcWorkload, RunResult};

use crate::fio::output::Idleness;
use crate::kio::{ModuleFacts, TargetFacts};
use crate::nvme::{NamespaceUse, NvmeNamespace};
use crate::refusal::Refusal;

use crate::axio::MachineFacts;

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

    /// Reason for which the library of DAOS cannot be used; none where it can.
    fn lacks_daos(&self) -> Option<String> {
        Some("libdaos not found".to_owned())
    }

    /// Result of a plan that has not run yet, with the facts about this machine.
    fn blank_result(&self, plan: &Plan) -> RunResult {
        RunResult::of(plan.clone())
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

    /// Compiles jobs with the files, engines and variables of this machine.
    ///
    /// # Errors
    /// Every fault of the jobs.
    fn compile(&self, _jobs: &CompileRequest) -> Result<Compiled, Vec<Diagnostic>> {
        Err(Vec::new())
    }

    /// Engines of this build.
    fn engines(&self) -> Catalogue {
        Catalogue::default()
    }

    /// True if standard output is a terminal.
    fn is_output_terminal(&self) -> bool {
        false
    }

    /// True if standard error is a terminal.
    fn is_error_terminal(&self) -> bool {
        false
    }

    /// Begins to watch how idle the CPUs are.
    fn watch_idleness(&self) {}

    /// Idleness of the CPUs while it was watched, which ends with the first call.
    fn idleness(&self) -> Option<Idleness> {
        None
    }

    /// Seconds that local time is ahead of UTC.
    fn utc_offset_s(&self) -> i64 {
        0
    }

    /// Facts about the kernel module for block I/O.
    fn kernel_module(&self) -> ModuleFacts {
        ModuleFacts::default()
    }

    /// Kind of what a path names.
    fn named_path(&self, _path: &str) -> NamedPath {
        NamedPath::Missing
    }

    /// True if a file belongs to this user or to root.
    fn is_believed(&self, _path: &str) -> bool {
        true
    }

    /// Facts about the block device or file of a path.
    ///
    /// # Errors
    /// The reason why it is no target.
    fn target(&self, _path: &str) -> Result<TargetFacts, String> {
        Err("no such file".to_owned())
    }

    /// Data that an unused device seems to hold.
    fn held_data(&self, _path: &str) -> Option<&'static str> {
        None
    }

    /// CPUs that this process may use; none where that is unknown.
    fn cpus(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Memory node of a CPU.
    fn memory_node(&self, _cpu: u32) -> Option<u32> {
        None
    }

    /// Temperature of an NVMe drive and its own counts, by the path of a namespace.
    fn drive_health(&self, _node: &str) -> Option<String> {
        None
    }

    /// Refusal to take a drive from the kernel, by its PCI address.
    ///
    /// # Errors
    /// Somebody needs it (a guard's refusal), or this machine or build cannot.
    fn check_takeover(&self, _address: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// Gives a drive back to the kernel that a run has left without.
    ///
    /// # Errors
    /// It is no such drive, or somebody uses it.
    fn release_drive(&self, _address: &str) -> Result<(), Refusal> {
        Ok(())
    }

    /// Blocks of an NVMe namespace that hold something, by its path, where the drive may be asked.
    fn namespace_use(&self, _node: &str) -> Option<NamespaceUse> {
        None
    }

    /// NVMe namespaces on the kernel's driver, by address.
    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        Vec::new()
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

    /// True if standard input was read to a line `end`: the run then lasts as long as it does.
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

/// Kind of what a path names, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedPath {
    /// Nothing.
    Missing,
    /// A block or character device.
    Device,
    /// A file.
    File {
        /// Its first line that is neither empty nor a comment begins a section of a job file.
        is_job_file: bool,
    },
    /// A directory.
    Directory,
    /// A pipe, a socket.
    Other,
}

impl NamedPath {
    /// True of any file.
    pub(crate) fn is_file(self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// A file that begins with these bytes.
    pub fn of_file(head: &[u8]) -> Self {
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let first = lines.find(|line| !matches!(line.first(), None | Some(b'#' | b';')));
        Self::File {
            is_job_file: first.is_some_and(|line| line.starts_with(b"[")),
        }
    }
}

#[cfg(test)]
mod sample;
#[cfg(test)]
pub(crate) use sample::SampleMachine;
