//! `weir diagnose`: what holds a packet path back.
//!
//! In: the words after `diagnose`. Out: the diagnosis on standard output, of both sides where a stored
//! result has both. Nothing is written. Not here: the rules and their text (`weir-diagnose`).

use std::fmt::Display;
use std::path::Path;

use weir_diagnose::{
    Diagnosis, DiagnosisSide, HostReport, InputError, PathLog, PathRecords, PcieCounts, PerfCounts,
    node_bandwidths, text,
};
use weir_doors::Refusal;
use weir_doors::diagnose::{
    Action, Diagnose, PathSettings, ResultRecords, path_settings, read, records_of,
};
use weir_schema::RunResult;

use crate::stored::Stored;
use crate::{Outcome, output, printed};

/// The longest file that is read.
const LONGEST: u64 = 1 << 30;

/// The words after `diagnose`.
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
        [one] => serde_json::to_string_pretty(one),
        both => serde_json::to_string_pretty(both),
    };
    let json = json.map_err(|e| refused(&asked.log, e))?;
    Ok(printed(&(json + "\n")))
}

/// What there is to be diagnosed.
enum PathSource {
    /// What a path printed.
    Log(PathLog),
    /// What it stored.
    Result(Box<ResultRecords>),
}

/// Of the side that recorded it, then of the other one.
fn diagnoses(asked: &Diagnose) -> Result<Vec<Diagnosis>, Refusal> {
    let config = recorded(asked.config.as_ref(), path_settings)?;
    let settings = config.unwrap_or_else(PathSettings::default);
    let given = of_operand(&asked.log)?;
    let (iterations, frame, log, counted, remote) = match given {
        PathSource::Log(log) => (None, None, log, Vec::new(), None),
        PathSource::Result(all) => (
            Some(all.iterations),
            Some(all.frame_bytes),
            all.local.log,
            all.local.counted,
            all.remote,
        ),
    };
    let frame_bytes = asked.frame_bytes.or(frame);
    if asked.link_bits_per_s.is_some() && frame_bytes.is_none() {
        return Err(Refusal::usage(
            "--link acts only with `--frame`, or with a stored result, which knows it",
        ));
    }
    let local = PathRecords {
        counted,
        iterations: settings.iterations.or(iterations),
        table: asked.table,
        report: recorded(asked.report.as_ref(), HostReport::read)?,
        socket: asked.socket.or(settings.node),
        perf: recorded(asked.perf.as_ref(), PerfCounts::read)?,
        pcie: recorded(asked.pcie.as_ref(), PcieCounts::read)?,
        memory: recorded(asked.memory.as_ref(), node_bandwidths)?,
        link_bits_per_s: asked.link_bits_per_s,
        frame_bytes,
        triad_mb_per_s: asked.triad_mb_per_s,
        ..PathRecords::of_log(log)
    };
    let mut all = vec![Diagnosis::of(&local)];
    // What was recorded beside is of this host.
    all.extend(remote.map(|remote| {
        Diagnosis::of(&PathRecords {
            counted: remote.counted,
            side: DiagnosisSide::Remote,
            iterations: local.iterations,
            table: local.table,
            ..PathRecords::of_log(remote.log)
        })
    }));
    Ok(all)
}

/// A log, or a result: a file of either, or a run of the history.
fn of_operand(operand: &str) -> Result<PathSource, Refusal> {
    let stored = if Path::new(operand).exists() {
        let text = output::read_text(operand, LONGEST).map_err(|why| refused(operand, why))?;
        if !text.trim_start().starts_with('{') {
            let log = PathLog::read(&text);
            let log = log.map_err(|why| Refusal::usage(format!("{operand}:{why}")))?;
            return Ok(PathSource::Log(log));
        }
        Stored::of_text(operand, &text)?
    } else {
        Stored::read(operand)?
    };
    match stored {
        Stored::One(result) => {
            let records = records_of(&result).map_err(|why| refused(operand, why))?;
            note_of_several(operand, &result);
            Ok(PathSource::Result(Box::new(records)))
        }
        Stored::Several(_) => Err(refused(operand, "it has several runs; name one of them")),
    }
}

/// Which of several packet paths is looked at: the first.
fn note_of_several(operand: &str, result: &RunResult) {
    let all = result.jobs().filter(|job| job.packet_path().is_some());
    let names: Vec<&str> = all.map(|job| job.name.as_str()).collect();
    if let [taken, _, ..] = names[..] {
        let count = names.len();
        output::error(&format!(
            "note: {operand}: it has {count} packet paths; the first is diagnosed, `{taken}`\n"
        ));
    }
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
