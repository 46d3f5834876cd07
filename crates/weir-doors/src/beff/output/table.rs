//! weir's own table, as text, CSV or Markdown, and the lines about models and line rates that
//! the peer's text gets too.

use weir_schema::{Pairing, SizeFigures, Validation};

use super::View;
use super::number::scientific;

/// Headings of the columns that a model adds.
pub(super) fn extra_heads(view: &View<'_>) -> &'static [&'static str] {
    match view.prediction {
        Some(_) => &["model B/s", "ratio"],
        None => &[],
    }
}

/// Their values.
pub(super) fn extra_values(view: &View<'_>, row: &SizeFigures) -> Vec<String> {
    let model = view.prediction.as_ref().and_then(|p| p.of(row.exponent));
    model.map_or_else(Vec::new, |model| {
        vec![scientific(model), format!("{:.4}", row.bytes_per_s / model)]
    })
}

/// `model b_eff = … B/s ratio = …`, and the prediction for other ranks.
pub(super) fn model_line(view: &View<'_>) -> String {
    let mut out = String::new();
    if let Some(model) = &view.prediction {
        let b_eff = model.effective_bytes_per_s;
        push!(out, "model b_eff = {} B/s", scientific(b_eff));
        if let Some(effective) = view.effective {
            push!(out, " ratio = {:.4}", effective / b_eff);
        }
        out.push('\n');
    }
    if let Some(model) = &view.simulated {
        push!(
            out,
            "simulated {} ranks b_eff = {} B/s (every rank as fast as one alone)\n",
            model.ranks,
            scientific(model.effective_bytes_per_s)
        );
    }
    out
}

/// Latency and bandwidth of a fitted model.
pub(super) fn fit_line(view: &View<'_>) -> String {
    let Some(fit) = view.prediction.as_ref().and_then(|p| p.fit) else {
        return String::new();
    };
    let latency_ns = fit.latency_s * 1e9;
    let bandwidth = match (fit.bytes_per_s, fit.half_bandwidth_bytes()) {
        (Some(rate), Some(half)) => format!(
            "bandwidth {:.3} GB/s, half-bandwidth size {half:.0} B",
            rate / 1e9
        ),
        _ => "no bandwidth, time does not grow with size".to_owned(),
    };
    format!(
        "model fit: latency {latency_ns:.1} ns, {bandwidth}, R2 {:.4}\n",
        fit.r_squared
    )
}

/// The share of a line rate, per rank.
pub(super) fn rate_line(view: &View<'_>) -> String {
    let (Some(rate), Some(effective)) = (view.options.line_rate_bits_per_s, view.effective) else {
        return String::new();
    };
    let percent = |bytes_per_s: f64| 100.0 * bytes_per_s * 8.0 / (f64::from(view.ranks) * rate);
    let best = view.figures.iter().map(|f| f.bytes_per_s);
    format!(
        "line rate {:.5} Gbit/s per rank: b_eff {:.2} %, best size {:.2} %\n",
        rate / 1e9,
        percent(effective),
        percent(best.fold(0.0, f64::max))
    )
}

fn heads(view: &View<'_>) -> Vec<&'static str> {
    let own = [
        "MSize",
        "looplength",
        "time [s]",
        "B/s",
        "GB/s",
        "usec/msg",
        "min..max [s]",
    ];
    let mut out = own.to_vec();
    out.extend(extra_heads(view));
    out
}

fn values(view: &View<'_>, row: &SizeFigures) -> Vec<String> {
    let mut out = vec![
        row.message_bytes().to_string(),
        row.loop_length.to_string(),
        scientific(row.time_s),
        scientific(row.bytes_per_s),
        format!("{:.4}", row.bytes_per_s / 1e9),
        format!("{:.4}", row.usec_per_message),
        format!(
            "{}..{}",
            scientific(row.min_max_time_s),
            scientific(row.max_max_time_s)
        ),
    ];
    out.extend(extra_values(view, row));
    out
}

fn rows(view: &View<'_>) -> Vec<Vec<String>> {
    view.figures.iter().map(|row| values(view, row)).collect()
}

/// Who took part, how, and what the columns are.
fn about(view: &View<'_>) -> String {
    let pairing = match view.done.map(|d| (d.loopback, d.pairing)) {
        Some((true, _)) => "with itself",
        Some((false, Pairing::Ring)) => "in a ring",
        _ => "in pairs",
    };
    let mut out = format!(
        "effective bandwidth: {} ranks, {} channels each, {} {pairing}, {} repetitions\n\
         B/s = ranks * channels * bytes * looplength / slowest rank's own best time; sent bytes\n",
        view.ranks, view.work.replications, view.job.engine.name, view.work.repetitions
    );
    for rank in view.done.iter().flat_map(|d| &d.ranks) {
        let host = rank.hostname.as_deref().unwrap_or("unknown host");
        push!(out, "rank {}: {host}", rank.rank);
        if let Some(cpu) = rank.cpu {
            push!(out, ", CPU {cpu}");
        }
        if let Some(node) = rank.numa_node {
            push!(out, ", NUMA node {node}");
        }
        if let (Some(device), Some(name)) = (rank.device, &rank.device_name) {
            push!(out, ", device {device} {name}");
        }
        out.push('\n');
    }
    out
}

/// The lines below a table.
fn foot(view: &View<'_>) -> String {
    let mut out = String::new();
    if let Some(effective) = view.effective {
        push!(
            out,
            "b_eff = {} B/s ({:.4} GB/s)\n",
            scientific(effective),
            effective / 1e9
        );
    }
    out += &(model_line(view) + &fit_line(view) + &rate_line(view));
    if let Some(lost) = view.lost() {
        push!(out, "lost: {lost}\n");
    }
    out += match view.work.validation {
        _ if view.is_test() => "test: nothing was run\n",
        Validation::None => "validation: skipped\n",
        _ if view.is_valid() => "validation: good\n",
        _ => "validation: FAILED\n",
    };
    out
}

/// Columns as wide as they need to be, two blanks apart.
pub(super) fn page(view: &View<'_>) -> String {
    let mut out = if view.options.quiet {
        String::new()
    } else {
        about(view) + "\n"
    };
    let heads = heads(view);
    let rows = rows(view);
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|r| r.get(column)).map(String::len);
        cells.chain(heads.get(column).map(|h| h.len())).max()
    };
    let widths: Vec<usize> = (0..heads.len()).filter_map(wide).collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:>width$}"));
        let text: Vec<String> = padded.collect();
        push!(out, "{}\n", text.join("  "));
    };
    line(&mut heads.iter().copied());
    for row in &rows {
        line(&mut row.iter().map(String::as_str));
    }
    out + "\n" + &foot(view)
}

