//! Warning about messages that did not arrive as they were sent.
//!
//! In: what was measured. Out: a warning, which the figures beside it need. Not here: how data is
//! compared.

use weir_schema::{ExchangeResult, LatencyBandwidthResult, Warning};

/// Id of the warning, which spoils every figure.
const ID: &str = "wrong-data";

/// Of exchanges: every size and rank at which something was wrong.
pub(crate) fn of_exchange(job: &str, done: &ExchangeResult) -> Option<Warning> {
    let places = done.sizes.iter().flat_map(|size| {
        let bytes = 1_u64 << size.exponent;
        size.ranks.iter().flat_map(move |rank| {
            let wrong = rank.wrong_bytes;
            let lost = rank.lost.unwrap_or(0);
            let at = format!("messages of {bytes} B at rank {}", rank.rank);
            let wrong = (wrong > 0).then(|| format!("{wrong} wrong bytes in {at}"));
            let lost = (lost > 0).then(|| format!("{lost} lost {at}"));
            wrong.into_iter().chain(lost)
        })
    });
    let places: Vec<_> = places.collect();
    (!places.is_empty()).then(|| warning(job, places.join(", ")))
}

/// Of ping-pongs and rings.
pub(crate) fn of_latency_bandwidth(job: &str, done: &LatencyBandwidthResult) -> Option<Warning> {
    let wrong = done.wrong_bytes;
    (wrong > 0).then(|| warning(job, format!("{wrong} wrong bytes in messages")))
}

fn warning(job: &str, cause: String) -> Warning {
    Warning::new(ID, Some(job), cause)
}
