//! Throughput over time, from 0: the rate of each interval, where nothing completed, and the mean.

use weir_schema::{KindName, KindResult};
use weir_stats::Series;
use weir_units::{Iops, Nanos};

use super::JobAcross;
use super::times::{shades, stall_sentence, stalls, table};
use crate::entry::{KindSum, ReportEntry};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{
    Chart, Detail, LineShape, Plot, PlotBody, PlotLine, PlotPoint, PlotRule, count, real,
};

/// Without completions for so long, a job stalls, if it would have had some.
const STALL: Nanos = Nanos::from_secs(1);
/// Intervals are joined until there are so few.
const CELLS: u64 = 20_000;

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
    let (mut lines, mut stalled, mut said) = (Vec::new(), Vec::new(), Vec::new());
    let mut rules = Vec::new();
    for (run, entry, kind) in rated() {
        let Some(course) = Course::of(entry, kind).and_then(|c| c.line()) else {
            continue;
        };
        let name = job.line_name(run, &kind.name, several);
        said.push(sentence(&name, entry, kind, &course));
        stalled.extend(shades(&name, &course.stalls));
        rules.extend(entry.iops(kind).map(|mean| PlotRule {
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
        x: PlotAxis::linear("time", AxisUnit::Seconds, ends),
        y: PlotAxis::linear("completed", AxisUnit::OpsPerSecond, tops).with_room(),
        shades: stalled,
        rules,
        lines,
    };
    Some(Plot {
        name: "throughput".into(),
        title: "Throughput over time".into(),
        caption: said.join(" "),
        table: table(&chart, |rates| {
            let mean = rates.iter().sum::<f64>() / count(rates.len().max(1));
            Iops(mean).to_string()
        }),
        body: PlotBody::Chart(chart),
        detail: Detail::Figures,
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

    /// Begin and length of an interval; the last may be shorter.
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
        let cells = self.cells.iter().enumerate().map(|(at, done)| {
            let (begin, length) = self.span(at);
            (begin, begin + length, *done)
        });
        let stalls = stalls(cells, STALL.as_secs_f64());
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
}

/// The line in words, with numbers.
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
    let load = entry.plan.and_then(|plan| plan.workload.load());
    if let Some(ramp) = load
        .map(|load| load.bounds.ramp_ns)
        .filter(|r| *r > Nanos::ZERO)
    {
        push!(text, " The ramp of {ramp} before is left out.");
    }
    text + &stall_sentence(&course.stalls)
}