/// A row per size, numbers in full.
pub(super) fn csv(view: &View<'_>) -> String {
    let mut out = "message_bytes,looplength,time_s,bytes_per_s,usec_per_message,min_time_s,\
                   max_time_s,p50_s,p95_s,mean_bytes_per_s"
        .to_owned();
    if view.prediction.is_some() {
        out += ",model_bytes_per_s,ratio";
    }
    out.push('\n');
    for row in &view.figures {
        let numbers = [
            row.time_s,
            row.bytes_per_s,
            row.usec_per_message,
            row.min_max_time_s,
            row.max_max_time_s,
            row.p50_s,
            row.p95_s,
            row.mean_bytes_per_s,
        ];
        push!(out, "{},{}", row.message_bytes(), row.loop_length);
        for number in numbers {
            push!(out, ",{number:e}");
        }
        if let Some(model) = view.prediction.as_ref().and_then(|p| p.of(row.exponent)) {
            push!(out, ",{model:e},{:.4}", row.bytes_per_s / model);
        }
        out.push('\n');
    }
    out
}

/// A table in Markdown.
pub(super) fn markdown(view: &View<'_>) -> String {
    let heads = heads(view);
    let mut out = format!(
        "| {} |\n|{}\n",
        heads.join(" | "),
        "--:|".repeat(heads.len())
    );
    for row in rows(view) {
        push!(out, "| {} |\n", row.join(" | "));
    }
    out.push('\n');
    for line in foot(view).lines() {
        push!(out, "{line}  \n");
    }
    out
}
