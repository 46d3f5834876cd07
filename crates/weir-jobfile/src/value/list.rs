//! Lists of the job language: one value each for reads, writes and trims, ranges, file lists,
//! CPU lists, lists of percentages.

use weir_schema::PerKind;

use super::number::{NumberScale, float, number};
use crate::diagnostic::Fault;

/// Splits at separators that stand outside parentheses.
pub(crate) fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 && separators.contains(&c) => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Spreads up to three values over the kinds: later missing ones repeat the last.
pub(crate) fn per_kind<T: Clone>(given: &[T], text: &str) -> Result<PerKind<T>, Fault> {
    if !(1..=3).contains(&given.len()) {
        return Err(Fault::value("more than three values")
            .label("at most one each for reads, writes and trims")
            .piece(text));
    }
    let last = given.len() - 1;
    Ok(PerKind::from_fn(|kind| {
        given[kind.index().min(last)].clone()
    }))
}

/// `read,write,trim`; an empty one keeps its default. `:` and `-` separate too.
pub(crate) fn triple(text: &str, scale: NumberScale) -> Result<PerKind<Option<u64>>, Fault> {
    let read = |part: &str| {
        let part = part.trim();
        if part.is_empty() {
            Ok(None)
        } else {
            number(part, scale).map(Some)
        }
    };
    // As a separator `-` follows a value; before one it would make it negative.
    let is_negative = |part: &str| part.trim_start().starts_with('-');
    if let Some(part) = text.split([',', ':']).find(|part| is_negative(part)) {
        return Err(
            Fault::new("job.value", format!("`{}` is negative", part.trim()))
                .label("0 or more, and `-` only between two values"),
        );
    }
    let given: Result<Vec<_>, _> = split(text, &[',', ':', '-'])
        .into_iter()
        .map(read)
        .collect();
    per_kind(&given?, text)
}

/// One range `a-b` or `a:b`, reversed bounds swapped; a single value is both bounds.
pub(crate) fn range(text: &str, scale: NumberScale) -> Result<(u64, u64), Fault> {
    match split(text, &['-', ':'])[..] {
        [one] => number(one.trim(), scale).map(|n| (n, n)),
        [a, b] => {
            let (a, b) = (number(a.trim(), scale)?, number(b.trim(), scale)?);
            Ok((a.min(b), a.max(b)))
        }
        _ => Err(Fault::value("not a range")
            .label("expected `smallest-largest`")
            .piece(text)),
    }
}

/// Up to three ranges separated by `,` or `/`.
pub(crate) fn ranges(text: &str, scale: NumberScale) -> Result<PerKind<(u64, u64)>, Fault> {
    let given: Result<Vec<_>, Fault> = split(text, &[',', '/'])
        .into_iter()
        .map(|part| {
            if split(part, &['-', ':']).len() < 2 {
                return Err(Fault::value("not a range")
                    .label("expected `smallest-largest`")
                    .piece(part.trim()));
            }
            range(part, scale)
        })
        .collect();
    per_kind(&given?, text)
}

/// Names separated by `:`; `\:` is a colon within a name.
pub(crate) fn names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&':') => {
                chars.next();
                names
                    .iter_mut()
                    .last()
                    .into_iter()
                    .for_each(|n| n.push(':'));
            }
            ':' => names.push(String::new()),
            c => names.iter_mut().last().into_iter().for_each(|n| n.push(c)),
        }
    }
    names.retain(|n| !n.is_empty());
    names
}

/// CPU numbers: `0-3,5`; each below `online`.
pub(crate) fn cpus(text: &str, online: u32) -> Result<Vec<u32>, Fault> {
    let mut cpus = Vec::new();
    for part in text
        .split([',', ':'])
        .map(str::trim)
        .filter(|p| !p.is_empty())
    {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let read = |t: &str| {
            t.trim().parse::<u32>().map_err(|_| {
                Fault::value(format!("bad CPU list \"{text}\""))
                    .label("expected e.g. 0-3,5")
                    .piece(part)
            })
        };
        let (first, last) = (read(first)?, read(last)?);
        if last >= online || first > last {
            return Err(Fault::range(format!(
                "CPU {last} is outside 0–{}",
                online.saturating_sub(1)
            ))
            .label(format!("{online} CPUs are online"))
            .peer(format!(
                "fio: CPU {last} too large (max={})",
                online.saturating_sub(1)
            ))
            .piece(part));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return Err(Fault::value("no CPU in the list").peer("fio: no CPUs set"));
    }
    Ok(cpus)
}

/// Fractions separated by `:`.
pub(crate) fn floats(text: &str, min: f64, max: f64, most: usize) -> Result<Vec<f64>, Fault> {
    let values: Vec<f64> = text
        .split(':')
        .map(|p| float(p.trim()))
        .collect::<Result<_, _>>()?;
    if values.len() > most {
        return Err(Fault::range(format!("{} values", values.len()))
            .label(format!("at most {most}"))
            .peer(format!("the list exceeding max length {most}")));
    }
    for value in &values {
        if *value > max || *value <= min {
            return Err(
                Fault::range(format!("{value} is not above {min} and up to {max}"))
                    .label("out of range")
                    .peer(format!(
                        "value out of range: {value:.6} (range max: {max:.6})"
                    ))
                    .piece(&value.to_string()),
            );
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: NumberScale = NumberScale::Count { kb_base: 1024 };

    fn three(text: &str) -> Option<[Option<u64>; 3]> {
        triple(text, K).ok().map(|p| [p.read, p.write, p.trim])
    }

    #[test]
    fn missing_values_repeat_the_last_and_empty_ones_keep_the_default() {
        let k = |n: u64| Some(n << 10);
        assert_eq!(three("4k"), Some([k(4), k(4), k(4)]));
        assert_eq!(three("4k,8k"), Some([k(4), k(8), k(8)]));
        assert_eq!(three(",8k"), Some([None, k(8), k(8)]));
        assert_eq!(three("4k-8k"), Some([k(4), k(8), k(8)]));
        assert_eq!(three("500k,"), Some([k(500), None, None]));
        assert_eq!(three("(2-1),2:3"), Some([Some(1), Some(2), Some(3)]));
        assert_eq!(three("1,2,3,4"), None);
    }

    #[test]
    fn ranges_are_swapped_and_repeated() {
        let r = ranges("16k-4k,1k:2k", K).unwrap();
        assert_eq!(
            (r.read, r.write, r.trim),
            ((4096, 16384), (1024, 2048), (1024, 2048))
        );
        assert!(ranges("4k", K).is_err());
        assert!(ranges("1-2-3", K).is_err());
    }

    #[test]
    fn an_escaped_colon_stays_in_the_name() {
        assert_eq!(names("a:b\\:c:/d"), ["a", "b:c", "/d"]);
        assert!(names("").is_empty());
    }

    #[test]
    fn cpu_lists_are_checked_against_the_online_ones() {
        assert_eq!(cpus("3,0-1", 4).unwrap(), [0, 1, 3]);
        for bad in ["4", "0-9", "x", "", "3-1", "0-4294967295"] {
            assert!(cpus(bad, 4).is_err(), "{bad}");
        }
    }

    #[test]
    fn percentages_are_checked_one_by_one() {
        assert_eq!(floats("1:99.9", 0.0, 100.0, 20).unwrap(), [1.0, 99.9]);
        assert!(floats("101", 0.0, 100.0, 20).is_err());
        assert!(floats("1:2:3", 0.0, 100.0, 2).is_err());
        assert!(floats("nan", 0.0, 100.0, 2).is_err());
    }
}
