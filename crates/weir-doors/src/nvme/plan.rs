//! From arguments to a plan: a job for each core on each target that it works on.
//!
//! In: arguments, the machine. Out: a [`Request`]. Not here: which targets there are (`targets`), values
//! (`values`), texts of results (`output`).

use weir_schema::{
    BlockSizes, BlockWorkload, Distribution, EngineChoice, ErrorPolicy, FileNames, Group, Job,
    Kind, KindName, MemoryKind, MemoryNodes, Mix, Plan, Schedule, Setting, Size,
};
use weir_units::{Bytes, Iops, Nanos, QueueDepth};

use super::cores::{self, Context};
use super::targets::{self, Target};
use super::values::{Count, address, capacity, duration, engines, ranges};
use super::{list, output, prepare, refuse};
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::Request;

/// Options without which nothing is measured, in the order in which the peer asks for them.
const REQUIRED: [&str; 4] = ["io-depth", "io-size", "io-pattern", "time"];
/// The engine that has a drive for itself.
const OWN_DRIVER: &str = "vfio";
/// Bytes of a huge page.
const HUGE_PAGE: u64 = 2 << 20;

/// The request of these arguments.
///
/// # Errors
/// Options that are missing or contradict, cores that are not there; writes without consent; no drive.
pub(super) fn read(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    if given.has("help-full") {
        return Ok(Request::print((super::MANNER.help)()));
    }
    if given.has("list") {
        given.refuse_beside("--list", &["list"])?;
        return Ok(Request::print(list::text(machine)));
    }
    if let Some(address) = given.parsed("release", address) {
        given.refuse_beside("--release", &["release"])?;
        machine.release_drive(&address)?;
        return Ok(Request::print(format!(
            "{address}: the kernel has the drive\n"
        )));
    }
    let asked = Asked::read(given)?;
    let mut notes = idle(given);
    let mut all = targets::find(given, machine, &mut notes)?;
    let skipped = asked.skip(&mut all)?;
    if asked.mix.has(Kind::Write) || asked.destroys_before() {
        targets::check_writes(&all, given, machine)?;
    }
    if asked.engines.contains(&OWN_DRIVER) {
        targets::check_takeover(&all, given, machine)?;
    }
    let contexts = cores::contexts(
        &cores::chosen(given, &all, machine)?,
        all.len(),
        given.has("use-every-core"),
    );
    asked.check_memory(contexts.len())?;
    let mut plan = Plan::new("nvme-perf", "nvme-perf", Vec::new());
    plan.groups = asked.groups(&contexts, &all)?;
    notes.extend(skipped);
    notes.push(asked.summary(&contexts, &all));
    prepare::precede(&mut plan, &asked, &contexts, &all)?;
    let mut request = Request::measure(given, plan);
    request.notes = notes;
    prepare::watch(&mut request, &asked, &all, machine)?;
    Ok(request)
}

/// Notes on options without effect.
fn idle(given: &Given) -> Vec<String> {
    let idle = given.idle();
    idle.map(|(flag, when)| format!("{} acts only {when}", flag.spelling()))
        .collect()
}

/// Arguments that were checked together.
pub(super) struct Asked<'a> {
    pub(super) given: &'a Given,
    pub(super) depth: u32,
    pub(super) size: u64,
    pub(super) mix: Mix,
    is_random: bool,
    time: Nanos,
    warm_up: Nanos,
    /// Each measures for the time, one after the other.
    pub(super) engines: Vec<&'static str>,
}

impl<'a> Asked<'a> {
    fn read(given: &'a Given) -> Result<Self, Refusal> {
        let number = |name| given.parsed(name, capacity).unwrap_or_default();
        for name in REQUIRED {
            let is_zero = ["io-depth", "io-size"].contains(&name) && number(name) == 0;
            if !given.has(name) || is_zero {
                return Err(missing(given, name));
            }
        }
        let pattern = given.text("io-pattern").unwrap_or_default();
        let is_random = pattern.starts_with("rand");
        let mix = match pattern.trim_start_matches("rand") {
            "read" => Mix::only(Kind::Read),
            "write" => Mix::only(Kind::Write),
            _ => {
                let reads = given
                    .whole("rwmixread")
                    .ok_or_else(|| missing(given, "rwmixread"))?;
                Mix {
                    read_percent: reads,
                    write_percent: 100_u8.saturating_sub(reads),
                    ..Mix::only(Kind::Read)
                }
            }
        };
        let depth = u32::try_from(number("io-depth"))
            .ok()
            .filter(|depth| *depth <= 1 << 16);
        let depth = depth.ok_or_else(|| refuse("-q (--io-depth): it takes 65536 at most"))?;
        let time = |name| given.parsed(name, duration).unwrap_or_default();
        let asked = Self {
            given,
            depth,
            size: number("io-size"),
            mix,
            is_random,
            time: time("time"),
            warm_up: time("warmup-time"),
            engines: given
                .parsed("engine", engines)
                .unwrap_or_else(|| vec!["io_uring"]),
        };
        asked.check()?;
        asked.check_own_driver()?;
        Ok(asked)
    }

