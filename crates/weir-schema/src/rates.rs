//! Rates of a group, of everything that was done and of what was done while all members ran.
//!
//! In: the workers of its jobs, with their spans and interval series. Out: [`Rates`] per kind.

use weir_units::{Bytes, BytesPerSec, Iops, Nanos};

use crate::kind::{Kind, KindName};
use crate::result::{GroupResult, JobResult, KindResult, Rates, Span, WorkerResult, rated_kinds};

impl GroupResult {
    /// Fills in when all its workers ran together, and the rates.
    pub fn conclude(&mut self) {
        let spans = || workers(&self.jobs).filter_map(|worker| worker.span);
        self.together = spans().reduce(both);
        self.rates = rates(&self.jobs, self.together);
    }

    /// The same for workers that stand for those of several ranks, who ran together then. Series
    /// that were added tell of whole intervals alone, so the time is cut down to those.
    pub(crate) fn conclude_merged(&mut self, together: Option<Span>) {
        let kinds = || workers(&self.jobs).flat_map(|worker| &worker.kinds);
        let interval = kinds().map(|kind| kind.series.interval()).max();
        let whole = together.zip(interval).and_then(|(span, interval)| {
            let length = span.length().0 / interval.0.max(1) * interval.0;
            let end_ns = Nanos(span.start_ns.0 + length);
            (length > 0).then_some(Span { end_ns, ..span })
        });
        self.together = together;
        self.rates = rates(&self.jobs, whole);
    }
}

impl GroupResult {
    /// The workers of all its jobs.
    pub(crate) fn workers(&self) -> impl Iterator<Item = &WorkerResult> {
        workers(&self.jobs)
    }
}

fn workers(jobs: &[JobResult]) -> impl Iterator<Item = &WorkerResult> + Clone {
    jobs.iter().flat_map(JobResult::workers)
}

/// The time that lies in both; where there is none it ends before it starts.
pub(crate) fn both(a: Span, b: Span) -> Span {
    Span {
        start_ns: a.start_ns.max(b.start_ns),
        end_ns: a.end_ns.min(b.end_ns),
    }
}

/// The share of reads and writes that are reads; nothing where there are none of both.
#[expect(clippy::cast_precision_loss, reason = "a share")]
pub fn read_share<'a>(workers: impl IntoIterator<Item = &'a WorkerResult>) -> Option<f64> {
    let (mut reads, mut all) = (0, 0);
    for worker in workers {
        let of = |kind| worker.kind(kind).map_or(0, |found| found.operations);
        reads += of(Kind::Read);
        all += of(Kind::Read) + of(Kind::Write);
    }
    (all > 0).then(|| reads as f64 / all as f64)
}

/// A total over (latest end − earliest start).
#[expect(
    clippy::cast_precision_loss,
    reason = "a rate of more than 2^53 operations keeps 16 digits"
)]
pub fn total_rate(total: u64, spans: impl Iterator<Item = Span> + Clone) -> Iops {
    let start = spans.clone().map(|s| s.start_ns.0).min().unwrap_or(0);
    let end = spans.map(|s| s.end_ns.0).max().unwrap_or(0);
    let seconds = end.saturating_sub(start).max(1) as f64 / 1e9;
    Iops(total as f64 / seconds)
}

/// Rates per kind over all workers of a group, `together` being when all of them ran.
fn rates(jobs: &[JobResult], together: Option<Span>) -> Vec<Rates> {
    let spans = workers(jobs).filter_map(|worker| worker.span);
    let together = together.filter(|span| span.end_ns > span.start_ns);
    let rates = |kind: KindName| {
        let of_kind =
            || workers(jobs).filter_map(|worker| Some((worker.span?, worker.kind(&kind)?)));
        let operations: u64 = of_kind().map(|(_, k)| k.operations).sum();
        let bytes: u64 = of_kind().map(|(_, k)| k.bytes.0).sum();
        if operations == 0 {
            return None;
        }
        let overlap = together.map(|together| overlap(of_kind(), together));
        Some(Rates {
            operations,
            bytes: Bytes(bytes),
            ops_per_s: total_rate(operations, spans.clone()),
            bytes_per_s: BytesPerSec(total_rate(bytes, spans.clone()).0),
            overlap_ops_per_s: overlap.map(|(operations, _)| Iops(operations)),
            overlap_bytes_per_s: overlap.map(|(_, bytes)| BytesPerSec(bytes)),
            kind,
        })
    };
    let kinds = rated_kinds(workers(jobs)).into_iter();
    kinds.filter_map(rates).collect()
}

/// Operations and bytes per second while all members ran, from their interval series: an
/// interval that reaches over an end counts with its share. A member does nothing after its own end.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts and times of a run are far below 2^53"
)]
fn overlap<'a>(
    members: impl Iterator<Item = (Span, &'a KindResult)>,
    together: Span,
) -> (f64, f64) {
    let (start, end) = (together.start_ns.0, together.end_ns.0);
    let (mut operations, mut bytes) = (0.0, 0.0);
    for (span, kind) in members {
        let mut from = span.start_ns.0;
        for point in kind.series.points() {
            let to = from + point.length.0.max(1);
            let until = to.min(span.end_ns.0.max(from + 1));
            let length = until - from;
            let inside = until.min(end).saturating_sub(from.max(start)) as f64 / length as f64;
            operations += point.operations as f64 * inside;
            bytes += point.bytes.0 as f64 * inside;
            from = to;
        }
    }
    let seconds = together.length().as_secs_f64();
    (operations / seconds, bytes / seconds)
}
