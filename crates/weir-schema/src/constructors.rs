//! Constructors: what must be given is a parameter, everything else is as when nothing is said.
//!
//! In: names and work. Out: plain data, to be changed field by field or by struct update. The full
//! literals of plans and results are here, so that a further field changes this file and the place
//! that fills it. Not here: plans and results for tests (`sample`).

use std::collections::BTreeMap;

use weir_stats::Series;
use weir_units::{Bytes, Nanos};

use crate::block_workload::{
    Access, BlockSize, BlockSizes, BlockWorkload, Content, Distribution, Flush, Generator, Mix,
    Passes, Region, SequencerStep,
};
use crate::exchange::ExchangeWorkload;
use crate::facts::{ClockFacts, HostFacts, Instrument};
use crate::kind::{Kind, KindName, PerKind};
use crate::load::{PLAN_SCHEMA, RESULT_SCHEMA};
use crate::load_of_loop::Load;
use crate::memory::Memory;
use crate::object_store::ObjectWorkload;
use crate::outcome::Outcome;
use crate::plan::{
    EngineChoice, Extensions, Group, Job, JobEnd, JobReport, Placement, Plan, Setting, Start,
};
use crate::result::{Failure, GroupResult, JobResult, KindResult, RunResult, State};
use crate::rpc::RpcWorkload;
use crate::target::{CreatePolicy, FileNames, FileService, OpenMode, Preallocate, Targets};
use crate::workload::Workload;

impl Plan {
    /// A plan of one group of jobs.
    pub fn new(name: &str, door: &str, jobs: Vec<Job>) -> Self {
        Self {
            name: name.to_owned(),
            door: door.to_owned(),
            groups: vec![Group { jobs }],
            ..Self::default()
        }
    }
}

impl Default for Plan {
    /// A plan without jobs.
    fn default() -> Self {
        Self {
            schema: PLAN_SCHEMA.to_owned(),
            name: String::new(),
            door: String::new(),
            command: Vec::new(),
            global_words: Vec::new(),
            groups: Vec::new(),
            total_log: None,
            ranks: None,
            voice: None,
            extensions: Extensions::new(),
        }
    }
}

impl Job {
    /// Block I/O, and nothing else asked for.
    pub fn of_blocks(name: &str, engine: EngineChoice, workload: BlockWorkload) -> Self {
        Self::alone(name, engine, workload)
    }

    /// Exchanges over a transport, and nothing else asked for.
    pub fn of_exchanges(name: &str, engine: EngineChoice, workload: ExchangeWorkload) -> Self {
        Self::alone(name, engine, workload)
    }

    /// RPCs, and nothing else asked for.
    pub fn of_rpcs(name: &str, workload: RpcWorkload) -> Self {
        Self::alone(name, EngineChoice::new("rpc"), workload)
    }

    /// Tests on an object store, and nothing else asked for.
    pub fn of_objects(name: &str, workload: ObjectWorkload) -> Self {
        Self::alone(name, EngineChoice::new("object"), workload)
    }

    /// This work over an engine, and nothing else asked for.
    pub fn alone(name: &str, engine: EngineChoice, workload: impl Into<Workload>) -> Self {
        Self {
            name: name.to_owned(),
            description: None,
            clones: 1,
            start: Start::default(),
            end: JobEnd::default(),
            placement: Placement::default(),
            engine,
            workload: workload.into(),
            report: JobReport::default(),
            words: Vec::new(),
            extensions: Extensions::new(),
        }
    }
}

impl EngineChoice {
    /// An engine with its own defaults.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            settings: BTreeMap::new(),
        }
    }

    /// An engine with these settings.
    pub fn with(name: &str, settings: &[(&str, Setting)]) -> Self {
        let setting = |(key, value): &(&str, Setting)| ((*key).to_owned(), value.clone());
        Self {
            settings: settings.iter().map(setting).collect(),
            ..Self::new(name)
        }
    }
}

impl<T> PerKind<T> {
    /// The value that a function gives for each kind.
    pub fn from_fn(mut value: impl FnMut(Kind) -> T) -> Self {
        Self {
            read: value(Kind::Read),
            write: value(Kind::Write),
            trim: value(Kind::Trim),
        }
    }
}

