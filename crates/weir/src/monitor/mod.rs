//! `weir monitor`: activity of the host while something else ran.
//!
//! In: the arguments after `monitor`. Out: the report on standard output or in a file; for other verbs a
//! [`HostWatch`]. Counters are read twice and subtracted. Not here: the form of the report (`weir-diagnose`), the kernel's counters (`weir-sys`).

mod drivers;
mod events;
mod processes;
mod sample;
mod sources;
mod uncore;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use weir_diagnose::{
    HOST_SCHEMA, HostFigure, HostMeasurement, INTERFACE_DROPS, InputError, IoRates, NodeBandwidth,
    NodeParts, PcieCounts, Reading, SocketCounts, node_traffic,
};
use weir_doors::monitor::{Action, Monitor, read};
use weir_doors::{Refusal, USAGE};
use weir_sys::Tree;
use weir_sys::clock::{Clock, Tick, TickSource};
use weir_units::Nanos;

use crate::turns::{code_of_signal, pause};
use crate::{Outcome, output, printed, signals};

use self::events::Counters;
use self::sample::Sample;
use self::sources::{OtherSources, scaled_note, sources};
use self::uncore::Uncore;

/// Threads that begin or end are seen at looks so far apart.
const BETWEEN_LOOKS: Nanos = Nanos(100_000_000);
/// The longest file that is read.
const LONGEST: u64 = 1 << 30;

/// Carries out the arguments after `monitor`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Monitor(asked) => monitor(&asked),
    }
}

fn monitor(asked: &Monitor) -> Outcome {
    if let Some(file) = &asked.output {
        output::check_writable(file).map_err(|message| Refusal::new(USAGE, message))?;
    }
    // What others recorded is looked at before time is spent on more.
    let recorded = Recorded::read(asked)?;
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let mut watch = HostWatch::start(asked.process)?;
    let mut left = asked.duration;
    while left.0 > 0 && !caught.interrupted() {
        let step = Nanos(left.0.min(BETWEEN_LOOKS.0));
        pause(step, &caught);
        left = Nanos(left.0 - step.0);
        // A process that ends before the time is over has been measured until shortly before.
        if !watch.look() {
            break;
        }
    }
    signals::release();
    let measured = watch.measurement(&recorded);
    let code = deliver(asked, &measured)?;
    Ok(code_of_signal(&caught).unwrap_or(code))
}

/// A measurement under way: counters since its start, as they were at the last look.
pub(crate) struct HostWatch {
    tree: Tree,
    process: Option<u32>,
    clock: Clock,
    start: (Tick, Sample),
    last: (Tick, Sample),
    counters: Counters,
    uncore: Uncore,
}

impl HostWatch {
    /// Starts a monitor of a process, or of the whole machine.
    pub(crate) fn start(process: Option<u32>) -> Result<Self, Refusal> {
        let tree = Tree::real();
        let counters = Counters::open(&tree, process)?;
        let uncore = Uncore::open(&tree);
        let (clock, _) = Clock::detect();
        let take = || Sample::take(&tree, process).map(|sample| (clock.now(), sample));
        Ok(Self {
            start: take()?,
            last: take()?,
            tree,
            process,
            clock,
            counters,
            uncore,
        })
    }

    /// Reads the counters; false once there is nothing left to count.
    pub(crate) fn look(&mut self) -> bool {
        if let Some(process) = self.process {
            self.counters.add_threads(&self.tree, process);
        }
        let Ok(mut sample) = Sample::take(&self.tree, self.process) else {
            return false;
        };
        sample.keep_ended(&self.last.1);
        self.last = (self.clock.now(), sample);
        true
    }

    /// Report of the time between the start and the last sample.
    pub(crate) fn text(&self) -> String {
        self.measurement(&Recorded::default()).text()
    }

