//! Options that cannot be had together.
//!
//! In: the options. Out: the refusal of the first that another leaves nothing to do for. Not here: values.

use super::refuse;
use crate::given::Given;
use crate::refusal::Refusal;

/// Options that other options leave nothing to do for, and why.
const EXCLUSIVE: &[(&str, &[&str], &str)] = &[
    (
        "matrix",
        &[
            "threads",
            "rate",
            "duration",
            "spread",
            "inflight-per-endpoint",
        ],
        "one thread has its RPCs in flight to one endpoint after another, a number to each",
    ),
    (
        "loopback",
        &["master-endpoint"],
        "the server of this run alone orders nothing; masters are servers of `weir rpc serve`",
    ),
    (
        "first",
        &["warmup"],
        "the first RPC is that of a new connection",
    ),
    (
        "connect-storm",
        &[
            "repetitions-per-size",
            "duration",
            "matrix",
            "master-endpoint",
            "threads",
            "warmup",
        ],
        "this command has one RPC on each connection",
    ),
    (
        "find-max",
        &["rate", "sweep-inflight", "matrix", "connect-storm", "first"],
        "each step has a rate that follows from the one before",
    ),
    (
        "samples",
        &["rate", "find-max"],
        "the latencies of samples are from when RPCs were sent, not from when they were due",
    ),
];

/// Options of the house that leave nothing to do for one of the door's own, and why.
const OF_HOUSE: [(&str, &str, &str); 3] = [
    ("samples", "repeat", "it is one file for several runs"),
    ("samples", "show-plan", "a plan has no place for the file"),
    ("stall-timeout", "repeat", "it is for one run"),
];

/// Refuses options of which one leaves nothing to do for another.
///
/// # Errors
/// The first such pair.
pub(super) fn refuse_contradictions(given: &Given) -> Result<(), Refusal> {
    let places: Vec<&str> = ["loopback", "target", "path"]
        .into_iter()
        .filter(|name| given.has(name))
        .collect();
    if let [one, other, ..] = places.as_slice() {
        return Err(refuse(
            one,
            given.text(one).unwrap_or_default(),
            &format!("--{other} says elsewhere where the servers are; leave one out"),
        ));
    }
    let is_null = given
        .text("transport")
        .is_some_and(|name| name.trim_end_matches("://") == "null");
    let nobody = ["loopback", "target", "master-endpoint"];
    if let Some(other) = nobody.into_iter().find(|other| is_null && given.has(other)) {
        let why = format!("null calls nobody; leave out --{other}, or name another transport");
        return Err(refuse("transport", "null", &why));
    }
    for (one, others, why) in EXCLUSIVE {
        let other = others.iter().find(|other| given.has(other));
        if let Some(other) = other.filter(|_| given.has(one)) {
            let why = format!("{why}; leave out --{other} or this");
            return Err(refuse(one, given.text(one).unwrap_or_default(), &why));
        }
    }
    for (one, other, why) in OF_HOUSE {
        if given.has(one) && given.house.has(other) {
            let why = format!("{why}; leave out --{other} or this");
            return Err(refuse(one, given.text(one).unwrap_or_default(), &why));
        }
    }
    given
        .refusal()
        .map_or(Ok(()), |why| Err(Refusal::usage(why)))
}
