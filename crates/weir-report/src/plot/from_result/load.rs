//! Load that a job made: operations in flight against their limit, and processors.

use weir_schema::{DepthUse, Span, WorkerResult};
use weir_units::Nanos;

use super::{JobAcross, seen};
use crate::entry::ReportEntry;
use crate::number_format::{brief, significant};
use crate::plot::axis::{AxisUnit, PlotAxis};
use crate::plot::{Bar, Bars, Detail, Plot, PlotBody, PlotTable, real};

/// Largest number of workers with a bar each.
const WORKERS: usize = 16;
/// Labels of the counts of [`DepthUse::in_flight`].
const DEPTHS: [&str; 7] = [
    "1",
    "2 to 3",
    "4 to 7",
    "8 to 15",
    "16 to 31",
    "32 to 63",
    "64 and more",
];

/// Number of operations in flight whenever one was issued.
pub(super) fn depth(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let mut rows = Vec::new();
    let mut said = Vec::new();
    let several = job.is_labelled;
    for (place, (run, entry)) in job.runs.iter().enumerate() {
        let limit = entry.plan?.load().depth.queue_depth.0;
        let counts = in_flight(entry);
        let all = counts.iter().copied().fold(0, u64::saturating_add);
        if all == 0 || limit < 2 {
            continue;
        }
        said.push(depth_sentence(&job.line_name(run, job.name, false), entry));
        let last = counts.iter().rposition(|n| *n > 0).unwrap_or(0);
        for (name, done) in DEPTHS.iter().zip(counts).take(last + 1) {
            let share = 100.0 * real(done) / real(all);
            let name = if several {
                format!("{}: {name}", run.label)
            } else {
                (*name).to_owned()
            };
            rows.push(Bar {
                name,
                parts: vec![(place, share)],
                range: None,
                text: format!("{} %", brief(share)),
            });
        }
    }
    let title = "Operations in flight";
    bars(
        "depth",
        title,
        said.join(" "),
        "of the operations issued",
        rows,
        Vec::new(),
    )
}

fn in_flight(entry: &ReportEntry<'_>) -> [u64; 7] {
    let mut sum = [0; 7];
    for worker in &entry.workers {
        let DepthUse { in_flight, .. } = worker.depth;
        for (sum, part) in sum.iter_mut().zip(in_flight) {
            *sum = u64::saturating_add(*sum, part);
        }
    }
    sum
}

/// The mean against the limit, and whether it is what rate and latency come to.
fn depth_sentence(name: &str, entry: &ReportEntry<'_>) -> String {
    let Some(mean) = entry.in_flight() else {
        return format!("{name}: the mean in flight is not known.");
    };
    let limit = entry.depth_limit().unwrap_or_default();
    let mut text = format!(
        "{name}: {} in flight on average, of {limit}.",
        significant(mean, 3)
    );
    let latency = entry.kinds.iter().map(|kind| {
        let (_, histogram) = seen(kind)?;
        Some(entry.iops(kind)?.0 * histogram.mean()? / 1e9)
    });
    // Of an open loop the response counts waiting that is not in flight.
    let is_open = entry
        .kinds
        .iter()
        .any(|k| k.stage(weir_schema::Stage::Rlat).is_some());
    if let Some(expected) = latency
        .sum::<Option<f64>>()
        .filter(|_| mean > 0.0 && !is_open)
    {
        let ratio = expected / mean;
        push!(
            text,
            " Rate × mean latency is {} of it",
            significant(ratio, 3)
        );
        text += if (0.95..=1.05).contains(&ratio) {
            "."
        } else {
            ": they do not belong together as they should."
        };
    }
    text
}

/// Processor time of each worker, or of all where they are many.
pub(super) fn cpu(job: &JobAcross<'_, '_>) -> Option<Plot> {
    let mut rows = Vec::new();
    let mut said = Vec::new();
    for (run, entry) in &job.runs {
        let Some((user, system)) = entry.cores() else {
            continue;
        };
        let label = job.line_name(run, "all workers", false);
        let stolen: f64 = entry.workers.iter().filter_map(|w| stolen(w)).sum();
        said.push(format!(
            "{label}: {} of a processor, {} % of it in the kernel.",
            significant(user + system, 3),
            brief(100.0 * system / (user + system).max(f64::MIN_POSITIVE))
        ));
        if stolen > 0.0 {
            let stolen = significant(stolen, 3);
            said.push(format!("The hypervisor took {stolen} of their processors."));
        }
        if entry.workers.len() > WORKERS || entry.workers.len() < 2 || job.is_labelled {
            rows.push(cpu_bar(label, [user, system, stolen]));
            continue;
        }
        rows.extend(entry.workers.iter().filter_map(|worker| {
            let time = worker.span.map(Span::length).filter(|t| *t > Nanos::ZERO)?;
            let share = |part: Nanos| part.as_secs_f64() / time.as_secs_f64();
            let (user, system) = (share(worker.cpu.user_ns), share(worker.cpu.system_ns));
            let name = format!("worker {}", worker.clone);
            Some(cpu_bar(
                name,
                [user, system, self::stolen(worker).unwrap_or(0.0)],
            ))
        }));
    }
    let is_any_stolen = rows.iter().any(|row| row.parts.len() > 2);
    let parts = ["user", "system", "taken by the hypervisor"];
    let parts = parts[..if is_any_stolen { 3 } else { 2 }].iter();
    let parts = parts.map(|part| (*part).to_owned()).collect();
    bars(
        "cpu",
        "Processor time",
        said.join(" "),
        "processors",
        rows,
        parts,
    )
}

/// Processors of a worker that the hypervisor took.
fn stolen(worker: &WorkerResult) -> Option<f64> {
    let time = worker.span.map(Span::length).filter(|t| *t > Nanos::ZERO)?;
    Some(worker.cpu.stolen_ns?.as_secs_f64() / time.as_secs_f64())
}

/// In user mode, in the kernel, and what was taken, which is none of what was used.
fn cpu_bar(name: String, [user, system, stolen]: [f64; 3]) -> Bar {
    let mut parts = vec![(0, user), (1, system)];
    if stolen > 0.0 {
        parts.push((2, stolen));
    }
    Bar {
        name,
        parts,
        range: None,
        text: significant(user + system, 3),
    }
}

/// Nothing without rows.
fn bars(
    name: &str,
    title: &str,
    caption: String,
    axis: &str,
    rows: Vec<Bar>,
    parts: Vec<String>,
) -> Option<Plot> {
    if rows.is_empty() {
        return None;
    }
    let unit = if name == "depth" {
        AxisUnit::Percent
    } else {
        AxisUnit::Other(String::new())
    };
    let ends = rows
        .iter()
        .map(|row| row.parts.iter().map(|(_, v)| v).sum());
    let axis = PlotAxis::linear(axis, unit, ends);
    let table = rows
        .iter()
        .map(|row| vec![row.name.clone(), row.text.clone()]);
    Some(Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        caption,
        table: PlotTable {
            head: vec![String::new(), axis.name.clone()],
            rows: table.collect(),
        },
        body: PlotBody::Bars(Bars { axis, rows, parts }),
        detail: Detail::Figures,
    })
}
