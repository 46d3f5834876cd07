//! Values: the grammars of the job language, one file each.
//!
//! In: the text after an option's `=`, and what the option takes. Out: a typed [`Value`] within
//! the option's bounds, or the fault in it. Not here: what a value does.

pub(crate) mod list;
pub(crate) mod number;
pub(crate) mod pattern;
pub(crate) mod split;

use weir_schema::{PerKind, Size};
use weir_units::{Bytes, Nanos};

use crate::diagnostic::Fault;
use crate::options::{OptionRecord, ValueKind};
use number::{NumberScale, expression, number};

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Switch(bool),
    Integer(u64),
    Signed(i64),
    Triple(PerKind<Option<u64>>),
    Size(Size),
    Duration(Nanos),
    Word(&'static str, Option<&'a str>),
    Numbers(Vec<f64>),
    Text(&'a str),
    OptionalText(Option<&'a str>),
}

/// Reads an option's value; absent for an option that stands alone.
pub(crate) fn read<'a>(
    record: &OptionRecord,
    text: Option<&'a str>,
    kb_base: u64,
) -> Result<Value<'a>, Fault> {
    let Some(text) = text else {
        return match record.value {
            ValueKind::Flag => Ok(Value::Switch(true)),
            ValueKind::OptionalText => Ok(Value::OptionalText(None)),
            ref kind => Err(Fault::value(format!("`{}` needs a value", record.name))
                .label(expected(kind))
                .peer(format!("Option {} requires an argument", record.name))),
        };
    };
    let scale = NumberScale::Count { kb_base };
    match &record.value {
        ValueKind::Flag | ValueKind::Bool => switch(text).map(Value::Switch),
        ValueKind::Integer { min, max } => {
            let value = number(text, scale).map_err(|f| zone_word(f, record.name))?;
            bounded(record, value, *min, *max).map(Value::Integer)
        }
        ValueKind::Signed { min, max } => signed(record, text, *min, *max).map(Value::Signed),
        ValueKind::Text | ValueKind::OptionalText | ValueKind::Triple { .. } if text.is_empty() => {
            Err(Fault::value(format!("`{}` is empty", record.name)).label("a value is missing"))
        }
        ValueKind::Triple { min, max } => {
            let values = list::triple(text, scale).map_err(|f| zone_word(f, record.name))?;
            for value in [values.read, values.write, values.trim]
                .into_iter()
                .flatten()
            {
                bounded(record, value, *min, *max)?;
            }
            Ok(Value::Triple(values))
        }
        ValueKind::Size { min } => size(record, text, scale, *min).map(Value::Size),
        ValueKind::Duration { bare_ns } => {
            let scale = NumberScale::Time { bare_ns: *bare_ns };
            number(text, scale).map(|ns| Value::Duration(Nanos(ns)))
        }
        ValueKind::Words { words, tail } => word(record, words, *tail, text),
        ValueKind::Numbers { min, max, most } => {
            list::floats(text, *min, *max, *most).map(Value::Numbers)
        }
        ValueKind::Text => Ok(Value::Text(text)),
        ValueKind::OptionalText => Ok(Value::OptionalText(Some(text))),
    }
}

/// Values that an option takes, in words.
pub(crate) fn expected(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Flag | ValueKind::Bool => "expected 0 or 1".to_owned(),
        ValueKind::Integer { min, max } => format!("expected {}", bounds(*min, *max)),
        ValueKind::Signed { min, max } => format!("expected {min}–{max}"),
        ValueKind::Triple { min, max } => {
            format!("expected {}, or `read,write,trim`", bounds(*min, *max))
        }
        ValueKind::Size { .. } => "expected a size such as 64m, or a percentage".to_owned(),
        ValueKind::Duration { .. } => "expected a time such as 500ms, 10s or 2m".to_owned(),
        ValueKind::Words { words, .. } => {
            let names: Vec<_> = words.iter().map(|(w, _)| *w).collect();
            format!("expected one of {}", names.join(", "))
        }
        ValueKind::Numbers { .. } => "expected numbers separated by `:`".to_owned(),
        ValueKind::Text | ValueKind::OptionalText => "expected a text".to_owned(),
    }
}

fn bounds(min: u64, max: u64) -> String {
    if max == u64::MAX {
        format!("{min} or more")
    } else {
        format!("{min}–{max}")
    }
}

/// fio names the option in front of its sentence about zones.
fn zone_word(mut fault: Fault, name: &str) -> Fault {
    for sentence in &mut fault.peer {
        *sentence = format!("{name}: {sentence}");
    }
    fault
}

fn switch(text: &str) -> Result<bool, Fault> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Ok(true),
        "0" | "no" | "false" | "off" => Ok(false),
        _ => {
            let fault =
                Fault::value(format!("`{text}` is neither 0 nor 1")).label("expected 0 or 1");
            Err(match text.parse::<u64>() {
                Ok(n) => fault.peer(format!("max value out of range: {n} (1 max)")),
                Err(_) => fault,
            })
        }
    }
}

fn out_of_range(record: &OptionRecord, value: &str, limit: &str, side: &str) -> Fault {
    let bounds = match record.value {
        ValueKind::Integer { min, max } | ValueKind::Triple { min, max } if max != u64::MAX => {
            format!("outside {min}–{max}")
        }
        ValueKind::Signed { min, max } => format!("outside {min}–{max}"),
        _ => format!("below {limit}"),
    };
    Fault::range(format!("`{}={value}` is {bounds}", record.name))
        .label(record.short)
        .piece(value)
        .peer(format!(
            "{}: {side} value out of range: {value} ({limit} {side})",
            record.name
        ))
}

