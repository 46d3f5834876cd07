//! Waiting of threads for messages, and the CPUs that they wait on.
//!
//! In: what a job or a server asks for, how many threads spin on this machine. Out: how each waits.
//! Not here: the waits themselves (`links`).

use std::time::Duration;

use weir_schema::RpcPoll;
use weir_units::Nanos;

use crate::interface::local::process_cpus;

/// Choice of a server's threads where there is room: CPUs are free for others while nobody asks.
pub(crate) const SERVER_POLL: RpcPoll = RpcPoll::Spin {
    for_ns: Nanos::from_millis(10),
};

/// Time without a message after which a thread sleeps; `None`: it never does.
pub(crate) fn patience(poll: RpcPoll) -> Option<Duration> {
    match poll {
        RpcPoll::Busy => None,
        RpcPoll::Spin { for_ns } => Some(for_ns.into()),
        RpcPoll::Block | RpcPoll::Automatic => Some(Duration::ZERO),
    }
}

/// Resolves `Automatic`, where so many threads spin on this machine.
pub(crate) fn choose_poll(asked: RpcPoll, spinners: usize, with_room: RpcPoll) -> RpcPoll {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    match asked {
        RpcPoll::Automatic if spinners <= cpus => with_room,
        RpcPoll::Automatic => RpcPoll::Block,
        asked => asked,
    }
}

/// A CPU for each of so many threads, where this process has just as many. Where it has more, the
/// kernel may choose, since others choose too.
pub(crate) fn cpu_for_each(threads: usize) -> &'static [u32] {
    let own = process_cpus().as_slice();
    if own.len() == threads { own } else { &[] }
}
