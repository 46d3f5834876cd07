//! Work of a job, in a few words read from its plan.
//!
//! In: a planned job. Out: its aspects as named pieces of text, for a title and for finding
//! what differs between jobs. Not here: how many workers really ran, and for how long.

use weir_schema::{
    Access, BlockSize, BlockWorkload, Distribution, FileNames, Job, Kind, Load, Schedule,
};

/// One aspect of a job. Jobs that differ in a single one are a sweep over it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aspect {
    /// Heading of its column.
    pub(crate) name: &'static str,
    /// Form in a title; nothing for aspects that a title leaves out.
    pub(crate) title: String,
    /// Form in a column.
    pub(crate) cell: String,
    /// Its number, if it is one.
    pub(crate) number: Option<f64>,
}

/// Aspects of a job's work; always the same aspects in the same order.
pub(crate) fn aspects(job: &Job, workers: usize) -> Vec<Aspect> {
    let text = |name, text: String| Aspect {
        name,
        title: text.clone(),
        cell: text,
        number: None,
    };
    let number = |name, title: String, cell: u32| Aspect {
        title,
        number: Some(f64::from(cell)),
        ..text(name, cell.to_string())
    };
    let load = job.workload.load();
    let depth = |load: &Load| {
        let depth = load.depth.queue_depth.0;
        number("depth", format!("depth {depth}"), depth)
    };
    let workers = |_: &Load| {
        let workers = u32::try_from(workers).unwrap_or(u32::MAX);
        let plural = if workers == 1 { "" } else { "s" };
        number("workers", format!("{workers} worker{plural}"), workers)
    };
    let work = job.blocks();
    let moving = work.filter(|work| !is_flush_only(work));
    let (block, block_number) = moving.map(block).unwrap_or_default();
    vec![
        text(
            "operation",
            work.map_or_else(|| job.workload.title(), operation),
        ),
        Aspect {
            number: block_number,
            ..text("block", block)
        },
        text(
            "access",
            moving.map(|work| access(&work.access)).unwrap_or_default(),
        ),
        text("engine", job.engine.name.clone()),
        load.map_or_else(|| text("depth", String::new()), depth),
        load.map_or_else(|| text("workers", String::new()), workers),
        text("loop", load.map(|_| pacing(job)).unwrap_or_default()),
        Aspect {
            title: String::new(),
            ..text(
                "target",
                work.map(|work| target(&work.targets.files))
                    .unwrap_or_default(),
            )
        },
    ]
}

/// The aspects as parts of a title: `read 4 KiB random`, `io_uring`, `depth 32` …
pub(crate) fn title(aspects: &[Aspect]) -> Vec<String> {
    let (work, rest) = aspects.split_at(aspects.len().min(3));
    let said = |aspects: &[Aspect]| -> Vec<String> {
        aspects
            .iter()
            .map(|a| a.title.clone())
            .filter(|t| !t.is_empty())
            .collect()
    };
    let mut parts = said(rest);
    let work = said(work).join(" ");
    if !work.is_empty() {
        parts.insert(0, work);
    }
    parts
}

/// Its operations have neither a size nor a place.
fn is_flush_only(work: &BlockWorkload) -> bool {
    work.bursts.is_some_and(|bursts| bursts.flush_only)
}

fn operation(work: &BlockWorkload) -> String {
    if is_flush_only(work) {
        return "flush".into();
    }
    if work.verify.as_ref().is_some_and(|verify| verify.only) {
        return "verify".into();
    }
    let mix = work.mix;
    let share = |kind| match kind {
        Kind::Read => mix.read_percent,
        Kind::Write => mix.write_percent,
        Kind::Trim | Kind::Sync => mix.trim_percent,
    };
    if mix.trim_then_write {
        return "trim+write".into();
    }
    let kinds: Vec<Kind> = Kind::DATA.into_iter().filter(|k| mix.has(*k)).collect();
    let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
    let mut text = names.join("/");
    if kinds.len() > 1 {
        let shares: Vec<String> = kinds.iter().map(|k| share(*k).to_string()).collect();
        text = format!("{text} {}", shares.join(":"));
    }
    text
}

/// The sizes of operations, and the number if there is only one size.
fn block(work: &BlockWorkload) -> (String, Option<f64>) {
    let size = |s: &BlockSize| match s {
        BlockSize::Fixed { bytes } => bytes.exact(),
        BlockSize::Range {
            min_bytes,
            max_bytes,
            ..
        } => {
            format!("{} to {}", min_bytes.exact(), max_bytes.exact())
        }
        BlockSize::Split { entries } => {
            let part = |e: &weir_schema::SplitEntry| format!("{} {} %", e.bytes.exact(), e.percent);
            entries.iter().map(part).collect::<Vec<_>>().join(" + ")
        }
    };
    let per_kind = &work.sizes.size;
    let used: Vec<&BlockSize> = if work.sizes.by_pattern {
        vec![&per_kind.read, &per_kind.write]
    } else {
        Kind::DATA
            .into_iter()
            .filter(|k| work.mix.has(*k))
            .map(|k| per_kind.of(k))
            .collect()
    };
    let mut texts: Vec<String> = used.iter().map(|s| size(s)).collect();
    texts.dedup();
    let number = match used.first() {
        Some(BlockSize::Fixed { bytes }) if texts.len() == 1 => Some(as_f64(bytes.0)),
        _ => None,
    };
    (texts.join("/"), number)
}

