//! Where latencies fall: percentiles, fio's classes of latency, shares of depths and batches.

use weir_stats::Histogram;

use super::percentile::percentile;

/// Upper limits of the classes below a microsecond and below a millisecond.
pub(super) const LIMITS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// Names of the depth classes.
pub(super) const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Names of the batch classes.
pub(super) const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// Shares of operations in percent by the class of their total latency.
pub(super) struct Classes {
    pub(super) nsec: [f64; 10],
    pub(super) usec: [f64; 10],
    /// The same limits, then below 2 s and above.
    pub(super) msec: [f64; 12],
}

/// Sorts the buckets of a latency histogram into fio's classes.
pub(super) fn classes(histogram: Option<&Histogram>) -> Classes {
    let (mut nsec, mut usec, mut msec) = ([0; 10], [0; 10], [0; 12]);
    let mut total = 0;
    for bucket in histogram.into_iter().flat_map(Histogram::buckets) {
        total += bucket.count;
        let ns = bucket.middle;
        let class = |value: u64| LIMITS.iter().position(|l| value < *l);
        if let Some(i) = class(ns) {
            nsec[i] += bucket.count;
        } else if let Some(i) = class(ns / 1000) {
            usec[i] += bucket.count;
        } else {
            let ms = ns / 1_000_000;
            msec[class(ms).unwrap_or(if ms < 2000 { 10 } else { 11 })] += bucket.count;
        }
    }
    Classes {
        nsec: shares(&nsec, total, 0.01),
        usec: shares(&usec, total, 0.01),
        msec: shares(&msec, total, 0.01),
    }
}

/// Shares in percent; what is there at all is shown as the least one that is visible.
#[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
pub(super) fn shares<const N: usize>(counts: &[u64; N], total: u64, least: f64) -> [f64; N] {
    counts.map(|n| {
        if n == 0 || total == 0 {
            0.0
        } else {
            (n as f64 * 100.0 / total as f64).max(least)
        }
    })
}

/// The percentiles that a report asks for, in ascending order, with their values.
pub(super) fn percentiles(histogram: &Histogram, list: &[f64]) -> Vec<(f64, u64)> {
    let mut sorted: Vec<f64> = list.iter().copied().filter(|p| *p > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let value = |p| percentile(histogram, p).or_else(|| histogram.percentile(p));
    sorted
        .into_iter()
        .filter_map(|p| Some((p, value(p)?)))
        .collect()
}

/// Decimals of the percentile that has most.
pub(super) fn precision(list: &[(f64, u64)]) -> usize {
    let decimals = |p: &f64| p.to_string().split_once('.').map_or(0, |(_, d)| d.len());
    list.iter().map(|(p, _)| decimals(p)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_counts_what_lies_below_its_limit() {
        let mut h = Histogram::new();
        for ns in [
            1,
            2,
            3,
            999,
            1000,
            1999,
            2000,
            999_999,
            1_000_000,
            1_500_000_000,
            3_000_000_000,
        ] {
            h.record(ns);
        }
        let c = classes(Some(&h));
        let share = 100.0 / 11.0;
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        near(c.nsec[0], share);
        near(c.nsec[1], 2.0 * share);
        near(c.nsec[9], share);
        near(c.usec[0], 2.0 * share);
        near(c.usec[1], share);
        near(c.usec[9] + c.msec[0], 2.0 * share);
        near(c.msec[10], share);
        near(c.msec[11], share);
    }

    #[test]
    fn rare_classes_are_shown_as_the_least_visible_share() {
        let text = |shares: &[f64]| format!("{shares:?}");
        assert_eq!(
            text(&shares(&[1, 99_999, 0], 100_000, 0.01)),
            "[0.01, 99.999, 0.0]"
        );
        assert_eq!(text(&shares(&[0, 0], 0, 0.1)), "[0.0, 0.0]");
    }

    #[test]
    fn precision_is_that_of_the_longest_percentile() {
        let mut h = Histogram::new();
        h.record(5);
        assert_eq!(precision(&percentiles(&h, &[99.9999, 50.0])), 4);
        assert_eq!(precision(&percentiles(&h, &[50.0, 99.0])), 0);
        assert_eq!(
            percentiles(&h, &[99.0, 0.0, 50.0]),
            vec![(50.0, 5), (99.0, 5)]
        );
    }
}
