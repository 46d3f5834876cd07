//! Quantities read from command lines: whole numbers, sizes, times, rates, percentages, lists of CPUs.
//!
//! In: the text of a value. Out: the quantity, or what the text should have been ("it takes …"), to
//! which the caller adds flag and value. Not here: the job language and key files of peers, whose
//! grammars are their own.

use std::fmt::Display;
use std::str::FromStr;

use crate::{Bytes, Nanos, Percent};

/// Units of time and their nanoseconds.
const TIMES: [(&str, f64); 5] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
];
/// Most percentiles of one list.
const MOST_PERCENTILES: usize = 32;

/// Whole number of a range, both ends included.
///
/// # Errors
/// The range.
pub fn whole<N>(text: &str, (least, most): (N, N)) -> Result<N, String>
where
    N: FromStr + PartialOrd + Display,
{
    let number = text.parse::<N>().ok().filter(|_| !text.starts_with('+'));
    let number = number.filter(|n| (&least..=&most).contains(&n));
    number.ok_or_else(|| format!("it takes a whole number from {least} to {most}"))
}

/// Whole number of a range: decimal, `0x…`, or with k, M, G or T for powers of 1024.
///
/// # Errors
/// The range.
pub fn scaled(text: &str, (least, most): (i64, i64)) -> Result<i64, String> {
    let read = scaled_number(text).filter(|value| (least..=most).contains(value));
    read.ok_or_else(|| format!("it takes a whole number from {least} to {most}"))
}

fn scaled_number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let is_digits =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    if let Some(hex) = hex.filter(|hex| is_digits(hex)) {
        return i64::from_str_radix(hex, 16).ok()?.checked_mul(sign);
    }
    let unit = digits.bytes().last().map(|byte| byte.to_ascii_lowercase());
    let shift = match unit {
        Some(b'k') => 10,
        Some(b'm') => 20,
        Some(b'g') => 30,
        Some(b't') => 40,
        _ => 0,
    };
    let digits = digits
        .get(..digits.len() - usize::from(shift > 0))
        .unwrap_or_default();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits
        .parse::<i64>()
        .ok()?
        .checked_mul(1 << shift)?
        .checked_mul(sign)
}

/// Bytes from 1 to `most`; k, m and g count in steps of 1024.
///
/// # Errors
/// The range.
pub fn size(text: &str, most: u64) -> Result<Bytes, String> {
    let wrong = || format!("it takes a size from 1 to {most} bytes, as 16m");
    let lower = text.to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match lower.get(digits.len()..) {
        Some("") => 1,
        Some("k" | "ki" | "kib") => 1 << 10,
        Some("m" | "mi" | "mib") => 1 << 20,
        Some("g" | "gi" | "gib") => 1 << 30,
        Some("t" | "ti" | "tib") => 1 << 40,
        _ => return Err(wrong()),
    };
    let number = digits.parse::<u64>().ok();
    let number = number.filter(|_| !digits.starts_with('+'));
    let bytes = number.and_then(|number| number.checked_mul(factor));
    let bytes = bytes.filter(|bytes| (1..=most).contains(bytes));
    bytes.map(Bytes).ok_or_else(wrong)
}

/// Seconds with decimals, above 0.
///
/// # Errors
/// The range.
pub fn seconds(text: &str) -> Result<Nanos, String> {
    number_of_seconds(text)
        .filter(|time| *time > Nanos::ZERO)
        .ok_or_else(|| "it takes seconds above 0 and up to 1.8e10, such as 0.5".to_owned())
}

/// Seconds with decimals, where 0 means no wait.
///
/// # Errors
/// The range.
pub fn pause(text: &str) -> Result<Nanos, String> {
    number_of_seconds(text)
        .ok_or_else(|| "it takes seconds from 0 to 1.8e10, such as 0.5".to_owned())
}

fn number_of_seconds(text: &str) -> Option<Nanos> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    number.and_then(Nanos::from_secs_f64)
}

