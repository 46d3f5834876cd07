//! `weir axio`, also reached by a link named `axio`: messages in packets through stages, with the
//! configuration files and the tables of the Axio emulator (older names `DPerf`, `PipeTune`).
//!
//! In: arguments, the files that they name. Out: a [`Request`]; from a result the texts of [`output`].
//! Spec: packet datapath, 1 to 4. Not here: running a plan.

mod backend;
mod config;
mod flags;
mod handlers;
mod keys;
mod line_rate_table;
mod lone_stage;
mod look;
pub mod output;
mod peer_file;
mod plan;
mod print;
mod rate_lines;
mod role;
mod search;
mod server;
mod source;
#[cfg(test)]
mod tests;
mod tools;
mod traffic;
mod values;
mod verify;
pub(crate) mod window;

use weir_schema::{Job, PacketPathWorkload, Plan, Workload};

pub use config::{AxioConfig, ConfigPlace, ConfigValue, WorkloadLine};
pub use flags::FLAGS;
pub use keys::{KEYS, Key, KeyState};
pub use search::{NetworkTest, SearchGoal, SearchWay, TrafficSearch};
pub use verify::{Findings, MachineFacts};

use self::look::{Look, look, notes_of};
use self::print::is_json;
use self::role::AxioRole;
use self::source::{all_right, configuration, source};
use crate::door::{Door, DoorLink, Manner, Measures, Operands, Voice};
use crate::examples::{self, Example};
use crate::flags::{Standing, nearest};
use crate::given::{Given, GivenFlags};
use crate::house;
use crate::machine::Machine;
use crate::refusal::Refusal;
use crate::request::{Action, NamedFile, Request, Tool};

/// The door.
pub const DOOR: Door = Door {
    links: &[DoorLink::new("axio")],
    flags: FLAGS,
    measures: Some(Measures {
        manner: Manner::House(Some(Operands {
            name: "VERB",
            help: "run, verify, show, selftest, tools, ndr, rfc2544, or linerate RATE [FRAME]...",
        })),
        print: Some(print::print),
        observe: Some(print::observer),
        without: &["ranks", "rank-timeout", "percentiles", "no-latency"],
        peer_formats: &["text", "json"],
        help: include_str!("help.md"),
        examples: &[
            "weir axio --example echo",
            "weir axio --example scan --set duration=0.2 --voice peer --both",
            "weir axio --example scan --stage app_rx",
            "weir axio --example scan --set rate=100k --set inflight=0",
            "weir axio ndr --example echo --sink-rate 300k --search mlr --trial-time 0.2",
            "weir axio linerate 10G 64",
        ],
        ..Measures::new(request)
    }),
    ..Door::new(
        "axio",
        "[VERB] [OPTIONS]",
        "messages in packets through stages of threads, as the Axio emulator",
    )
};

/// Verbs that the first operand may be.
const VERBS: [&str; 8] = [
    "run",
    "verify",
    "show",
    "selftest",
    "tools",
    search::LOSS_RATES,
    search::NETWORK_TESTS,
    LINE_RATE,
];
const LINE_RATE: &str = "linerate";

/// Configurations of weir's own.
const EXAMPLES: &[Example] = &[
    ("echo", include_str!("examples/echo.conf")),
    ("scan", include_str!("examples/scan.conf")),
];

/// Names of a configuration in messages.
const CONFIGURATION: &str = "the configuration";
/// The name by which `-c` means standard input.
const STANDARD_INPUT: &str = "-";

