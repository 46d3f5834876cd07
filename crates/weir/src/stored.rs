//! Stored results, by whatever names them.
//!
//! In: an operand of a verb that reads results: a file of weir or of another program, or else a run of
//! the history. Out: one result, or several runs with what they say together. Not here: what is done
//! with them.

use std::path::Path;

use weir_doors::Refusal;
use weir_doors::flags::nearest;
use weir_history::{FEWEST_CHARACTERS, is_short_id, plan_fingerprint};
use weir_import::Format;
use weir_schema::{HistoryPlace, RUNS_SCHEMA, RunResult, RunSeries, Runs};
use weir_units::Nanos;

use crate::{history, no_result, output};

/// The longest result that is read.
const LONGEST: u64 = 1 << 30;

/// Stored result or results that an operand names.
#[derive(Clone)]
pub(crate) enum Stored {
    /// A run.
    One(Box<RunResult>),
    /// Several runs of one or more plans.
    Several(Box<Runs>),
}

impl Stored {
    /// # Errors
    /// Nothing that can be read, or no result.
    pub(crate) fn read(operand: &str) -> Result<Self, Refusal> {
        // A file wins over a run of the same name.
        if !Path::new(operand).exists()
            && let Some(texts) = history::texts(operand)?
        {
            let all = texts.iter().map(|(id, text)| Self::of_history(id, text));
            return Ok(together(all.collect::<Result<_, _>>()?));
        }
        if !Path::new(operand).exists() && is_short_id(operand) {
            return Err(Refusal::usage(format!(
                "{operand}: no file of this name, and too short for a run of the history\n  help: the \
                 beginning of an id has at least {FEWEST_CHARACTERS} characters"
            )));
        }
        Self::of_text(operand, &read_text(operand, None)?)
    }

    /// A run of the history, which an imported one does not know of itself.
    fn of_history(id: &str, text: &str) -> Result<Self, Refusal> {
        let mut stored = Self::of_text(id, text)?;
        if let Self::One(result) = &mut stored {
            result.history.get_or_insert_with(|| HistoryPlace {
                id: id.to_owned(),
                file: None,
            });
        }
        Ok(stored)
    }

    /// Reads the results in the text of an operand.
    pub(crate) fn of_text(operand: &str, text: &str) -> Result<Self, Refusal> {
        let refuse = |why: String| Refusal::usage(format!("{operand}: {why}"));
        if !is_own(text)
            && let Some(format) = Format::of(text)
        {
            return import(format, text, operand);
        }
        if Runs::is_in(text) {
            let runs = Runs::from_json(text).map_err(|e| refuse(e.to_string()))?;
            return Ok(Self::Several(Box::new(runs)));
        }
        let result = RunResult::from_json(text);
        let result = result.map_err(|e| no_result::refusal(operand, text, &e))?;
        if result.is_newer() {
            output::error(&format!(
                "note: {operand}: {} was made by a newer weir: what this one does not know is left \
                 out\n",
                result.schema
            ));
        }
        Ok(Self::One(Box::new(result)))
    }
}

/// Runs of one plan.
struct Together {
    fingerprint: String,
    /// Name of the series, where the runs were stored as one.
    name: Option<String>,
    runs: Vec<RunResult>,
}

/// Several as one: those of one plan on one kind of target are its runs.
fn together(mut all: Vec<Stored>) -> Stored {
    if all.len() == 1
        && let Some(one) = all.pop()
    {
        return one;
    }
    let comparison = all.iter().find_map(|stored| match stored {
        Stored::One(_) => None,
        Stored::Several(runs) => runs.comparison.clone(),
    });
    let parts = all.into_iter().flat_map(|stored| match stored {
        Stored::One(result) => vec![(None, vec![*result])],
        Stored::Several(runs) => {
            let series = runs.series.into_iter();
            series.map(|s| (Some(s.name), s.runs)).collect()
        }
    });
    let mut plans: Vec<Together> = Vec::new();
    for (name, runs) in parts {
        let Some(first) = runs.first() else {
            continue;
        };
        let fingerprint = plan_fingerprint(first);
        // Commands have no plan, and a plan may take turns with itself: their names distinguish them.
        let is_of = |known: &&mut Together| {
            known.fingerprint == fingerprint
                && (known.name.is_none() || name.is_none() || known.name == name)
        };
        match plans.iter_mut().find(is_of) {
            Some(known) => {
                known.name = known.name.take().or(name);
                known.runs.extend(runs);
            }
            None => plans.push(Together {
                fingerprint,
                name,
                runs,
            }),
        }
    }
    let asked = plans.iter().map(|plan| plan.runs.len()).max().unwrap_or(0);
    let of_plan = |Together { name, runs, .. }: Together| {
        let of_first = || runs.first().map(|run| run.plan.name.clone());
        let name = name.or_else(of_first).unwrap_or_default();
        RunSeries::new(&name, runs)
    };
    let series: Vec<RunSeries> = plans.into_iter().map(of_plan).collect();
    let mut runs = series.iter().flat_map(|series| &series.runs);
    Stored::Several(Box::new(Runs {
        schema: RUNS_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: ["weir", "run"].map(str::to_owned).to_vec(),
        asked: u32::try_from(asked).unwrap_or(u32::MAX),
        pause_ns: Nanos::ZERO,
        complete: runs.all(|run| run.complete),
        comparison,
        series,
    }))
}

/// True if a text begins like a result of weir.
fn is_own(text: &str) -> bool {
    let head = text.chars().take(200).filter(|c| !c.is_whitespace());
    head.collect::<String>().starts_with("{\"schema\":\"weir.")
}

/// Reads an operand; arguments may name the format of another program.
///
/// # Errors
/// Nothing that can be read, another format, no such format.
pub(crate) fn read_from(operand: &str, format: Option<&str>) -> Result<Stored, Refusal> {
    let Some(name) = format else {
        return Stored::read(operand);
    };
    let format = format_named(name)?;
    import(format, &read_text(operand, Some(format))?, operand)
}

/// Reads a text file, which should have this format.
pub(crate) fn read_text(operand: &str, wanted: Option<&Format>) -> Result<String, Refusal> {
    output::read_text(operand, LONGEST).map_err(|why| {
        if why == output::NO_TEXT {
            no_result::no_text(operand, &why, wanted)
        } else {
            Refusal::usage(format!("{operand}: {why}"))
        }
    })
}

fn format_named(name: &str) -> Result<&'static Format, Refusal> {
    if name == "csv" {
        return Err(Refusal::usage(
            "`weir import csv FILE --column METRIC=NAME:UNIT` alone reads csv",
        ));
    }
    Format::named(name).ok_or_else(|| {
        let names = no_result::format_names();
        let near = nearest(name, names.clone()).map_or_else(String::new, |near| {
            format!("\n  help: did you mean `{near}`?")
        });
        let list = names.collect::<Vec<_>>().join(", ");
        Refusal::usage(format!(
            "no format `{name}` is read (these are: {list}; csv by `weir import` alone){near}"
        ))
    })
}

fn import(format: &Format, text: &str, operand: &str) -> Result<Stored, Refusal> {
    let result = format.import(text, operand).map_err(|e| {
        Refusal::usage(format!(
            "{operand}:{e}\n  help: it was read as {}{}",
            format.meaning,
            no_result::seems_other(text, format.name)
        ))
    })?;
    Ok(Stored::One(Box::new(result)))
}
