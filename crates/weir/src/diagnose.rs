//! `weir diagnose`: what holds a packet path back.
//!
//! In: the words after `diagnose`. Out: the diagnosis on standard output. Nothing is written. Not here:
//! the rules and their text (`weir-diagnose`).

use std::fmt::Display;

use weir_diagnose::{
    Diagnosis, HostReport, InputError, PathLog, PathRecords, PcieCounts, PerfCounts,
    node_bandwidths, text,
};
use weir_doors::Refusal;
use weir_doors::diagnose::{Action, Diagnose, PathSettings, path_settings, read};

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
    let config = recorded(asked.config.as_ref(), path_settings)?;
    let settings = config.unwrap_or_else(PathSettings::default);
    let records = PathRecords {
        log: of_file(&asked.log, PathLog::read)?,
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
    };
    let diagnosis = Diagnosis::of(&records);
    if !asked.as_json {
        return Ok(printed(&text(&diagnosis, asked.with_figures)));
    }
    let json = serde_json::to_string_pretty(&diagnosis);
    let json = json.map_err(|e| refused(&asked.log, e))?;
    Ok(printed(&(json + "\n")))
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
