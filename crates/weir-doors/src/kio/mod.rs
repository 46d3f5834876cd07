//! `weir kio`, also reached by links named `kio` and `kio.py`: threads that keep a device busy, made in
//! the kernel or from user space.
//!
//! In: the words after `kio`, what this machine says ([`KioEnvironment`]). Out: an [`Action`]; from a
//! result the texts of [`output`]. Spec: kernel I/O, 3, 5 and 9. Not here: the module, and looking at
//! this machine.

mod boundary;
mod config;
mod figures;
mod flags;
mod job;
mod number;
pub mod output;
mod plan;
mod points;
mod remarks;
mod settings;
mod sweep;
mod targets;
#[cfg(test)]
mod tests;
mod words;

use clap::{Arg, Command};
use weir_schema::Plan;

pub use flags::FLAGS;
pub use output::{KioFormat, KioOptions};
pub(crate) use points::{EXTENSION, check_extension};
pub use remarks::deeds;

use crate::compare::Compare;
use crate::door::{Door, DoorLink};
use crate::flags::{command, nearest};
use crate::given::GivenFlags;
use crate::house::{Repeat, Run};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;

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
    words: Some(builder),
    ..Door::new(
        "kio",
        "[OPTIONS]",
        "threads that keep a block device busy, in the kernel or from user space",
    )
};

/// The end of the help text: examples, exit codes.
const HELP: &str = include_str!("help.md");

/// What `--examples` prints.
const EXAMPLES: &str = include_str!("examples.txt");

/// Where the options of the module are.
pub const MODPROBE: &str = "/etc/modprobe.d/kio.conf";

/// What command lines are read against on this machine.
#[derive(Clone, Copy)]
pub struct KioEnvironment<'a> {
    /// The variable `WEIR_KIO_DEVICE`.
    pub variable: &'a Option<String>,
    /// The kernel module.
    pub module: &'a ModuleFacts,
    /// The text of [`MODPROBE`].
    pub modprobe: &'a Option<String>,
    /// What a path names.
    pub target: &'a dyn Fn(&str) -> Result<TargetFacts, String>,
    /// What a device seems to hold that nobody uses; asked where something is to be written.
    pub holds: &'a dyn Fn(&str) -> Option<&'static str>,
    /// The text of a file.
    pub file: &'a dyn Fn(&str) -> Result<String, String>,
}

/// What is known of the kernel module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleFacts {
    /// Its node is there: it is weir's, and loaded.
    pub has_node: bool,
    /// This user may not open its node.
    pub is_closed: bool,
    /// Its version, where one of this name is loaded.
    pub version: Option<String>,
    /// Its parameter of this name.
    pub block_device: Option<String>,
}

/// What is known of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct TargetFacts {
    /// A block device, else a file.
    pub is_device: bool,
    /// Bytes.
    pub bytes: u64,
    /// The unit of addressing, of a file that of direct I/O.
    pub logical_block: u64,
    /// The device, or the one below the file, has queues to poll; absent: nobody knows.
    pub has_polling: Option<bool>,
    /// The page cache can be passed by.
    pub is_direct: bool,
    /// It refuses writes.
    pub is_read_only: bool,
    /// Its zones have to be written in order.
    pub is_zoned: bool,
    /// The NUMA node that it, or the device below it, is attached to.
    pub node: Option<u32>,
}

/// What the words ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Write a configuration.
    Generate {
        /// The file.
        path: String,
        /// Its text.
        text: String,
        /// What is printed.
        told: String,
    },
    /// A run.
    Run(Box<KioRun>),
    /// Several runs, each a process of its own.
    Repeat {
        /// The run.
        run: Box<Run>,
        /// How many.
        repeat: Repeat,
        /// As those of a single run.
        notes: Vec<String>,
    },
    /// The same in the kernel and from user space, in turns.
    Compare(Box<Compare>),
    /// What the module says of itself.
    Status,
    /// Devices that may be named.
    Devices,
    /// What this machine lacks for the module.
    Doctor,
    /// Build the module, against the kernel sources in this directory.
    Build(Option<String>),
    /// Load it.
    Load(Option<String>),
    /// Unload it.
    Unload,
}

/// What is run, and how it is shown.
#[derive(Clone, Debug)]
pub struct KioRun {
    /// A group for each point.
    pub plan: Plan,
    /// How it is shown.
    pub options: KioOptions,
    /// The file that gets a row for each point.
    pub csv: Option<String>,
    /// The file that gets a report.
    pub yaml: Option<String>,
    /// The file that gets what is printed.
    pub output: Option<String>,
    /// The file that gets the result.
    pub store: Option<String>,
    /// The history that keeps it, or `off`, where the command line says so.
    pub history: Option<String>,
    /// So many offsets of each thread are printed.
    pub trace: u32,
    /// Nothing is done.
    pub dry_run: bool,
    /// What was clipped or means something else, for standard error.
    pub notes: Vec<String>,
}

