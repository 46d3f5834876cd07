//! Values of the arguments of `weir history`.
//!
//! In: what clap has taken apart. Out: a [`Request`]; what is wrong with a value, and what it takes.

use clap::ArgMatches;

use super::{ExportFormat, ListStyle, Request, RunFilter, Since, operands};

/// Days of a month and of a year, for ages.
const UNITS: &[(&str, u64)] = &[
    ("s", 1),
    ("min", 60),
    ("h", 3600),
    ("d", 86_400),
    ("w", 7 * 86_400),
    ("y", 365 * 86_400),
];

/// Bytes of a tag's key, and of its value: lists have them on one line.
const LONGEST_OF_TAG: usize = 200;

type Read = Result<Request, String>;

pub(super) fn list(given: &ArgMatches) -> Read {
    Ok(Request::List {
        filter: filter(given)?,
        style: style(given),
    })
}

pub(super) fn trend(given: &ArgMatches) -> Read {
    let text = one(given, "min-change").unwrap_or_default();
    let percent = text.trim_end_matches('%').trim_end().parse::<f64>();
    let percent = percent.ok().filter(|p| (0.0..100.0).contains(p));
    let percent = percent
        .ok_or_else(|| format!("--min-change {text}: expected a percentage, as 1 or 2.5%"))?;
    // `read p99` needs no quotes.
    let figure = operands(given).join(" ");
    Ok(Request::Trend {
        figure: Some(figure).filter(|figure| !figure.is_empty()),
        filter: filter(given)?,
        least_change: percent / 100.0,
        style: style(given),
    })
}

pub(super) fn export(given: &ArgMatches) -> Read {
    let format = match one(given, "format").as_deref() {
        Some("csv") => ExportFormat::Csv,
        Some("db") => ExportFormat::Database,
        _ => ExportFormat::JsonLines,
    };
    let filter = filter(given)?;
    let output = one(given, "output");
    if format == ExportFormat::Database {
        if output.is_none() {
            return Err("--format db: a database goes to a file (--output FILE)".to_owned());
        }
        if filter != RunFilter::default() {
            return Err("--format db: a database is copied whole; leave the filter out".to_owned());
        }
    }
    Ok(Request::Export {
        filter,
        format,
        output,
    })
}

pub(super) fn tag(given: &ArgMatches) -> Read {
    let mut words = operands(given).into_iter();
    let run = words.next().ok_or("a run is missing")?;
    let given_tags: Vec<_> = words.map(|word| tag_of(&word)).collect::<Result<_, _>>()?;
    let taken = all(given, "remove");
    if given_tags.is_empty() && taken.is_empty() {
        return Err(format!("{run}: a tag is missing, as KEY or KEY=VALUE"));
    }
    Ok(Request::Tag {
        run,
        given: given_tags,
        taken,
    })
}

pub(super) fn label(given: &ArgMatches) -> Read {
    let (run, label) = run_and_text(given)?;
    Ok(Request::Label { run, label })
}

pub(super) fn note(given: &ArgMatches) -> Read {
    let (run, note) = run_and_text(given)?;
    Ok(Request::Note { run, note })
}

pub(super) fn baseline(given: &ArgMatches) -> Read {
    let words = operands(given);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["show"] => Ok(Request::ShowBaselines),
        ["set", run] => Ok(Request::SetBaseline(run.to_owned())),
        ["clear", run] => Ok(Request::ClearBaseline(run.to_owned())),
        ["clear"] => Ok(Request::ClearBaseline("baseline".to_owned())),
        ["set"] => Err("`baseline set` needs a run".to_owned()),
        _ => Err(format!(
            "`baseline {}`: expected set RUN, show, or clear [RUN]",
            words.join(" ")
        )),
    }
}

pub(super) fn prune(given: &ArgMatches) -> Read {
    let keep = one(given, "keep").map(|text| number("keep", &text));
    let older = one(given, "older").map(|text| age("older", &text));
    let (keep, older_s) = (keep.transpose()?, older.transpose()?);
    if keep.is_none() && older_s.is_none() {
        return Err("`prune` needs --keep N, --older AGE, or both".to_owned());
    }
    Ok(Request::Prune {
        keep,
        older_s,
        dry_run: given.get_flag("dry-run"),
        metrics_too: given.get_flag("metrics-too"),
    })
}

