//! Diagnosis of an operand that holds no result, with the remedy.
//!
//! In: its name, its text, why that cannot be read. Out: a refusal with the remedy. Not here: what can
//! be read (`stored`).

use std::ffi::OsStr;
use std::path::Path;

use weir_doors::Refusal;
use weir_history::Entry;
use weir_import::{FORMATS, Format};
use weir_schema::SchemaError;

/// Beginning of the schema name in every result of weir.
const OWN: &str = "\"weir.result.v";
/// The suffixes that job files have.
const JOB_FILES: [&str; 3] = ["fio", "job", "ini"];

/// A text that is no result of weir, nor one of another program.
pub(crate) fn refusal(operand: &str, text: &str, error: &SchemaError) -> Refusal {
    let refuse =
        |why: &str, help: &str| Refusal::usage(format!("{operand}: {why}\n  help: {help}"));
    if text.trim().is_empty() {
        return Refusal::usage(format!("{operand}: it is empty"));
    }
    if Entry::is_line(text) {
        let help = format!("`weir history import {operand}` adds its runs, which have names there");
        return refuse("it is an export of a history, no result", &help);
    }
    match error {
        SchemaError::Version { found, .. } if is_of(found, "weir.plan") => refuse(
            "it is a stored plan, no result",
            &format!("`weir run --store-result r.json {operand}` runs it and stores a result"),
        ),
        SchemaError::Version { found, .. } if is_of(found, "weir.comparison") => refuse(
            "it is a stored comparison, no result",
            "name the results that were compared",
        ),
        // A result that is broken.
        SchemaError::Shape { .. } if text.contains(OWN) => {
            Refusal::usage(format!("{operand}: {error}"))
        }
        SchemaError::Shape { .. } if is_job_file(operand, text) => refuse(
            "it is no stored result; a job file?",
            &format!(
                "`weir run --store-result r.json {operand}` stores a result of it; `weir compare \
                 --run` compares job files"
            ),
        ),
        SchemaError::NoSchema { .. } => refuse(&error.to_string(), &formats_read(operand)),
        SchemaError::Shape { .. } => {
            // Of what begins as JSON the place is of use as well.
            let place = if text.trim_start().starts_with('{') {
                format!(" ({error})")
            } else {
                String::new()
            };
            let why = format!("it is no stored result, and in no format that is known{place}");
            refuse(&why, &formats_read(operand))
        }
        _ => Refusal::usage(format!("{operand}: {error}")),
    }
}

/// Refusal of a file without text, where a file of this format is wanted.
pub(crate) fn no_text(operand: &str, why: &str, wanted: Option<&Format>) -> Refusal {
    let help = wanted.map_or_else(
        || formats_read(operand),
        |format| format!("wanted is {}", format.meaning),
    );
    Refusal::usage(format!("{operand}: {why}\n  help: {help}"))
}

/// Note on another format that a text seems to have, beside the one that it was read as.
pub(crate) fn seems_other(text: &str, read_as: &str) -> String {
    let other = Format::of(text).filter(|other| other.name != read_as);
    other.map_or_else(String::new, |other| {
        format!("; it seems to be `{}`: {}", other.name, other.meaning)
    })
}

/// Names of the formats of other programs, and of CSV, which needs more arguments.
pub(crate) fn format_names() -> impl Iterator<Item = &'static str> + Clone {
    FORMATS.iter().map(|format| format.name).chain(["csv"])
}

/// Formats that can be read besides weir's results.
fn formats_read(operand: &str) -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    format!(
        "formats of other programs that are read: {}; `weir import csv {operand} --column \
         METRIC=NAME:UNIT` takes columns of any CSV",
        names.join(", ")
    )
}

/// True if a version is of this kind: `weir.plan.v2` of `weir.plan`.
fn is_of(found: &str, kind: &str) -> bool {
    found
        .strip_prefix(kind)
        .is_some_and(|rest| rest.starts_with(".v"))
}

/// True if it is named like a job file, or begins with the name of a section.
fn is_job_file(operand: &str, text: &str) -> bool {
    let suffix = Path::new(operand).extension().and_then(OsStr::to_str);
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    suffix.is_some_and(|suffix| JOB_FILES.contains(&suffix))
        || first.is_some_and(|line| line.starts_with('[') && line.contains(']'))
}

#[cfg(test)]
mod tests {
    use weir_schema::RunResult;

    use super::*;

    #[test]
    fn what_is_no_result_is_named_with_a_remedy() {
        for (name, text, what, help) in [
            (
                "q.fio",
                "rw=read\n",
                "a job file?",
                "`weir run --store-result",
            ),
            (
                "q",
                "# x\n\n[a]\nrw=read\n",
                "a job file?",
                "`weir compare --run`",
            ),
            (
                "p",
                r#"{"schema": "weir.plan.v2"}"#,
                "a stored plan",
                "--store-result",
            ),
            (
                "c",
                r#"{"schema": "weir.comparison.v1"}"#,
                "a stored comparison",
                "name the results",
            ),
            (
                "h",
                "{\"schema\":\"weir.history.v1\"}\n{}\n",
                "an export of a history",
                "`weir history import h`",
            ),
            ("o", "{}", "has no `schema`", "fio, hyperfine"),
            (
                "x",
                "hello\n",
                "no stored result",
                "weir import csv x --column",
            ),
            ("x", "{\"a\": ", "(1:", "hyperfine"),
        ] {
            let error = RunResult::from_json(text).unwrap_err();
            let refusal = refusal(name, text, &error);
            assert_eq!(refusal.code, weir_doors::USAGE);
            let (first, rest) = refusal.message.split_once("\n  help: ").unwrap();
            assert!(first.contains(what), "{refusal}");
            assert!(rest.contains(help), "{refusal}");
        }
        let cut = "{\"schema\": \"weir.result.v2\", ";
        let error = RunResult::from_json(cut).unwrap_err();
        let refusal_of_cut = refusal("r", cut, &error).message;
        assert_eq!(refusal_of_cut, format!("error: r: {error}\n"));
        let error = RunResult::from_json("").unwrap_err();
        assert!(refusal("e", " \n", &error).message.contains("it is empty"));
    }
}
