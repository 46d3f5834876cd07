//! The link over RDMA verbs: RoCE, each frame a message of UD or RC.
//!
//! In: the settings of a link, frames, what the other side says of its queue pairs. Out: a link for each
//! dispatcher. Not here: how a side hears of the other's pairs (`peer`).

mod abi;
mod library;
mod link;
mod objects;
mod queue;

pub(crate) use library::lacks;
pub(crate) use link::{VerbsFacts, VerbsPort, VerbsQueue, VerbsSettings, check, links};
