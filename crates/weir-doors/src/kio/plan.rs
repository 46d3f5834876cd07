//! Conversion of arguments and a configuration to a plan: a group for each point, a job for each thread on
//! each device.
//!
//! In: flags, a configuration, targets. Out: a [`Request`]. A command line wins over a file, a file
//! over the defaults. Not here: the jobs themselves ([`super::job`]).

use weir_schema::{Group, Job, Kind, Mix, Plan, Start};

use super::boundary;
use super::config::{self, Config};
use super::job::{self, JobRequest};
use super::points::{self, PointName};
use super::settings::{Field, Given, Settings};
use super::sweep::{Point, points as swept_points};
use super::{ModuleFacts, TargetFacts, output, targets};
use crate::door::{Printed, PrintedFile};
use crate::given::{Given as DoorGiven, GivenFlags};
use crate::machine::Machine;
use crate::refusal::{Refusal, USAGE};
use crate::request::{Action, FileChange, NamedFile, Request};
use crate::rows::UnfitRows;

/// The longest configuration that is read.
const LONGEST: u64 = 4 << 20;
/// Flags that concern the result of a single run.
const OF_ONE: [&str; 4] = [
    "output-csv",
    "output-yaml",
    "trace-offsets",
    "legacy-summary",
];

/// Message about the missing module, and the remedy.
pub(super) const NO_MODULE: &str = "--engine kernel: the kernel module kio is not loaded (there is no \
     /dev/kio)\n  help: build it with `weir kio build`, load it with `weir kio load`; or take --engine \
     uring, which measures the same through system calls";

/// Message about a module that this user may not use.
const CLOSED_MODULE: &str = "--engine kernel: /dev/kio may not be opened by this user\n  help: be root, or of \
     the group that may open it; or take --engine uring, which measures the same through system calls";

/// The request of these arguments.
pub(super) fn request(given: &DoorGiven, machine: &dyn Machine) -> Result<Request, Refusal> {
    let config = given.text("config").map(|path| of_file(path, machine));
    let file = config.transpose()?.unwrap_or_default();
    let line = command_line(given);
    let mut notes: Vec<String> = file.notes();
    let cpus = given.cpus("cpus");
    let globals = Globals::of(given, &file, cpus.as_deref());
    let named: Vec<String> = given.all("device").map(str::to_owned).collect();
    if let Some(path) = given.text("generate-config") {
        let mut request = generate(path, &file, line, globals)?;
        let targets = named
            .iter()
            .map(|device| NamedFile::read(device, "a target"));
        let written = NamedFile::written(path, "where --generate-config goes");
        let read = given.text("config");
        let read = read.map(|path| NamedFile::read(path, "the --config"));
        request.files = targets.chain(read).chain([written]).collect();
        return Ok(request);
    }
    let module = machine.kernel_module();
    if given.has("compare") {
        usable(&module, "--compare")?;
    }
    let engine = engine_of(given, &module)?;
    notes.extend(undriven(engine, &module));
    if let Some(refusal) = twice(&named) {
        return Err(refusal);
    }
    let points = swept_points(given.all("sweep")).map_err(Refusal::usage)?;
    let most = points.iter().filter_map(|point| point.threads).max();
    notes.extend(unrun(&file, most.unwrap_or(globals.threads)));
    let mut builder = Builder {
        given,
        line,
        file: &file,
        named,
        globals,
        engine,
        cpus,
        module,
        machine,
        notes: Vec::new(),
    };
    if given.has("compare") {
        return compare(&mut builder, &points[..1]);
    }
    let plan = builder.plan(&points)?;
    notes.append(&mut builder.notes);
    finish(given, plan, notes)
}

/// Writes a configuration to a file, and returns kio.py's text about it.
fn generate(path: &str, file: &Config, line: Given, globals: Globals) -> Result<Request, Refusal> {
    let threads = (0..globals.threads).map(|number| settings_of(file, line, number, 0));
    let threads: Vec<Settings> = threads.collect::<Result<_, _>>()?;
    let version = super::own_version();
    Ok(Request::new(Action::Print(Printed {
        out: format!("KIO version {version}\nGenerating config in {path}\n"),
        files: vec![PrintedFile {
            path: path.to_owned(),
            text: config::text(globals.runtime, &threads, 0),
            appends: false,
        }],
        ..Printed::default()
    })))
}

