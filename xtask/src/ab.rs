//! A/B: two sides measured in turns, so that drift of the machine hits both.
//!
//! In: two closures that measure once and return one value per metric. Out:
//! per metric both medians with their spread, and the ratio of the medians
//! with its 95 % interval.
//! Not here: the statistics of a ratio (`weir-stats`), what is measured
//! (`bench`), the machine's facts, tables.

use anyhow::{Result, ensure};
use weir_stats::Estimate;
use weir_stats::significance::ratio_of_medians;

/// One measurement of one side: a value per metric, always in the same order.
pub(crate) type Measure<'a> = dyn FnMut() -> Result<Vec<f64>> + 'a;

const SEED: u64 = 0x5EED;

/// The values of one metric, a pair per round.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pairs {
    pub(crate) weir: Vec<f64>,
    pub(crate) peer: Vec<f64>,
}

/// Result of the pairs of one metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) weir: Spread,
    pub(crate) peer: Spread,
    /// Median of weir divided by median of the peer, if that is not 0.
    pub(crate) ratio: Option<Estimate>,
}

/// A median and how far the values lie from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    /// Median absolute deviation from the median.
    pub(crate) deviation: f64,
}

/// Measures both sides `rounds` times after one round that is thrown away.
/// Rounds come in blocks A B, B A or B A, A B; chance picks which.
pub(crate) fn interleave(
    rounds: usize,
    weir: &mut Measure<'_>,
    peer: &mut Measure<'_>,
) -> Result<Vec<Pairs>> {
    let metrics = weir()?.len();
    ensure!(
        peer()?.len() == metrics,
        "the sides differ in their metrics"
    );
    let empty = Pairs {
        weir: Vec::new(),
        peer: Vec::new(),
    };
    let mut pairs = vec![empty; metrics];
    let mut random = Random(SEED);
    let mut weir_first = true;
    for round in 0..rounds {
        weir_first = if round % 2 == 0 {
            random.next() & 1 == 0
        } else {
            !weir_first
        };
        let (a, b) = if weir_first {
            let a = weir()?;
            (a, peer()?)
        } else {
            let b = peer()?;
            (weir()?, b)
        };
        ensure!(
            a.len() == metrics && b.len() == metrics,
            "round {round}: a metric is missing"
        );
        for (pair, (a, b)) in pairs.iter_mut().zip(a.into_iter().zip(b)) {
            pair.weir.push(a);
            pair.peer.push(b);
        }
    }
    Ok(pairs)
}

/// Medians, spreads, ratio and interval of one metric.
pub(crate) fn compare(pairs: &Pairs) -> Comparison {
    let rounds: Vec<(f64, f64)> = pairs
        .peer
        .iter()
        .copied()
        .zip(pairs.weir.iter().copied())
        .collect();
    Comparison {
        weir: spread(&pairs.weir),
        peer: spread(&pairs.peer),
        ratio: ratio_of_medians(&rounds, 0.05),
    }
}

fn spread(values: &[f64]) -> Spread {
    let middle = median(values.to_vec());
    Spread {
        median: middle,
        deviation: median(values.iter().map(|value| (value - middle).abs()).collect()),
    }
}

/// The middle value, or the mean of the two in the middle; NaN for none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.get(half) {
        None => f64::NAN,
        Some(&value) if values.len() % 2 == 1 => value,
        Some(&value) => f64::midpoint(values[half - 1], value),
    }
}

/// splitmix64: the same turns each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn sides_take_turns_and_each_leads_as_often() {
        let calls = RefCell::new(String::new());
        let mut weir = || {
            calls.borrow_mut().push('A');
            Ok(vec![2.0])
        };
        let mut peer = || {
            calls.borrow_mut().push('B');
            Ok(vec![1.0])
        };
        let pairs = interleave(8, &mut weir, &mut peer).unwrap();
        assert_eq!(pairs[0].weir, [2.0; 8]);
        assert_eq!(pairs[0].peer, [1.0; 8]);
        let calls = calls.into_inner();
        let blocks: Vec<&str> = (2..calls.len())
            .step_by(4)
            .map(|at| &calls[at..at + 4])
            .collect();
        assert!(
            blocks.iter().all(|block| ["ABBA", "BAAB"].contains(block)),
            "{calls}"
        );
    }

    #[test]
    fn a_metric_that_goes_missing_is_an_error() {
        let mut first = true;
        let mut weir = || {
            let values = if first { vec![1.0, 2.0] } else { vec![1.0] };
            first = false;
            Ok(values)
        };
        let mut peer = || Ok(vec![1.0, 2.0]);
        assert!(interleave(2, &mut weir, &mut peer).is_err());
    }

    #[test]
    fn medians_and_deviations_are_those_computed_by_hand() {
        let odd = spread(&[5.0, 1.0, 9.0]);
        assert_eq!((odd.median, odd.deviation), (5.0, 4.0));
        let even = spread(&[1.0, 2.0, 4.0, 100.0]);
        assert_eq!((even.median, even.deviation), (3.0, 1.5));
    }

    #[test]
    fn the_ratio_is_weir_over_peer() {
        let pairs = Pairs {
            weir: vec![6.0; 10],
            peer: vec![4.0; 10],
        };
        let ratio = compare(&pairs).ratio.unwrap();
        assert_eq!(
            (ratio.low, ratio.value, ratio.high),
            (Some(1.5), 1.5, Some(1.5))
        );
    }
}
