//! The six figures of a thread, and of all threads together.
//!
//! In: jobs that have ended. Out: figures. Totals are totals: completed I/Os, rates and bandwidths add
//! up, latencies are weighted by I/Os. The older program's summary divides the total by the square of the
//! number of threads and takes the mean of their bandwidths; [`Figures::legacy`] does the same.
//! Not here: how they are printed.

use weir_schema::{JobResult, KindResult, Stage, WorkerResult};

/// Figures of a thread, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) completed: u64,
    pub(super) slat_usec: f64,
    pub(super) clat_usec: f64,
    pub(super) iops: f64,
    /// 10^6 bytes per second.
    pub(super) bandwidth: f64,
    seconds: f64,
}

impl Figures {
    /// Submission and completion together.
    pub(super) fn lat_usec(&self) -> f64 {
        self.slat_usec + self.clat_usec
    }

    /// Those of a thread.
    pub(super) fn of(job: &JobResult) -> Self {
        Self::total(job.workers().iter().map(of_worker))
    }

    /// Those of several together.
    pub(super) fn total(all: impl Iterator<Item = Self>) -> Self {
        let mut total = Self::default();
        for one in all {
            let (before, more) = (count(total.completed), count(one.completed));
            let weighted = |sum: f64, mean: f64| {
                let all = before + more;
                if all > 0.0 {
                    (sum * before + mean * more) / all
                } else {
                    0.0
                }
            };
            total.slat_usec = weighted(total.slat_usec, one.slat_usec);
            total.clat_usec = weighted(total.clat_usec, one.clat_usec);
            total.completed += one.completed;
            total.iops += one.iops;
            total.bandwidth += one.bandwidth;
            total.seconds += one.seconds;
        }
        total
    }

    /// The total of this many threads by the older program's arithmetic.
    pub(super) fn legacy(self, threads: usize) -> Self {
        let threads = count(threads as u64).max(1.0);
        let seconds = threads * self.seconds;
        Self {
            iops: if seconds > 0.0 {
                count(self.completed) / seconds
            } else {
                0.0
            },
            bandwidth: self.bandwidth / threads,
            ..self
        }
    }
}

fn of_worker(worker: &WorkerResult) -> Figures {
    let (mut slat, mut clat, mut completed, mut bytes) = (0.0, 0.0, 0, 0);
    // Flushes count where they are all there is.
    let mut kinds = worker.kinds.iter();
    let only_aside = kinds.all(|kind| kind.kind.is_aside() || kind.operations == 0);
    let counts = |kind: &&KindResult| only_aside || !kind.kind.is_aside();
    for kind in worker.kinds.iter().filter(counts) {
        completed += kind.operations;
        bytes += kind.bytes.0;
        let sum = |stage| kind.stage(stage).map(|histogram| usec(histogram.sum()));
        match sum(Stage::Clat) {
            Some(sum_clat) => {
                slat += sum(Stage::Slat).unwrap_or(0.0);
                clat += sum_clat;
            }
            // What completes inside the call has no submission of its own.
            None => clat += sum(Stage::Lat).unwrap_or(0.0),
        }
    }
    let seconds = worker.span.map_or(0.0, |span| span.length().as_secs_f64());
    let per = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
    Figures {
        completed,
        slat_usec: per(slat, count(completed)),
        clat_usec: per(clat, count(completed)),
        iops: per(count(completed), seconds),
        bandwidth: per(count(bytes) / 1e6, seconds),
        seconds,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count in a printed figure")]
fn count(n: u64) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "a sum in a printed figure")]
fn usec(ns: u128) -> f64 {
    ns as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(completed: u64, lat: f64) -> Figures {
        Figures {
            completed,
            slat_usec: 3.0,
            clat_usec: lat,
            iops: count(completed) / 5.0,
            bandwidth: count(completed) * 4096.0 / 5e6,
            seconds: 5.0,
        }
    }

    #[test]
    fn totals_add_up_and_latencies_are_weighted() {
        let all = Figures::total([thread(1000, 100.0), thread(3000, 200.0)].into_iter());
        assert_eq!(all.completed, 4000);
        assert!((all.iops - 800.0).abs() < 1e-9);
        assert!((all.clat_usec - 175.0).abs() < 1e-9);
        assert!((all.slat_usec - 3.0).abs() < 1e-9);
        assert!((all.lat_usec() - 178.0).abs() < 1e-9);
        assert_eq!(Figures::total([].into_iter()), Figures::default());
    }

    #[test]
    fn the_older_summary_is_the_total_over_the_square_of_the_threads() {
        // 38997 and 39002 per second on two threads were printed as 19499, 319.486 MB/s as 159.743.
        let one = |iops: f64| Figures {
            completed: 5 * 39_000,
            iops,
            bandwidth: iops * 4096.0 / 1e6,
            seconds: 5.0,
            ..Figures::default()
        };
        let all = Figures::total([one(38_997.0), one(39_002.0)].into_iter());
        assert!((all.iops - 77_999.0).abs() < 1e-6);
        let legacy = all.legacy(2);
        assert!((legacy.iops - 19_500.0).abs() < 1e-6, "{legacy:?}");
        assert!((legacy.bandwidth - 159.742).abs() < 1e-3, "{legacy:?}");
    }
}