#[expect(clippy::too_many_lines, reason = "one arm for each verb of the door")]
fn request(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    let verb = verb(&given.operands)?;
    refuse_unavailable(given)?;
    refuse_idle(verb, given)?;
    if verb == LINE_RATE {
        return line_rate_table::read(given);
    }
    if let [_, stray, ..] = given.operands.as_slice() {
        return Err(Refusal::usage(format!("stray word `{stray}`")));
    }
    if let Some(request) = without_configuration(verb, given, machine)? {
        return Ok(request);
    }
    let search = search::of_words(verb, given)?;
    let is_tool = verb == "tools";
    let only_looks =
        is_tool || verb == "verify" || verb == "show" || given.has("verify") || given.has("print");
    let Some((name, text)) = source(given, machine, !only_looks)? else {
        return no_file(is_tool);
    };
    let (config, mut wrong) = configuration(given, &name, &text)?;
    let stage = lone_stage::of_words(if only_looks { "verify" } else { verb }, given, &config)?;
    let role = if only_looks || stage.is_some() {
        // A check needs no role.
        Ok(AxioRole::Loopback)
    } else {
        AxioRole::of(&config, given, machine)
    };
    // Errors in values are reported before a missing role.
    let read = plan::workload(&config, *role.as_ref().unwrap_or(&AxioRole::Loopback));
    // For a check the verifier reports it, in the words of the older one.
    if !only_looks {
        let is_right = read.is_ok() && wrong.is_empty();
        let role = role.as_ref().ok().copied();
        wrong.extend(verify::wrong_for_a_run(&config, role, is_right));
    }
    let mut asked = all_right(&name, wrong, read)?;
    role?;
    if verb == "show" {
        return Ok(Request::print(config.lines()));
    }
    let asked_look = Look {
        given,
        machine,
        config: &config,
        prints: given.has("print"),
        verifies: verb == "verify",
    };
    if tools::has_own(given, is_tool)? {
        return tools::carry_out(&asked_look, &name);
    }
    if only_looks {
        return look(&asked_look).map(Request::printed);
    }
    asked.work.only_stage = stage;
    make_trouble(given, &mut asked.work)?;
    server::open_to(given, &mut asked.work)?;
    let search = search.map(|search| search.over(&asked.work, asked.line));
    let search = search.transpose()?;
    let notes = notes_of_run(&asked_look, (&name, &asked), search.as_ref())?;
    let plan = plan::plan(&name, asked, given.command());
    Ok(Request {
        notes,
        files: files(given),
        // Whoever holds it waits for READY.
        voice: machine.is_input_held().then_some(Voice::Peer),
        monitor: given.text("monitor").map(str::to_owned),
        ..match search {
            Some(search) => search.request(given, plan),
            None => Request::measure(given, plan),
        }
    })
}

/// Files that a run reads and writes besides the result.
fn files(given: &GivenFlags) -> Vec<NamedFile> {
    let config = given.text("config").filter(|file| *file != STANDARD_INPUT);
    let config = config.map(|file| NamedFile::read(file, CONFIGURATION));
    let monitor = given.text("monitor");
    let monitor = monitor.map(|file| NamedFile::written(file, "where --monitor goes"));
    let token = given.text("token-file");
    let token = token.map(|file| NamedFile::read(file, "the --token-file"));
    config.into_iter().chain(monitor).chain(token).collect()
}

/// Refuses flags beside arguments that measure nothing, and forms that nothing here is printed in.
fn refuse_idle(verb: &str, given: &Given) -> Result<(), Refusal> {
    let verb_itself = format!("`weir axio {verb}`");
    for (flag, mode) in [("example", "--example list"), ("backend", "--backend list")] {
        if given.is(flag, examples::LIST) {
            return given.refuse_beside(mode, &[flag]);
        }
    }
    if verb == "selftest" {
        return given.refuse_beside(&verb_itself, &["voice"]);
    }
    let looks = ["verify", "print"].into_iter().find(|flag| given.has(flag));
    if let Some(flag) = looks {
        given.refuse_house(&format!("--{flag}"), &["voice", "strict"])?;
    }
    if ["verify", "show", "tools"].contains(&verb) {
        given.refuse_house(&verb_itself, &["voice", "strict"])?;
    }
    match given.house.text("format") {
        Some(format) if verb == LINE_RATE && !["text", "json"].contains(&format) => {
            let why = "this has the forms text and json";
            Err(Refusal::usage(format!("--format {format}: {why}")))
        }
        _ => Ok(()),
    }
}

/// Requests that need no configuration.
///
/// # Errors
/// Words that this build or this verb has no use for.
fn without_configuration(
    verb: &str,
    given: &Given,
    machine: &dyn Machine,
) -> Result<Option<Request>, Refusal> {
    if given.is("example", examples::LIST) {
        return Ok(Some(Request::print(examples::list(EXAMPLES))));
    }
    if given.is("backend", "list") {
        return Ok(Some(Request::print(backend::list(&machine.packet_links()))));
    }
    if verb == "selftest" {
        return Ok(Some(Request::new(Action::Tool(Tool::StageTiming))));
    }
    if given.has("peer") && verb != "verify" && !given.has("verify") {
        return Err(Refusal::usage("--peer acts only with `verify` or -v"));
    }
    if verb == "tools" {
        tools::check_named(given)?;
    }
    let lists = tools::has_own(given, verb == "tools")? && given.has("list-packages");
    Ok(lists.then(|| Request::print(tools::PACKAGES)))
}

