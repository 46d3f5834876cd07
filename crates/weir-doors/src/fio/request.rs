//! From arguments to a request: the jobs compiled for a run, or what is answered instead.
//!
//! In: [`Given`], files and engines of the machine. Out: a [`Request`]. Not here: what job options mean
//! (`weir-jobfile`).

use weir_jobfile::{
    CommandWord, CompileRequest, Compiled, Diagnostic, Dialect, FioPlan, JobSource,
};
use weir_schema::{FileNames, Kind, PerKind, Plan, TotalLog};

use super::debug::{self, DebugWords};
use super::options::{Eta, FioOptions, checksums, time};
use super::{complaint, help, print, refuse};
use crate::door::{Printed, Voice};
use crate::flags::{Flag, Standing};
use crate::given::Given;
use crate::house::{Input, voice};
use crate::machine::{Machine, NamedPath};
use crate::refusal::{Refusal, USAGE};
use crate::request::{Action, NamedFile, Request, Tool, Trigger};

/// Flags that read jobs and run nothing.
const READS_ONLY: &[&str] = &["showcmd", "parse-only"];
/// Flags that act on one run.
const OF_ONE_RUN: &[&str] = &[
    "idle-prof",
    "status-interval",
    "trigger-file",
    "trigger-timeout",
];
/// Flags that act on the text of fio alone, and do not ask for it.
const OF_PEER_TEXT: &[&str] = &["eta-newline", "eta-interval", "exit"];

/// The request of these arguments.
pub(super) fn read(given: &Given, machine: &dyn Machine) -> Result<Request, Refusal> {
    if let Some(answer) = answer(given, machine)? {
        return Ok(answer);
    }
    let options = FioOptions::of(given);
    let reads_only = READS_ONLY.iter().copied().find(|flag| given.has(flag));
    let names_job = given.options.iter().any(|word| word.key == "name");
    let needs_job = reads_only != Some("parse-only");
    if needs_job && !names_job && given.operands.is_empty() {
        let why = "no job: name a job file, or options of one after --name";
        let peer = format!("No job(s) defined\n\n{}", help::page());
        return Err(Refusal::usage(why).by_peer(peer));
    }
    let mut compiled = compiled(given, &options, machine)?;
    let shows_parsing = given.all("debug").any(debug::shows_parsing);
    let before = if shows_parsing {
        debug::parsing(&compiled.plan)
    } else {
        String::new()
    };
    let Some(flag) = reads_only else {
        return measured(given, options, compiled, before, machine);
    };
    given.refuse_house(&format!("--{flag}"), &["voice"])?;
    let shown = match flag {
        "showcmd" => compiled.show_command.clone() + "\n",
        _ => String::new(),
    };
    let notes = printed_notes(given, &mut compiled, machine);
    // The kernel takes back at the end what thousands of jobs would give back one by one.
    std::mem::forget(compiled);
    Ok(Request::printed(Printed {
        out: before + &shown,
        err: note_lines(&notes),
        ..Printed::default()
    }))
}

/// The request to measure jobs, or to print their plan.
fn measured(
    given: &Given,
    options: FioOptions,
    mut compiled: Compiled,
    before: String,
    machine: &dyn Machine,
) -> Result<Request, Refusal> {
    if !given.house.has("show-plan") {
        FioPlan::keep_notes(&mut compiled.plan, compiled.notes.clone());
        refuse_absent_directories(&compiled.plan, machine)?;
        refuse_idle_at_run(given, &options)?;
        if options.idleness.is_some() {
            machine.watch_idleness();
        }
    }
    let notes = printed_notes(given, &mut compiled, machine);
    let mut request = Request::new(Action::Measure(Input::Made(Box::new(compiled.plan))));
    request.notes = notes;
    request.before = before;
    let read = given.operands.iter();
    request.files = read
        .map(|path| NamedFile::read(path, "a job file"))
        .collect();
    request.text_file = options.output;
    let text = |flag| given.text(flag).map(str::to_owned);
    request.trigger = Trigger {
        file: text("trigger-file"),
        after: given.parsed("trigger-timeout", |text| time(text, "0")),
        command: text("trigger"),
        heat: None,
    };
    request.is_quiet = options.eta == Eta::Never && voice(given) == Voice::Weir;
    Ok(request)
}

/// Notes for standard error. Programs that start fio take a line there for a failure: they find notes in
/// the JSON document.
fn printed_notes(given: &Given, compiled: &mut Compiled, machine: &dyn Machine) -> Vec<String> {
    if voice(given) == Voice::Peer && !machine.is_error_terminal() {
        return Vec::new();
    }
    std::mem::take(&mut compiled.notes)
}

fn note_lines(notes: &[String]) -> String {
    let mut lines = String::new();
    for note in notes {
        push!(lines, "note: {note}\n");
    }
    lines
}

/// Answer to the last flag instead of a run, where it has one.
fn answer(given: &Given, machine: &dyn Machine) -> Result<Option<Request>, Refusal> {
    let Some(last) = given.own.iter().last().filter(|last| is_answered(*last)) else {
        return Ok(None);
    };
    let tool = match (last.0.name, last.1) {
        // The reader has checked the list.
        ("crctest", list) => Tool::Checksums(checksums(list).unwrap_or_default()),
        ("cpuclock-test", _) => Tool::ClockTest,
        ("inflate-log", path) => Tool::InflateLog(path.to_owned()),
        ("idle-prof", _) => Tool::IdleUnit,
        (name, value) => {
            let text = match name {
                "version" => help::version(given.has("compat-banner")),
                "cmdhelp" => help::option(value)?,
                "enghelp" => help::engine(&machine.engines(), value)?,
                _ => debug::list(),
            };
            return Ok(Some(Request::print(text)));
        }
    };
    Ok(Some(Request::new(Action::Tool(tool))))
}

