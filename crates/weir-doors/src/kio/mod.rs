//! `weir kio`, also reached by links named `kio` and `kio.py`: threads that keep a device busy, made in
//! the kernel or from user space.
//!
//! In: arguments. Out: a [`Request`]; from a result the texts of `output`. Spec: kernel I/O, 3, 5 and
//! 9. Not here: the module, and looking at this machine.

mod boundary;
mod config;
mod figures;
mod flags;
mod job;
mod number;
mod output;
mod plan;
mod points;
mod quoting;
mod remarks;
mod settings;
mod sweep;
mod targets;
#[cfg(test)]
mod tests;

use clap::{Arg, Command};

pub use flags::FLAGS;
pub(crate) use points::{EXTENSION, check_extension};

use crate::args;
use crate::door::{Door, DoorLink, Getopt, Manner, Measures};
use crate::flags::nearest;
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::{Action, Request, Tool};

/// The door.
pub const DOOR: Door = Door {
    links: &[
        DoorLink::new("kio"),
        DoorLink {
            name: "kio.py",
            words: &["--format=kio"],
        },
    ],
    flags: FLAGS,
    measures: Some(MEASURES),
    words: Some(builder),
    ..Door::new(
        "kio",
        "[OPTIONS]",
        "threads that keep a block device busy, in the kernel or from user space",
    )
};

const MEASURES: Measures = Measures {
    manner: Manner::Getopt(&MANNER),
    print: Some(|result, given, machine| Ok(output::print(result, given, machine))),
    peers_form: output::peers_form,
    without: &["ranks", "rank-timeout"],
    help: include_str!("help.md"),
    examples: &[
        "weir kio -d F --queue-depth 10 --offset-random 1",
        "weir kio -d F --sweep queue_depth=1..32*2 --output-csv sweep.csv",
        "weir kio --num-threads 2 --queue-depth 16 --generate-config kio.conf",
        "weir kio -d /dev/nvme0n1 --read-mix-percent 100 --format kio",
    ],
    ..Measures::new(request)
};

/// Arguments as kio.py reads them: its names may be cut short, the last of several values holds.
const MANNER: Getopt = Getopt {
    abbreviates: |flag| {
        let of_peer = FLAGS.iter().take(flags::REFERENCE);
        flag.name == "help" || of_peer.into_iter().any(|known| known.name == flag.name)
    },
    alias: |name| {
        let setting = settings::SETTINGS.iter().find(|known| known.short == name);
        setting.map(|setting| setting.flag)
    },
    operand,
    ..Getopt::new(
        |why| Refusal::usage(why.replace("--help` lists the options", "--help` says more")),
        || builder().render_long_help().to_string(),
    )
};

/// Text of `--examples`.
const EXAMPLES: &str = include_str!("examples.txt");

/// File with the options of the module.
const MODPROBE: &str = "/etc/modprobe.d/kio.conf";

/// Facts about the kernel module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    /// The device node exists: the module is weir's, and loaded.
    pub has_node: bool,
    /// This user may not open the device node.
    pub is_closed: bool,
    /// Version, where a module of this name is loaded.
    pub version: Option<String>,
    /// Parameter `block_device` of the module.
    pub block_device: Option<String>,
}

/// Facts about a target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct TargetFacts {
    /// A block device, else a file.
    pub is_device: bool,
    /// Bytes.
    pub bytes: u64,
    /// The unit of addressing, of a file that of direct I/O.
    pub logical_block: u64,
    /// The device, or the one below the file, has queues to poll; `None` where that is unknown.
    pub has_polling: Option<bool>,
    /// The page cache can be passed by.
    pub is_direct: bool,
    /// The target refuses writes.
    pub is_read_only: bool,
    /// Zones of the target have to be written in order.
    pub is_zoned: bool,
    /// The NUMA node that it, or the device below it, is attached to.
    pub node: Option<u32>,
}

#[cfg(test)]
impl TargetFacts {
    /// A device of 64 MiB.
    pub(crate) fn sample() -> Self {
        Self {
            is_device: true,
            bytes: 64 << 20,
            logical_block: 512,
            has_polling: None,
            is_direct: true,
            is_read_only: false,
            is_zoned: false,
            node: Some(1),
        }
    }
}

/// Call of the kernel module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleCall {
    /// Print the state of the module.
    Status,
    /// Print the devices that may be named.
    Devices,
    /// Print what this machine lacks for the module.
    Doctor,
    /// Build the module, against the kernel sources in this directory.
    Build(Option<String>),
    /// Load it, for this device.
    Load(Option<String>),
    /// Unload it.
    Unload,
}

