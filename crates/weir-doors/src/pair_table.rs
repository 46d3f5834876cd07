//! Matrices of pairs as text: callers down, called ranks across.
//!
//! In: a matrix, its unit. Out: lines of one width, each with the same beginning.

use weir_schema::{PairFigure, PairMatrix};

/// A unit, and its size in seconds, bytes or operations per second.
pub(crate) type PairUnit<'a> = (&'a str, f64);

/// A title, a line of names and a line for each that calls.
pub(crate) fn table(matrix: &PairMatrix, lead: &str, (unit, size): PairUnit<'_>) -> String {
    let what = match matrix.figure {
        PairFigure::Latency => "Latency",
        PairFigure::Bandwidth => "Bandwidth",
        PairFigure::Throughput => "Throughput",
    };
    let cell = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), |v| digits(v / size));
    let rows: Vec<Vec<String>> = matrix
        .cells
        .iter()
        .map(|row| row.iter().map(cell).collect())
        .collect();
    let names = matrix.rows.iter().chain(&matrix.columns);
    let all = rows.iter().flatten().chain(names);
    let width = all.map(String::len).max().unwrap_or(0);
    let mut out =
        format!("{lead}{what} of each pair ({unit}): who calls down, who is called across\n");
    let line = |out: &mut String, name: &str, cells: &[String]| {
        push!(out, "{lead}{name:>width$}");
        for cell in cells {
            push!(out, " {cell:>width$}");
        }
        out.push('\n');
    };
    line(&mut out, "", &matrix.columns);
    for (name, cells) in matrix.rows.iter().zip(&rows) {
        line(&mut out, name, cells);
    }
    out
}

/// Four digits, or all before the point.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let names = || ["0:0", "12:0"].map(str::to_owned).to_vec();
        let matrix = PairMatrix {
            figure: PairFigure::Latency,
            rows: names(),
            columns: names(),
            cells: vec![
                vec![None, Some(52.5e-6)],
                vec![Some(0.25e-6), Some(123_456e-6)],
            ],
        };
        assert_eq!(
            table(&matrix, "+ ", ("us", 1e-6)),
            "+ Latency of each pair (us): who calls down, who is called across\n\
             +           0:0   12:0\n\
             +    0:0      -  52.50\n\
             +   12:0  0.250 123456\n"
        );
    }
}
