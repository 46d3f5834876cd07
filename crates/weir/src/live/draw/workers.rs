//! The fourth screen: a row for each worker, by number or the worst first.

#![expect(clippy::cast_precision_loss, reason = "figures for the eye")]

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::widgets::{Block, Row, Table};
use weir_report::clean;
use weir_schema::{JobResult, RunResult, Stage, WorkerResult};
use weir_units::{Iops, Nanos};

use super::super::keys::{Choice, Order};
use super::{BAD, DIM, Shown};

/// A worker, with the figures by which it can be sorted.
#[derive(Clone, Debug)]
struct WorkerRow {
    name: String,
    rate: f64,
    p99: Option<u64>,
    /// Use of a CPU in percent.
    cpu: f64,
    errors: u64,
}

impl WorkerRow {
    fn of(job: &JobResult, worker: &WorkerResult) -> Self {
        let seconds = worker.span.map_or(0.0, |span| span.length().as_secs_f64());
        let operations: u64 = worker.kinds.iter().map(|kind| kind.operations).sum();
        let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let stages = worker
            .kinds
            .iter()
            .filter_map(|kind| kind.stage(Stage::Lat));
        let busy = worker.cpu.user_ns.as_secs_f64() + worker.cpu.system_ns.as_secs_f64();
        let errors = worker.kinds.iter().flat_map(|kind| kind.errors.values());
        Self {
            name: format!("{}.{}", clean(&job.name, false), worker.clone),
            rate: per_second(operations as f64),
            p99: stages.filter_map(|stage| stage.percentile(99.0)).max(),
            cpu: per_second(busy) * 100.0,
            errors: errors.sum(),
        }
    }
}

/// All workers of the job that is chosen, in the order that is chosen.
fn rows(result: &RunResult, job: Option<usize>, choice: &Choice) -> Vec<WorkerRow> {
    let jobs = result.jobs().enumerate();
    let jobs = jobs.filter(|(index, _)| job.is_none_or(|job| job == *index));
    let rows = jobs.flat_map(|(_, job)| job.workers().iter().map(move |w| WorkerRow::of(job, w)));
    let mut rows: Vec<WorkerRow> = rows.collect();
    match choice.order {
        Order::Number => {}
        Order::Rate => rows.sort_by(|a, b| a.rate.total_cmp(&b.rate)),
        Order::Latency => rows.sort_by_key(|row| std::cmp::Reverse(row.p99)),
    }
    if choice.is_reversed {
        rows.reverse();
    }
    rows
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, shown: &Shown<'_>) {
    let all = shown
        .result
        .map(|result| rows(result, shown.index(), shown.choice));
    let all = all.unwrap_or_default();
    let room = usize::from(area.height.saturating_sub(3));
    let shown_rows = if all.len() > room {
        format!("{room} of {}", all.len())
    } else {
        all.len().to_string()
    };
    let reversed = if shown.choice.is_reversed {
        ", reversed"
    } else {
        ""
    };
    let order = shown.choice.order.name();
    let title = format!(" {shown_rows} workers by {order}{reversed}, since start ");
    let table = all.iter().take(room).map(|row| {
        let cells = Row::new([
            row.name.clone(),
            Iops(row.rate).to_string(),
            row.p99.map_or(String::new(), |p99| Nanos(p99).to_string()),
            format!("{:.0} %", row.cpu),
            row.errors.to_string(),
        ]);
        if row.errors > 0 {
            cells.style(BAD)
        } else {
            cells
        }
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(12),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(6),
    ];
    let header = Row::new(["worker", "rate", "p99", "CPU", "errors"]).style(DIM);
    let block = Block::bordered().title(title);
    frame.render_widget(Table::new(table, widths).header(header).block(block), area);
}