    /// True if the targets are written before they are measured.
    pub(super) fn destroys_before(&self) -> bool {
        self.given.has("precondition")
    }

    /// # Errors
    /// Options that the engine which has the drive for itself cannot keep.
    fn check_own_driver(&self) -> Result<(), Refusal> {
        let given = self.given;
        let wrong = [
            (
                given.has("enable-interrupt"),
                "-E (--enable-interrupt): --engine vfio polls; leave one of them out",
            ),
            (
                self.engines.len() > 1 && self.mix.has(Kind::Write),
                "--engine vfio beside others: they keep the drive that they write; take a pattern that reads, or \
                 run vfio alone",
            ),
            (
                given.has("precondition") || given.has("max-temp"),
                "--engine vfio: --precondition and --max-temp ask the kernel's driver, which has not the drive; \
                 leave them out, and prepare the drive by a run before",
            ),
        ];
        let takes_over = self.engines.contains(&OWN_DRIVER);
        let wrong = wrong.iter().find(|(is_wrong, _)| takes_over && *is_wrong);
        wrong.map_or(Ok(()), |(_, why)| Err(refuse(why)))
    }

    /// # Errors
    /// Options that contradict each other.
    fn check(&self) -> Result<(), Refusal> {
        let given = self.given;
        let unit = given.parsed("io-unit-size", capacity);
        let count = given.parsed("number-ios", Count::read);
        let too_few = match count {
            Some(Count::Operations(count)) => count < u64::from(self.depth),
            _ => false,
        };
        let all = |names: &[&str]| self.engines.iter().all(|engine| names.contains(engine));
        let wrong = [
            (
                self.size > u64::from(u32::MAX) / 2,
                "-o (--io-size): it takes less than 2 GiB",
            ),
            (
                unit.is_some_and(|unit| unit < self.size),
                "-O (--io-unit-size): the kernel gets a buffer in one part; take -o or more, or leave it out",
            ),
            (
                count.is_some() && self.warm_up > Nanos(0),
                "-d (--number-ios) and -a (--warmup-time): a number of I/Os has no warm-up; leave one of them out",
            ),
            (
                too_few,
                "-d (--number-ios): it takes as many I/Os as are in flight (-q), or more",
            ),
            (
                given.has("no-huge") && given.has("hugemem-size"),
                "--no-huge and -s (--hugemem-size) contradict each other; leave one of them out",
            ),
            (
                given.has("enable-interrupt") && given.has("polled"),
                "-E (--enable-interrupt) and --polled contradict each other; leave one of them out",
            ),
            (
                given.has("polled") && !all(&["io_uring", "io_uring_cmd", OWN_DRIVER]),
                "--polled: --engine uring and uring-cmd can poll a drive, vfio always does, and no other can",
            ),
            (
                given.has("enable-uring") && !all(&["io_uring"]),
                "-R (--enable-uring) and --engine contradict each other; leave one of them out",
            ),
            (
                self.engines.contains(&"psync") && self.depth > 1,
                "--engine psync has one I/O in flight, and -q asks for more\n  help: take -q 1, or --engine uring",
            ),
        ];
        let wrong = wrong.iter().find(|(is_wrong, _)| *is_wrong);
        wrong.map_or(Ok(()), |(_, why)| Err(refuse(why)))
    }

    /// Takes targets away that no I/O of this size fits; a warning for each.
    ///
    /// # Errors
    /// Nothing is left.
    fn skip(&self, all: &mut Vec<Target>) -> Result<Vec<String>, Refusal> {
        let mut skipped = Vec::new();
        all.retain(|Target { name, facts, .. }| {
            let (size, sector) = (self.size, facts.logical_block.max(1));
            let why = if !size.is_multiple_of(sector) {
                format!("is not a multiple of {name} sector size {sector}")
            } else if size > facts.bytes {
                format!("is greater than the {} bytes of {name}", facts.bytes)
            } else {
                return true;
            };
            skipped.push(format!(
                "WARNING: IO size {size} (-o) {why}. Removing this ns from test"
            ));
            false
        });
        if all.is_empty() {
            return Err(refuse(&format!(
                "{}\nnothing is left to measure",
                skipped.join("\n")
            )));
        }
        Ok(skipped)
    }

