//! Arguments of `weir run` that are no flags: job files, a stored plan, or targets, with the options
//! that go with them.
//!
//! In: arguments, kinds of what paths name. Out: the input of the run. Not here: whether a target may be
//! written, which the program looks at once it has the plan.

use weir_jobfile::{CommandWord, CompileRequest, Dialect, JobSource};

use super::examples::EXAMPLES;
use crate::examples;
use crate::given::Given;
use crate::house::{Input, suffix};
use crate::machine::{Machine, NamedPath};
use crate::refusal::Refusal;

/// Options that a target on the command line stands for.
const OF_TARGETS: [&str; 2] = ["filename", "name"];

/// Kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentKind {
    Plan,
    JobFile,
    Target,
}

/// The input that arguments name.
///
/// # Errors
/// Arguments that are neither, that do not mix, flags that do not go with them.
pub(super) fn input(given: &Given, machine: &dyn Machine) -> Result<Input, Refusal> {
    if let Some(name) = given.text("example") {
        return of_example(given, name);
    }
    let mut kinds = Vec::new();
    for path in &given.operands {
        kinds.push((kind(path, given, machine)?, path));
    }
    let first = |wanted| kinds.iter().find(|(kind, _)| *kind == wanted);
    if let Some((_, target)) = first(ArgumentKind::Target) {
        if let Some((_, file)) = kinds.iter().find(|(kind, _)| *kind != ArgumentKind::Target) {
            return Err(Refusal::usage(format!(
                "`{file}` is a job file and `{target}` a target: they do not mix\n  help: name the \
                 target in the job file, or run one after the other"
            )));
        }
        return of_targets(given, machine);
    }
    if given.operands.is_empty() {
        let target = given.text("destroy");
        let help =
            target.map(|path| format!("\n  help: name it once more: --destroy {path} {path}"));
        let why = "no job file given, and no target";
        return Err(Refusal::usage(format!("{why}{}", help.unwrap_or_default())));
    }
    refuse(given, "destroy", "a job file says itself what it writes")?;
    if let Some((_, plan)) = first(ArgumentKind::Plan) {
        return of_plan(given, plan);
    }
    let files = given.operands.iter().cloned();
    Ok(of_jobs(given, files.map(JobSource::File).collect()))
}

fn kind(path: &str, given: &Given, machine: &dyn Machine) -> Result<ArgumentKind, Refusal> {
    let has_rw = given.options.iter().any(|option| option.key == "rw");
    match suffix(path) {
        Some("json") => return Ok(ArgumentKind::Plan),
        Some("fio") => return Ok(ArgumentKind::JobFile),
        _ if path == "-" => return Ok(ArgumentKind::JobFile),
        _ => {}
    }
    match machine.named_path(path) {
        NamedPath::Directory => Err(Refusal::usage(format!(
            "{path}: it is a directory\n  help: name a job file, or with --rw=randread and the like a \
             device or a file to be read or written"
        ))),
        NamedPath::Device => Ok(ArgumentKind::Target),
        NamedPath::File { is_job_file: false } | NamedPath::Missing if has_rw => {
            Ok(ArgumentKind::Target)
        }
        NamedPath::File { is_job_file: false } => Err(Refusal::usage(format!(
            "{path}: not a job file\n  help: a job file begins with a section such as `[a]`; with \
             --rw=randread and the like the file itself is read or written"
        ))),
        // One that cannot be read is refused with the reason.
        _ => Ok(ArgumentKind::JobFile),
    }
}

/// Refuses a flag of the door that does not go with the rest.
fn refuse(given: &Given, flag: &str, why: &str) -> Result<(), Refusal> {
    match given.text(flag) {
        Some(value) => Err(Refusal::usage(format!(
            "--{flag} {value}: {why}; leave it out"
        ))),
        None => Ok(()),
    }
}

fn of_example(given: &Given, name: &str) -> Result<Input, Refusal> {
    let (name, text) = examples::find(EXAMPLES, name)?;
    if let Some(other) = given.operands.first() {
        return Err(Refusal::usage(format!(
            "--example {name}: it is run alone; leave `{other}` out"
        )));
    }
    refuse(given, "destroy", "a job file says itself what it writes")?;
    Ok(of_jobs(given, vec![JobSource::Text { name, text }]))
}

