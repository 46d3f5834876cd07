//! Masters: whoever calls the endpoints of a list, this process or a server that is ordered to.
//!
//! In: a workload, its group, the threads of a run. Out: calls as operations of the house's loop, and
//! the figures of each master. Not here: the protocol (`client`), checks of a job (`runner`).

pub mod call_list;
pub mod calling;
pub mod engine;
pub mod first_calls;
pub mod host;
pub mod measured;
pub mod null_transport;
pub mod ordered;
pub mod route;
pub mod sample_log;
pub mod spread;
pub mod warm_up;