/// Notes before a run.
///
/// # Errors
/// Findings of the verifier, and differences that would end the run.
fn notes_of_run(
    asked_look: &Look<'_>,
    (name, asked): (&str, &plan::AxioWork),
    search: Option<&TrafficSearch>,
) -> Result<Vec<String>, Refusal> {
    let Look {
        given,
        config,
        machine,
        ..
    } = *asked_look;
    let found = verify::verify(config, &plan::tunable(config));
    if let Some(why) = found.broken {
        return Err(Refusal::usage(format!("{name}: {why}")));
    }
    let is_forced = given.has("force") || search.is_some();
    if let Some(why) = window::window_too_small(&asked.work).filter(|_| !is_forced) {
        let more = "\n  help: a larger inflight, smaller batches, or --force";
        return Err(Refusal::usage(format!("{name}: {why}{more}")));
    }
    let mut notes = found.warnings;
    notes.extend(notes_of(asked_look));
    notes.extend(lone_stage::note(&asked.work));
    if given.has("both") && is_json(given) {
        notes.push("--both: without effect: the JSON has both sides".to_owned());
    } else if given.has("both") && house::voice(given) == Voice::Weir {
        notes.push("--both: without effect: it is for the tables of --voice peer".to_owned());
    }
    match search {
        Some(search) => notes.extend(search.notes(config)),
        None => notes.extend(idle_line_rate(config)),
    }
    notes.extend(verify::beyond_machine(config, asked, &machine.path_facts()));
    let is_run = !given.house.has("show-plan") && !given.house.has("dry-run");
    notes.extend(role::waiting_note(&asked.work).filter(|_| is_run));
    Ok(notes)
}

/// Answer to a call without a file; `tools` answers like the older ones.
fn no_file(is_tool: bool) -> Result<Request, Refusal> {
    if is_tool {
        return Ok(tools::error(tools::NO_CONFIG));
    }
    let more = "\n  help: `weir axio --example echo` needs none";
    let why = lower_first(tools::NO_CONFIG);
    Err(Refusal::usage(format!("{why}{more}")))
}

/// A rate of the line of which nothing is a share.
fn idle_line_rate(config: &AxioConfig) -> Option<String> {
    let is_share = config.text("rate").is_some_and(|rate| rate.ends_with('%'));
    let is_idle = !is_share && config.text("line_rate").is_some();
    let place = config.place_of("line_rate");
    is_idle.then(|| format!("{place}: without effect: `rate` is no percentage"))
}

/// Verb in the first operand, `run` without operands.
fn verb(operands: &[String]) -> Result<&'static str, Refusal> {
    let Some(first) = operands.first() else {
        return Ok("run");
    };
    if let Some(verb) = VERBS.iter().find(|verb| *verb == first) {
        return Ok(verb);
    }
    let near = nearest(first, VERBS.iter().copied()).map_or_else(String::new, |near| {
        format!("\n  help: did you mean `weir axio {near}`?")
    });
    Err(Refusal::usage(format!(
        "no word `{first}` of `weir axio` (there are {}){near}",
        VERBS.join(", ")
    )))
}

fn refuse_unavailable(given: &GivenFlags) -> Result<(), Refusal> {
    if let Some(why) = given.refusal() {
        return Err(Refusal::usage(why));
    }
    let refused = given.iter().find_map(|(flag, _)| match flag.standing {
        Standing::Refused(why) => Some((flag, why)),
        _ => None,
    });
    refused.map_or(Ok(()), |(flag, why)| {
        Err(Refusal::usage(format!("{}: {why}", flag.spelling())))
    })
}

/// Sets the faults that flags inject.
fn make_trouble(given: &GivenFlags, work: &mut PacketPathWorkload) -> Result<(), Refusal> {
    if let Some(share) = given.share("inject-loss") {
        work.dropped_per_million = u32::try_from(traffic::whole(share * 1e6)).unwrap_or(0);
    }
    server::limit(given, work)
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The packet path of a plan, where it has one.
pub fn work_of(plan: &Plan) -> Option<&PacketPathWorkload> {
    plan.jobs().find_map(|(_, job)| work_of_job(job))
}

fn work_of_job(job: &Job) -> Option<&PacketPathWorkload> {
    match &job.workload {
        Workload::PacketPath(work) => Some(work.as_ref()),
        _ => None,
    }
}
