//! Request of a command line to the house: one action, and the data that goes with it.
//!
//! In: a door's reading of its arguments. Out: plain data that the driver of the program carries
//! out. Not here: carrying it out.

use weir_schema::{Job, Plan, RunResult, TargetsPerRank, VerifyMethod, Warning};
use weir_units::Nanos;

use crate::compare::Compare;
use crate::door::{Printed, Voice};
use crate::given::Given;
use crate::house::Input;
use crate::kio::ModuleCall;
use crate::refusal::Refusal;
use crate::rows::UnfitRows;
use crate::search::RunSearch;

/// Request of a door that measures.
#[derive(Debug)]
pub struct Request {
    /// The one thing to do.
    pub action: Action,
    /// Notes for standard error, without their prefix.
    pub notes: Vec<String>,
    /// Warnings of the arguments, for the result.
    pub warnings: Vec<Warning>,
    /// Files that the door reads or writes beside targets, reports and the stored result.
    pub files: Vec<NamedFile>,
    /// Use of the targets by several ranks.
    pub targets: TargetsPerRank,
    /// Silence after which a rank is lost, where the door's own arguments state it.
    pub rank_timeout: Option<Nanos>,
    /// Voice of the text, where the door's own arguments state it.
    pub voice: Option<Voice>,
    /// Time without an answer after which a note says so.
    pub stall: Option<Nanos>,
    /// The least exit code of a result.
    pub least_code: u8,
    /// File for a report of the host's activity meanwhile.
    pub monitor: Option<String>,
    /// The house shows no progress.
    pub is_quiet: bool,
    /// Text for standard output before the plan is carried out.
    pub before: String,
    /// File that gets the voice's text instead of standard output.
    pub text_file: Option<String>,
    /// End of the run before its time.
    pub trigger: Trigger,
}

/// End of a run before its time, and what follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trigger {
    /// The run ends when this file appears; it is removed.
    pub file: Option<String>,
    /// The run ends after this time.
    pub after: Option<Nanos>,
    /// The run ends when a drive is too hot.
    pub heat: Option<HeatLimit>,
    /// Command for the shell once a trigger has ended the run.
    pub command: Option<String>,
}

/// Temperature at which a run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeatLimit {
    /// Degrees Celsius.
    pub celsius: i32,
    /// Paths of the NVMe drives' namespaces.
    pub nodes: Vec<String>,
}

/// The one thing that a request asks for.
#[derive(Debug)]
pub enum Action {
    /// Print this and end with its code.
    Print(Printed),
    /// Measure what the input plans.
    Measure(Input),
    /// Search in runs, of which the input is the first plan.
    Search(Input, Box<dyn RunSearch>),
    /// Print the plan of the input as JSON.
    ShowPlan(Input),
    /// Check the plan of the input as before a run, then print the text.
    DryRun(Input, String),
    /// Print a result that needs no measuring: a prediction, or samples that were stored.
    Show(Box<RunResult>),
    /// Measure the sides of a comparison in turns.
    Compare(Box<Compare>),
    /// Work of the program that is no measurement of a plan.
    Tool(Tool),
}

/// Work of the program that is no measurement of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Measure the cost of the instrument and print it.
    Calibrate,
    /// Test the transports of effective bandwidth.
    TestTransports,
    /// A call of the kernel module for block I/O.
    KernelModule(ModuleCall),
    /// Measure the cost of timing the stages of a packet path and print it.
    StageTiming,
    /// Measure how fast these checksums are, and print it.
    Checksums(Vec<VerifyMethod>),
    /// See whether the clock runs forward over all CPUs.
    ClockTest,
    /// Print the text of a compressed log.
    InflateLog(String),
    /// Measure the unit of work that idleness is reported with.
    IdleUnit,
    /// Print this, then do what another door does with arguments.
    OtherDoor {
        /// Text before it.
        before: Printed,
        /// The door's verb.
        verb: &'static str,
        /// Arguments of the call.
        args: Vec<String>,
    },
}

/// File that a door names.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// Path of the file.
    pub path: String,
    /// Part of the file in the command, for messages: "the --baseline", "where --output-csv goes".
    pub role: String,
    /// Change of the file by the command.
    pub change: FileChange,
}

/// Change of a file by the command that names it.
#[derive(Clone, Debug)]
pub enum FileChange {
    /// The file is read.
    Unchanged,
    /// The file is replaced.
    Replaced,
    /// Rows are added to the file.
    Rows {
        /// The head of the rows.
        head: String,
        /// Refusal of a file to which they cannot be added, by its path.
        refuse: fn(&str, &UnfitRows) -> Refusal,
    },
    /// The history takes a result in.
    Kept,
}

impl NamedFile {
    /// File that the command reads.
    pub fn read(path: &str, role: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            role: role.into(),
            change: FileChange::Unchanged,
        }
    }

    /// File that the command writes.
    pub fn written(path: &str, role: impl Into<String>) -> Self {
        Self {
            change: FileChange::Replaced,
            ..Self::read(path, role)
        }
    }

    /// True if the command changes the file.
    pub fn is_changed(&self) -> bool {
        !matches!(self.change, FileChange::Unchanged)
    }
}

impl Request {
    /// An action with nothing beside it.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            notes: Vec::new(),
            warnings: Vec::new(),
            files: Vec::new(),
            targets: TargetsPerRank::default(),
            rank_timeout: None,
            voice: None,
            stall: None,
            least_code: 0,
            monitor: None,
            is_quiet: false,
            before: String::new(),
            text_file: None,
            trigger: Trigger::default(),
        }
    }

    /// Text for standard output.
    pub fn print(text: impl Into<String>) -> Self {
        Self::printed(Printed {
            out: text.into(),
            ..Printed::default()
        })
    }

    /// Texts with an exit code.
    pub fn printed(text: Printed) -> Self {
        Self::new(Action::Print(text))
    }

    /// Search over runs that begins with this plan.
    pub fn search(given: &Given, first: Plan, search: impl RunSearch + 'static) -> Self {
        let mut request = Self::measure(given, first);
        if let Action::Measure(input) = request.action {
            request.action = Action::Search(input, Box::new(search));
        }
        request
    }

    /// Measurement of a plan. The plan gets door and command line, by which `weir show` prints its
    /// result again.
    pub fn measure(given: &Given, mut plan: Plan) -> Self {
        given.door.verb.clone_into(&mut plan.door);
        plan.command = given.command();
        Self::new(Action::Measure(Input::Made(Box::new(plan))))
    }

    /// Measurement of one job.
    pub fn of_job(given: &Given, job: Job) -> Self {
        let verb = given.door.verb;
        Self::measure(given, Plan::new(verb, verb, vec![job]))
    }
}
