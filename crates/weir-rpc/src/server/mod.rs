//! A server: ranks that listen, tags that answer, pollers that serve tags.
//!
//! In: which ranks and tags, what services they offer, limits. Out: answered calls, until it is
//! stopped. One thread accepts connections and makes handshakes; a connection then belongs to the
//! poller of its tag (the tag's number modulo the number of pollers). Not here: what a service
//! does, who else is in the group (`group::table`).

mod bulk;
mod calls;
mod connections;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod hosting;
mod inbox;
mod limits;
mod listener;
mod masters;
mod open_close;
pub mod own_server;
mod pending;
mod poller;
mod serve;
mod sessions;
#[cfg(test)]
mod simulated_server;
mod start;
mod steps;
mod tags;
mod thread;

pub use inbox::MasterAnswers;
pub use limits::{ServerCounters, ServerLimits};
pub use masters::{MasterOrder, NoMasters, TestControl, TestMasters};
#[cfg(test)]
pub(crate) use simulated_server::SimulatedServer;
pub(crate) use start::pin_to;
pub use start::{RankSetup, RpcServer, ServerSetup, ServicesOfTag};
