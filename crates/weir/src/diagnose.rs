//! `weir diagnose`: the bottleneck of a packet path.
//!
//! In: the arguments after `diagnose`. Out: the diagnosis on standard output, of each packet path of a stored
//! result, and of both sides where it has both. Nothing is written. Not here: the rules and their text (`weir-diagnose`).

use std::fmt::Display;
use std::path::Path;

use weir_diagnose::{
    Diagnosis, HostReport, InputError, PathContext, PcieCounts, PerfCounts, RecordedPath,
    node_bandwidths, text,
};
use weir_doors::Refusal;
use weir_doors::diagnose::{Action, Diagnose, PathSettings, path_settings, read};
use weir_doors::flags::nearest;
use weir_schema::RunResult;

use crate::stored::Stored;
use crate::{Outcome, output, printed};

/// The longest file that is read.
const LONGEST: u64 = 1 << 30;

/// Carries out the arguments after `diagnose`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Diagnose(asked) => carry_out(&asked),
    }
}

fn carry_out(asked: &Diagnose) -> Outcome {
    let diagnoses = diagnoses(asked)?;
    if !asked.as_json {
        let texts = diagnoses.iter().map(|one| text(one, asked.with_figures));
        return Ok(printed(&texts.collect::<String>()));
    }
    let json = match diagnoses.as_slice() {
        [one] if one.job.is_none() => serde_json::to_string_pretty(one),
        all => serde_json::to_string_pretty(all),
    };
    let json = json.map_err(|e| refused(&asked.log, e))?;
    Ok(printed(&(json + "\n")))
}

/// Diagnoses each path in turn: the side that recorded it, then the other one.
fn diagnoses(asked: &Diagnose) -> Result<Vec<Diagnosis>, Refusal> {
    let config = recorded(asked.config.as_ref(), path_settings)?;
    let settings = config.unwrap_or_else(PathSettings::default);
    let paths = of_operand(&asked.log, asked.job.as_deref())?;
    let knows_frames = |path: &RecordedPath| asked.frame_bytes.or(path.frame_bytes).is_some();
    if asked.link_bits_per_s.is_some() && !paths.iter().all(knows_frames) {
        return Err(Refusal::usage(
            "--link acts only with `--frame`, or with a stored result, which knows it",
        ));
    }
    let fewest = paths.iter().map(|path| path.local.tables.len()).min();
    if let (Some(table), Some(tables)) = (asked.table, fewest)
        && u64::from(table) > tables as u64
    {
        let why = format!("--table {table}: {} has {tables} tables", asked.log);
        return Err(Refusal::usage(why));
    }
    let beside = beside(asked, settings)?;
    let sides = paths.into_iter().flat_map(|mut path| {
        if path.job.is_some() && has_host_records(&beside) {
            let note = "what was recorded of the host is of all packet paths of the run together";
            path.local.notes.push(note.to_owned());
        }
        path.diagnoses(&beside)
    });
    Ok(sides.collect())
}

/// Records beside those of the paths, and the settings that the user stated.
fn beside(asked: &Diagnose, settings: PathSettings) -> Result<PathContext, Refusal> {
    Ok(PathContext {
        iterations: settings.iterations,
        table: asked.table,
        report: recorded(asked.report.as_ref(), HostReport::read)?,
        socket: asked.socket.or(settings.node),
        perf: recorded(asked.perf.as_ref(), PerfCounts::read)?,
        pcie: recorded(asked.pcie.as_ref(), PcieCounts::read)?,
        memory: recorded(asked.memory.as_ref(), node_bandwidths)?,
        link_bits_per_s: asked.link_bits_per_s,
        frame_bytes: asked.frame_bytes,
        triad_mb_per_s: asked.triad_mb_per_s,
    })
}

fn has_host_records(beside: &PathContext) -> bool {
    let accesses = beside.pcie.is_some() || beside.memory.is_some();
    beside.report.is_some() || beside.perf.is_some() || accesses
}

/// The paths of a log, or of a result: a file of either, or a run of the history.
fn of_operand(operand: &str, job: Option<&str>) -> Result<Vec<RecordedPath>, Refusal> {
    let stored = if Path::new(operand).exists() {
        let text = output::read_text(operand, LONGEST).map_err(|why| refused(operand, why))?;
        if !text.trim_start().starts_with('{') {
            if job.is_some() {
                return Err(Refusal::usage(format!(
                    "--job acts only with a stored result: {operand} is a log, of one packet path"
                )));
            }
            let path = RecordedPath::of_log(&text);
            let path = path.map_err(|why| Refusal::usage(format!("{operand}:{why}")))?;
            return Ok(vec![path]);
        }
        Stored::of_text(operand, &text)?
    } else {
        Stored::read(operand)?
    };
    match stored {
        Stored::One(result) => of_result(operand, &result, job),
        Stored::Several(_) => Err(refused(operand, "it has several runs; name one of them")),
    }
}

/// The paths of a result, or the one that is meant, that can be diagnosed; a note names each of the others.
fn of_result(
    operand: &str,
    result: &RunResult,
    job: Option<&str>,
) -> Result<Vec<RecordedPath>, Refusal> {
    let mut jobs = RecordedPath::all_of(result);
    let are_several = jobs.len() > 1;
    if let Some(name) = job {
        let known: Vec<String> = jobs.iter().map(|(job, _)| job.clone()).collect();
        jobs.retain(|(job, _)| job == name);
        if jobs.is_empty() && !known.is_empty() {
            return Err(no_path(name, &known));
        }
    }
    let mut none = "it is a result without a packet path".to_owned();
    let mut left_out = Vec::new();
    let mut paths = Vec::new();
    for (job, path) in jobs {
        match path {
            Ok(path) => paths.push(RecordedPath {
                job: are_several.then_some(job),
                ..path
            }),
            Err(why) => {
                left_out.push(format!("note: {operand}: job `{job}` is left out: {why}\n"));
                none = why;
            }
        }
    }
    if paths.is_empty() {
        return Err(refused(operand, none));
    }
    for note in left_out {
        output::error(&note);
    }
    Ok(paths)
}

/// Refusal of a job that is no packet path of the result.
fn no_path(name: &str, known: &[String]) -> Refusal {
    let help = nearest(name, known.iter().map(String::as_str)).map_or_else(
        || format!("there are {}", known.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Refusal::usage(format!(
        "--job: no packet path is called `{name}`\n  help: {help}"
    ))
}

fn recorded<T>(
    path: Option<&String>,
    read: fn(&str) -> Result<T, InputError>,
) -> Result<Option<T>, Refusal> {
    path.map(|path| of_file(path, read)).transpose()
}

fn of_file<T>(path: &str, read: fn(&str) -> Result<T, InputError>) -> Result<T, Refusal> {
    let text = output::read_text(path, LONGEST).map_err(|why| refused(path, why))?;
    read(&text).map_err(|why| Refusal::usage(format!("{path}:{why}")))
}

fn refused(path: &str, why: impl Display) -> Refusal {
    Refusal::usage(format!("{path}: {why}"))
}
