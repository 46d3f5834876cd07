//! Legend of a picture's lines or parts.

use super::{WIDTH, escaped, fitting, short, width_of};

/// The longest name that is shown whole.
const ROOM: f64 = 320.0;
const ROW: f64 = 18.0;
const SAMPLE: f64 = 26.0;

/// Names with their colours from this height on, lines as lines and others as boxes; how much height
/// they take.
pub(super) fn drawn(names: &[(usize, &str)], top: f64, as_lines: bool) -> (f64, String) {
    if names.is_empty() {
        return (0.0, String::new());
    }
    let (mut x, mut y) = (16.0, top + 12.0);
    let mut out = String::new();
    for (slot, name) in names {
        let slot = slot % 8;
        let shown = fitting(name, ROOM);
        let width = SAMPLE + 8.0 + width_of(&shown) + 18.0;
        if x + width > WIDTH && x > 16.0 {
            (x, y) = (16.0, y + ROW);
        }
        let (left, right) = (short(x), short(x + SAMPLE));
        let middle = short(y - 4.0);
        let sample = if as_lines {
            format!("<path class=\"line s{slot}\" d=\"M{left} {middle}H{right}\"/>")
        } else {
            let above = short(y - 9.0);
            format!(
                "<rect class=\"f{slot}\" x=\"{left}\" y=\"{above}\" width=\"{SAMPLE}\" height=\"10\"/>"
            )
        };
        push!(out, "<g class=\"key\">{sample}");
        let at = short(x + SAMPLE + 8.0);
        push!(
            out,
            "<text x=\"{at}\" y=\"{}\">{}<title>{}</title></text></g>",
            short(y),
            escaped(&shown),
            escaped(name)
        );
        x += width;
    }
    (y - top + 6.0, out)
}
