//! The first screen: rates and latencies over the window, a row for each job.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::widgets::{Row, Table};
use weir_report::clean;
use weir_report::progress::Activity;
use weir_run::execute::LiveJob;
use weir_units::{BytesPerSec, Iops, Nanos};

use super::super::per_second::JobSecond;
use super::time::{self, Scale, SecondsLine};
use super::{BAD, DIM, Shown};
use crate::watch::activity;

/// Jobs that have a row each, where others would hide the charts.
const MOST_ROWS: usize = 8;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>) {
    let jobs = shown.per_second.jobs();
    let rows = u16::try_from(jobs.len().clamp(1, MOST_ROWS)).unwrap_or(1);
    let [rate, latency, table] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(rows + 1),
    ])
    .areas(area);
    let seconds = shown.per_second.seconds(shown.index(), shown.choice.window);
    rates(frame, rate, shown, &seconds);
    latencies(frame, latency, shown, &seconds);
    let header = [
        "job",
        "phase",
        "done",
        "rate",
        "bytes",
        "in flight",
        "errors",
    ];
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Length(12),
        Constraint::Length(10),
        Constraint::Length(9),
        Constraint::Length(6),
    ];
    let rows = jobs.iter().map(|job| {
        let now = shown.per_second.seconds(Some(job.index), 1).pop();
        row_of(job, &now.unwrap_or_default())
    });
    let header = Row::new(header).style(DIM);
    frame.render_widget(Table::new(rows, widths).header(header), table);
}

fn rates(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>, seconds: &[JobSecond]) {
    let last = seconds.last();
    let title = last.map_or(" rate ".to_owned(), |last| {
        format!(" rate {}  {} ", Iops(last.rate), BytesPerSec(last.bytes))
    });
    let greatest = seconds.iter().map(|s| s.rate).fold(0.0, f64::max);
    let scale = Scale::from_zero(greatest, |rate| Iops(rate).to_string());
    let line = SecondsLine {
        values: seconds.iter().map(|s| Some(s.rate)).collect(),
        color: Color::Blue,
    };
    time::draw(frame, area, title, shown.choice.window, scale, &[line]);
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "pictures have few pixels"
)]
fn latencies(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>, seconds: &[JobSecond]) {
    let title = match seconds.last().map(|last| (last.p50, last.p99)) {
        Some((Some(p50), Some(p99))) => {
            format!(" latency p50 {}  p99 {} ", Nanos(p50), Nanos(p99))
        }
        _ => " latency ".to_owned(),
    };
    let label = |nanos: f64| Nanos(nanos as u64).to_string();
    let least = seconds.iter().filter_map(|s| s.p50).min().unwrap_or(1) as f64;
    let greatest = seconds.iter().filter_map(|s| s.p99).max().unwrap_or(1) as f64;
    let is_logarithmic = shown.choice.is_logarithmic;
    let scale = if is_logarithmic {
        Scale::of_decades(least, greatest, label)
    } else {
        Scale::from_zero(greatest, label)
    };
    let height = |nanos: u64| {
        let nanos = nanos as f64;
        if is_logarithmic {
            nanos.max(1.0).log10()
        } else {
            nanos
        }
    };
    let line = |value: fn(&JobSecond) -> Option<u64>, color| SecondsLine {
        values: seconds.iter().map(|s| value(s).map(height)).collect(),
        color,
    };
    let lines = [
        line(|s| s.p50, Color::Green),
        line(|s| s.p99, Color::Yellow),
    ];
    time::draw(frame, area, title, shown.choice.window, scale, &lines);
}

fn row_of(job: &LiveJob, now: &JobSecond) -> Row<'static> {
    let phase = activity(job);
    let done = job
        .fraction
        .map_or(String::new(), |f| format!("{:.0} %", f * 100.0));
    let style = if job.errors > 0 {
        BAD
    } else if phase == Activity::Measure {
        Style::new()
    } else {
        DIM
    };
    let mut name = clean(&job.name, false);
    // What ranks do together is counted at its end alone.
    if let Some(at) = job.ranks.as_ref().and_then(|ranks| ranks.at.as_ref()) {
        name = format!("{name} {at}");
    }
    Row::new([
        name,
        phase.name().to_owned(),
        done,
        Iops(now.rate).to_string(),
        BytesPerSec(now.bytes).to_string(),
        job.in_flight.to_string(),
        job.errors.to_string(),
    ])
    .style(style)
}