/// The same in the kernel and from user space.
fn compare(builder: &mut Builder<'_>, points: &[Point]) -> Result<Request, Refusal> {
    let mut sides = Vec::new();
    for engine in ["kernel", "io_uring"] {
        builder.engine = Some(engine);
        sides.push((engine.to_owned(), builder.plan(points)?));
    }
    builder.engine = Some("psync");
    // A call at a time is a side where the settings let it be one.
    let calls = builder.plan(points).ok();
    sides.extend(calls.map(|plan| ("psync".to_owned(), plan)));
    let asked = boundary::compare(builder.given, builder.given.whole("rounds"), sides)?;
    Ok(Request::new(Action::Compare(Box::new(asked))))
}

fn finish(given: &DoorGiven, plan: Plan, notes: Vec<String>) -> Result<Request, Refusal> {
    let of_one = OF_ONE.into_iter().find(|flag| given.has(flag));
    if let Some(flag) = of_one.filter(|_| given.house.has("repeat")) {
        return Err(Refusal::usage(format!(
            "--repeat: --{flag} is about one run, and here are several; leave one of them out"
        )));
    }
    // Numbers are looked at before the run.
    let text = output::dry_text(&plan);
    let mut request = Request::measure(given, plan);
    if given.house.has("dry-run")
        && let Action::Measure(input) = request.action
    {
        request.action = Action::DryRun(input, text);
    }
    request.notes = notes;
    let rows = given.text("output-csv").map(|path| NamedFile {
        change: FileChange::Rows {
            head: output::head(),
            refuse: unfit,
        },
        ..NamedFile::read(path, "where --output-csv goes")
    });
    let report = given.text("output-yaml");
    let report = report.map(|path| NamedFile::written(path, "where --output-yaml goes"));
    request.files.extend(rows.into_iter().chain(report));
    Ok(request)
}

/// Refusal of a file to which the rows cannot be added, with 1 as kio.py ends there.
fn unfit(path: &str, why: &UnfitRows) -> Refusal {
    let (code, why) = match why {
        UnfitRows::OtherHead(found) => (1, output::unlike(&output::head(), found)),
        UnfitRows::Io(_) => (USAGE, why.to_string()),
        _ => (1, format!("{why}\n  help: name another file")),
    };
    Refusal {
        code,
        ..Refusal::usage(format!("--output-csv {path}: {why}"))
    }
}

fn of_file(path: &str, machine: &dyn Machine) -> Result<Config, Refusal> {
    let refuse = |why: String| Refusal::usage(format!("--config {path}:{why}"));
    let text = machine
        .file(path, LONGEST)
        .map_err(|why| refuse(format!(" {why}")))?;
    Config::read(&text).map_err(refuse)
}

/// The settings that flags give to all threads.
fn command_line(given: &GivenFlags) -> Given {
    let mut line = Given::default();
    for field in Field::ALL {
        if let Some(value) = given.whole(field.setting().flag) {
            line.set(field, value);
        }
    }
    line
}

/// Settings of all threads.
#[derive(Clone, Copy, Debug)]
struct Globals {
    threads: u32,
    runtime: u32,
}

impl Globals {
    fn of(given: &GivenFlags, file: &Config, cpus: Option<&[u32]>) -> Self {
        let flag = |name| given.whole(name).filter(|value| *value != 0);
        let each_cpu = cpus.and_then(|cpus| u32::try_from(cpus.len()).ok());
        let threads = flag("num-threads").or(file.num_threads).or(each_cpu);
        Self {
            threads: threads.unwrap_or(1),
            runtime: flag("runtime").or(file.runtime_seconds).unwrap_or(5),
        }
    }
}

