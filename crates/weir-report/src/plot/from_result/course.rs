//! Throughput over time, from 0: the rate of each interval, where nothing completed, and the mean.

use weir_schema::{KindName, KindResult};
use weir_stats::Series;
use weir_units::{Iops, Nanos};

use super::JobAcross;
use crate::entry::{KindSum, ReportEntry};
use crate::plot::axis::{Axis, AxisUnit};
use crate::plot::{
    Chart, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotTable, Rule, Shade, count, real,
};

/// Without completions for so long, a job stalls, if it would have had so many.
const STALL: Nanos = Nanos::from_secs(1);
const MISSED: f64 = 10.0;
/// Intervals are joined until there are so few.
const CELLS: u64 = 20_000;
/// Rows of the table.
const ROWS: usize = 20;

/// A kind over time: what it did in each interval, of all workers.
struct Course {
    interval: Nanos,
    /// Operations by interval.
    cells: Vec<u64>,
    length: Nanos,
}

/// Rates of one kind.
struct CourseLine {
    points: Vec<PlotPoint>,
    stalls: Vec<(f64, f64)>,
}

pub(super) fn throughput(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let is_rated = |kind: &KindSum| kind.sum.operations > 0 && !kind.sum.kind.is_aside();
    let rated = || job.kinds().filter(|(_, _, kind)| is_rated(kind));
    let several = job
        .runs
        .iter()
        .any(|(_, e)| e.kinds.iter().filter(|k| is_rated(k)).count() > 1);
    let (mut lines, mut shades, mut said) = (Vec::new(), Vec::new(), Vec::new());
    let mut rules = Vec::new();
    for (run, entry, kind) in rated() {
        let Some(course) = Course::of(entry, kind).and_then(|c| c.line()) else {
            continue;
        };
        let name = job.line_name(run, &kind.name, several);
        said.push(sentence(&name, entry, kind, &course));
        shades.extend(course.stalls.iter().map(|(from, to)| Shade {
            from: *from,
            to: *to,
            name: format!("{name}: nothing completed"),
        }));
        rules.extend(entry.iops(kind).map(|mean| Rule {
            at: mean.0,
            upright: false,
            name: format!("mean {mean}"),
        }));
        lines.push(PlotLine {
            name,
            slot: lines.len(),
            shape: LineShape::Straight,
            points: course.points,
        });
    }
    if lines.is_empty() {
        return None;
    }
    // Of several lines the means would lie upon each other.
    rules.retain(|_| lines.len() == 1);
    let all = || lines.iter().flat_map(|line| &line.points);
    let tops = all().filter_map(|p| Some(p.range.map_or(p.y?, |r| r.1)));
    let ends = all().map(|p| p.x);
    let chart = Chart {
        x: Axis::linear("time", AxisUnit::Seconds, ends),
        y: Axis::linear("completed", AxisUnit::OpsPerSecond, tops).with_room(),
        shades,
        rules,
        lines,
    };
    Some(Plot {
        name: "throughput".into(),
        title: "Throughput over time".into(),
        caption: said.join(" "),
        table: table(&chart),
        body: PlotBody::Chart(chart),
        of_members: false,
    })
}

impl Course {
    /// Nothing with fewer than two intervals.
    fn of(entry: &ReportEntry<'_>, kind: &KindSum) -> Option<Self> {
        let origin = entry.span.map_or(Nanos::ZERO, |s| s.start_ns);
        let is_mixed = kind.name == KindName::MIXED.as_str();
        let is_of = |k: &&KindResult| k.kind == kind.sum.kind || (is_mixed && !k.kind.is_aside());
        let mut all: Vec<(Nanos, &Series)> = Vec::new();
        for job in &entry.jobs {
            let begin = job.span.map_or(origin, |s| s.start_ns);
            let begin = begin.saturating_sub(origin);
            let parts = job.workers().iter().flat_map(|w| &w.kinds).filter(is_of);
            all.extend(parts.map(|k| (begin, &k.series)));
        }
        let ends = all
            .iter()
            .map(|(begin, s)| begin.saturating_add(s.length()));
        let length = ends.max()?;
        let interval = all.iter().map(|(_, s)| s.interval().0).max()?.max(1);
        // Of a run of days several intervals are one.
        let as_one = (length.0 / interval).div_ceil(CELLS).max(1);
        let interval = interval.saturating_mul(as_one);
        let mut cells = vec![0_u64; usize::try_from(length.0.div_ceil(interval)).ok()?];
        for (begin, series) in all {
            for point in series.points() {
                let at = begin.saturating_add(point.start).0 / interval;
                if let Some(cell) = usize::try_from(at).ok().and_then(|at| cells.get_mut(at)) {
                    *cell = cell.saturating_add(point.operations);
                }
            }
        }
        (cells.len() > 1).then_some(Self {
            interval: Nanos(interval),
            cells,
            length,
        })
    }