fn run_and_text(given: &ArgMatches) -> Result<(String, Option<String>), String> {
    let mut words = operands(given).into_iter();
    let run = words.next().ok_or("a run is missing")?;
    let text: Vec<String> = words.collect();
    match (text.is_empty(), given.get_flag("clear")) {
        (true, true) => Ok((run, None)),
        (false, false) => Ok((run, Some(text.join(" ")))),
        (true, false) => Err(format!(
            "{run}: a text is missing (--clear takes the old one away)"
        )),
        (false, true) => Err(format!(
            "--clear and `{}` exclude each other",
            text.join(" ")
        )),
    }
}

fn filter(given: &ArgMatches) -> Result<RunFilter, String> {
    let tags: Vec<_> = all(given, "tag")
        .iter()
        .map(|tag| pair(tag))
        .collect::<Result<_, _>>()?;
    Ok(RunFilter {
        plan: one(given, "plan"),
        label: one(given, "label"),
        machine: one(given, "machine"),
        since: one(given, "since").map(|text| since(&text)).transpose()?,
        tags,
        limit: one(given, "limit")
            .filter(|text| text != "all")
            .map(|text| number("limit", &text))
            .transpose()?,
    })
}

fn style(given: &ArgMatches) -> ListStyle {
    ListStyle {
        json: given.get_flag("json"),
        ascii: given.get_flag("ascii"),
    }
}

/// A tag to give to a run.
fn tag_of(word: &str) -> Result<(String, String), String> {
    let (key, value) = pair(word)?;
    for (what, text) in [("key", &key), ("value", &value)] {
        if text.len() > LONGEST_OF_TAG {
            return Err(format!(
                "the {what} of a tag has {} bytes, and at most {LONGEST_OF_TAG} are taken",
                text.len()
            ));
        }
        if text.contains(char::is_control) {
            return Err(format!(
                "the {what} of a tag has control characters: {}",
                text.escape_debug()
            ));
        }
    }
    Ok((key, value))
}

/// `KEY=VALUE`, or a key alone.
fn pair(word: &str) -> Result<(String, String), String> {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    if key.is_empty() {
        return Err(format!("`{word}`: a tag is KEY or KEY=VALUE"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// A day, or a time before now.
fn since(text: &str) -> Result<Since, String> {
    if let Some(seconds) = day(text) {
        return Ok(Since::UnixSeconds(seconds));
    }
    age("since", text).map(Since::Ago)
}

/// `2026-11-21`, as seconds since 1970.
fn day(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return None;
    };
    let date = weir_units::Date {
        year: year
            .parse()
            .ok()
            .filter(|year| (1970..=9999).contains(year))?,
        month: month.parse().ok()?,
        day: day.parse().ok()?,
    };
    // The days of 8000 years, of which one is it.
    let first = (date.year - 1970) * 365;
    let found = (first..first + 3000).find(|day| weir_units::Date::of_unix_day(*day) == date)?;
    u64::try_from(found * 86_400).ok()
}

fn age(flag: &str, text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, seconds)| *seconds);
    let seconds = number.parse::<u64>().ok().zip(factor);
    let seconds = seconds.and_then(|(number, factor)| number.checked_mul(factor));
    seconds.ok_or_else(|| {
        let date = if flag == "since" {
            ", or a day as 2026-11-21"
        } else {
            ""
        };
        format!("--{flag} {text}: expected an age as 90d, 12h, 2w or 1y{date}")
    })
}

fn number(flag: &str, text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("--{flag} {text}: expected a whole number from 1"))
}

pub(super) fn one(given: &ArgMatches, name: &str) -> Option<String> {
    given.try_get_one::<String>(name).ok().flatten().cloned()
}

fn all(given: &ArgMatches, name: &str) -> Vec<String> {
    let values = given.try_get_many::<String>(name).ok().flatten();
    values.into_iter().flatten().cloned().collect()
}
