//! `weir monitor`: what the host did while something else ran.
//!
//! In: the words after `monitor`. Out: the report on standard output or in a file. Counters are read twice
//! and subtracted. Not here: the form of the report (`weir-diagnose`), the kernel's counters (`weir-sys`).

mod events;
mod processes;
mod sample;

use std::collections::BTreeMap;
use std::fmt::Display;

use weir_diagnose::{
    HOST_SCHEMA, HostMeasurement, InputError, IoRates, PcieCounts, Reading, node_bandwidths,
};
use weir_doors::monitor::{Action, Monitor, read};
use weir_doors::{Refusal, USAGE};
use weir_sys::Tree;

use crate::turns::{code_of_signal, pause};
use crate::{Outcome, output, printed, signals};

use self::events::Counters;
use self::sample::Sample;

/// The longest file that is read.
const LONGEST: u64 = 1 << 30;

/// The words after `monitor`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Monitor(asked) => monitor(&asked),
    }
}

fn monitor(asked: &Monitor) -> Outcome {
    let tree = Tree::real();
    if let Some(file) = &asked.output {
        output::check_writable(file).map_err(|message| Refusal::new(USAGE, message))?;
    }
    // What others recorded is looked at before time is spent on more.
    let recorded = Recorded::read(asked)?;
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let counters = Counters::open(&tree, asked.process)?;
    let before = Sample::take(&tree, asked.process)?;
    pause(asked.duration, &caught);
    // A process that ends before the time is over has been measured until shortly before.
    let after = Sample::take(&tree, asked.process)?;
    signals::release();
    let elapsed = after.elapsed_since(&before);
    let measured = HostMeasurement {
        schema: HOST_SCHEMA,
        seconds: elapsed.as_secs_f64(),
        cpus: after.busy_since(&before),
        figures: after.figures_since(&before),
        sockets: recorded.io_rates(&tree),
        nodes_mb_per_s: recorded.nodes(after.nodes_since(&before, &tree)),
        events: counters.counts(),
    };
    let code = deliver(asked, &measured)?;
    Ok(code_of_signal(&caught).unwrap_or(code))
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

/// What other programs recorded, where the kernel counts nothing.
struct Recorded {
    pcie: Option<PcieCounts>,
    memory: Option<BTreeMap<u32, f64>>,
}

impl Recorded {
    fn read(asked: &Monitor) -> Result<Self, Refusal> {
        Ok(Self {
            pcie: of_file(asked.pcie.as_ref(), PcieCounts::read)?,
            memory: of_file(asked.memory.as_ref(), node_bandwidths)?,
        })
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
                counted.insert(*node, Reading::known(*bandwidth));
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
