//! A client: one thread's calls to endpoints.
//!
//! In: endpoints, what a call carries, limits. Out: completed calls by slot
//! ([`RpcTransport`](crate::transport::RpcTransport)). A call is never lost: it ends with its
//! answer, its time-out, or the loss of its connection. Not here: which endpoint is called next.

mod calls;
pub mod channel;
mod control;
mod dial;
mod endpoints;
mod events;
mod memory;
mod setup;
mod slots;
mod transport;

pub use control::ControlStream;
pub use dial::{DialSetup, ServerEndpoint, dial, open_control};
pub use setup::{CallPayload, ClientSetup};
pub use transport::RpcClient;
