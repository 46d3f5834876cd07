//! Logs of `HdrHistogram` (`.hlog`): a histogram an interval.
//!
//! In: the text. Out: a job a tag, with the histogram of all its intervals, their rates, and
//! percentiles with a sample an interval. Values are taken for nanoseconds, which the format has by
//! default and does not say. Not here: how a histogram is encoded (`hdr`).

use weir_schema::{KindName, KindResult, Metric, Span, Stage, StageHistogram, WorkerResult};
use weir_stats::Histogram;
use weir_units::Nanos;

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun};
use crate::hdr;
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "hlog",
    meaning: "logs of HdrHistogram, in nanoseconds",
    is_in: |text| text.contains("[Histogram log format version") || text.contains(HEADER),
    read,
};

const HEADER: &str = "\"StartTimestamp\",\"Interval_Length\"";
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// The intervals of a tag.
#[derive(Debug, Default)]
struct Tag {
    name: String,
    /// Seconds from the start of the log to the end of the last interval.
    end: f64,
    begin: Option<f64>,
    seconds: Vec<f64>,
    intervals: Vec<Histogram>,
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let mut run = ForeignRun {
        program: Some("HdrHistogram".to_owned()),
        ..ForeignRun::default()
    };
    let mut tags: Vec<Tag> = Vec::new();
    for line in ended_lines(text)? {
        if let Some(start) = line.text.strip_prefix("#[StartTime: ") {
            let (seconds, _) = line.number_with_unit(start)?;
            run.started_unix_ns = nanos(seconds).0;
        } else if !line.text.starts_with(['#', '"']) && !line.text.trim().is_empty() {
            interval(&mut tags, line)?;
        }
    }
    if tags.is_empty() {
        return Err(ends_early(text, "there is no interval"));
    }
    run.jobs = tags.iter().map(Tag::job).collect();
    Ok(run)
}

/// `Tag=NAME,START,LENGTH,MAX,HISTOGRAM`, with or without a tag.
fn interval(tags: &mut Vec<Tag>, line: Line<'_>) -> Result<(), ImportError> {
    let words: Vec<&str> = line.text.split(',').collect();
    let (name, words) = match words.split_first() {
        Some((tag, rest)) if tag.starts_with("Tag=") => (&tag["Tag=".len()..], rest),
        _ => ("log", words.as_slice()),
    };
    let [start, length, _, encoded] = words else {
        return Err(line.error("an interval has a start, a length, a maximum and a histogram"));
    };
    let (start, length) = (line.number(start)?, line.number(length)?);
    let histogram = hdr::decode(encoded).map_err(|why| line.error(why))?;
    let at = tags
        .iter()
        .position(|tag| tag.name == name)
        .unwrap_or(tags.len());
    if at == tags.len() {
        tags.push(Tag {
            name: name.to_owned(),
            ..Tag::default()
        });
    }
    if let Some(tag) = tags.get_mut(at) {
        tag.begin = Some(tag.begin.map_or(start, |begin| begin.min(start)));
        tag.end = tag.end.max(start + length);
        tag.seconds.push(length);
        tag.intervals.push(histogram);
    }
    Ok(())
}

impl Tag {
    fn job(&self) -> ForeignJob {
        let mut all = hdr::empty();
        for histogram in &self.intervals {
            // All have the same precision; more than 64 bits count no log has.
            let _ = all.merge(histogram);
        }
        let span = nanos(self.end - self.begin.unwrap_or(0.0));
        let kind = KindResult {
            issued: all.count(),
            operations: all.count(),
            runtime_ns: span,
            stages: vec![StageHistogram {
                stage: Stage::Lat,
                histogram: all.clone(),
            }],
            ..KindResult::new(KindName::MIXED)
        };
        ForeignJob {
            name: self.name.clone(),
            title: format!("{} intervals", self.intervals.len()),
            metrics: self.metrics(&all, span),
            worker: Some(WorkerResult {
                span: (span > Nanos::ZERO).then_some(Span {
                    start_ns: Nanos::ZERO,
                    end_ns: span,
                }),
                kinds: vec![kind],
                ..WorkerResult::default()
            }),
            ..ForeignJob::default()
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as exact as a figure is")]
    fn metrics(&self, all: &Histogram, span: Nanos) -> Vec<Metric> {
        let name = |what: &str| format!("{} {what}", KindName::MIXED);
        let mut metrics = Vec::new();
        if span > Nanos::ZERO {
            let rate = all.count() as f64 / span.as_secs_f64();
            let rates = self.intervals.iter().zip(&self.seconds);
            let rates = rates.map(|(histogram, s)| histogram.count() as f64 / s);
            metrics.push(Metric {
                samples: rates.collect(),
                ..Metric::high(name("rate"), Metric::OPS_PER_S, rate)
            });
        }
        for percent in PERCENTILES {
            let seconds = |h: &Histogram| Some(h.percentile(percent)? as f64 / 1e9);
            metrics.extend(seconds(all).map(|value| Metric {
                samples: self.intervals.iter().filter_map(seconds).collect(),
                ..Metric::low(name(&format!("p{percent}")), Metric::SECONDS, value)
            }));
        }
        let mean = all.mean().map(|ns| ns / 1e9);
        metrics.extend(mean.map(|mean| Metric::low(name("mean"), Metric::SECONDS, mean)));
        metrics
    }
}

fn nanos(seconds: f64) -> Nanos {
    Nanos::from_secs_f64(seconds).unwrap_or(Nanos::ZERO)
}
