//! Numbers of the job language: sizes with their odd suffixes, times, fractions, expressions.
//!
//! The suffixes are fio's: with `kb_base=1024` (the default) `k`, `kb`, `ki` are 1024 and `kib`
//! is 1000; with `kb_base=1000` it is the other way round. What cannot be read to its end is
//! refused. Not here: lists of numbers, bounds of options.

use winnow::Parser;
use winnow::ascii::{Caseless, alpha0, digit0, digit1, hex_digit1};
use winnow::combinator::{alt, opt, preceded};

use crate::diagnostic::Fault;

/// Nested parentheses and signs that an expression may hold.
const MAX_NESTING: u32 = 32;

/// Unit of a bare number and of its suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberScale {
    /// Bytes, operations or anything else; the base of `k` (1024 or 1000).
    Count { kb_base: u64 },
    /// Nanoseconds; how many a bare number stands for.
    Time { bare_ns: u64 },
    /// Microseconds, within expressions.
    Microseconds,
}

/// A time without suffix that counts seconds.
pub(crate) const SECONDS: u64 = 1_000_000_000;
/// A time without suffix that counts milliseconds.
pub(crate) const MILLISECONDS: u64 = 1_000_000;
/// A time without suffix that counts microseconds.
pub(crate) const MICROSECONDS: u64 = 1_000;

/// Digits as written: `value / 10^decimals`.
struct Digits {
    value: u128,
    decimals: u32,
}

type Parsed<T> = winnow::Result<T>;

fn hexadecimal(input: &mut &str) -> Parsed<Digits> {
    preceded(Caseless("0x"), hex_digit1)
        .try_map(|s: &str| u128::from_str_radix(s, 16))
        .map(|value| Digits { value, decimals: 0 })
        .parse_next(input)
}

fn decimal(input: &mut &str) -> Parsed<Digits> {
    (digit1, opt(preceded('.', digit0)))
        .verify_map(|(whole, part): (&str, Option<&str>)| {
            let part = part.unwrap_or("").trim_end_matches('0');
            let value = format!("{whole}{part}").parse().ok()?;
            let decimals = u32::try_from(part.len()).ok().filter(|d| *d <= 18)?;
            Some(Digits { value, decimals })
        })
        .parse_next(input)
}

fn quantity<'s>(input: &mut &'s str) -> Parsed<(Digits, &'s str)> {
    (alt((hexadecimal, decimal)), alpha0).parse_next(input)
}

impl NumberScale {
    /// Factor of a suffix.
    fn factor(self, suffix: &str) -> Option<u64> {
        let suffix = suffix.to_ascii_lowercase();
        Some(match self {
            Self::Time { bare_ns } => match suffix.as_str() {
                "" => bare_ns,
                "d" => 86_400 * SECONDS,
                "h" => 3_600 * SECONDS,
                "m" => 60 * SECONDS,
                "s" => SECONDS,
                "ms" | "msec" => MILLISECONDS,
                "us" | "usec" => MICROSECONDS,
                "ns" | "nsec" => 1,
                _ => return None,
            },
            Self::Microseconds => {
                Self::Time {
                    bare_ns: MICROSECONDS,
                }
                .factor(&suffix)?
                    / MICROSECONDS
            }
            Self::Count { kb_base } => {
                if matches!(suffix.as_str(), "" | "b") {
                    return Some(1);
                }
                let swapped = if kb_base == 1024 { 1000 } else { 1024 };
                let power = "kmgtp".find(suffix.get(..1)?)?;
                let base = match suffix.get(1..)? {
                    "" | "b" | "i" => kb_base,
                    "ib" => swapped,
                    _ => return None,
                };
                base.checked_pow(u32::try_from(power).ok()? + 1)?
            }
        })
    }
}

fn bad(text: &str) -> Fault {
    Fault::value(format!("bad number \"{text}\""))
        .label("not a number")
        .piece(text)
}

fn too_large(text: &str) -> Fault {
    Fault::range(format!("`{text}` is too large"))
        .label("more than 64 bits hold")
        .piece(text)
}

fn scaled(digits: &Digits, suffix: &str, scale: NumberScale, text: &str) -> Result<u64, Fault> {
    if suffix.eq_ignore_ascii_case("z") {
        return Err(zones());
    }
    let factor = scale
        .factor(suffix)
        .ok_or_else(|| bad(text).label(units(scale)))?;
    if digits.decimals > 0 && factor == 1 {
        return Err(bad(text).label("a whole number is wanted here"));
    }
    let product = digits
        .value
        .checked_mul(u128::from(factor))
        .ok_or_else(|| too_large(text))?;
    u64::try_from(product / 10u128.pow(digits.decimals)).map_err(|_| too_large(text))
}