    fn measurement(&self, recorded: &Recorded) -> HostMeasurement {
        let ((begin, before), (end, after)) = (&self.start, &self.last);
        let counted = self.counters.counts();
        for (event, share) in &counted.scaled {
            output::error(&format!("note: {}\n", scaled_note(event, *share)));
        }
        let mut figures = after.figures_since(before);
        let at = figures
            .iter()
            .position(|figure| figure.name == INTERFACE_DROPS);
        let at = at.unwrap_or(figures.len());
        figures.insert(
            at,
            HostFigure::new("cpu_migrations", counted.migrations.clone()),
        );
        let ipc = ratio_of(&counted.events, "instructions", "cycles");
        figures.insert(at, HostFigure::new("instructions_per_cycle", ipc));
        if self.clock.source() == TickSource::Counter {
            #[expect(clippy::cast_precision_loss, reason = "ticks of a while")]
            let ticks = end.since(*begin) as f64;
            figures.insert(at, HostFigure::new("tsc_cycles", Reading::known(ticks)));
        }
        figures.extend(self.uncore.io_figures());
        let other = OtherSources {
            has_tsc: self.clock.source() == TickSource::Counter,
            memory_unit: self.uncore.memory_source(),
            has_io_units: self.uncore.has_io(),
            has_pauses: after.drivers().has_pauses(),
            has_driver_drops: after.drivers().has_drops(),
            has_node_bytes: after.has_node_bytes(),
            has_cache_bytes: after.has_cache_bytes(),
            has_pcm_memory: recorded.memory.is_some(),
            has_pcm_pcie: recorded.pcie.is_some(),
        };
        let sources = sources(&counted, other);
        let (nodes, parts) = self.nodes(recorded);
        HostMeasurement {
            schema: HOST_SCHEMA,
            seconds: after.elapsed_since(before).as_secs_f64(),
            cpus: after.busy_since(before),
            figures,
            sockets: recorded.io_rates(&self.tree),
            io_counts: recorded.io_counts(&self.tree),
            nodes_mb_per_s: nodes,
            node_parts: parts,
            events: counted.events,
            sources,
        }
    }
}

impl HostWatch {
    /// Megabytes a second of each memory node, with the parts read and written where they are counted apart.
    /// Counters of memory controllers come before resctrl, and resctrl before records of other programs.
    fn nodes(&self, recorded: &Recorded) -> (BTreeMap<u32, Reading>, BTreeMap<u32, NodeParts>) {
        let (before, after) = (&self.start.1, &self.last.1);
        let why = self.uncore.no_memory();
        let mut nodes = recorded.nodes(after.nodes_since(before, &self.tree, why));
        let mut parts = recorded.node_parts();
        for (node, counted) in self.uncore.nodes() {
            match counted {
                Ok(moved) => {
                    nodes.insert(node, Reading::known(moved.read + moved.written));
                    parts.insert(node, moved);
                }
                Err(why) => {
                    nodes.entry(node).or_insert_with(|| Reading::missing(why));
                }
            }
        }
        (nodes, parts)
    }
}

/// A count over another.
fn ratio_of(events: &[HostFigure], part: &str, whole: &str) -> Reading {
    let find = |name: &str| {
        let known = events.iter().find(|figure| figure.name == name);
        known.map_or_else(|| Reading::missing("not counted"), |f| f.reading.clone())
    };
    let (part, whole) = (find(part), find(whole));
    match (part.value, whole.value) {
        (Some(part), Some(whole)) if whole > 0.0 => Reading::known(part / whole),
        (Some(_), Some(_)) => Reading::missing("0 were counted"),
        (None, _) => part,
        (_, None) => whole,
    }
}

fn deliver(asked: &Monitor, measured: &HostMeasurement) -> Outcome {
    let text = if asked.as_json {
        let json = serde_json::to_string_pretty(measured);
        json.map_err(|why| Refusal::usage(why.to_string()))? + "\n"
    } else {
        measured.text()
    };
    Ok(match &asked.output {
        None => printed(&text),
        Some(file) => {
            let written = output::write_file(file, text);
            u8::from(written.map_err(|message| output::error(&message)).is_err())
        }
    })
}

/// Records of other programs, used where the kernel counts nothing.
#[derive(Default)]
struct Recorded {
    pcie: Option<PcieCounts>,
    memory: Option<BTreeMap<u32, NodeBandwidth>>,
}

impl Recorded {
    fn read(asked: &Monitor) -> Result<Self, Refusal> {
        let mut recorded = Self {
            pcie: of_file(asked.pcie.as_ref(), PcieCounts::read)?,
            memory: of_file(asked.memory.as_ref(), node_traffic)?,
        };
        for file in &asked.pcm {
            recorded.add(file)?;
        }
        Ok(recorded)
    }

