//! Rules for a plan that was accepted, and for the diagnostics of one that was not.

use weir_jobfile::{COMMAND_LINE, Compiled, Diagnostic, MAX_LINE};
use weir_schema::{BlockSize, Distribution, Job, Kind, Plan, Size, Workload};

use crate::Memory;

/// A rendered diagnostic is never longer than a screen or two.
const LONGEST_MESSAGE: usize = 8000;

/// Checks whatever came out of compiling.
pub fn check(outcome: &Result<Compiled, Vec<Diagnostic>>, files: &Memory) {
    match outcome {
        Ok(compiled) => check_plan(&compiled.plan),
        Err(errors) => check_diagnostics(errors, files),
    }
}

/// Each diagnostic can be shown, and points at something that is there.
pub fn check_diagnostics(errors: &[Diagnostic], files: &Memory) {
    assert!(!errors.is_empty(), "refused without a reason");
    for error in errors {
        let text = error.render();
        assert!(text.ends_with('\n'), "{error:?}");
        assert!(text.len() < LONGEST_MESSAGE, "{error:?}");
        assert!(!error.message.is_empty(), "{error:?}");
        let printable = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(printable), "{text:?}");
        if let Some(source) = &error.source {
            check_place(error, source, files);
        }
    }
}

fn check_place(error: &Diagnostic, source: &str, files: &Memory) {
    let shown = error.line_text.as_deref().unwrap_or_default();
    // The place behind the text is where something is missing.
    let columns = shown.chars().count() + 1;
    assert!(shown.len() <= MAX_LINE, "{error:?}");
    assert!(error.column >= 1 && error.length >= 1, "{error:?}");
    assert!(error.column + error.length - 1 <= columns, "{error:?}");
    if source == COMMAND_LINE {
        return;
    }
    let Some(bytes) = files.0.get(source) else {
        return;
    };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let line = bytes.split(|b| *b == b'\n').nth(error.line.wrapping_sub(1));
    let line = line.unwrap_or_else(|| panic!("no such line: {error:?}"));
    let start = String::from_utf8_lossy(&line[..line.len().min(MAX_LINE)]);
    assert!(start.starts_with(shown), "{error:?}");
}

/// An accepted plan survives being stored, and its numbers make sense together.
pub fn check_plan(plan: &Plan) {
    let stored = plan.to_json().expect("a plan has a stored form");
    let read = Plan::from_json(&stored).expect("a stored plan can be read");
    assert!(read == *plan, "{stored}");
    for (_, job) in plan.jobs() {
        check_job(job);
    }
}

fn check_job(job: &Job) {
    let Workload::Block(work) = &job.workload else {
        panic!("a workload that the language cannot say");
    };
    let mix = work.mix;
    let sum = u32::from(mix.read_percent) + u32::from(mix.write_percent);
    assert_eq!(sum + u32::from(mix.trim_percent), 100, "{mix:?}");
    for kind in Kind::DATA {
        check_size(work.sizes.size.of(kind));
        assert!(*work.access.random_percent.of(kind) <= 100);
    }
    if let Distribution::Zoned { zones } = &work.access.distribution {
        for zones in [&zones.read, &zones.write, &zones.trim] {
            let sum: f64 = zones.iter().map(|z| z.access_percent.0).sum();
            assert!((sum - 100.0).abs() <= 0.5, "{zones:?}");
        }
    }
    for size in [work.region.size, work.region.offset, work.passes.io_size] {
        if let Some(Size::Percent(percent)) = size {
            assert!(percent > 0.0 && percent <= 100.0, "{percent}");
        }
    }
    if let Some((min, max)) = work.region.file_size_bytes {
        assert!(min <= max, "{min:?} {max:?}");
    }
    let depth = &job.load().depth;
    assert!(depth.queue_depth.0 >= 1 && depth.submit_batch <= depth.queue_depth.0);
    assert!(depth.reap_min <= depth.queue_depth.0, "{depth:?}");
    assert!(job.clones >= 1 && work.passes.loops >= 1);
    let percentiles = &job.load().recording.percentiles;
    assert!(percentiles.iter().all(|p| p.0 > 0.0 && p.0 <= 100.0));
}

fn check_size(size: &BlockSize) {
    assert!(
        size.min().0 >= 1 && u32::try_from(size.max().0).is_ok(),
        "{size:?}"
    );
    assert!(size.min() <= size.max(), "{size:?}");
    if let BlockSize::Split { entries } = size {
        let sum: u32 = entries.iter().map(|e| u32::from(e.percent)).sum();
        assert_eq!(sum, 100, "{entries:?}");
    }
}