/// True if a flag is answered instead of a run; arguments behind it are not read.
pub(super) fn is_answered((flag, value): (&Flag, &str)) -> bool {
    match flag.name {
        "version" | "cmdhelp" | "enghelp" | "crctest" | "cpuclock-test" | "inflate-log" => true,
        "idle-prof" => value == "calibrate",
        "debug" => matches!(debug::read(value), DebugWords::List),
        _ => false,
    }
}

/// The request to compile the jobs of these arguments.
pub fn jobs(given: &Given) -> CompileRequest {
    let all = |name| given.all(name).map(str::to_owned).collect();
    let mut words = given.options.clone();
    if words.iter().all(|word| word.key != "name") && given.operands.is_empty() {
        words.insert(0, nameless_job());
    }
    let words = (!words.is_empty()).then_some(JobSource::Words(words));
    let files = given.operands.iter().cloned().map(JobSource::File);
    CompileRequest {
        dialect: Dialect::Fio,
        command: match given.link {
            Some(link) => [&[link.to_owned()], &given.args[..]].concat(),
            None => given.command(),
        },
        sources: words.into_iter().chain(files).collect(),
        sets: all("set"),
        maps: all("map"),
        sections: all("section"),
        read_only: given.has("readonly"),
    }
}

/// Options alone are looked at as those of a job.
fn nameless_job() -> CommandWord {
    CommandWord {
        key: "name".to_owned(),
        value: Some("options".to_owned()),
        argument: 0,
        text: String::new(),
    }
}

fn compiled(
    given: &Given,
    options: &FioOptions,
    machine: &dyn Machine,
) -> Result<Compiled, Refusal> {
    let is_peer = voice(given) == Voice::Peer;
    let mut compiled = machine.compile(&jobs(given)).map_err(|all| {
        let own: String = all.iter().map(Diagnostic::render).collect();
        Refusal::new(USAGE, own).by_peer(complaint(&all))
    })?;
    let is_fatal = given.has("warnings-fatal") && !compiled.notes.is_empty();
    compiled.notes.splice(0..0, notes(given, options, is_peer));
    if is_fatal {
        return Err(Refusal::new(USAGE, note_lines(&compiled.notes)));
    }
    compiled.plan.total_log = given.all("bandwidth-log").last().map(total_log);
    if let Some(directory) = given.text("aux-path") {
        compiled.plan.set_verify_directory(directory);
    }
    Ok(compiled)
}

/// The bandwidth logs of the whole run.
fn total_log(prefix: &str) -> TotalLog {
    let prefix = if prefix.is_empty() { "agg" } else { prefix };
    let path = |kind: Kind| format!("{prefix}-{}_bw.log", kind.name());
    TotalLog {
        paths: PerKind::from_fn(path).by_name(),
    }
}

/// Notes about flags that are taken without effect.
fn notes(given: &Given, options: &FioOptions, is_peer: bool) -> Vec<String> {
    let mut notes = Vec::new();
    for (flag, value) in given.own.iter() {
        if let Standing::WithoutEffect(why) = flag.standing {
            notes.push(format!("--{} has no effect: {why}", flag.name));
        }
        if flag.name == "debug"
            && let DebugWords::Chosen { notes: more, .. } = debug::read(value)
        {
            notes.extend(more);
        }
    }
    let idle = given.own.idle();
    let mut idle: Vec<_> = idle.map(|(flag, when)| (flag.name, when)).collect();
    if !is_peer {
        let line = (options.eta == Eta::Always).then_some("eta");
        let of_text = OF_PEER_TEXT.iter().copied().filter(|flag| given.has(flag));
        idle.extend(
            line.into_iter()
                .chain(of_text)
                .map(|flag| (flag, "with `--voice peer`")),
        );
    }
    let idle = idle.into_iter();
    notes.extend(idle.map(|(flag, when)| format!("--{flag} has no effect: it acts only {when}")));
    notes
}

/// Refuses flags that cannot act on the run that is asked for.
fn refuse_idle_at_run(given: &Given, options: &FioOptions) -> Result<(), Refusal> {
    print::refuse_report_flags(given)?;
    if !given.house.has("repeat") {
        return Ok(());
    }
    let of_text = options
        .output
        .as_ref()
        .filter(|_| voice(given) == Voice::Peer);
    let of_text = of_text.map(|_| "output");
    let mut odd = OF_ONE_RUN.iter().copied().filter(|flag| given.has(flag));
    odd.next().or(of_text).map_or(Ok(()), |flag| {
        let why = "it is for one run; leave it or --repeat out";
        Err(refuse(format!("--{flag}: {why}")))
    })
}

/// A directory for files that is not there ends everything, as in fio: it is no matter of one job.
fn refuse_absent_directories(plan: &Plan, machine: &dyn Machine) -> Result<(), Refusal> {
    let files = plan.jobs().filter_map(|(_, job)| job.workload.blocks());
    let mut named = files.flat_map(|work| match &work.targets.files {
        FileNames::Listed { directories, .. } | FileNames::Generated { directories, .. } => {
            &directories[..]
        }
        _ => &[],
    });
    match named.find(|name| machine.named_path(name) != NamedPath::Directory) {
        None => Ok(()),
        Some(name) => Err(
            Refusal::usage(format!("{name} is not a directory")).by_peer(format!(
                "fio: {name} is not a directory\nfio: failed parsing directory={name}"
            )),
        ),
    }
}
