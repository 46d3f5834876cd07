//! Whole numbers as the door takes and prints them.
//!
//! In: text. Out: a number in its range, or what it takes. The other way round: the shortest text of a
//! measured figure.

/// A whole number: decimal, `0x…`, or with k, M, G or T for powers of 1024.
///
/// # Errors
/// What it takes.
pub(super) fn whole(text: &str, (least, most): (i64, i64)) -> Result<i64, String> {
    let read = read(text).filter(|value| (least..=most).contains(value));
    read.ok_or_else(|| format!("expected a whole number from {least} to {most}"))
}

fn read(text: &str) -> Option<i64> {
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

/// A figure of at most three decimals, as short as it can be, with one after the point at least.
pub(super) fn figure(value: f64) -> String {
    let fixed = format!("{value:.3}");
    let short = fixed.trim_end_matches('0');
    if short.ends_with('.') {
        format!("{short}0")
    } else {
        short.to_owned()
    }
}

/// A count that is printed like a figure.
pub(super) fn counted(value: f64) -> String {
    format!("{:.1}", value.trunc())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(whole(text, ANY), Ok(value), "{text}");
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
            assert!(whole(text, ANY).is_err(), "{text}");
        }
        let why = whole("101", (0, 100)).unwrap_err();
        assert_eq!(why, "expected a whole number from 0 to 100");
    }

    #[test]
    fn figures_are_as_short_as_they_can_be() {
        assert_eq!(figure(253.180_4), "253.18");
        assert_eq!(figure(7.0), "7.0");
        assert_eq!(figure(299.2112), "299.211");
        assert_eq!(figure(0.0), "0.0");
        assert_eq!(figure(1e15), "1000000000000000.0");
        assert_eq!(counted(73049.9), "73049.0");
    }
}
