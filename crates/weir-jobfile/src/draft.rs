//! A job while its options are being applied.
//!
//! In: one typed value after the other. Out: nothing yet; [`crate::finish`] checks how the
//! options fit together and makes the plan's job. Where the plan has a structure of the same
//! meaning it is used as it is.

use std::collections::BTreeMap;

use weir_schema::{
    Bounds, Content, CreatePolicy, Depth, Distribution, FileService, Flush, Generator, Kind,
    Memory, OpenMode, Passes, PerKind, Placement, Recording, Region, SequencerStep, Setting,
    SplitEntry, Thinktime, Verify,
};
use weir_units::{Nanos, Percent};

use crate::extension::FioJob;

use crate::Dialect;
use crate::feedback::FeedbackDraft;
use crate::logs::Logs;

/// Percentiles that fio reports when none are asked for.
const FIO_PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// Engine when none is named.
pub(crate) const DEFAULT_ENGINE: &str = "psync";

/// Everything that options can say about a job.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one for each independent switch"
)]
pub(crate) struct Draft {
    pub name: String,
    /// Name between the brackets: generated files are named after it.
    pub section: String,
    pub description: Option<String>,
    pub kb_base: u64,
    pub engine: EngineDraft,
    pub filenames: Vec<String>,
    pub directories: Vec<String>,
    pub filename_format: String,
    pub file_count: u32,
    pub allow_mounted_write: bool,
    pub remove_after: bool,
    pub renew_each_pass: bool,
    pub create: CreatePolicy,
    pub open: OpenMode,
    pub service: FileService,
    pub append: bool,
    pub opened_below: Vec<String>,
    pub region: Region,
    pub direction: Direction,
    pub random: bool,
    pub steps: u32,
    pub step: SequencerStep,
    pub skip_bytes: i64,
    pub read_percent: u8,
    pub random_percent: PerKind<Option<u64>>,
    pub distribution: Distribution,
    pub generator: Generator,
    pub map: bool,
    pub align: Option<PerKind<Option<u64>>>,
    pub zones: StridedZones,
    pub replay: ReplayDraft,
    pub seed: Seed,
    pub sizes: SizesDraft,
    pub content: Content,
    pub scramble: Option<bool>,
    pub dedupe_set: bool,
    pub dedupe_set_percent: u8,
    pub depth: Depth,
    pub memory: Memory,
    pub flush: Flush,
    pub placement: Placement,
    pub clones: u32,
    pub bounds: Bounds,
    pub passes: Passes,
    pub no_overlap: bool,
    pub until_other_jobs_end: bool,
    pub delay: (Nanos, Nanos),
    pub rate: RatesDraft,
    /// Submission does not wait for completions.
    pub offloaded: bool,
    pub max_latency: Option<Nanos>,
    pub think: Thinktime,
    pub stonewall: bool,
    pub new_group: bool,
    pub wait_for: Option<String>,
    pub command_before: Option<String>,
    pub command_after: Option<String>,
    pub merge: bool,
    pub hidden: bool,
    pub exit_all: bool,
    pub exit_all_on_error: bool,
    pub exit_what: ExitWhat,
    pub recording: Recording,
    pub fio: FioJob,
    pub logs: Logs,
    pub feedback: FeedbackDraft,
    pub errors: ErrorsDraft,
    pub verifies: bool,
    /// True if `verify` was given, so that a pattern alone does not decide.
    pub says_verify: bool,
    pub verify: Verify,
    pub dialect: Dialect,
    /// Busy share of the time in percent, of engines that load processors.
    pub cpu_load: u64,
}

/// The engine as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct EngineDraft {
    pub name: String,
    pub settings: BTreeMap<String, Setting>,
}

/// Behaviour after errors, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorsDraft {
    pub go_on: PerKind<bool>,
    pub ignore: PerKind<Vec<i32>>,
    pub go_on_mismatch: bool,
    pub report_errors: bool,
}

/// Direction of a job: the value of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    Trim,
    Mixed,
    TrimWrite,
}

/// Source of the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed {
    pub repeat: bool,
    pub repeat_all: bool,
    pub given: Option<u64>,
}

impl Seed {
    /// Seed for `randseed=0`: a plan's seed 0 means "draw one when the run starts".
    pub(crate) const FOR_ZERO: u64 = 0x9e37_79b9_7f4a_7c15;

    /// The plan's seed.
    pub(crate) fn value(self) -> u64 {
        match self.given {
            Some(seed) => seed,
            None if self.repeat || self.repeat_all => 0x89,
            None => 0,
        }
    }
}

/// Block sizes in the three forms that they can be given in; the later ones win.
#[derive(Clone, Debug, Default)]
pub(crate) struct SizesDraft {
    pub fixed: PerKind<Option<u64>>,
    pub range: Option<PerKind<(u64, u64)>>,
    pub split: Option<PerKind<Vec<SplitEntry>>>,
    pub unaligned: bool,
    pub by_pattern: bool,
}