fn zones() -> Fault {
    Fault::new(
        "job.unsupported",
        "sizes in zones (`z`) need a zoned mode, which is not supported",
    )
    .label("give bytes")
    .peer("'z' suffix isn't applicable")
}

fn units(scale: NumberScale) -> &'static str {
    match scale {
        NumberScale::Count { .. } => "expected a number with k, m, g, t, p or none",
        NumberScale::Time { .. } | NumberScale::Microseconds => {
            "expected a time with d, h, m, s, ms, us or none"
        }
    }
}

/// Reads a number; a value in parentheses is an expression.
pub(crate) fn number(text: &str, scale: NumberScale) -> Result<u64, Fault> {
    if text.starts_with('(') {
        return match scale {
            // A bare number in a time expression counts microseconds.
            NumberScale::Time { .. } => expression(text, NumberScale::Microseconds)?
                .checked_mul(MICROSECONDS)
                .ok_or_else(|| too_large(text)),
            count => expression(text, count),
        };
    }
    let (digits, suffix) = quantity
        .parse(text)
        .map_err(|_| bad(text).label(units(scale)))?;
    scaled(&digits, suffix, scale, text)
}

/// Computes an expression of whole numbers with `+ - * / % ^`, C's precedence, parentheses.
pub(crate) fn expression(text: &str, scale: NumberScale) -> Result<u64, Fault> {
    let mut reader = Reader {
        rest: text,
        text,
        scale,
        nesting: 0,
    };
    let value = reader.sum()?;
    reader.blanks();
    if !reader.rest.is_empty() {
        return Err(bad(text).label("the expression ends before this text does"));
    }
    u64::try_from(value).map_err(|_| bad(text).label("the result is negative or too large"))
}

struct Reader<'a> {
    rest: &'a str,
    text: &'a str,
    scale: NumberScale,
    nesting: u32,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: &[char]) -> Option<char> {
        self.blanks();
        let c = self.rest.chars().next().filter(|c| wanted.contains(c))?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn checked(&self, value: Option<i128>) -> Result<i128, Fault> {
        value.ok_or_else(|| bad(self.text).label("division by zero, or too large"))
    }

    fn sum(&mut self) -> Result<i128, Fault> {
        let mut left = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let right = self.product()?;
            let value = if sign == '+' {
                left.checked_add(right)
            } else {
                left.checked_sub(right)
            };
            left = self.checked(value)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<i128, Fault> {
        let mut left = self.power()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let right = self.power()?;
            let value = match sign {
                '*' => left.checked_mul(right),
                '/' => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            left = self.checked(value)?;
        }
        Ok(left)
    }

    fn power(&mut self) -> Result<i128, Fault> {
        let base = self.atom()?;
        if self.take(&['^']).is_none() {
            return Ok(base);
        }
        self.nest(|r| {
            let exponent = r.power()?;
            r.checked(
                u32::try_from(exponent)
                    .ok()
                    .and_then(|e| base.checked_pow(e)),
            )
        })
    }

    fn nest(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<i128, Fault>,
    ) -> Result<i128, Fault> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(bad(self.text).label("nested too deeply"));
        }
        let value = inner(self)?;
        self.nesting -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Result<i128, Fault> {
        if self.take(&['-']).is_some() {
            return self.nest(|r| {
                let value = r.atom()?;
                r.checked(value.checked_neg())
            });
        }
        if self.take(&['(']).is_some() {
            let value = self.nest(Self::sum)?;
            let closed = self.take(&[')']).is_some();
            return if closed {
                Ok(value)
            } else {
                Err(bad(self.text).label("expected `)`"))
            };
        }
        self.blanks();
        let (digits, suffix) = quantity
            .parse_next(&mut self.rest)
            .map_err(|_| bad(self.text))?;
        scaled(&digits, suffix, self.scale, self.text).map(i128::from)
    }
}

