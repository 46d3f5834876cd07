//! The live text of a peer: printed by its door while the house measures.
//!
//! In: announcements, snapshots of the run, jobs that cannot run. Out: text for standard output,
//! between which the house draws its own line of progress. Not here: that line, the text of a
//! result.

use weir_schema::{Announcement, Plan, RunResult};
use weir_units::Nanos;

use crate::door::Printed;
use crate::machine::Machine;

/// Running measurement at an instant.
#[expect(missing_debug_implementations, reason = "holds functions")]
pub struct Snapshot<'a> {
    /// Time since the start of the program.
    pub elapsed_ns: Nanos,
    /// Time since the first job's release; 0 before it.
    pub measured_ns: Nanos,
    /// Somebody asks for a report, by a signal or by the file of [`Observer::request_file`].
    pub is_asked: bool,
    /// Every job of the plan, in its order; costly.
    pub jobs: &'a dyn Fn() -> Vec<JobProgress>,
    /// The result so far, which is costly to make.
    pub result: &'a dyn Fn() -> RunResult,
}

/// Progress of a job at an instant.
#[derive(Clone, Debug)]
pub struct JobProgress {
    /// True once its part of the result is whole, which is later than the end of its workers.
    pub has_ended: bool,
    /// Phase of each worker.
    pub workers: Vec<Phase>,
    /// Seconds since its release.
    pub elapsed_s: f64,
    /// Share of its work or time that is done, where a bound is known.
    pub fraction: Option<f64>,
    /// Reads, writes and trims that were completed.
    pub operations: [u64; 3],
    /// Bytes they moved.
    pub bytes: [u64; 3],
}

/// Phase of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its job waits for others.
    Waiting,
    /// Its job gets ready.
    Preparing,
    /// Not measured yet.
    Ramp,
    /// At work.
    Running,
    /// Gone, in order.
    Ended,
    /// Gone, with an error.
    Failed,
}

/// Observer of a run in a peer's voice. It answers text for standard output, or for the file that
/// takes its place.
pub trait Observer: Send {
    /// The plan, before it is looked at whether it can run.
    fn plan(&mut self, _plan: &Plan) -> String {
        String::new()
    }

    /// The run begins: nothing refuses it any more.
    fn begin(&mut self, _plan: &Plan) -> String {
        String::new()
    }

    /// Work before or during the run; `None` leaves it to the house to show.
    fn announce(&mut self, _announcement: &Announcement) -> Option<String> {
        None
    }

    /// Looks at the run, at least four times a second.
    fn look(&mut self, _snapshot: &Snapshot<'_>) -> String {
        String::new()
    }

    /// Line of progress at the same instant, for standard output whatever the text goes to.
    fn progress(&mut self, _snapshot: &Snapshot<'_>) -> String {
        String::new()
    }

    /// File whose appearance asks for a report, as a signal does. Where there is one, the house
    /// draws a line of progress only where it is asked to.
    fn request_file(&self) -> Option<String> {
        None
    }

    /// Refusal of a job that cannot run, for standard error; `None` is the house's.
    fn refusal(&mut self, _job: &str, _why: &str) -> Option<String> {
        None
    }

    /// Text for standard error about a job that cannot run while the others do; `None` refuses the
    /// run.
    fn excuse(&mut self, _job: &str, _why: &str) -> Option<String> {
        None
    }

    /// Text of the whole result without what was printed already.
    fn rest(&mut self, _result: &RunResult, _machine: &dyn Machine, whole: Printed) -> Printed {
        whole
    }
}