/// Rates and their schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RatesDraft {
    pub bytes: PerKind<Option<u64>>,
    pub min_bytes: PerKind<Option<u64>>,
    pub ops: PerKind<Option<u64>>,
    pub min_ops: PerKind<Option<u64>>,
    pub poisson: bool,
    pub open_loop: bool,
    pub ignore_thinktime: bool,
    pub cycle: Nanos,
}

/// Values of the options about strided zones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StridedZones {
    pub on: bool,
    pub bytes: u64,
    pub range: u64,
    pub skip: u64,
}

/// Values of the options about recorded patterns.
#[derive(Clone, Debug)]
pub(crate) struct ReplayDraft {
    pub path: Option<String>,
    pub no_pauses: bool,
    pub onto: Option<String>,
    pub divide_offsets: u32,
    pub align: u64,
    pub rate_percent: u32,
    pub leave_out: Vec<Kind>,
    pub in_pieces: bool,
}

impl Default for ReplayDraft {
    fn default() -> Self {
        Self {
            path: None,
            no_pauses: false,
            onto: None,
            divide_offsets: 1,
            align: 0,
            rate_percent: 100,
            leave_out: Vec::new(),
            in_pieces: false,
        }
    }
}

/// Jobs that `exitall` stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitWhat {
    Group,
    Running,
    Everything,
}

/// Replaces the values that are given and keeps the others.
pub(crate) fn overlay(target: &mut PerKind<Option<u64>>, given: PerKind<Option<u64>>) {
    target.read = given.read.or(target.read);
    target.write = given.write.or(target.write);
    target.trim = given.trim.or(target.trim);
}

impl Draft {
    /// A job to which no option has been applied.
    #[expect(clippy::too_many_lines, reason = "one line for each field")]
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            name: String::new(),
            section: String::new(),
            description: None,
            kb_base: 1024,
            engine: EngineDraft {
                name: DEFAULT_ENGINE.to_owned(),
                settings: BTreeMap::new(),
            },
            filenames: Vec::new(),
            directories: Vec::new(),
            filename_format: "$jobname.$jobnum.$filenum".to_owned(),
            file_count: 1,
            allow_mounted_write: false,
            remove_after: false,
            renew_each_pass: false,
            create: CreatePolicy::default(),
            open: OpenMode {
                drop_cache: true,
                advice: weir_schema::Advice::Pattern,
                ..OpenMode::default()
            },
            service: FileService::default(),
            append: false,
            opened_below: Vec::new(),
            region: Region::default(),
            direction: Direction::Read,
            random: false,
            steps: 1,
            step: SequencerStep::Sequential,
            skip_bytes: 0,
            read_percent: 50,
            random_percent: PerKind::default(),
            distribution: Distribution::Uniform,
            generator: Generator::Xoshiro,
            map: true,
            align: None,
            zones: StridedZones::default(),
            replay: ReplayDraft::default(),
            seed: Seed {
                repeat: true,
                repeat_all: false,
                given: None,
            },
            sizes: SizesDraft::default(),
            content: Content::default(),
            scramble: None,
            dedupe_set: false,
            dedupe_set_percent: 5,
            depth: Depth::default(),
            memory: Memory::default(),
            flush: Flush::default(),
            placement: Placement::default(),
            clones: 1,
            bounds: Bounds::default(),
            passes: Passes::default(),
            no_overlap: false,
            until_other_jobs_end: false,
            delay: (Nanos(0), Nanos(0)),
            rate: RatesDraft::new(),
            offloaded: false,
            max_latency: None,
            think: Thinktime {
                completed: true,
                pause_ns: Nanos(0),
                spin_ns: Nanos(0),
                every: 1,
                after_ns: None,
            },
            stonewall: false,
            new_group: false,
            wait_for: None,
            command_before: None,
            command_after: None,
            merge: false,
            hidden: false,
            exit_all: false,
            exit_all_on_error: false,
            exit_what: ExitWhat::Group,
            recording: recording(dialect),
            fio: FioJob::default(),
            logs: Logs::default(),
            feedback: FeedbackDraft::default(),
            errors: ErrorsDraft::default(),
            verifies: false,
            says_verify: false,
            verify: crate::options::verify::defaults(),
            dialect,
            cpu_load: 0,
        }
    }
}

impl RatesDraft {
    fn new() -> Self {
        Self {
            bytes: PerKind::default(),
            min_bytes: PerKind::default(),
            ops: PerKind::default(),
            min_ops: PerKind::default(),
            poisson: false,
            open_loop: false,
            ignore_thinktime: false,
            cycle: Nanos(1_000_000_000),
        }
    }
}

/// Default recording of a door.
fn recording(dialect: Dialect) -> Recording {
    match dialect {
        Dialect::Run => Recording::default(),
        Dialect::Fio => Recording {
            exact_squares: true,
            percentiles: FIO_PERCENTILES.map(Percent).to_vec(),
            iops_sample_ns: Some(Nanos(500_000_000)),
            ..Recording::default()
        },
    }
}
