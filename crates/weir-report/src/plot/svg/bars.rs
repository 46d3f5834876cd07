//! A bar for each row, with its interval and its value.

use super::super::Bars;
use super::chart::uprights;
use super::{WIDTH, escaped, fitting, legend, short, stroke, text, width_of};

const ROW: f64 = 24.0;
const THICK: f64 = 14.0;
/// Names have at most so much room.
const NAMES: f64 = 200.0;

/// Its height, and what is drawn.
pub(super) fn drawn(bars: &Bars, top: f64) -> (f64, String) {
    let parts: Vec<(usize, &str)> = bars.parts.iter().map(String::as_str).enumerate().collect();
    let (legend_height, mut out) = legend::drawn(&parts, top + 4.0, false);
    let top = top + legend_height + 8.0;
    let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(width_of).fold(0.0, f64::max);
    let left = widest(&mut bars.rows.iter().map(|r| r.name.as_str())).min(NAMES) + 24.0;
    let right = WIDTH - widest(&mut bars.rows.iter().map(|r| r.text.as_str())).min(NAMES) - 22.0;
    let right = right.max(left + 60.0);
    let bottom = top + ROW * super::super::count(bars.rows.len());
    let place = |value: f64| {
        let place = bars.axis.place(value).unwrap_or(0.0).clamp(0.0, 1.0);
        left + place * (right - left)
    };
    out += &uprights(&bars.axis, &place, (top, bottom));
    for (row, y) in bars
        .rows
        .iter()
        .zip((0_u32..).map(|i| top + ROW * f64::from(i)))
    {
        let middle = y + ROW / 2.0;
        let name = fitting(&row.name, NAMES);
        out += &text("", "end", (left - 8.0, middle + 4.0), &name);
        let mut sum = 0.0;
        for (slot, value) in &row.parts {
            let from = place(sum);
            sum += value;
            push!(
                out,
                "<rect class=\"f{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{THICK}\"><title>{}</title></rect>",
                slot % 8,
                short(from),
                short(middle - THICK / 2.0),
                short(place(sum) - from),
                escaped(&format!("{}: {}", row.name, row.text)),
            );
        }
        let mut end = place(sum);
        if let Some((low, high)) = row.range {
            let (low, high) = (place(low), place(high));
            out += &stroke("whisker", (low, middle), (high, middle));
            for x in [low, high] {
                out += &stroke("whisker", (x, middle - 4.0), (x, middle + 4.0));
            }
            end = end.max(high);
        }
        out += &text("title", "start", (end + 8.0, middle + 4.0), &row.text);
    }
    (bottom + 40.0, out)
}