/// The engine by weir's name; `auto` depends on each target.
fn engine_of(given: &GivenFlags, module: &ModuleFacts) -> Result<Option<&'static str>, Refusal> {
    match given.text("engine") {
        Some("kernel") => usable(module, "--engine kernel").map(|()| Some("kernel")),
        Some("uring") => Ok(Some("io_uring")),
        Some("aio") => Ok(Some("libaio")),
        Some("sync") => Ok(Some("psync")),
        Some("legacy") => Err(Refusal::usage(
            "--engine legacy: the older module is not driven by this build\n  help: take --engine \
             uring, or load weir's own module and take --engine kernel",
        )),
        _ => Ok(None),
    }
}

/// Refuses what needs the module where it cannot be used.
fn usable(module: &ModuleFacts, asked: &str) -> Result<(), Refusal> {
    let why = match (module.has_node, module.is_closed) {
        (false, _) => NO_MODULE,
        (true, true) => CLOSED_MODULE,
        (true, false) => return Ok(()),
    };
    Err(Refusal::lacks(why.replace("--engine kernel", asked)))
}

/// Note on the module where it is loaded and `auto` does not use it.
fn undriven(engine: Option<&str>, module: &ModuleFacts) -> Option<String> {
    let why = match (module.has_node, module.is_closed) {
        (true, true) => "is loaded, but /dev/kio may not be opened by this user",
        (false, _) if module.version.is_some() => "that is loaded is not weir's and is not driven",
        _ => return None,
    };
    let note = || format!("the module kio {why}: --engine uring is taken");
    engine.is_none().then(note)
}

/// Threads that a configuration has settings for, and that are not run.
fn unrun(file: &Config, threads: u32) -> Option<String> {
    let beyond: Vec<String> = file
        .threads
        .range(threads..)
        .map(|(n, _)| n.to_string())
        .collect();
    (!beyond.is_empty()).then(|| {
        format!(
            "settings of the configuration for thread {} have no effect: num_threads is {threads}",
            beyond.join(", ")
        )
    })
}

/// A target that is named twice.
fn twice(named: &[String]) -> Option<Refusal> {
    let is_earlier = |(at, path): &(usize, &String)| named[..*at].contains(path);
    let (_, path) = named.iter().enumerate().find(is_earlier)?;
    Some(Refusal::usage(format!(
        "--device {path}: it stands there twice\n  help: --num-threads says how many threads work on it"
    )))
}

/// The settings of a thread: the line's, then the file's, then defaults.
fn settings_of(file: &Config, line: Given, thread: u32, end: i64) -> Result<Settings, Refusal> {
    let of_file = file.threads.get(&thread).map(|thread| thread.given);
    let given = line.or(of_file.unwrap_or_default());
    given
        .complete(end)
        .map_err(|why| Refusal::usage(format!("thread {thread}: {why}")))
}

/// Makes the groups.
struct Builder<'a> {
    given: &'a DoorGiven,
    line: Given,
    file: &'a Config,
    named: Vec<String>,
    globals: Globals,
    engine: Option<&'static str>,
    cpus: Option<Vec<u32>>,
    module: ModuleFacts,
    machine: &'a dyn Machine,
    notes: Vec<String>,
}

