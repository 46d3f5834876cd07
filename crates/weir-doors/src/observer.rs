//! The live text of a peer: printed by its door while the house measures.
//!
//! In: announcements, snapshots of the run, jobs that cannot run. Out: text for standard output,
//! between which the house draws its own line of progress. Not here: that line, the text of a
//! result.

use weir_schema::{Announcement, Plan, RunResult};

/// Running measurement at an instant.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct Snapshot<'a> {
    /// Indices of the jobs that have ended, in plan order.
    pub ended: Vec<usize>,
    /// The result so far, which is costly to make.
    pub result: &'a dyn Fn() -> RunResult,
}

/// Observer of a run in a peer's voice. It answers text for standard output.
pub trait Observer: Send {
    /// The run begins: nothing refuses it any more.
    fn begin(&mut self, _plan: &Plan) -> String {
        String::new()
    }

    /// Work before or during the run; `None` leaves it to the house to show.
    fn announce(&mut self, _announcement: &Announcement) -> Option<String> {
        None
    }

    /// Looks at the run, four times a second.
    fn look(&mut self, _snapshot: &Snapshot<'_>) -> String {
        String::new()
    }

    /// Refusal of a job that cannot run, for standard error; `None` is the house's.
    fn refusal(&mut self, _job: &str, _why: &str) -> Option<String> {
        None
    }

    /// Text of the whole result, without the part that was printed already.
    fn rest(&mut self, _result: &RunResult, whole: String) -> String {
        whole
    }
}