    /// When an interval begins and how long it is; the last may be shorter.
    fn span(&self, at: usize) -> (f64, f64) {
        let begin = self.interval.saturating_mul(at as u64);
        let rest = self.length.saturating_sub(begin).min(self.interval);
        (begin.as_secs_f64(), rest.as_secs_f64())
    }

    fn line(&self) -> Option<CourseLine> {
        let total = self.cells.iter().copied().fold(0, u64::saturating_add);
        let mean = real(total) / self.length.as_secs_f64();
        if total == 0 || !mean.is_finite() {
            return None;
        }
        let stalls = self.stalls(mean);
        let last = self.cells.len() - 1;
        let points = self.cells.iter().enumerate().filter_map(|(at, done)| {
            let (begin, length) = self.span(at);
            // What is left of an interval at the end says little, and least where it is short.
            if at == last && length < 0.5 * self.interval.as_secs_f64() {
                return None;
            }
            let middle = begin + length / 2.0;
            let stalled = stalls
                .iter()
                .any(|(from, to)| middle > *from && middle < *to);
            let rate = real(*done) / length;
            Some(PlotPoint {
                x: middle,
                y: (!stalled).then_some(rate),
                range: None,
            })
        });
        Some(CourseLine {
            points: points.collect(),
            stalls,
        })
    }

    /// Where nothing completed for long, although there would have been much.
    fn stalls(&self, mean: f64) -> Vec<(f64, f64)> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.cells.len() {
            let empty = self.cells[at..].iter().take_while(|n| **n == 0).count();
            if empty == 0 {
                at += 1;
                continue;
            }
            let from = self.span(at).0;
            let (begin, length) = self.span(at + empty - 1);
            let lasts = begin + length - from;
            if lasts >= STALL.as_secs_f64() && lasts * mean >= MISSED {
                found.push((from, from + lasts));
            }
            at += empty;
        }
        found
    }
}

/// What the line shows, with numbers.
fn sentence(name: &str, entry: &ReportEntry<'_>, kind: &KindSum, course: &CourseLine) -> String {
    let rates = || course.points.iter().filter_map(|p| p.y);
    let least = rates().fold(f64::INFINITY, f64::min);
    let most = rates().fold(0.0, f64::max);
    let mut text = format!("{name}:");
    if let Some(rate) = entry.iops(kind) {
        push!(text, " {rate} on average");
    }
    if let Some(rate) = entry.bandwidth(kind) {
        push!(text, ", {rate}");
    }
    push!(
        text,
        "; {} to {} in single intervals.",
        Iops(least),
        Iops(most)
    );
    for (from, to) in course.stalls.iter().take(3) {
        push!(
            text,
            " Nothing completed for {} from {}.",
            AxisUnit::Seconds.print(to - from),
            AxisUnit::Seconds.print(*from)
        );
    }
    if course.stalls.len() > 3 {
        push!(text, " And {} more such times.", course.stalls.len() - 3);
    }
    text
}

/// A few stretches of time, and the mean rates of each line in them.
fn table(chart: &Chart) -> PlotTable {
    let end = chart.x.range.1;
    let rows = (0..ROWS).map(|i| {
        let share = |i: usize| count(i) / count(ROWS) * end;
        let (from, to) = (share(i), share(i + 1));
        let mut row = vec![format!(
            "{} to {}",
            AxisUnit::Seconds.print(from),
            AxisUnit::Seconds.print(to)
        )];
        row.extend(chart.lines.iter().map(|line| {
            let inside = line.points.iter().filter(|p| p.x >= from && p.x < to);
            let rates: Vec<f64> = inside.map(|p| p.y.unwrap_or(0.0)).collect();
            let mean = rates.iter().sum::<f64>() / count(rates.len().max(1));
            if rates.is_empty() {
                String::new()
            } else {
                Iops(mean).to_string()
            }
        }));
        row
    });
    let head = ["time".to_owned()].into_iter();
    PlotTable {
        head: head
            .chain(chart.lines.iter().map(|l| l.name.clone()))
            .collect(),
        rows: rows
            .filter(|row| row[1..].iter().any(|c| !c.is_empty()))
            .collect(),
    }
}