fn bounded(record: &OptionRecord, value: u64, min: u64, max: u64) -> Result<u64, Fault> {
    if value > max {
        return Err(out_of_range(
            record,
            &value.to_string(),
            &max.to_string(),
            "max",
        ));
    }
    if value < min {
        return Err(out_of_range(
            record,
            &value.to_string(),
            &min.to_string(),
            "min",
        ));
    }
    Ok(value)
}

fn signed(record: &OptionRecord, text: &str, min: i64, max: i64) -> Result<i64, Fault> {
    let value: i64 = text.parse().map_err(|_| {
        Fault::value(format!("bad number \"{text}\"")).label(expected(&record.value))
    })?;
    if value > max {
        return Err(out_of_range(record, text, &max.to_string(), "max"));
    }
    if value < min {
        return Err(out_of_range(record, text, &min.to_string(), "min"));
    }
    Ok(value)
}

fn size(record: &OptionRecord, text: &str, scale: NumberScale, min: u64) -> Result<Size, Fault> {
    if let Some(percent) = text.strip_suffix('%') {
        let value = number::float(percent.trim())?;
        if !(value > 0.0 && value <= 100.0) {
            return Err(
                Fault::range(format!("`{}={text}` is outside 1–100%", record.name))
                    .label("a share of the file or device")
                    .peer(format!(
                        "fio: {} values greater than 100% aren't supported",
                        record.name
                    )),
            );
        }
        return Ok(Size::Percent(value));
    }
    if text.ends_with(['z', 'Z']) {
        return number(text, scale)
            .map(|n| Size::Bytes(Bytes(n)))
            .map_err(|mut fault| {
                fault.peer = vec![format!("{}: unexpected zone value '{text}'", record.name)];
                fault
            });
    }
    let value = number(text, scale)?;
    bounded(record, value, min, u64::MAX).map(|n| Size::Bytes(Bytes(n)))
}

fn word<'a>(
    record: &OptionRecord,
    words: &'static [(&'static str, &'static str)],
    tail: bool,
    text: &'a str,
) -> Result<Value<'a>, Fault> {
    let (head, rest) = match text.split_once(':') {
        Some((head, rest)) if tail => (head.trim_end(), Some(rest.trim())),
        _ => (text, None),
    };
    let found = words.iter().find(|(w, _)| w.eq_ignore_ascii_case(head));
    if let Some((word, _)) = found {
        return Ok(Value::Word(word, rest));
    }
    let near = crate::nearest::nearest(head, words.iter().map(|(w, _)| *w));
    let names: Vec<&str> = words.iter().map(|(w, _)| *w).collect();
    let mut fault = Fault::value(format!("`{head}` is not a value of `{}`", record.name))
        .label("unknown word")
        .help(match near {
            Some(near) => format!("did you mean `{near}`? (one of {})", names.join(", ")),
            None => format!("one of {}", names.join(", ")),
        })
        .piece(head);
    for (i, (word, meaning)) in words.iter().enumerate() {
        let head = if i == 0 {
            "        valid values:"
        } else {
            "                    :"
        };
        fault = fault.peer(format!("{head} {word:<10} {meaning}"));
    }
    Err(fault)
}

/// The value without what fio drops of it: whatever stands behind a number that it could read.
/// None where nothing is dropped, or where fio would read something else.
pub(crate) fn as_fio_reads(record: &OptionRecord, text: &str) -> Option<String> {
    let read = match record.value {
        ValueKind::Integer { .. } | ValueKind::Size { .. } => number::without_rest(text)?,
        ValueKind::Triple { .. } => {
            let parts = text.split(',').map(|part| {
                let blank = part.trim().is_empty();
                if blank {
                    Some(String::new())
                } else {
                    number::without_rest(part)
                }
            });
            parts.collect::<Option<Vec<_>>>()?.join(",")
        }
        ValueKind::Duration { .. } => {
            let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
            // An unknown unit counts microseconds there, which nobody means.
            let is_unit = |c: char| c.is_alphabetic() || c == '.';
            if digits.is_empty() || rest.starts_with(is_unit) {
                return None;
            }
            digits.to_owned()
        }
        _ if record.name == "filesize" => {
            let sizes = text.split('-').map(number::without_rest);
            sizes.collect::<Option<Vec<_>>>()?.join("-")
        }
        _ if record.name == "bsrange" => {
            let ranges = text.split(',').map(|range| {
                let (least, most) = range.split_once('-').or_else(|| range.split_once(':'))?;
                let (least, most) = (number::without_rest(least)?, number::without_rest(most)?);
                Some(format!("{least}-{most}"))
            });
            ranges.collect::<Option<Vec<_>>>()?.join(",")
        }
        _ => return None,
    };
    (read != text).then_some(read)
}

/// Computes the arithmetic that a keyword made possible: each `,`-separated part of the value of
/// a numeric option. Text that is no arithmetic stays as it is.
pub(crate) fn arithmetic(record: &OptionRecord, text: &str, kb_base: u64) -> Option<String> {
    let scale = match record.value {
        ValueKind::Integer { .. }
        | ValueKind::Triple { .. }
        | ValueKind::Size { .. }
        | ValueKind::Duration { .. } => NumberScale::Count { kb_base },
        _ => return None,
    };
    let parts: Option<Vec<String>> = list::split(text, &[','])
        .into_iter()
        .map(|part| {
            let computed = part.contains(['+', '-', '*', '/']);
            let value = if computed {
                expression(part, scale).ok()?.to_string()
            } else {
                part.to_owned()
            };
            Some(value)
        })
        .collect();
    parts.map(|p| p.join(","))
}
