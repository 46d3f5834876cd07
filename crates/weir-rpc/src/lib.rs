//! Remote procedure calls: requests that servers answer, small or with bulk data on either way.
//!
//! In: servers and the services that they offer; endpoints (a rank and a tag) that a client calls.
//! Out: completed calls by slot. Not here: what a load generator asks for and how it measures
//! (`weir_run` and the runner), options and reports (the doors).
//!
//! Folders, from below: `wire` (bytes), `links` (one thread's connections, by transport), `group`
//! (who listens where), `interface` (by which interface this process calls), `service` (what
//! requests are answered with), `server` and `client` (the protocol), `master` (a master's load over
//! a client), `runner` (the workload).

#![deny(unsafe_code)]

mod account;
pub mod auth;
pub mod client;
pub mod error;
pub mod group;
pub mod interface;
pub mod links;
mod machine_memory;
pub mod master;
pub mod runner;
pub mod server;
pub mod service;
mod thread_wait;
pub mod transport;
pub mod wire;

pub use account::MemoryAccount;
pub use error::{DerCode, RpcError};
pub use runner::RpcRunner;
