//! Numbers and times as the peer writes them.

use std::io;

use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// `%.5e` of C.
pub(super) fn scientific(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan" } else { "inf" }.to_owned();
    }
    c_exponent(&format!("{value:.5e}"))
}

/// Rust's `1e-5` as C writes it: with a sign and two digits.
fn c_exponent(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text.to_owned();
    };
    let (sign, digits) = exponent
        .strip_prefix('-')
        .map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// The shortest text that reads back as the same number, written as the peer's library does:
/// decimal from 1e-4 to below 1e15, else with an exponent of two digits.
fn shortest(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-4..1e15).contains(&size) {
        let text = value.to_string();
        return if text.contains('.') {
            text
        } else {
            text + ".0"
        };
    }
    c_exponent(&format!("{value:e}"))
}

/// JSON whose numbers are written in the peer's way.
pub(super) struct Numbers<F>(pub(super) F);

/// Formatter of one line.
pub(super) const fn one_line() -> Numbers<CompactFormatter> {
    Numbers(CompactFormatter)
}

/// Indented by two.
pub(super) fn indented() -> Numbers<PrettyFormatter<'static>> {
    Numbers(PrettyFormatter::new())
}

/// Passes calls on to the inner formatter.
macro_rules! passed {
    ($($name:ident($($argument:ident: $kind:ty),*);)+) => {$(
        fn $name<W: ?Sized + io::Write>(&mut self, writer: &mut W, $($argument: $kind),*) -> io::Result<()> {
            self.0.$name(writer, $($argument),*)
        }
    )+};
}

impl<F: Formatter> Formatter for Numbers<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(shortest(value).as_bytes())
    }

    passed! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scientific_numbers_look_like_those_of_c() {
        assert_eq!(scientific(4.3831e-5), "4.38310e-05");
        assert_eq!(scientific(1.46015e7), "1.46015e+07");
        assert_eq!(scientific(0.0), "0.00000e+00");
        assert_eq!(scientific(1e123), "1.00000e+123");
        assert_eq!(scientific(f64::NAN), "nan");
    }

    #[test]
    fn shortest_numbers_look_like_those_of_the_peers_library() {
        assert_eq!(shortest(6.4772e-5), "6.4772e-05");
        assert_eq!(shortest(0.000_123), "0.000123");
        assert_eq!(shortest(9_880_812.696_844_315), "9880812.696844315");
        assert_eq!(shortest(2.0), "2.0");
        assert_eq!(shortest(1e15), "1e+15");
        assert_eq!(shortest(0.0), "0.0");
    }
}
