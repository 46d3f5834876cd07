//! The stored form of a histogram: sparse, validated when it is read.
//!
//! In and out: `{"bits": 6, "count": 2, "sum": "1500", "min": 500, "max": 1000,
//! "buckets": [[index, count], …]}`. Sums are text, because they may exceed what JSON readers
//! keep exactly. What comes from a file or the network is hostile: whatever no histogram could
//! have produced is refused with the reason.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weir_units::JsonSchema;

use crate::bucket::{MAX_BITS, MIN_BITS, bucket_count};
use crate::histogram::{Histogram, HistogramSums};

/// A histogram as it is written.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Histogram")]
pub(crate) struct Wire {
    /// Precision bits.
    #[schemars(range(min = 4, max = 10))]
    bits: u8,
    /// Number of values counted.
    count: u64,
    /// Their exact sum, in decimal.
    sum: String,
    /// The smallest; absent when nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    /// The largest; absent when nothing was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    /// The exact sum of squares, in decimal, where it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum_of_squares: Option<String>,
    /// Index and count of each bucket that holds something, by rising index.
    buckets: Vec<(u32, u64)>,
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let buckets = self.indexed();
        let wire = Wire {
            bits: self.bits(),
            count: self.count(),
            sum: self.sum().to_string(),
            min: self.min(),
            max: self.max(),
            sum_of_squares: self.stored_squares().map(|squares| squares.to_string()),
            buckets: buckets
                .map(|(index, count)| (u32::try_from(index).unwrap_or(u32::MAX), count))
                .collect(),
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        read(&wire).map_err(|reason| D::Error::custom(format!("not a histogram: {reason}")))
    }
}

fn read(wire: &Wire) -> Result<Histogram, &'static str> {
    if !(MIN_BITS..=MAX_BITS).contains(&wire.bits) {
        return Err("bits is outside 4 to 10");
    }
    let number = |text: &str| {
        text.parse::<u128>()
            .map_err(|_| "a sum is not a decimal number")
    };
    let figures = HistogramSums {
        sum: number(&wire.sum)?,
        min: wire.min.unwrap_or(0),
        max: wire.max.unwrap_or(0),
        sum_of_squares: wire.sum_of_squares.as_deref().map(number).transpose()?,
    };
    if wire.min.is_none() != (wire.count == 0) || wire.max.is_none() != (wire.count == 0) {
        return Err("min and max must be there exactly if count is not 0");
    }
    let counts = read_buckets(wire)?;
    let histogram = Histogram::from_parts(wire.bits, counts, figures);
    let fits = histogram.sum() == figures.sum
        && histogram.min().unwrap_or(0) == figures.min
        && histogram.max().unwrap_or(0) == figures.max
        && histogram.stored_squares() == figures.sum_of_squares;
    fits.then_some(histogram)
        .ok_or("sum, min or max is not possible with these buckets")
}

