//! The text of `spdk_nvme_perf`.
//!
//! In: the text. Out: a job a row of its table, one of a namespace and a core; the total where there
//! are several. Summaries (-L) become percentiles, histograms (-LL) a histogram of the same
//! operations. MiB is 2^20 bytes, µs are seconds here.

use weir_schema::{KindName, KindResult, Metric, Stage, StageHistogram, WorkerResult};
use weir_stats::Histogram;

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun, MIB};
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "spdk-nvme-perf",
    meaning: "spdk_nvme_perf, what it prints",
    is_in: |text| text.contains("Device Information ") && text.contains("MiB/s"),
    read,
};

/// Cuts that a summary of latencies has.
const CUTS: usize = 15;
/// Buckets a power of two, as a number of bits.
const BITS: u8 = 7;
/// Names in headings of summaries are cut at this length.
const NAME: usize = 43;

/// Part of the text that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    None,
    Table,
    /// The cuts of a job's latencies, so many still to come.
    Cuts {
        job: usize,
        left: usize,
    },
    /// The buckets of a job's latencies.
    Buckets {
        job: usize,
    },
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let mut run = ForeignRun {
        program: Some("spdk_nvme_perf".to_owned()),
        ..ForeignRun::default()
    };
    let mut histograms: Vec<Option<Buckets>> = Vec::new();
    let mut part = Part::None;
    let mut is_whole = false;
    for line in ended_lines(text)? {
        let words = line.text.trim();
        if let Some(warning) = words.strip_prefix("WARNING: ") {
            run.warnings.push(warning.to_owned());
        } else if words.starts_with("Device Information") {
            part = Part::Table;
        } else if let Some(heading) = words.strip_prefix("Summary latency data for ") {
            let job = named(&run.jobs, line, heading)?;
            part = Part::Cuts { job, left: CUTS };
        } else if let Some(heading) = words.strip_prefix("Latency histogram for ") {
            let job = named(&run.jobs, line, heading)?;
            part = Part::Buckets { job };
        } else if !words.is_empty() && !words.starts_with("==") && !words.starts_with("Range in") {
            match &mut part {
                Part::Table => {
                    let job = row(line)?;
                    is_whole = job.name == "Total";
                    run.jobs.push(job);
                    histograms.push(None);
                }
                Part::Cuts { job, left } if *left > 0 => {
                    *left -= 1;
                    run.jobs[*job].metrics.push(cut(line)?);
                }
                Part::Buckets { job } => {
                    let buckets = histograms[*job].get_or_insert_with(Buckets::default);
                    buckets.add(line)?;
                }
                _ => part = Part::None,
            }
        }
        if is_whole && part == Part::Table {
            part = Part::None;
        }
    }
    let is_cut = matches!(part, Part::Cuts { left: 1.., .. })
        || histograms.iter().flatten().any(|buckets| !buckets.is_whole);
    if !is_whole || is_cut {
        return Err(ends_early(text, "a table is not whole"));
    }
    for (job, buckets) in run.jobs.iter_mut().zip(histograms) {
        job.worker = buckets.map(Buckets::worker);
    }
    // Of one row the total says nothing further.
    if run.jobs.len() == 2 {
        run.jobs.pop();
    }
    Ok(run)
}

/// `NAME : IOPS MiB/s average min max`.
fn row(line: Line<'_>) -> Result<ForeignJob, ImportError> {
    let wrong = || line.error("a row has a name and five figures");
    let (name, figures) = line.text.rsplit_once(':').ok_or_else(wrong)?;
    let mut numbers = Vec::new();
    for word in figures.split_whitespace() {
        numbers.push(line.number(word)?);
    }
    let [rate, mib, mean, min, max] = numbers[..] else {
        return Err(wrong());
    };
    let seconds = |name: &str, us: f64| Metric::low(name, Metric::SECONDS, us / 1e6);
    Ok(ForeignJob {
        name: name.trim().to_owned(),
        title: "spdk_nvme_perf".to_owned(),
        metrics: vec![
            Metric::high("rate", Metric::OPS_PER_S, rate),
            Metric::high("bandwidth", Metric::BYTES_PER_S, mib * MIB),
            seconds("mean", mean),
            seconds("min", min),
            seconds("max", max),
        ],
        ..ForeignJob::default()
    })
}

/// The job of a heading, whose name may be cut: `NAME from core N:`.
fn named(jobs: &[ForeignJob], line: Line<'_>, heading: &str) -> Result<usize, ImportError> {
    let heading = heading.trim_end_matches(':');
    let (device, core) = heading.rsplit_once(" from core ").unwrap_or((heading, ""));
    let is_same = |job: &ForeignJob| {
        let (own, own_core) = job
            .name
            .rsplit_once(" from core ")
            .unwrap_or((&job.name, ""));
        let own: String = own.chars().take(NAME).collect();
        own.trim() == device.trim() && own_core.trim() == core.trim()
    };
    let job = jobs.iter().position(is_same);
    job.ok_or_else(|| line.error("the table has no row for these latencies"))
}

/// `99.90000% : 123.456us`.
fn cut(line: Line<'_>) -> Result<Metric, ImportError> {
    let parts = line.text.split_once('%').and_then(|(percent, rest)| {
        let us = rest.trim().strip_prefix(':')?.trim().strip_suffix("us")?;
        Some((percent, us))
    });
    let (percent, us) = parts.ok_or_else(|| line.error("a cut is `PERCENT% : TIMEus`"))?;
    let (percent, us) = (line.number(percent)?, line.number(us)?);
    Ok(Metric::low(
        format!("p{percent}"),
        Metric::SECONDS,
        us / 1e6,
    ))
}

/// Latencies by bucket.
#[derive(Debug, Default)]
struct Buckets {
    /// The middle of a bucket in nanoseconds, and how many fell into it.
    counts: Vec<(u64, u64)>,
    /// All operations are in.
    is_whole: bool,
}

impl Buckets {
    /// `12.288 - 12.416: 45.0000%  ( 123)`.
    fn add(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let wrong = || line.error("a bucket is `START - END: SHARE%  (COUNT)`");
        let (range, rest) = line.text.split_once(':').ok_or_else(wrong)?;
        let (start, end) = range.split_once(" - ").ok_or_else(wrong)?;
        let (share, count) = rest.split_once('%').ok_or_else(wrong)?;
        let count = count
            .trim()
            .strip_prefix('(')
            .and_then(|c| c.strip_suffix(')'));
        let count = count
            .and_then(|c| c.trim().parse().ok())
            .ok_or_else(wrong)?;
        let middle = f64::midpoint(line.number(start)?, line.number(end)?);
        self.counts.push((nanos(middle), count));
        self.is_whole = line.number(share)? >= 100.0;
        Ok(())
    }

    /// Reads and writes are not told apart.
    fn worker(self) -> WorkerResult {
        let mut histogram = Histogram::with_bits(BITS).unwrap_or_default();
        for (ns, count) in self.counts {
            histogram.record_n(ns, count);
        }
        let kind = KindResult {
            issued: histogram.count(),
            operations: histogram.count(),
            stages: vec![StageHistogram {
                stage: Stage::Lat,
                histogram,
            }],
            ..KindResult::new(KindName::MIXED)
        };
        WorkerResult {
            kinds: vec![kind],
            ..WorkerResult::default()
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` keeps to the range of the type"
)]
fn nanos(us: f64) -> u64 {
    (us * 1e3).round() as u64
}
