//! Time × latency: how many operations of each interval took how long.

use weir_stats::RowCounts;
use weir_units::{Count, Nanos};

use super::JobAcross;
use super::latency::{NamedCourse, courses};
use super::times::{shades, stall_sentence};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{Detail, HeatColumn, HeatMap, HeatPanel, Plot, PlotBody, PlotTable, real};

/// Columns and rows of a panel.
const COLUMNS: usize = 240;
const ROWS: usize = 256;
/// Panels below each other.
const PANELS: usize = 6;
/// Rows of the table.
const TABLE: usize = 24;

pub(super) fn map(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let all = courses(job);
    let (shown, left) = all.split_at(all.len().min(PANELS));
    let rows = Rows::of(shown)?;
    let panels: Vec<HeatPanel> = shown.iter().map(|course| panel(course, &rows)).collect();
    let mut said: Vec<String> = shown.iter().map(|course| sentence(course, &rows)).collect();
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|course| course.name.as_str()).collect();
        said.push(format!("Not shown here: {}.", names.join(", ")));
    }
    let columns = || panels.iter().flat_map(|panel| &panel.columns);
    let edges = rows.edges();
    let map = HeatMap {
        x: PlotAxis::linear("time", AxisUnit::Seconds, columns().map(|c| c.to)),
        y: PlotAxis::log("latency", AxisUnit::Seconds, edges.iter().copied()),
        edges,
        panels,
    };
    Some(Plot {
        name: "heat-map".into(),
        title: "Latencies of each interval".into(),
        caption: said.join(" "),
        table: table(&map),
        body: PlotBody::Heat(map),
        detail: Detail::OverTime,
    })
}

/// The rows that hold something, several as one where there are too many.
struct Rows {
    first: usize,
    count: usize,
    as_one: usize,
}

impl Rows {
    fn of(courses: &[NamedCourse<'_>]) -> Option<Self> {
        let intervals = || courses.iter().flat_map(|c| &c.over_time.intervals);
        let rows = || intervals().flat_map(|i| i.rows.rows()).map(|(row, _)| row);
        let (first, last) = (rows().min()?, rows().max()?);
        let as_one = (last + 1 - first).div_ceil(ROWS);
        Some(Self {
            first,
            count: (last + 1 - first).div_ceil(as_one),
            as_one,
        })
    }

    fn place(&self, row: usize) -> usize {
        row.saturating_sub(self.first) / self.as_one
    }

    /// In seconds; on a logarithmic axis 0 has no place.
    fn edges(&self) -> Vec<f64> {
        let low = |at: usize| RowCounts::low(self.first + at * self.as_one);
        (0..=self.count)
            .map(|at| real(low(at).max(1)) / 1e9)
            .collect()
    }
}

fn panel(course: &NamedCourse<'_>, rows: &Rows) -> HeatPanel {
    let spans: Vec<_> = course.over_time.spans().collect();
    let as_one = spans.len().div_ceil(COLUMNS).max(1);
    let columns = spans.chunks(as_one).map(|some| {
        let mut counts = vec![0_u64; rows.count];
        for (row, n) in some.iter().flat_map(|(_, interval)| interval.rows.rows()) {
            if let Some(count) = counts.get_mut(rows.place(row)) {
                *count = count.saturating_add(n);
            }
        }
        let ends = some.iter().map(|(_, interval)| interval.end_ns);
        HeatColumn {
            from: some.first().map_or(0.0, |(begin, _)| begin.as_secs_f64()),
            to: ends.max().unwrap_or_default().as_secs_f64(),
            cells: counts
                .into_iter()
                .enumerate()
                .filter(|(_, n)| *n > 0)
                .collect(),
        }
    });
    HeatPanel {
        name: course.name.clone(),
        columns: columns.collect(),
        shades: shades(&course.name, &course.stalls()).collect(),
    }
}

/// Range of most operations, and of the others, in words.
fn sentence(course: &NamedCourse<'_>, rows: &Rows) -> String {
    let mut counts = vec![0_u64; rows.count];
    let intervals = course.over_time.intervals.iter();
    for (row, n) in intervals.flat_map(|interval| interval.rows.rows()) {
        if let Some(count) = counts.get_mut(rows.place(row)) {
            *count = count.saturating_add(n);
        }
    }
    let all = counts.iter().copied().fold(0, u64::saturating_add);
    let edges = rows.edges();
    let fullest = counts.iter().enumerate().max_by_key(|(_, n)| **n);
    let (row, most) = fullest.map_or((0, 0), |(row, n)| (row, *n));
    let print = |at: usize| {
        let seconds = edges.get(at).copied().unwrap_or(0.0);
        AxisUnit::Seconds.print(seconds)
    };
    let share = AxisUnit::Percent.print(100.0 * real(most) / real(all.max(1)));
    let mut text = format!(
        "{}: of {} operations the most, {share}, took {} to {}.",
        course.name,
        Count(all),
        print(row),
        print(row + 1)
    );
    text += &stall_sentence(&course.stalls());
    text
}

/// Number of operations of each panel by latency.
fn table(map: &HeatMap) -> PlotTable {
    let rows = map.edges.len().saturating_sub(1);
    let as_one = rows.div_ceil(TABLE).max(1);
    let counts = map.panels.iter().map(|panel| {
        let mut counts = vec![0_u64; rows.div_ceil(as_one)];
        for (row, n) in panel.columns.iter().flat_map(|column| &column.cells) {
            if let Some(count) = counts.get_mut(row / as_one) {
                *count = count.saturating_add(*n);
            }
        }
        counts
    });
    let counts: Vec<Vec<u64>> = counts.collect();
    let print = |at: usize| {
        let edge = map.edges.get(at.min(rows)).copied().unwrap_or(0.0);
        Nanos::from_secs_f64(edge).unwrap_or_default().to_string()
    };
    let lines = (0..rows.div_ceil(as_one)).map(|at| {
        let span = format!("{} to {}", print(at * as_one), print((at + 1) * as_one));
        let cells = counts.iter().map(|counts| Count(counts[at]).to_string());
        [span].into_iter().chain(cells).collect()
    });
    let names = map.panels.iter().map(|panel| panel.name.clone());
    PlotTable {
        head: ["latency".to_owned()].into_iter().chain(names).collect(),
        rows: lines.collect(),
    }
}