impl Builder<'_> {
    /// A plan of these points.
    fn plan(&mut self, points: &[Point]) -> Result<Plan, Refusal> {
        let (mut groups, mut names) = (Vec::new(), Vec::new());
        for (number, point) in points.iter().enumerate() {
            let group = self.group(number, point)?;
            let passes = if self.given.has("verify") {
                Vec::from(read_back(group))
            } else {
                vec![group]
            };
            for (pass, group) in passes.into_iter().enumerate() {
                let name = PointName {
                    swept: point.words(),
                    reads_back: pass > 0,
                };
                groups.push(named(group, &name));
                names.push(name);
            }
        }
        let mut plan = Plan {
            command: self.given.command(),
            groups,
            ..Plan::new("kio", "kio", Vec::new())
        };
        points::note(&mut plan, self.module.has_node, &names);
        Ok(plan)
    }

    fn group(&mut self, number: usize, point: &Point) -> Result<Group, Refusal> {
        let threads = point.threads.unwrap_or(self.globals.threads);
        let line = point.given.or(self.line);
        let mut jobs = Vec::new();
        for thread in 0..threads {
            for path in self.targets(thread)? {
                let place = (thread, threads);
                let job = self.job(line, place, &path, jobs.len())?;
                jobs.push(job);
            }
        }
        if let Some(first) = jobs.first_mut().filter(|_| number > 0) {
            first.start = Start {
                barrier: true,
                ..Start::default()
            };
        }
        Ok(Group { jobs })
    }

    /// Targets of a thread. A target in its part of the file is its only one.
    fn targets(&self, thread: u32) -> Result<Vec<String>, Refusal> {
        let own = self.file.threads.get(&thread);
        let own = own.and_then(|thread| thread.block_device.clone());
        match own.filter(|_| self.named.is_empty()) {
            Some(path) => Ok(vec![path]),
            None => targets::resolve(
                &self.named,
                self.file.block_device.as_deref(),
                self.module.block_device.as_deref(),
                self.machine,
            ),
        }
    }

    fn job(
        &mut self,
        line: Given,
        (thread, threads): (u32, u32),
        path: &str,
        index: usize,
    ) -> Result<Job, Refusal> {
        let refuse = |why: String| Refusal::usage(format!("{path}: {why}"));
        let facts = self.machine.target(path).map_err(refuse)?;
        let end = i64::try_from(facts.bytes).unwrap_or(i64::MAX);
        let mut settings = settings_of(self.file, line, thread, end)?;
        self.clip(&mut settings, path, end);
        if self.given.is("mix-unit", "io") {
            settings.set(Field::ReadBurst, 1);
            settings.set(Field::WriteBurst, 1);
        }
        let engine = self.engine.unwrap_or_else(|| self.automatic(&facts));
        if engine == "kernel" && !facts.is_device {
            return Err(refuse(
                "it is not a block device, and the kernel engine takes nothing else\n  help: make a \
                 loop device of it (`losetup -f --show FILE`), or take --engine uring"
                    .to_owned(),
            ));
        }
        targets::check_target(&settings, &facts).map_err(refuse)?;
        if let Some(note) = job::rounded(self.given, &settings) {
            self.note(note);
        }
        job::of(&JobRequest {
            given: self.given,
            settings,
            path,
            facts: &facts,
            machine: self.machine,
            engine,
            runtime: self.globals.runtime,
            thread,
            threads,
            index,
            cpus: self.cpus.as_deref(),
        })
    }

    /// Engine that `auto` chooses for a target.
    fn automatic(&self, facts: &TargetFacts) -> &'static str {
        let module = &self.module;
        if module.has_node && !module.is_closed && facts.is_device {
            "kernel"
        } else {
            "io_uring"
        }
    }

    /// Adds a note once, even if it is true of many threads.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Clips settings to the end of a target.
    fn clip(&mut self, settings: &mut Settings, path: &str, end: i64) {
        let high = settings.get(Field::OffsetHigh);
        if high > end {
            settings.set(Field::OffsetHigh, end);
            let note = format!("offset_high {high} is behind the end of {path}: clipped to {end}");
            self.note(note);
        }
    }
}

/// A group that writes, and one that reads the same back.
fn read_back(group: Group) -> [Group; 2] {
    let mut reads = group.clone();
    for (number, job) in reads.jobs.iter_mut().enumerate() {
        job.start.barrier = number == 0;
        if let Some(work) = job.workload.blocks_mut() {
            work.mix = Mix::only(Kind::Read);
            work.targets.open.data_sync = false;
        }
    }
    [group, reads]
}

/// Names the jobs by their point: a result has the jobs of all points side by side.
fn named(mut group: Group, name: &PointName) -> Group {
    for job in &mut group.jobs {
        if name.reads_back {
            push!(job.name, " read back");
        }
        if !name.swept.is_empty() {
            push!(job.name, ", {}", name.swept);
        }
    }
    group
}