impl<T: Clone> PerKind<T> {
    /// The same value for every kind.
    pub fn all(value: T) -> Self {
        Self {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}

impl<T: Default> PerKind<T> {
    /// A value for one kind, the default for the others.
    pub fn only(kind: Kind, value: T) -> Self {
        let mut value = Some(value);
        Self::from_fn(|k| value.take_if(|_| k == kind).unwrap_or_default())
    }
}

impl Default for BlockWorkload {
    /// Reads of 4 KiB one after the other, of no target yet.
    fn default() -> Self {
        Self {
            mix: Mix::only(Kind::Read),
            access: Access::default(),
            sizes: BlockSizes::fixed(Bytes(4096)),
            targets: Targets::default(),
            region: Region::default(),
            content: Content::default(),
            flush: Flush::default(),
            verify: None,
            passes: Passes::default(),
            bursts: None,
            no_overlap: false,
            memory: Memory::default(),
            load: Load::default(),
        }
    }
}

impl Default for Access {
    fn default() -> Self {
        Self {
            random: false,
            distribution: Distribution::Uniform,
            generator: Generator::Xoshiro,
            map: true,
            random_percent: PerKind::all(100),
            skip_bytes: 0,
            step: SequencerStep::Sequential,
            steps: 1,
            align_bytes: None,
            seed: 0,
            zones: None,
            replay: None,
        }
    }
}

impl BlockSizes {
    /// One size for all operations.
    pub fn fixed(bytes: Bytes) -> Self {
        Self::of(BlockSize::Fixed { bytes })
    }

    /// The same sizes for all kinds.
    pub fn of(size: BlockSize) -> Self {
        Self {
            size: PerKind::all(size),
            by_pattern: false,
        }
    }
}

impl Default for Targets {
    /// None.
    fn default() -> Self {
        Self {
            files: FileNames::None,
            create: CreatePolicy::default(),
            open: OpenMode::default(),
            remove_after: false,
            renew_each_pass: false,
            allow_mounted_write: false,
            service: FileService::default(),
            append: false,
        }
    }
}

impl FileNames {
    /// One file or device.
    pub fn of(path: &str) -> Self {
        Self::Listed {
            paths: vec![path.to_owned()],
            directories: Vec::new(),
        }
    }
}

impl Default for CreatePolicy {
    fn default() -> Self {
        Self {
            allow: None,
            overwrite: false,
            preallocate: Preallocate::default(),
            sync: true,
            on_open: false,
            only: false,
        }
    }
}

impl Default for Content {
    /// Random bytes, the same for each write but for the marks that make blocks differ.
    fn default() -> Self {
        Self {
            zero: false,
            refill: false,
            scramble: true,
            pattern: None,
            compress_percent: 0,
            compress_chunk_bytes: Bytes(512),
            dedupe_percent: 0,
            dedupe_set_percent: None,
            dedupe_set_is_shared: false,
            sectors: None,
        }
    }
}

impl RunResult {
    /// The result of a plan of which nothing has been done yet.
    pub fn of(plan: Plan) -> Self {
        let not_started = |job: &Job| JobResult::not_started(&job.name);
        let groups = plan.groups.iter().map(|group| GroupResult {
            jobs: group.jobs.iter().map(not_started).collect(),
            ..GroupResult::default()
        });
        Self {
            schema: RESULT_SCHEMA.to_owned(),
            weir_version: String::new(),
            history: None,
            started_unix_ns: 0,
            run_id: 0,
            zero_ns: Nanos::ZERO,
            duration_ns: Nanos::ZERO,
            complete: false,
            ended_by: None,
            groups: groups.collect(),
            ranks: Vec::new(),
            warnings: Vec::new(),
            disks: Vec::new(),
            clock: ClockFacts::default(),
            instrument: Instrument::default(),
            host: HostFacts::default(),
            source: None,
            program: None,
            plan,
        }
    }
}

impl JobResult {
    /// The result of a job that was not reached.
    pub fn not_started(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            state: State::NotStarted,
            span: None,
            failure: None,
            logs: Vec::new(),
            outcome: Outcome::None,
            metrics: Vec::new(),
            phases: Vec::new(),
        }
    }
}

impl KindResult {
    /// No operation of this kind, in intervals of the length that is recorded by default.
    pub fn new(kind: impl Into<KindName>) -> Self {
        Self {
            kind: kind.into(),
            issued: 0,
            operations: 0,
            bytes: Bytes::ZERO,
            short: 0,
            dropped: 0,
            lost: 0,
            errors: BTreeMap::new(),
            runtime_ns: Nanos::ZERO,
            stages: Vec::new(),
            classes: Vec::new(),
            series: Series::new(Nanos::from_millis(100)),
            bandwidth_samples: None,
            iops_samples: None,
        }
    }
}

impl Failure {
    /// A failure without an errno and without a place.
    pub fn new(cause: &str, message: impl Into<String>) -> Self {
        Self {
            errno: None,
            cause: cause.to_owned(),
            message: message.into(),
            target: None,
            kind: None,
            offset_bytes: None,
            length_bytes: None,
            finding: None,
        }
    }
}