/// Time above 0 with its unit (ns, us, ms, s, min); seconds without one.
///
/// # Errors
/// The units.
pub fn time(text: &str) -> Result<Nanos, String> {
    let wrong = || "it takes a time above 0, as 3, 0.5s, 500ms or 2min".to_owned();
    let found = time_with_unit(text).or_else(|| scaled_time(text, 1e9));
    found.filter(|time| *time > Nanos::ZERO).ok_or_else(wrong)
}

/// Time with a unit, 0 included; `None` without a unit or for any other text.
pub fn time_with_unit(text: &str) -> Option<Nanos> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..)?;
    let (_, factor) = TIMES.iter().find(|(name, _)| *name == unit)?;
    scaled_time(digits, *factor)
}

fn scaled_time(digits: &str, factor: f64) -> Option<Nanos> {
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let number = digits.parse::<f64>().ok().filter(|_| is_plain)?;
    Nanos::from_secs_f64(number * factor / 1e9)
}

/// Number with a decimal suffix: k, M, G and T are powers of 1000.
fn decimal(text: &str) -> Option<f64> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (text.get(..at)?, 1e3),
        Some((at, 'm' | 'M')) => (text.get(..at)?, 1e6),
        Some((at, 'g' | 'G')) => (text.get(..at)?, 1e9),
        Some((at, 't' | 'T')) => (text.get(..at)?, 1e12),
        _ => (text, 1.0),
    };
    let number = digits.parse::<f64>().ok().map(|n| n * factor);
    number.filter(|n| n.is_finite())
}

/// Operations per second above 0: `10000`, `10k`, `1.5M/s`; `what` names the operations.
///
/// # Errors
/// The form.
pub fn rate(text: &str, what: &str) -> Result<f64, String> {
    let bare = text.strip_suffix("/s").unwrap_or(text);
    let is_plain = bare.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let rate = decimal(bare).filter(|rate| is_plain && *rate > 0.0 && *rate <= 1e12);
    rate.ok_or_else(|| format!("it takes {what} per second above 0, as 10000, 10k or 10k/s"))
}

/// Bits per second, at least 8: `100G`, `25e9`, `400M`.
///
/// # Errors
/// The form.
pub fn bits_per_s(text: &str) -> Result<f64, String> {
    decimal(text)
        .filter(|n| *n >= 8.0)
        .ok_or_else(|| "it takes bits per second, 8 at least, such as 100G".to_owned())
}

/// CPUs in the order given, `0,2,4-7`.
///
/// # Errors
/// The form.
pub fn cpus(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || "it takes CPUs such as 0,2,4-7".to_owned();
    let mut out = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |t: &str| t.trim().parse::<u32>().ok().filter(|n| *n < 1 << 16);
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => out.extend(first..=last),
            _ => return Err(wrong()),
        }
    }
    Ok(out)
}

/// Percentiles above 0 and below 100, sorted, each once: `90,99,99.9`.
///
/// # Errors
/// The form.
pub fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let one = |part: &str| {
        let number = part.trim().parse::<f64>().ok();
        number.filter(|p| *p > 0.0 && *p < 100.0)
    };
    let all: Option<Vec<f64>> = text.split(',').map(one).collect();
    let all = all.filter(|all| all.len() <= MOST_PERCENTILES);
    let mut all = all.ok_or("it takes percentiles above 0 and below 100, as 90,99,99.9")?;
    all.sort_by(f64::total_cmp);
    all.dedup();
    Ok(all)
}