    /// Takes a file of either program.
    fn add(&mut self, file: &String) -> Result<(), Refusal> {
        let pcie = of_file(Some(file), PcieCounts::read);
        let memory = of_file(Some(file), node_traffic);
        match (pcie, memory) {
            (Ok(pcie), _) if self.pcie.is_none() => self.pcie = pcie,
            (_, Ok(memory)) if self.memory.is_none() => self.memory = memory,
            (Ok(_), _) | (_, Ok(_)) => {
                let why = "counts of the same program were given before";
                return Err(Refusal::usage(format!("--pcm-csv {file}: {why}")));
            }
            (Err(why), Err(_)) if !Path::new(file).exists() => return Err(why),
            (Err(_), Err(_)) if Path::new(file).is_dir() => {
                return Err(Refusal::usage(format!(
                    "--pcm-csv {file}: it is a directory"
                )));
            }
            (Err(_), Err(_)) => {
                return Err(Refusal::usage(format!(
                    "--pcm-csv {file}: no counts of pcm-pcie or pcm-memory in it\n  help: record it with \
                     `pcm-pcie -e -csv` or `pcm-memory -csv`"
                )));
            }
        }
        Ok(())
    }

    fn io_counts(&self, tree: &Tree) -> BTreeMap<u32, SocketCounts> {
        let sockets = sockets(tree).into_iter();
        let of = |socket| Some((socket, self.pcie.as_ref()?.counts(socket)?));
        sockets.filter_map(of).collect()
    }

    fn node_parts(&self) -> BTreeMap<u32, NodeParts> {
        let nodes = self.memory.iter().flatten();
        let parts = nodes.filter_map(|(node, all)| {
            let (read, written) = all.read.zip(all.written)?;
            Some((*node, NodeParts { read, written }))
        });
        parts.collect()
    }

    fn io_rates(&self, tree: &Tree) -> BTreeMap<u32, IoRates> {
        let why = no_io_rates(tree);
        let missing = || IoRates {
            read_miss: Reading::missing(&why),
            write_miss: Reading::missing(&why),
        };
        let recorded = |socket| self.pcie.as_ref().map(|pcie| pcie.rates(socket));
        let of = |socket: u32| recorded(socket).unwrap_or_else(missing);
        let sockets = sockets(tree).into_iter();
        sockets.map(|socket| (socket, of(socket))).collect()
    }

    fn nodes(&self, mut counted: BTreeMap<u32, Reading>) -> BTreeMap<u32, Reading> {
        for (node, bandwidth) in self.memory.iter().flatten() {
            let known = counted.get(node).and_then(|reading| reading.value);
            if known.is_none() {
                counted.insert(*node, Reading::known(bandwidth.total));
            }
        }
        counted
    }
}

fn of_file<T>(
    path: Option<&String>,
    read: fn(&str) -> Result<T, InputError>,
) -> Result<Option<T>, Refusal> {
    let refused = |path: &str, why: &dyn Display| Refusal::usage(format!("{path}:{why}"));
    let one = |path: &String| {
        let text = output::read_text(path, LONGEST);
        let text = text.map_err(|why| Refusal::usage(format!("{path}: {why}")))?;
        read(&text).map_err(|why| refused(path, &why))
    };
    path.map(one).transpose()
}

/// Numbers of the sockets.
fn sockets(tree: &Tree) -> Vec<u32> {
    let cpus = tree.numbered("sys/devices/system/cpu", "cpu").into_iter();
    let package = |cpu| {
        tree.number(format!(
            "sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"
        ))
    };
    let mut sockets: Vec<u32> = cpus.filter_map(package).collect();
    sockets.sort_unstable();
    sockets.dedup();
    sockets
}

fn no_io_rates(tree: &Tree) -> String {
    let units = tree.names("sys/bus/event_source/devices");
    let counts_io =
        |unit: &String| unit.starts_with("uncore_iio") || unit.starts_with("uncore_cha");
    if units.iter().any(counts_io) {
        "record them with pcm-pcie and name its output with --pcie".to_owned()
    } else {
        "no uncore_iio or uncore_cha in /sys/bus/event_source/devices".to_owned()
    }
}
