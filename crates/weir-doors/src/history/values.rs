//! Values of the arguments of `weir history`.
//!
//! In: flags and operands. Out: a [`Request`]; what is wrong with a value, and what it takes.

use super::{ExportFormat, ListStyle, Request, RunFilter, Since};
use crate::given::GivenFlags;

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

pub(super) fn trend(given: &GivenFlags, words: &[String]) -> Request {
    // `read p99` needs no quotes.
    let figure = words.join(" ");
    Request::Trend {
        figure: Some(figure).filter(|figure| !figure.is_empty()),
        filter: filter(given),
        // Its default is always there.
        least_change: given.share("min-change").unwrap_or_default(),
        style: style(given),
    }
}

pub(super) fn export(given: &GivenFlags) -> Read {
    let format = match given.text("format") {
        Some("csv") => ExportFormat::Csv,
        Some("db") => ExportFormat::Database,
        _ => ExportFormat::JsonLines,
    };
    let filter = filter(given);
    let output = given.text("output").map(str::to_owned);
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

pub(super) fn tag(given: &GivenFlags, words: &[String]) -> Read {
    let (run, words) = words.split_first().ok_or("a run is missing")?;
    let given_tags: Vec<_> = words
        .iter()
        .map(|word| tag_of(word))
        .collect::<Result<_, _>>()?;
    let taken: Vec<String> = given.all("remove").map(str::to_owned).collect();
    if given_tags.is_empty() && taken.is_empty() {
        return Err(format!("{run}: a tag is missing, as KEY or KEY=VALUE"));
    }
    Ok(Request::Tag {
        run: run.clone(),
        given: given_tags,
        taken,
    })
}

pub(super) fn baseline(words: &[String]) -> Read {
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

pub(super) fn prune(given: &GivenFlags) -> Read {
    let (keep, older_s) = (given.whole("keep"), given.parsed("older", age));
    if keep.is_none() && older_s.is_none() {
        return Err("`prune` needs --keep N, --older AGE, or both".to_owned());
    }
    Ok(Request::Prune {
        keep,
        older_s,
        dry_run: given.has("dry-run"),
        metrics_too: given.has("metrics-too"),
    })
}

/// A run, and the text that it gets; none takes the old one away.
pub(super) fn run_and_text(
    given: &GivenFlags,
    words: &[String],
) -> Result<(String, Option<String>), String> {
    let (run, text) = words.split_first().ok_or("a run is missing")?;
    match (text.is_empty(), given.has("clear")) {
        (true, true) => Ok((run.clone(), None)),
        (false, false) => Ok((run.clone(), Some(text.join(" ")))),
        (true, false) => Err(format!(
            "{run}: a text is missing (--clear takes the old one away)"
        )),
        (false, true) => Err(format!(
            "--clear and `{}` exclude each other",
            text.join(" ")
        )),
    }
}

pub(super) fn filter(given: &GivenFlags) -> RunFilter {
    let text = |name| given.text(name).map(str::to_owned);
    RunFilter {
        plan: text("plan"),
        label: text("label"),
        machine: text("machine"),
        since: given.parsed("since", since),
        tags: given.all("tag").filter_map(|tag| pair(tag).ok()).collect(),
        limit: given.whole("limit"),
    }
}

pub(super) fn style(given: &GivenFlags) -> ListStyle {
    ListStyle {
        json: given.has("json"),
        ascii: given.has("ascii"),
    }
}

/// A tag to give to a run.
fn tag_of(word: &str) -> Result<(String, String), String> {
    let (key, value) = pair(word).map_err(|why| format!("`{word}`: {why}"))?;
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
pub(super) fn pair(word: &str) -> Result<(String, String), String> {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    if key.is_empty() {
        return Err("a tag is KEY or KEY=VALUE".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// A day, or a time before now.
pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Some(seconds) = day(text) {
        return Ok(Since::UnixSeconds(seconds));
    }
    let age = age(text).map(Since::Ago);
    age.map_err(|why| format!("{why}, or a day as 2026-11-21"))
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

/// `90d`, in seconds.
pub(super) fn age(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit);
    let seconds = number.parse::<u64>().ok().zip(factor);
    let seconds = seconds.and_then(|(number, (_, factor))| number.checked_mul(*factor));
    seconds.ok_or_else(|| "it takes an age as 90d, 12h, 2w or 1y".to_owned())
}
