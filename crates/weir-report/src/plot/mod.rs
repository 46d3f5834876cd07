//! Plots: what a result shows over time, over latency, over members, over a parameter.
//!
//! In: results. Out: each [`Plot`] as plain data, from which its picture (`svg`) and its table are made.
//! What was not measured has no plot. Not here: the page around them (`html`).

mod axis;
mod fold;
mod from_result;
mod palette;
mod svg;

use axis::PlotAxis;
pub(crate) use from_result::{JobAcross, PlottedRun, jobs_across, of_job, of_runs, sized};
pub(crate) use palette::{DARK, LIGHT, style_rules};
pub use svg::svg;
pub(crate) use svg::{counts, escaped, inline};

use weir_schema::RunResult;

/// A result, and what a report of several calls it.
#[derive(Clone, Debug)]
pub struct LabelledResult<'a> {
    /// Its name among the others.
    pub label: String,
    /// The result.
    pub result: &'a RunResult,
}

/// Choice among the plots of some results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlotChoice {
    /// Name of the plots: `throughput`, `distribution`.
    pub name: Option<String>,
    /// Of which job, where several have it: its name, `NAME#2` for the second of that name, or its
    /// number among all jobs.
    pub job: Option<String>,
}

/// A picture as data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plot {
    /// Name in one word: unique in its job.
    pub(crate) name: String,
    pub(crate) title: String,
    /// One sentence that says what is seen, with numbers.
    pub(crate) caption: String,
    pub(crate) body: PlotBody,
    /// The figures as text.
    pub(crate) table: PlotTable,
    pub(crate) detail: Detail,
}

/// Detail that a plot shows; the finer it is, the sooner the plot goes where a page becomes too
/// large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Figures of a whole job: it stays as long as its job.
    Figures,
    /// Latencies by interval.
    OverTime,
    /// Members one by one: the first to go.
    Members,
}

/// Form of a plot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PlotBody {
    /// Points over two axes.
    Chart(Chart),
    /// A bar for each row.
    Bars(Bars),
    /// Counts over two axes.
    Heat(HeatMap),
    /// Figures of pairs, how far each is above the lowest.
    Pairs(HeatMap),
}

/// Points over two axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chart {
    pub(crate) x: PlotAxis,
    pub(crate) y: PlotAxis,
    pub(crate) lines: Vec<PlotLine>,
    /// Stretches of x that stand out.
    pub(crate) shades: Vec<Shade>,
    pub(crate) rules: Vec<PlotRule>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlotLine {
    pub(crate) name: String,
    /// Colour and dash.
    pub(crate) slot: usize,
    pub(crate) shape: LineShape,
    pub(crate) points: Vec<PlotPoint>,
}

/// Form in which points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineShape {
    Straight,
    /// A value holds until the next.
    Steps,
    /// Straight, and each point is marked.
    Dots,
}

/// A point; one without height is a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlotPoint {
    pub(crate) x: f64,
    pub(crate) y: Option<f64>,
    /// Lowest and highest of what it stands for.
    pub(crate) range: Option<(f64, f64)>,
}

impl PlotPoint {
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y: Some(y),
            range: None,
        }
    }
}

/// A stretch of x that stands out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shade {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) name: String,
}

/// A value that is marked across the picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlotRule {
    pub(crate) at: f64,
    /// On the x axis; else on the y axis.
    pub(crate) upright: bool,
    pub(crate) name: String,
}

/// Counts over two axes, a panel for each kind or run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatMap {
    pub(crate) x: PlotAxis,
    pub(crate) y: PlotAxis,
    /// Edges of the rows: the begin of each, and the end of the last.
    pub(crate) edges: Vec<f64>,
    pub(crate) panels: Vec<HeatPanel>,
}

/// One picture of several with the same axes and colours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatPanel {
    pub(crate) name: String,
    /// Columns from left to right without gaps between them.
    pub(crate) columns: Vec<HeatColumn>,
    pub(crate) shades: Vec<Shade>,
}

/// Counts between two values of x.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeatColumn {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Row and count, by rising row; only rows that hold something.
    pub(crate) cells: Vec<(usize, u64)>,
}

impl HeatMap {
    /// The greatest count of a cell, which has the strongest colour.
    pub(crate) fn most(&self) -> u64 {
        let columns = self.panels.iter().flat_map(|panel| &panel.columns);
        let cells = columns.flat_map(|column| &column.cells);
        cells.map(|(_, n)| *n).max().unwrap_or(0)
    }
}

/// A bar for each row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bars {
    pub(crate) axis: PlotAxis,
    pub(crate) rows: Vec<Bar>,
    /// Names of a bar's parts, where it has several.
    pub(crate) parts: Vec<String>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Lengths one after the other, with their colours.
    pub(crate) parts: Vec<(usize, f64)>,
    /// Its 95 % interval.
    pub(crate) range: Option<(f64, f64)>,
    /// Its value as text.
    pub(crate) text: String,
}

/// The figures of a plot as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlotTable {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A whole number as a position in a picture.
#[expect(
    clippy::cast_precision_loss,
    reason = "a pixel is far coarser than the last of 53 bits"
)]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}

/// The same of a number of things.
pub(crate) fn count(value: usize) -> f64 {
    real(value as u64)
}

/// The whole part of a number; 0 where it is below.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast ends at both ends of the range"
)]
pub(crate) fn whole(value: f64) -> usize {
    value as usize
}
