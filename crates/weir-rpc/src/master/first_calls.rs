//! The first call to each endpoint, on a connection that nothing has gone over yet.
//!
//! In: a transport whose sessions are open. Out: how long connections took and the first calls, one
//! after another; no call is out then. Not here: what counts (`engine`).

use std::io;
use std::time::Instant;

use weir_schema::RpcFirst;
use weir_units::Nanos;

use crate::transport::{Requested, RpcTransport};

/// Time that one look for answers waits.
const LOOK_NS: u64 = 10_000_000;

/// The times of each entry; of those that cannot be called none. `is_over` ends it early.
///
/// # Errors
/// The transport is broken.
pub fn time_first_calls(
    transport: &mut impl RpcTransport,
    entries: u32,
    is_over: impl Fn() -> bool,
) -> io::Result<Vec<Option<RpcFirst>>> {
    let mut all = Vec::new();
    for entry in 0..entries {
        if is_over() || !transport.is_up(entry) {
            all.push(None);
            continue;
        }
        let began = Instant::now();
        let mut answer = None;
        if transport.request(entry, 0) == Requested::Queued {
            while answer.is_none() {
                transport.flush()?;
                transport.poll(Some(LOOK_NS), u32::MAX, |_, result| answer = Some(result))?;
                if is_over() {
                    transport.cancel();
                }
            }
        }
        let took = Nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        all.push(Some(RpcFirst {
            connect_ns: transport.connect_ns(entry).map(Nanos),
            rpc_ns: answer.is_some_and(|result| result >= 0).then_some(took),
        }));
    }
    Ok(all)
}
