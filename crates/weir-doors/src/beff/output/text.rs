//! The peer's text. Scripts look for the headings of its table and read on to the empty line.

use super::number::scientific;
use super::table::{extra_heads, extra_values, lines, model_line};
use super::transfers::tables;
use super::{Value, View};

const LINE: &str = "-------------------------------------------------------------";
/// Version of the door's interface, which scripts know; not weir's own.
pub(super) const VERSION: &str = "1.3";

/// The whole page.
pub(super) fn page(view: &View<'_>) -> String {
    let mut out = String::new();
    if !view.options.quiet {
        out += &head(view);
    }
    if view.is_test() {
        out += &test(view);
        return out;
    }
    if !view.options.quiet {
        out += &course(view);
    }
    out += &if view.has_transfers() {
        tables(view)
    } else {
        table(view)
    };
    out += &verdict(view);
    out
}

fn head(view: &View<'_>) -> String {
    let clock = &view.result.clock;
    // Two readings differ by a tick at least, and by what a reading takes.
    let tick_ns = 1e9 / clock.frequency_hz;
    let precision = scientific(clock.read_ns.max(tick_ns));
    let (version, subversion) = view.mpi();
    let mut out = format!(
        "{LINE}\nGeneral setup:\nC++ high resolution clock is used.\n\
         The clock precision seems to be {precision}ns\n{LINE}\n{}\
         Implementation of the effective bandwidth benchmark proposed in the HPCC benchmark \
         suite for FPGA.\nVersion: {VERSION}\n\nMPI Version:  {version}.{subversion}\n\
         Config. Time: {}\nGit Commit:   {}\n\nSummary:\n",
        selection(view),
        view.built(),
        view.commit()
    );
    for (name, value) in view.settings() {
        let value = match value {
            Value::Text(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Switch(on) => if on { "Yes" } else { "No" }.to_owned(),
        };
        push!(out, "{name:40}{value}\n");
    }
    let device = if view.is_test() {
        "TEST RUN: Not selected!"
    } else {
        view.device()
    };
    push!(out, "{:40}{device}\n", "Device");
    out
}

/// Line about the selection of the device, where there is one.
fn selection(view: &View<'_>) -> String {
    let Some(platform) = view.platform() else {
        return String::new();
    };
    let device = view.device();
    format!(
        "Selected Platform: {platform}\n{LINE}\nSelection summary:\nPlatform Name: {platform}\n\
         Device Name:   {device}\n{LINE}\n"
    )
}

fn test(view: &View<'_>) -> String {
    let mut out = String::new();
    for rank in view.done.iter().flat_map(|d| &d.ranks) {
        if let Some(device) = rank.device {
            push!(
                out,
                "{:40}{device}\n",
                format!("Device of rank {}", rank.rank)
            );
        }
    }
    if view.prediction.is_some() {
        push!(
            out,
            "\n{:>20}   {:>20}   {:>20}\n",
            "MSize",
            "looplength",
            "model B/s"
        );
        for size in &view.work.sizes {
            let model = view.prediction.as_ref().and_then(|p| p.of(size.exponent));
            push!(
                out,
                "{:20}   {:20}   {:>20}\n",
                size.bytes().0,
                size.loop_length,
                scientific(model.unwrap_or(f64::NAN))
            );
        }
        push!(out, "\n{}", model_line(view));
    }
    out += "TEST MODE ENABLED: SKIP DATA GENERATION, EXECUTION, AND VALIDATION!\n\
            SUCCESSFULLY parsed input parameters!\n";
    out
}

fn course(view: &View<'_>) -> String {
    let mut out = format!(
        "{LINE}\nStart benchmark using the given configuration. Generating data...\n{LINE}\n"
    );
    let Some(done) = view.done else {
        return out;
    };
    let seconds = |ns: weir_units::Nanos| scientific(ns.as_secs_f64());
    push!(
        out,
        "Generation Time: {} s\n{LINE}\n",
        seconds(done.generation_ns)
    );
    push!(out, "Execute benchmark kernel...\n{LINE}\n");
    for size in &done.sizes {
        push!(out, "Measure for {} Byte\n", 1u64 << size.exponent);
    }
    let dots = ".".repeat(done.sizes.len());
    push!(out, "Collect results over MPI.{dots} done!\n");
    push!(
        out,
        "Execution Time: {} s\n{LINE}\n",
        seconds(done.execution_ns)
    );
    push!(out, "Validate output...\n{LINE}\n");
    push!(
        out,
        "Validation Time: {} s\n{LINE}\n",
        seconds(done.validation_ns)
    );
    push!(out, "Collect results...\n{LINE}\n");
    out
}

fn table(view: &View<'_>) -> String {
    let loops = if view.options.text_1_2 {
        "transfer"
    } else {
        "looplength"
    };
    let mut out = format!(
        "{:>20}   {loops:>20}   {:>20}   {:>20}",
        "MSize", "time [s]", "B/s"
    );
    for head in extra_heads(view) {
        push!(out, "   {head:>20}");
    }
    out.push('\n');
    for row in &view.figures {
        push!(
            out,
            "{:20}   {:20}   {:>20}   {:>20}",
            row.message_bytes(),
            row.loop_length,
            scientific(row.time_s),
            scientific(row.bytes_per_s)
        );
        for value in extra_values(view, row) {
            push!(out, "   {value:>20}");
        }
        out.push('\n');
    }
    out.push('\n');
    if let Some(effective) = view.effective {
        push!(out, "b_eff = {:>11} {:8}\n", scientific(effective), "B/s");
    }
    out += &lines(view);
    out
}

fn verdict(view: &View<'_>) -> String {
    let mut out = format!("{LINE}\n");
    if let Some(lost) = view.lost() {
        push!(out, "lost: {lost}\n");
    }
    if let Some(cut) = view.cut() {
        push!(out, "INCOMPLETE: {cut}\n");
    }
    if !view.is_checked() {
        out += "Validation: SKIPPED\n";
    } else if view.is_valid() {
        out += "Validation: SUCCESS!\n";
    }
    out
}