    /// # Errors
    /// Buffers need more than `-s` allows.
    fn check_memory(&self, contexts: usize) -> Result<(), Refusal> {
        let Some(most) = self.given.whole::<u64>("hugemem-size") else {
            return Ok(());
        };
        let each = u64::from(self.depth) * self.size.next_multiple_of(4096);
        let needed = (each.next_multiple_of(HUGE_PAGE) >> 20).saturating_mul(contexts as u64);
        if needed <= most {
            return Ok(());
        }
        Err(refuse(&format!(
            "-s (--hugemem-size) {most}: the buffers of -q and -o need {needed} MiB"
        )))
    }

    /// The jobs of each engine, which wait for those of the one before.
    fn groups(&self, contexts: &[Context], all: &[Target]) -> Result<Vec<Group>, Refusal> {
        let of_engine = |engine: &&'static str| {
            let jobs = contexts
                .iter()
                .map(|context| self.job(engine, context, all, contexts.len()));
            let mut jobs = jobs.collect::<Result<Vec<Job>, Refusal>>()?;
            jobs[0].start.barrier = Some(engine) != self.engines.first();
            Ok(Group { jobs })
        };
        self.engines.iter().map(of_engine).collect()
    }

    /// The job of a core on a target.
    fn job(
        &self,
        engine: &'static str,
        context: &Context,
        all: &[Target],
        contexts: usize,
    ) -> Result<Job, Refusal> {
        let target = &all[context.target];
        let given = self.given;
        let places = target.facts.bytes / self.size;
        let mut work = BlockWorkload {
            mix: self.mix,
            sizes: BlockSizes::fixed(Bytes(self.size)),
            ..BlockWorkload::default()
        };
        work.access.random = self.is_random;
        work.access.map = false;
        work.access.seed = given.number("seed");
        let theta = given.parsed("zipf", str::parse::<f64>).unwrap_or_default();
        if theta > 0.0 && self.is_random {
            work.access.distribution = Distribution::Zipf {
                theta,
                center: None,
            };
        }
        let (first, behind) = self.part(context, places);
        work.region.offset = Some(Size::Bytes(Bytes(first * self.size)));
        work.region.size = Some(Size::Bytes(Bytes((behind - first) * self.size)));
        work.passes.time_based = true;
        work.targets.open.data_sync = given.has("fua") && self.mix.has(Kind::Write);
        self.aim(&mut work, engine, target)?;
        let align = given.parsed("buffer-alignment", capacity);
        work.memory.align_bytes = align.filter(|align| *align > 4096).map(Bytes);
        if given.has("hugemem-size") {
            work.memory.kind = MemoryKind::Huge;
        }
        self.load(&mut work, places, contexts);
        let among = (self.engines.len() > 1).then_some(engine);
        let name = output::context_name(&target.name, among, context.core);
        let mut job = Job::of_blocks(&name, self.engine(engine, target)?, work);
        job.placement.cpus = Some(vec![context.core]);
        if given.has("enforce-numa") {
            job.placement.memory = MemoryNodes::Local;
        }
        prepare::bound(&mut job, given, self.warm_up);
        Ok(job)
    }

    /// The target of a job, and what it writes there.
    pub(super) fn aim(
        &self,
        work: &mut BlockWorkload,
        engine: &str,
        target: &Target,
    ) -> Result<(), Refusal> {
        let writes = work.mix.has(Kind::Write);
        work.targets.files = FileNames::of(&target.name_for(engine)?);
        work.targets.create.allow = Some(false);
        work.targets.open.direct = target.facts.is_direct;
        work.targets.open.read_only = !writes;
        if writes {
            work.content.compress_percent = self.given.number("buffer-compress-percentage");
            work.content.dedupe_percent = self.given.number("dedupe-percentage");
        }
        Ok(())
    }

    /// The first place of a context and the one behind its last. A target with fewer places than contexts is
    /// not split.
    fn part(&self, context: &Context, places: u64) -> (u64, u64) {
        let (number, of) = context.part;
        if self.is_random || self.given.is("seq-layout", "shared") || places < of {
            return (0, places);
        }
        let begin = |number: u64| {
            let place = u128::from(places) * u128::from(number) / u128::from(of);
            u64::try_from(place).unwrap_or(places)
        };
        (begin(number), begin(number + 1))
    }

    /// Depth, bounds, pace, errors and what is recorded.
    fn load(&self, work: &mut BlockWorkload, places: u64, contexts: usize) {
        let given = self.given;
        let load = &mut work.load;
        load.depth.queue_depth = QueueDepth(self.depth);
        load.depth.reap_max = given.number("max-completion-per-poll");
        load.bounds.runtime_ns = Some(self.time);
        load.bounds.ramp_ns = self.warm_up;
        let count = given.parsed("number-ios", Count::read);
        load.bounds.operations = count.map(|count| count.of(places).max(1));
        load.errors = ErrorPolicy {
            go_on: Kind::DATA.into_iter().map(KindName::from).collect(),
            report_errors: true,
            ..ErrorPolicy::default()
        };
        // The peer has one latency, from the call to its completion.
        (load.recording.slat, load.recording.clat) = (false, false);
        let rate = given.parsed("rate", |text| weir_units::parse::rate(text, "I/Os"));
        load.pacing.schedule = rate.map(|rate| {
            let each = rate / count_of(contexts);
            let shares = [
                (Kind::Read, self.mix.read_percent),
                (Kind::Write, self.mix.write_percent),
            ];
            let shares = shares.into_iter().filter(|(_, percent)| *percent > 0);
            let limit = |(kind, percent): (Kind, u8)| {
                (
                    KindName::from(kind),
                    Iops(each * f64::from(percent) / 100.0),
                )
            };
            Schedule::OpsPerSecond {
                limit_per_s: shares.map(limit).collect(),
                poisson: given.is("arrival", "poisson"),
                open_loop: true,
                ignore_thinktime: false,
            }
        });
    }

    pub(super) fn engine(
        &self,
        name: &'static str,
        target: &Target,
    ) -> Result<EngineChoice, Refusal> {
        let mut engine = EngineChoice::new(name);
        let mut set = |setting: &str| {
            engine
                .settings
                .insert(setting.to_owned(), Setting::Bool(true));
        };
        if name == OWN_DRIVER {
            set("takeover");
            if self.given.has("fua") && self.mix.has(Kind::Write) {
                set("write_through");
            }
        } else if self.given.has("polled") {
            if target.facts.has_polling == Some(false) {
                return Err(Refusal::lacks(format!(
                    "--polled: {} has no queues to poll\n  help: load its driver with some, as \
                     nvme.poll_queues=1; or leave --polled out",
                    target.path
                )));
            }
            set("polled");
        }
        Ok(engine)
    }

    /// Line that says what will be done.
    fn summary(&self, contexts: &[Context], all: &[Target]) -> String {
        let mut cores: Vec<u32> = contexts.iter().map(|context| context.core).collect();
        cores.dedup();
        let in_flight = contexts.len() as u64 * u64::from(self.depth);
        let mut out = format!(
            "{} s are measured, on {} of {} by {} of CPU {}, {in_flight} I/Os in flight",
            self.time.as_secs_f64(),
            counted(all.len(), "target"),
            Bytes(all.iter().map(|target| target.facts.bytes).sum()),
            counted(contexts.len(), "worker"),
            ranges(&cores),
        );
        if self.warm_up > Nanos(0) {
            push!(out, "; {} s of warm-up before", self.warm_up.as_secs_f64());
        }
        if !self.is_random && contexts.len() > all.len() {
            let layout = match self.given.text("seq-layout") {
                Some("shared") => "each worker goes through all of its target",
                _ => "each worker goes through a part of its target",
            };
            push!(out, "; {layout}");
        }
        out += &prepare::summary(self.given);
        if self.engines.len() > 1 {
            push!(out, "; by {}, one after the other", self.engines.join(", "));
        }
        if self.engines.contains(&OWN_DRIVER) {
            out.push_str("; the kernel has not the drives meanwhile");
        }
        if self.mix.has(Kind::Write) || self.destroys_before() {
            out.push_str("; what the targets hold is overwritten");
        }
        out
    }
}

/// Refusal where a required option is missing, or 0. The peer prints its help behind it.
fn missing(given: &Given, name: &str) -> Refusal {
    let flag = super::FLAGS.iter().find(|flag| flag.name == name);
    let letter = flag.and_then(|flag| flag.letter).unwrap_or_default();
    let why = format!("missing -{letter} (--{name}) operand");
    let help = given.door.command().render_long_help();
    Refusal::usage(&why).by_peer(format!("{why}\n{help}"))
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

#[expect(clippy::cast_precision_loss, reason = "a number of workers")]
fn count_of(workers: usize) -> f64 {
    workers.max(1) as f64
}