fn of_plan(given: &Given, plan: &str) -> Result<Input, Refusal> {
    if given.operands.len() > 1 {
        return Err(Refusal::usage(format!(
            "`{plan}` is a stored plan: it is run alone"
        )));
    }
    let changes = ["set", "map", "section"].into_iter();
    let mut changes = changes.filter(|flag| given.has(flag)).map(str::to_owned);
    let option = given.options.first().map(|option| option.key.clone());
    if let Some(flag) = changes.next().or(option) {
        return Err(Refusal::usage(format!(
            "--{flag} changes job files; `{plan}` is a stored plan"
        )));
    }
    Ok(Input::Plan {
        path: plan.to_owned(),
        read_only: given.has("readonly"),
        command: given.command(),
    })
}

/// Job files: options win over them, as `--set` does.
fn of_jobs(given: &Given, sources: Vec<JobSource>) -> Input {
    let mut jobs = compile_request(given, sources);
    let set = |option: &CommandWord| match &option.value {
        Some(value) => format!("{}={value}", option.key),
        None => option.key.clone(),
    };
    jobs.sets.extend(given.options.iter().map(set));
    Input::Jobs(jobs)
}

/// A job for each target, all with the same options.
fn of_targets(given: &Given, machine: &dyn Machine) -> Result<Input, Refusal> {
    let targets = &given.operands;
    refuse(given, "section", "it chooses a section of a job file")?;
    refuse(given, "map", "it changes paths of a job file")?;
    let is_odd = |option: &&CommandWord| OF_TARGETS.contains(&option.key.as_str());
    if let Some(option) = given.options.iter().find(is_odd) {
        let why = "the arguments that are no flags are the targets; leave it out";
        return Err(Refusal::usage(format!("--{}: {why}", option.key)));
    }
    let destroyed: Vec<String> = given.all("destroy").map(str::to_owned).collect();
    if let Some(stray) = destroyed.iter().find(|path| !targets.contains(path)) {
        let why = "no target is written so on the command line";
        let help = "write it as the target is written";
        return Err(Refusal::usage(format!(
            "--destroy {stray}: {why}\n  help: {help}"
        )));
    }
    refuse_own_files(given, machine)?;
    let mut words = given.options.clone();
    for target in targets {
        for (key, value) in [
            ("name", job_name(target, targets)),
            ("filename", target.replace(':', "\\:")),
        ] {
            words.push(CommandWord {
                key: key.to_owned(),
                value: Some(value),
                argument: 0,
                text: target.clone(),
            });
        }
    }
    Ok(Input::Targets {
        jobs: compile_request(given, vec![JobSource::Words(words)]),
        targets: targets.clone(),
        destroyed,
    })
}

/// Refuses files that ranks would make beside a target, each one of its own.
fn refuse_own_files(given: &Given, machine: &dyn Machine) -> Result<(), Refusal> {
    let is_several = given.house.has("ranks") || machine.launcher().is_some();
    let is_file = |path: &&String| machine.named_path(path) != NamedPath::Device;
    let mut files = given.operands.iter().filter(is_file);
    match files
        .next()
        .filter(|_| is_several && given.is("per-rank", "own"))
    {
        Some(file) => Err(Refusal::usage(format!(
            "{file}: each rank would work on a file of its own beside it\n  help: add --per-rank \
             shared or --per-rank split"
        ))),
        None => Ok(()),
    }
}

/// The last part of a path where it tells a target from all others, else the path. A section whose
/// name begins with `global` would be none.
fn job_name(target: &str, targets: &[String]) -> String {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let name = last(target);
    let alike = targets.iter().filter(|other| last(other) == name).count();
    match (alike, name.as_str()) {
        (1, name) if !name.is_empty() && !name.starts_with("global") => name.to_owned(),
        _ if target.starts_with("global") => format!("./{target}"),
        _ => target.to_owned(),
    }
}

fn compile_request(given: &Given, sources: Vec<JobSource>) -> CompileRequest {
    let all = |name| given.all(name).map(str::to_owned).collect();
    CompileRequest {
        dialect: Dialect::Run,
        command: given.command(),
        sources,
        sets: all("set"),
        maps: all("map"),
        sections: all("section"),
        read_only: given.has("readonly"),
    }
}
