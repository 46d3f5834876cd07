//! How long each endpoint of a matrix was called alone, as a field of a samples file.
//!
//! In: a master's endpoints, or the text of the field. Out: the text, or the times. Not here: the rest of the
//! file (`samples`).

use std::collections::BTreeMap;

use weir_schema::{RpcEndpoint, RpcMaster};
use weir_units::Nanos;

use super::samples::endpoint;

/// The name of the field; its value is `RANK:TAG/NANOSECONDS`, several with commas.
pub(super) const TURNS: &str = "turns_ns";

/// Of a master's endpoints.
pub(super) fn turns_of(master: &RpcMaster) -> BTreeMap<RpcEndpoint, Nanos> {
    let all = master.endpoints.iter();
    all.filter_map(|one| Some((one.endpoint, one.turn_ns?)))
        .collect()
}

/// The last field of a tuple, with the blank before it; nothing without turns.
pub(super) fn turns_text(turns: &BTreeMap<RpcEndpoint, Nanos>) -> String {
    let all = turns.iter().map(|(at, time)| format!("{at}/{}", time.0));
    let all: Vec<String> = all.collect();
    if all.is_empty() {
        return String::new();
    }
    format!(" {TURNS}={}", all.join(","))
}

/// What such a field says.
pub(super) fn turns(text: &str) -> Option<BTreeMap<RpcEndpoint, Nanos>> {
    let one = |turn: &str| {
        let (at, time) = turn.split_once('/')?;
        Some((endpoint(at)?, Nanos(time.parse().ok()?)))
    };
    text.split(',').map(one).collect()
}
