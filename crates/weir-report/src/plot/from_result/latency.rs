//! Latency over time: percentiles of each interval, from that interval's own latencies.

use weir_schema::{LatencyInterval, LatencyOverTime};
use weir_units::Nanos;

use super::JobAcross;
use super::times::{shades, stall_sentence, stalls, table};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{Chart, Detail, LineShape, Plot, PlotBody, PlotLine, PlotPoint, count, real};

/// A line of a percentile.
#[derive(Clone, Copy)]
struct Percentile {
    name: &'static str,
    /// Of fewer operations it is the maximum.
    least: u64,
    of: fn(&LatencyInterval) -> Option<Nanos>,
}

const PERCENTILES: [Percentile; 4] = [
    Percentile {
        name: "p50",
        least: 2,
        of: |interval| interval.p50_ns,
    },
    Percentile {
        name: "p99",
        least: 100,
        of: |interval| interval.p99_ns,
    },
    Percentile {
        name: "p99.9",
        least: 1000,
        of: |interval| interval.p999_ns,
    },
    Percentile {
        name: "max",
        least: 1,
        of: |interval| interval.max_ns,
    },
];

/// A kind of a run, and what its lines are called.
pub(super) struct NamedCourse<'a> {
    pub(super) name: String,
    pub(super) over_time: &'a LatencyOverTime,
}

impl NamedCourse<'_> {
    /// Stretches where nothing completed, in seconds.
    pub(super) fn stalls(&self) -> Vec<(f64, f64)> {
        let cells = self.over_time.spans().map(|(begin, interval)| {
            let (from, to) = (begin.as_secs_f64(), interval.end_ns.as_secs_f64());
            (from, to, interval.rows.count())
        });
        stalls(cells, 0.0)
    }

    /// The points of each percentile that has a line, with its name.
    fn lines(&self, percentiles: &[Percentile]) -> Vec<(&'static str, Vec<PlotPoint>)> {
        let all = percentiles.iter().map(|percentile| {
            let points = points(self.over_time, *percentile);
            (percentile.name, points)
        });
        all.filter(|(_, points)| !points.is_empty()).collect()
    }

    /// The lines in words, with numbers.
    fn sentence(&self, lines: &[(&str, Vec<PlotPoint>)]) -> String {
        let print = |seconds| AxisUnit::Seconds.print(seconds);
        let intervals = &self.over_time.intervals;
        let end = intervals.last().map_or(0.0, |i| i.end_ns.as_secs_f64());
        let each = print(end / count(intervals.len().max(1)));
        let ranges = lines.iter().map(|(percentile, points)| {
            let heights = || points.iter().filter_map(|p| p.y);
            let least = heights().fold(f64::INFINITY, f64::min);
            let most = heights().fold(0.0, f64::max);
            format!(" {percentile} {} to {}", print(least), print(most))
        });
        let ranges: Vec<String> = ranges.collect();
        let mut text = format!(
            "{}, intervals of about {each}:{}",
            self.name,
            ranges.join(",")
        );
        let longest = self.over_time.spans().reduce(|first, next| {
            if next.1.max_ns > first.1.max_ns {
                next
            } else {
                first
            }
        });
        if let Some((begin, interval)) = longest
            && let Some(max) = interval.max_ns
        {
            let (from, to) = (begin.as_secs_f64(), interval.end_ns.as_secs_f64());
            let (from, to) = (print(from), print(to));
            push!(text, "; the longest, {max}, ended between {from} and {to}");
        }
        text + "."
    }
}

/// Everything of a job whose latencies are known over time.
pub(super) fn courses<'r>(job: &JobAcross<'r, '_>) -> Vec<NamedCourse<'r>> {
    let several = job.has_several_kinds();
    let all = job.kinds().filter_map(|(run, entry, kind)| {
        Some(NamedCourse {
            name: job.line_name(run, &kind.name, several),
            over_time: entry.latency_over_time(kind)?,
        })
    });
    all.collect()
}

pub(super) fn over_time(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let courses = courses(job);
    // More lines than colours would not be told apart.
    let shown: &[usize] = match courses.len() {
        0..=2 => &[0, 1, 2, 3],
        3..=4 => &[0, 1],
        _ => &[1],
    };
    let percentiles: Vec<Percentile> = shown.iter().map(|at| PERCENTILES[*at]).collect();
    let (mut lines, mut stalled, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for course in &courses {
        let stalls = course.stalls();
        let own = course.lines(&percentiles);
        if !own.is_empty() {
            said.push(course.sentence(&own) + &stall_sentence(&stalls));
        }
        for (percentile, points) in own {
            let name = match (courses.len(), shown.len()) {
                (1, _) => percentile.to_owned(),
                (_, 1) => course.name.clone(),
                _ => format!("{} {percentile}", course.name),
            };
            lines.push(PlotLine {
                name,
                slot: lines.len(),
                shape: LineShape::Straight,
                points,
            });
        }
        stalled.extend(shades(&course.name, &stalls));
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    all().next()?;
    let ends = courses.iter().flat_map(|c| &c.over_time.intervals);
    let title = if shown.len() == 1 {
        "99th percentile of latency over time"
    } else {
        "Latency over time"
    };
    let chart = Chart {
        x: PlotAxis::linear(
            "time",
            AxisUnit::Seconds,
            ends.map(|i| i.end_ns.as_secs_f64()),
        ),
        y: PlotAxis::log("latency", AxisUnit::Seconds, all().filter_map(|p| p.y)).with_room(),
        shades: stalled,
        rules: Vec::new(),
        lines,
    };
    Some(Plot {
        name: "latency".into(),
        title: title.into(),
        caption: said.join(" "),
        table: table(&chart, |heights| {
            let most = heights.iter().copied().fold(0.0, f64::max);
            AxisUnit::Seconds.print(most)
        }),
        body: PlotBody::Chart(chart),
        detail: Detail::OverTime,
    })
}

/// A gap where nothing completed; nothing at all where most intervals have too few operations for the
/// percentile to be another than the maximum.
fn points(over_time: &LatencyOverTime, percentile: Percentile) -> Vec<PlotPoint> {
    let busy = || {
        over_time
            .intervals
            .iter()
            .map(|i| i.rows.count())
            .filter(|n| *n > 0)
    };
    let enough = busy().filter(|n| *n >= percentile.least).count();
    if enough == 0 || enough * 2 < busy().count() {
        return Vec::new();
    }
    let points = over_time.spans().map(|(begin, interval)| PlotPoint {
        x: f64::midpoint(begin.as_secs_f64(), interval.end_ns.as_secs_f64()),
        // On a logarithmic axis 0 has no place.
        y: (percentile.of)(interval).map(|ns| real(ns.0.max(1)) / 1e9),
        range: None,
    });
    let points: Vec<PlotPoint> = points.collect();
    if points.iter().all(|p| p.y.is_none()) {
        return Vec::new();
    }
    points
}