/// Percentages from 0 to 100 in the order given.
///
/// # Errors
/// The entry that is none.
pub fn percentages(text: &str) -> Result<Vec<Percent>, String> {
    let one = |part: &str| {
        let number = part.trim().parse().ok();
        let number = number.filter(|p| (0.0..=100.0).contains(p));
        let wrong = || format!("`{part}` is no number from 0 to 100");
        number.map(Percent).ok_or_else(wrong)
    };
    text.split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_whole_numbers_keep_to_their_range() {
        assert_eq!(size("16m", 1 << 30), Ok(Bytes(16 << 20)));
        assert_eq!(size("4KiB", 4096), Ok(Bytes(4096)));
        for text in ["0", "4097", "4x", "", "+4", "k", "-1", "99999999999g"] {
            assert!(size(text, 4096).is_err(), "{text}");
        }
        assert_eq!(whole("-3", (-4, 9)), Ok(-3));
        for text in ["10", "-5", "+1", "1.0", "", "x"] {
            let why = whole(text, (-4, 9)).unwrap_err();
            assert_eq!(why, "it takes a whole number from -4 to 9");
        }
    }

    const ANY: (i64, i64) = (i64::MIN, i64::MAX);

    #[test]
    fn numbers_have_units_and_bases() {
        for (text, value) in [
            ("0", 0),
            ("4096", 4096),
            ("0x1000", 4096),
            ("4k", 4096),
            ("1M", 1 << 20),
            ("1G", 1 << 30),
            ("2t", 2 << 40),
            ("-4k", -4096),
            ("4294967295", 4_294_967_295),
        ] {
            assert_eq!(scaled(text, ANY), Ok(value), "{text}");
        }
        for text in [
            "",
            "x",
            "0x",
            "0x10q",
            "k",
            "1.5",
            "4kk",
            "-",
            "+4",
            "9999999999999T",
            "é",
        ] {
            assert!(scaled(text, ANY).is_err(), "{text}");
        }
        let why = scaled("101", (0, 100)).unwrap_err();
        assert_eq!(why, "it takes a whole number from 0 to 100");
    }

    #[test]
    fn times_have_a_unit_or_are_seconds() {
        for (text, nanos) in [
            ("3", 3_000_000_000),
            ("0.5s", 500_000_000),
            ("500ms", 500_000_000),
            ("7us", 7_000),
            ("2min", 120_000_000_000),
        ] {
            assert_eq!(time(text), Ok(Nanos(nanos)), "{text}");
        }
        for text in ["0", "-1", "1h", "s", "", "inf", "nan", "1e99"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(seconds("0.5"), Ok(Nanos(500_000_000)));
        assert!(seconds("0").is_err());
        assert_eq!(pause("0"), Ok(Nanos::ZERO));
        assert!(pause("-1").is_err());
        assert_eq!(time_with_unit("0ms"), Some(Nanos::ZERO));
        assert_eq!(time_with_unit("5"), None);
    }

    #[test]
    fn rates_count_in_thousands() {
        assert_eq!(rate("10k/s", "RPCs"), Ok(10e3));
        assert_eq!(rate("1.5M", "RPCs"), Ok(1.5e6));
        assert!(rate("0", "RPCs").unwrap_err().contains("RPCs per second"));
        assert_eq!(bits_per_s("100G"), Ok(100e9));
        assert_eq!(bits_per_s("25e9"), Ok(25e9));
        for text in ["7", "G", "nan", "-1G", "1e400"] {
            assert!(bits_per_s(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lists_are_read_entry_by_entry() {
        assert_eq!(cpus("0,2,4-6"), Ok(vec![0, 2, 4, 5, 6]));
        for text in ["", "4-2", "a", "1,,2", "70000"] {
            assert!(cpus(text).is_err(), "{text}");
        }
        assert_eq!(percentiles("99, 50,99"), Ok(vec![50.0, 99.0]));
        assert!(percentiles("100").is_err());
        assert_eq!(percentages("0,100").map(|all| all.len()), Ok(2));
        assert!(percentages("1,x").unwrap_err().contains("`x`"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,12}") {
            let _ = (size(&text, u64::MAX), time(&text), rate(&text, "a"), cpus(&text));
            let _ = (bits_per_s(&text), percentiles(&text), percentages(&text));
        }
    }
}
