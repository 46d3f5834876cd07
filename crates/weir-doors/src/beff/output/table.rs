//! weir's own table, as text, CSV or Markdown, and the lines about models and line rates that
//! the peer's text gets too.

use weir_schema::{Pairing, SizeFigures, Validation};

use super::View;
use super::number::scientific;

/// Headings of the columns that a model and a baseline add.
pub(super) fn extra_heads(view: &View<'_>) -> Vec<&'static str> {
    let model = view.prediction.iter().flat_map(|_| ["model B/s", "ratio"]);
    let baseline = view.comparison.iter();
    let baseline = baseline.flat_map(|_| ["baseline B/s", "ratio"]);
    model.chain(baseline).collect()
}

/// Values of these columns; a dash where the size is missing.
pub(super) fn extra_values(view: &View<'_>, row: &SizeFigures) -> Vec<String> {
    let mut out = Vec::new();
    let mut put = |beside: Option<(f64, f64)>| match beside {
        Some((other, ratio)) => out.extend([scientific(other), format!("{ratio:.4}")]),
        None => out.extend(["-".to_owned(), "-".to_owned()]),
    };
    if let Some(model) = &view.prediction {
        let model = model.of(row.exponent);
        put(model.map(|model| (model, row.bytes_per_s / model)));
    }
    if let Some(baseline) = &view.comparison {
        put(baseline.of(row));
    }
    out
}

/// The lines that models, baselines and line rates add.
pub(super) fn lines(view: &View<'_>) -> String {
    model_line(view) + &fit_line(view) + &baseline_line(view) + &rate_line(view)
}

/// `baseline b_eff = … B/s ratio = …`, over the sizes that both have.
fn baseline_line(view: &View<'_>) -> String {
    let Some(beside) = &view.comparison else {
        return String::new();
    };
    let Some((there, ratio)) = beside.effective else {
        return "baseline: no size in common\n".to_owned();
    };
    let there = scientific(there);
    let mut out = format!("baseline b_eff = {there} B/s ratio = {ratio:.4}");
    if !beside.all {
        push!(out, " (over {} sizes that both have)", beside.common);
    }
    out + "\n"
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
fn fit_line(view: &View<'_>) -> String {
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
fn rate_line(view: &View<'_>) -> String {
    let (Some(rate), Some(effective)) = (view.options.line_rate_bits_per_s, view.effective) else {
        return String::new();
    };
    let percent = |bytes_per_s: f64| percent(view, rate, bytes_per_s);
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

/// Heading with the ranks, the method and the meaning of the columns.
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
    out += &lines(view);
    if let Some(lost) = view.lost() {
        push!(out, "lost: {lost}\n");
    }
    if let Some(cut) = view.cut() {
        push!(out, "incomplete: {cut}\n");
    }
    out += match view.work.validation {
        _ if view.is_test() => "test: nothing was run\n",
        Validation::None => "validation: skipped\n",
        _ if view.is_right() => "validation: good\n",
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
    if view.comparison.is_some() {
        out += ",baseline_bytes_per_s,baseline_ratio";
    }
    if view.options.line_rate_bits_per_s.is_some() {
        out += ",line_rate_percent";
    }
    out.push('\n');
    for row in &view.figures {
        push!(out, "{},{}", row.message_bytes(), row.loop_length);
        for number in numbers(view, row) {
            match number {
                Some(number) => push!(out, ",{number:e}"),
                None => out.push(','),
            }
        }
        out.push('\n');
    }
    out
}

/// The numbers of a row, some of which there may not be.
fn numbers(view: &View<'_>, row: &SizeFigures) -> Vec<Option<f64>> {
    let own = [
        row.time_s,
        row.bytes_per_s,
        row.usec_per_message,
        row.min_max_time_s,
        row.max_max_time_s,
        row.p50_s,
        row.p95_s,
        row.mean_bytes_per_s,
    ];
    let mut out: Vec<_> = own.into_iter().map(Some).collect();
    if let Some(model) = &view.prediction {
        let model = model.of(row.exponent);
        out.extend([model, model.map(|model| row.bytes_per_s / model)]);
    }
    if let Some(baseline) = &view.comparison {
        let (there, ratio) = baseline.of(row).unzip();
        out.extend([there, ratio]);
    }
    let rate = view.options.line_rate_bits_per_s;
    out.extend(rate.map(|rate| Some(percent(view, rate, row.bytes_per_s))));
    out
}

/// Share of the line rate that one rank's part of this rate reaches.
fn percent(view: &View<'_>, rate_bits_per_s: f64, bytes_per_s: f64) -> f64 {
    100.0 * bytes_per_s * 8.0 / (f64::from(view.ranks) * rate_bits_per_s)
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