fn read_buckets(wire: &Wire) -> Result<Vec<u64>, &'static str> {
    let mut counts = Vec::new();
    let mut total: u64 = 0;
    for &(index, count) in &wire.buckets {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if index >= bucket_count(wire.bits) {
            return Err("a bucket's index is out of range");
        }
        if index < counts.len() || count == 0 {
            return Err("buckets must rise by index and hold something");
        }
        counts.resize(index, 0);
        counts.push(count);
        total = total
            .checked_add(count)
            .ok_or("the buckets' counts overflow")?;
    }
    if total != wire.count {
        return Err("count is not the sum of the buckets' counts");
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_stored_form_is_sparse_and_stable() {
        let mut histogram = Histogram::new();
        histogram.record_n(1000, 2);
        histogram.record(3);
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(
            text,
            r#"{"bits":6,"count":3,"sum":"2003","min":3,"max":1000,"buckets":[[3,1],[317,2]]}"#
        );
        let empty = serde_json::to_string(&Histogram::new()).unwrap();
        assert_eq!(empty, r#"{"bits":6,"count":0,"sum":"0","buckets":[]}"#);
        assert_eq!(
            serde_json::from_str::<Histogram>(&empty).unwrap(),
            Histogram::new()
        );
    }

    #[test]
    fn what_no_histogram_could_have_stored_is_refused() {
        for text in [
            r#"{"bits":3,"count":0,"sum":"0","buckets":[]}"#,
            r#"{"bits":64,"count":0,"sum":"0","buckets":[]}"#,
            r#"{"bits":6,"count":0,"sum":"0","min":0,"max":0,"buckets":[]}"#,
            r#"{"bits":6,"count":1,"sum":"3","buckets":[[3,1]]}"#,
            r#"{"bits":6,"count":2,"sum":"3","min":3,"max":3,"buckets":[[3,1]]}"#,
            r#"{"bits":6,"count":1,"sum":"4","min":3,"max":3,"buckets":[[3,1]]}"#,
            r#"{"bits":6,"count":1,"sum":"-3","min":3,"max":3,"buckets":[[3,1]]}"#,
            r#"{"bits":6,"count":1,"sum":"3","min":3,"max":9,"buckets":[[3,1]]}"#,
            r#"{"bits":6,"count":0,"sum":"0","buckets":[[3,0]]}"#,
            r#"{"bits":6,"count":1,"sum":"3","min":3,"max":3,"buckets":[[3776,1]]}"#,
            r#"{"bits":6,"count":1,"sum":"3","min":3,"max":3,"buckets":[[4294967295,1]]}"#,
            r#"{"bits":6,"count":2,"sum":"6","min":3,"max":3,"buckets":[[3,1],[3,1]]}"#,
            r#"{"bits":6,"count":0,"sum":"0","buckets":[[3,18446744073709551615],[4,1]]}"#,
            r#"{"bits":6,"count":1,"sum":"3","min":3,"max":3,"sum_of_squares":"8","buckets":[[3,1]]}"#,
            r#"{"bits":6,"count":0,"sum":"0","buckets":[],"more":1}"#,
        ] {
            let refusal = serde_json::from_str::<Histogram>(text);
            assert!(refusal.is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_stored_histogram_reads_back(
            values in proptest::collection::vec((any::<u64>(), 0_u32..64, 1_u64..1000), 0..50),
            bits in MIN_BITS..=MAX_BITS,
            squares: bool,
        ) {
            let mut histogram = Histogram::with_bits(bits).unwrap();
            if squares {
                histogram = histogram.with_squares();
            }
            for (value, shift, n) in values {
                histogram.record_n(value >> shift, n);
            }
            let text = serde_json::to_string(&histogram).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
        }

        #[test]
        fn parts_of_a_histogram_can_be_stored(
            values in proptest::collection::vec((0_u64..5000, 1_u64..50), 1..20),
            part in 0_u64..100,
            squares: bool,
        ) {
            let mut whole = Histogram::new();
            if squares {
                whole = whole.with_squares();
            }
            for (value, n) in values {
                whole.record_n(value, n);
            }
            let first = whole.share(whole.count() * part / 100);
            let rest = whole.since(&first).unwrap();
            for part in [first, rest] {
                let text = serde_json::to_string(&part).unwrap();
                prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), part);
            }
        }

        #[test]
        fn hostile_buckets_give_an_error_or_a_sound_histogram(
            bits in 0_u8..12,
            count: u64,
            sum: u128,
            buckets in proptest::collection::vec((0_u32..5000, any::<u64>()), 0..5),
        ) {
            let wire = serde_json::json!({
                "bits": bits, "count": count, "sum": sum.to_string(),
                "min": 0, "max": u64::MAX, "buckets": buckets,
            });
            if let Ok(histogram) = serde_json::from_value::<Histogram>(wire) {
                prop_assert!(histogram.percentile(99.0).is_some());
                let _ = histogram.spread();
            }
        }
    }
}