fn access(access: &Access) -> String {
    if !access.random {
        return if access.skip_bytes == 0 {
            "sequential".into()
        } else {
            "strided".into()
        };
    }
    let spread = match &access.distribution {
        Distribution::Uniform => String::new(),
        Distribution::Zipf { theta, .. } => format!(" zipf {theta}"),
        Distribution::Pareto { h, .. } => format!(" pareto {h}"),
        Distribution::Normal {
            deviation_percent, ..
        } => format!(" normal {deviation_percent} %"),
        Distribution::Zoned { .. } => " zoned".into(),
    };
    let share = match access.random_percent.read {
        100 => String::new(),
        percent => format!("{percent} % "),
    };
    format!("{share}random{spread}")
}

fn target(files: &FileNames) -> String {
    match files {
        FileNames::Listed { paths, .. } => paths.join(":"),
        FileNames::Generated { pattern, .. } => pattern.clone(),
        FileNames::Below { directories, .. } => directories.join(":"),
        FileNames::Sized { files } => {
            let paths: Vec<&str> = files.iter().map(|f| f.path.as_str()).collect();
            paths.join(":")
        }
        FileNames::None => String::new(),
    }
}

/// Closed or open loop, and the rate asked for.
fn pacing(job: &Job) -> String {
    let (limits, open): (Vec<String>, bool) = match &job.load().pacing.schedule {
        None => (Vec::new(), false),
        Some(Schedule::OpsPerSecond {
            limit_per_s: l,
            open_loop,
            ..
        }) => {
            let given = l.values();
            (given.map(ToString::to_string).collect(), *open_loop)
        }
        Some(Schedule::BytesPerSecond {
            limit_bytes_per_s: l,
            open_loop,
            ..
        }) => {
            let given = l.values();
            (given.map(ToString::to_string).collect(), *open_loop)
        }
    };
    let mut limits = limits;
    limits.dedup();
    match (open, limits.is_empty()) {
        (false, true) => "closed loop".into(),
        (false, false) => format!("closed loop at most {}", limits.join("/")),
        (true, true) => "open loop".into(),
        (true, false) => format!("open loop {}", limits.join("/")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a block size is far below 2^53")]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use weir_schema::{Mix, PerKind, SplitEntry, Workload};
    use weir_units::{Bytes, Iops};

    use weir_schema::sample::JobSample;

    use super::*;
    use crate::sample;

    fn plan() -> Job {
        sample::single().plan.groups[0].jobs[0].clone()
    }

    fn said(change: impl FnOnce(&mut BlockWorkload)) -> String {
        let mut job = plan();
        match &mut job.workload {
            Workload::Block(work) => change(work),
            _ => unreachable!(),
        }
        title(&aspects(&job, 1)).swap_remove(0)
    }

    #[test]
    fn a_title_says_what_is_done() {
        assert_eq!(said(|_| ()), "read 4 KiB random");
        assert_eq!(
            said(|w| {
                w.mix.read_percent = 70;
                w.mix.write_percent = 30;
                w.sizes.size.write = BlockSize::Range {
                    min_bytes: Bytes(512),
                    max_bytes: Bytes(65_536),
                    unaligned: false,
                };
            }),
            "read/write 70:30 4 KiB/512 B to 64 KiB random"
        );
        assert_eq!(
            said(|w| {
                w.mix = Mix::only(Kind::Trim);
                w.mix.trim_then_write = true;
                w.access.random = false;
            }),
            "trim+write 4 KiB sequential"
        );
        assert_eq!(
            said(|w| {
                let entry = |bytes, percent| SplitEntry {
                    bytes: Bytes(bytes),
                    percent,
                };
                let entries = vec![entry(4096, 60), entry(8192, 40)];
                w.sizes.size = PerKind::all(BlockSize::Split { entries });
                w.access.distribution = Distribution::Zipf {
                    theta: 1.2,
                    center: None,
                };
                w.access.random_percent = PerKind::all(80);
            }),
            "read 4 KiB 60 % + 8 KiB 40 % 80 % random zipf 1.2"
        );
    }

    #[test]
    fn the_loop_is_open_only_where_responses_are_counted_from_intended_starts() {
        let mut job = plan();
        for (open_loop, text) in [
            (false, "closed loop at most 50.0 k ops/s"),
            (true, "open loop 50.0 k ops/s"),
        ] {
            job.load_mut().pacing.schedule = Some(Schedule::OpsPerSecond {
                limit_per_s: PerKind::all(Iops(50_000.0)).by_name(),
                poisson: false,
                open_loop,
                ignore_thinktime: false,
            });
            assert_eq!(pacing(&job), text);
        }
    }
}