/// Words that are no options.
const VERBS: &[&str] = &[
    "status", "devices", "doctor", "build", "load", "unload", "convert",
];

/// The words after `kio`.
///
/// # Errors
/// Words that are not understood, or that this machine cannot do.
pub fn read(words: &[String], environment: &KioEnvironment<'_>) -> Result<Action, Refusal> {
    // The words of a link come first.
    let own = words.iter().take_while(|word| *word == "--format=kio");
    let rest = words.get(own.count()..).unwrap_or_default();
    if let Some((verb, rest)) = rest
        .split_first()
        .filter(|(word, _)| !word.starts_with('-'))
    {
        return of_verb(verb, rest, environment);
    }
    let matches = match parsed(words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches);
    if given.has("examples") {
        return Ok(Action::Print(EXAMPLES.to_owned()));
    }
    if given.has("version") {
        let version = environment.module.version.as_deref();
        let version = version.map_or_else(own_version, str::to_owned);
        return Ok(Action::Print(format!("{version}\n")));
    }
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    plan::read(&given, words, environment)
}

/// How a stored result is shown by these words.
///
/// # Errors
/// Words that are not understood.
pub fn read_options(words: &[String]) -> Result<KioOptions, Refusal> {
    match parsed(words)? {
        Parsed::Given(matches) => {
            let given = GivenFlags::of_matches(FLAGS, &matches);
            Ok(output::options(&given))
        }
        Parsed::Print(_) => Err(Refusal::usage("help is of no use for a stored result")),
    }
}

fn parsed(words: &[String]) -> Result<Parsed, Refusal> {
    parse(builder(), &words::whole(words)?)
}

/// weir's own version, where no module has one.
pub(crate) fn own_version() -> String {
    format!("weir-{}", env!("CARGO_PKG_VERSION"))
}

fn of_verb(
    verb: &str,
    rest: &[String],
    environment: &KioEnvironment<'_>,
) -> Result<Action, Refusal> {
    if rest.iter().any(|word| word == "--help" || word == "-h") && VERBS.contains(&verb) {
        let mut help = builder();
        return Ok(Action::Print(help.render_help().to_string()));
    }
    let alone = |action: Action| match rest.first() {
        None => Ok(action),
        Some(word) => Err(Refusal::usage(format!(
            "`weir kio {verb}` takes no words, and there is `{word}`"
        ))),
    };
    match verb {
        "status" => alone(Action::Status),
        "devices" => alone(Action::Devices),
        "doctor" => alone(Action::Doctor),
        "unload" => alone(Action::Unload),
        "build" => match rest {
            [] => Ok(Action::Build(None)),
            [flag, dir] if flag == "--kdir" => Ok(Action::Build(Some(dir.clone()))),
            _ => Err(Refusal::usage("`weir kio build` takes `--kdir DIR` alone")),
        },
        "load" => match rest {
            [] => Ok(Action::Load(None)),
            [flag, device] if flag == "--device" => Ok(Action::Load(Some(device.clone()))),
            _ => Err(Refusal::usage("`weir kio load` takes `--device DEV` alone")),
        },
        "convert" => match rest {
            [file] => plan::convert(file, None, environment).map(Action::Print),
            [file, flag, device] if flag == "--device" => {
                plan::convert(file, Some(device), environment).map(Action::Print)
            }
            _ => Err(Refusal::usage(
                "`weir kio convert` takes one configuration file, and `--device DEV` after it",
            )),
        },
        other => {
            let near = nearest(other, VERBS.iter().copied()).map_or_else(
                || format!("the words that are no options are {}", VERBS.join(", ")),
                |near| format!("did you mean `weir kio {near}`?"),
            );
            Err(Refusal::usage(format!(
                "stray word `{other}`\n  help: {near}"
            )))
        }
    }
}

/// The command that parses the options.
fn builder() -> Command {
    let mut builder = command("weir kio", FLAGS)
        .about("Threads that keep a block device busy, in the kernel or from user space")
        .after_help(HELP)
        .override_usage(
            "weir kio [OPTIONS]\n       weir kio status | devices | doctor | build [--kdir DIR] | \
             load [--device DEV] | unload | convert FILE [--device DEV]",
        )
        .no_binary_name(true)
        .args_override_self(true);
    for setting in settings::SETTINGS {
        builder = builder.mut_arg(setting.flag, |arg: Arg| arg.visible_alias(setting.short));
    }
    builder
}