/// Arguments that are no options.
const VERBS: &[&str] = &[
    "status", "devices", "doctor", "build", "load", "unload", "convert",
];

fn operand(word: &str, given: &Given) -> Result<(), String> {
    match given.operands.first().map(String::as_str) {
        None if VERBS.contains(&word) => Ok(()),
        None => {
            let near = nearest(word, VERBS.iter().copied()).map_or_else(
                || format!("the words that are no options are {}", VERBS.join(", ")),
                |near| format!("did you mean `weir kio {near}`?"),
            );
            Err(format!("stray word `{word}`\n  help: {near}"))
        }
        Some("convert") if given.operands.len() == 1 => Ok(()),
        Some(verb) => Err(too_much(verb, word)),
    }
}

fn too_much(verb: &str, word: &str) -> String {
    let takes = match verb {
        "build" => "`--kdir DIR` alone",
        "load" => "`--device DEV` alone",
        "convert" => "one configuration file, and `--device DEV`",
        _ => "no words",
    };
    format!("`weir kio {verb}` takes {takes}, and there is `{word}`")
}

fn request(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    if let Some(verb) = given.operands.first() {
        return of_verb(verb, given, machine);
    }
    if given.has("examples") {
        return Ok(Request::print(EXAMPLES));
    }
    if given.has("version") {
        let version = machine.kernel_module().version;
        let version = version.unwrap_or_else(own_version);
        return Ok(Request::print(format!("{version}\n")));
    }
    if given.has("kdir") {
        return Err(Refusal::usage(
            "--kdir acts only with `weir kio build`; leave it out",
        ));
    }
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    refuse_of_house(given)?;
    plan::request(given, machine)
}

/// Refuses flags of the house that concern the run of a single plan, where there is none.
fn refuse_of_house(given: &Given) -> Result<(), Refusal> {
    if given.has("generate-config") {
        given.refuse_house("--generate-config", &[])
    } else if given.has("compare") {
        given.refuse_house("--compare", &["store-result", "progress"])
    } else {
        Ok(())
    }
}

/// weir's own version, where no module has one.
fn own_version() -> String {
    format!("weir-{}", env!("CARGO_PKG_VERSION"))
}

fn of_verb(verb: &str, given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let taken = match verb {
        "build" => "kdir",
        "load" | "convert" => "device",
        _ => "",
    };
    // A link chooses a format.
    let is_odd = |name: &str| name != taken && (name != "format" || given.link.is_none());
    let mut all = given.own.iter().chain(given.house.iter());
    if let Some((flag, _)) = all.find(|(flag, _)| is_odd(flag.name)) {
        return Err(Refusal::usage(too_much(verb, &flag.spelling())));
    }
    let value = |name| given.text(name).map(str::to_owned);
    let call = match verb {
        "convert" => return convert(given, machine),
        "status" => ModuleCall::Status,
        "devices" => ModuleCall::Devices,
        "doctor" => ModuleCall::Doctor,
        "build" => ModuleCall::Build(value("kdir")),
        "load" => ModuleCall::Load(value("device")),
        _ => ModuleCall::Unload,
    };
    Ok(Request::new(Action::Tool(Tool::KernelModule(call))))
}

/// A configuration as a plan that `weir run` carries out.
fn convert(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let Some(file) = given.operands.get(1) else {
        return Err(Refusal::usage(
            "`weir kio convert` takes one configuration file, and `--device DEV` after it",
        ));
    };
    let device = given.all("device").flat_map(|device| ["--device", device]);
    let words: Vec<String> = ["--config", file]
        .into_iter()
        .chain(device)
        .map(str::to_owned)
        .collect();
    let mut request = plan::request(&args::read_given(given.door, &words)?, machine)?;
    if let Action::Measure(input) = request.action {
        request.action = Action::ShowPlan(input);
    }
    Ok(request)
}

/// The command from which help, manual and completions are made.
fn builder() -> Command {
    let mut builder = args::command(&DOOR, &MEASURES).override_usage(
        "weir kio [OPTIONS]\n       weir kio status | devices | doctor | build [--kdir DIR] | \
         load [--device DEV] | unload | convert FILE [--device DEV]",
    );
    for setting in settings::SETTINGS {
        builder = builder.mut_arg(setting.flag, |arg: Arg| arg.visible_alias(setting.short));
    }
    builder
}
