//! The text of IO500: a figure and a time for each phase, and the score.
//!
//! In: the text. Out: one job. What is marked `[INVALID]` keeps its figures and is warned of.

use weir_schema::Metric;

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun};
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "io500",
    meaning: "IO500, what it prints",
    is_in: |text| text.contains("IO500 version"),
    read,
};

const GIB: f64 = 1_073_741_824.0;

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let mut run = ForeignRun::default();
    let mut metrics = Vec::new();
    let mut is_scored = false;
    for line in ended_lines(text)? {
        let words = line.text.trim();
        if let Some(version) = words.strip_prefix("IO500 version ") {
            run.program = Some(format!("IO500 {version}"));
        } else if let Some(error) = words.strip_prefix("ERROR INVALID ") {
            if !run.warnings.iter().any(|known| known == error) {
                run.warnings.push(error.to_owned());
            }
        } else if let Some(rest) = words.strip_prefix("[RESULT]") {
            metrics.extend(phase(line, rest, &mut run.warnings)?);
        } else if let Some(rest) = words.strip_prefix("[      ]") {
            metrics.extend(phase(line, rest, &mut run.warnings)?);
        } else if let Some(rest) = words.strip_prefix("[SCOREX]") {
            metrics.extend(score(line, "extended score", rest)?);
        } else if let Some(rest) = words.strip_prefix("[SCORE ]") {
            metrics.extend(score(line, "score", rest)?);
            is_scored = true;
            if rest.ends_with("[INVALID]") {
                run.warnings
                    .push("the score is marked [INVALID]".to_owned());
            }
        }
    }
    if !is_scored {
        return Err(ends_early(text, "there is no line `[SCORE ]`"));
    }
    run.jobs.push(ForeignJob {
        name: "io500".to_owned(),
        title: "IO500".to_owned(),
        metrics,
        ..ForeignJob::default()
    });
    Ok(run)
}

/// A figure in a unit, by a name.
fn figure(line: Line<'_>, name: &str, text: &str) -> Result<Metric, ImportError> {
    let (value, unit) = line.number_with_unit(text)?;
    match unit.to_ascii_lowercase().as_str() {
        "gib/s" => Ok(Metric::high(
            format!("{name} bandwidth"),
            Metric::BYTES_PER_S,
            value * GIB,
        )),
        "kiops" => Ok(Metric::high(
            format!("{name} rate"),
            Metric::OPS_PER_S,
            value * 1e3,
        )),
        _ => Err(line.error(format!("`{unit}` is neither GiB/s nor kIOPS"))),
    }
}

/// `ior-easy-write   1.104330 GiB/s : time 1.077 seconds [INVALID]`.
fn phase(
    line: Line<'_>,
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<Vec<Metric>, ImportError> {
    let wrong = || line.error("a phase has a name, a figure and a time");
    let (name, rest) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let (value, time) = rest.split_once(':').ok_or_else(wrong)?;
    let time = time.trim().strip_prefix("time ").ok_or_else(wrong)?;
    let (seconds, end) = line.number_with_unit(time)?;
    let mark = end.strip_prefix("seconds").ok_or_else(wrong)?;
    if mark.contains("[INVALID]") {
        warnings.push(format!("{name} is marked [INVALID]"));
    }
    let figure = figure(line, name, value)?;
    // A phase that stands for a moment alone has neither.
    if seconds <= 0.0 {
        return Ok(Vec::new());
    }
    let time = Metric::low(format!("{name} time"), Metric::SECONDS, seconds);
    Ok(vec![figure, time])
}

/// `Bandwidth 1.010539 GiB/s : IOPS 179.908561 kiops : TOTAL 13.483497 [INVALID]`.
fn score(line: Line<'_>, name: &str, text: &str) -> Result<Vec<Metric>, ImportError> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let wrong = || line.error("a score has a bandwidth, a rate and a total");
    let [bandwidth, rate, total] = parts.as_slice() else {
        return Err(wrong());
    };
    let bandwidth = bandwidth.strip_prefix("Bandwidth ").ok_or_else(wrong)?;
    let rate = rate.strip_prefix("IOPS ").ok_or_else(wrong)?;
    let total = total.strip_prefix("TOTAL ").ok_or_else(wrong)?;
    let (total, _) = line.number_with_unit(total)?;
    Ok(vec![
        figure(line, name, bandwidth)?,
        figure(line, name, rate)?,
        Metric::high(name, "", total),
    ])
}