/// Part of a count that fio reads where more stands behind it: digits, and a unit that begins as
/// one of its own. None where it would read something else than stands there: a share, zones, a
/// fraction.
pub(crate) fn without_rest(text: &str) -> Option<String> {
    let text = text.trim();
    let (whole, rest) = match text.get(..2).filter(|head| head.eq_ignore_ascii_case("0x")) {
        Some(head) => {
            let digits = text[2..].find(|c: char| !c.is_ascii_hexdigit());
            let end = digits.map_or(text.len(), |at| at + head.len());
            return (end > head.len()).then(|| text[..end].to_owned());
        }
        None => text.split_at(
            text.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len()),
        ),
    };
    let lower = rest.to_ascii_lowercase();
    let is_other = ['%', 'z', '.'].iter().any(|c| lower.starts_with(*c));
    if whole.is_empty() || is_other || lower.ends_with('z') {
        return None;
    }
    let unit = match lower.find(['k', 'm', 'g', 't', 'p']) {
        Some(0) if lower[1..].starts_with("ib") => &lower[..3],
        Some(0) => &lower[..1],
        _ => "",
    };
    Some(format!("{whole}{unit}"))
}

/// Reads a fraction such as `99.95`.
pub(crate) fn float(text: &str) -> Result<f64, Fault> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain).ok_or_else(|| bad(text))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const K: NumberScale = NumberScale::Count { kb_base: 1024 };
    const T: NumberScale = NumberScale::Time { bare_ns: SECONDS };

    fn read(text: &str) -> Option<u64> {
        number(text, K).ok()
    }

    #[test]
    fn suffixes_are_those_of_the_language() {
        for (text, value) in [
            ("4k", 4096),
            ("4K", 4096),
            ("4ki", 4096),
            ("4kb", 4096),
            ("4kib", 4000),
            ("1m", 1 << 20),
            ("1MiB", 1_000_000),
            ("1p", 1 << 50),
            ("0x100", 256),
            ("0x10k", 16384),
            ("7b", 7),
            ("1.5g", 3 << 29),
        ] {
            assert_eq!(read(text), Some(value), "{text}");
        }
        assert_eq!(
            number("4k", NumberScale::Count { kb_base: 1000 }).ok(),
            Some(4000)
        );
        assert_eq!(
            number("4kib", NumberScale::Count { kb_base: 1000 }).ok(),
            Some(4096)
        );
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "x",
            "1x",
            "4k8",
            "1.5",
            "-1",
            "4kbb",
            "99999999999999999999999",
            "4z",
            ".",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(number("1x", K).unwrap_err().message, "bad number \"1x\"");
    }

    #[test]
    fn of_a_number_with_more_behind_it_that_is_left_which_fio_reads() {
        for (text, left) in [
            ("65536)", "65536"),
            ("1x", "1"),
            ("4kx", "4k"),
            ("4KiBx", "4kib"),
            ("512/25", "512"),
            ("0x10)", "0x10"),
        ] {
            assert_eq!(without_rest(text).as_deref(), Some(left), "{text}");
        }
        for text in ["", "x", "50%", "4z", "1.5", "0x", "-1", "4kz", "é"] {
            assert_eq!(without_rest(text), None, "{text}");
        }
    }

    #[test]
    fn times_keep_their_fractions() {
        for (text, ns) in [
            ("0.5", 500_000_000),
            ("2", 2_000_000_000),
            ("10ms", 10_000_000),
            ("3us", 3000),
            ("1.5h", 5_400_000_000_000),
            ("(2*1000000)", 2_000_000_000),
            ("(1s+500ms)", 1_500_000_000),
        ] {
            assert_eq!(number(text, T).ok(), Some(ns), "{text}");
        }
        assert!(number("4k", T).is_err());
    }

    #[test]
    fn expressions_follow_the_precedence_of_c() {
        for (text, value) in [
            ("(4*1024)", 4096),
            ("(2+3*4)", 14),
            ("(2^3^2)", 512),
            ("(10%4)", 2),
            ("(8k/2)", 4096),
            ("(1)-(-2)", 3),
            ("((1 + 2) * 3)", 9),
        ] {
            assert_eq!(read(text), Some(value), "{text}");
        }
        for text in [
            "(1/0)",
            "(1",
            "(1-2)",
            "(1))",
            "()",
            "(9^99)",
            "-(0-2^126-2^126)",
            "(-(0-2^126-2^126))",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"(".repeat(4000)), None);
        assert_eq!(read(&format!("({})", "-".repeat(4000))), None);
    }

    proptest! {
        #[test]
        fn printed_numbers_are_read_back(n in any::<u64>()) {
            prop_assert_eq!(read(&n.to_string()), Some(n));
            prop_assert_eq!(read(&format!("{n:#x}")), Some(n));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}|[-+*/%^()0-9a-z. ]{0,60}") {
            let _ = number(&text, K);
            let _ = number(&text, T);
            let _ = expression(&text, K);
            let _ = without_rest(&text);
        }
    }
}
