//! Remote procedure calls: requests that servers answer, small or with bulk data on either way.
//!
//! In: servers and the services that they offer; endpoints (a rank and a tag) that a client calls.
//! Out: completed calls by slot. Not here: what a load generator asks for and how it measures
//! (`weir_run` and the runner), options and reports (the doors).
//!
//! Layers, from below: `wire` (bytes), `link` (one thread's way to its peers), `server` and
//! `client` (the protocol), `service` (what is answered), `transport` (what a load generator
//! drives).

#![deny(unsafe_code)]

pub mod address;
mod assembly;
pub mod auth;
mod boot;
pub mod call_list;
pub mod calling;
pub mod channel;
pub mod client;
mod dead_sockets;
pub mod engine;
pub mod error;
pub mod first_calls;
pub mod group;
pub mod group_table;
mod held_rank;
pub mod hosting;
pub mod interface_choice;
pub mod known_groups;
pub mod link;
pub mod local_interface;
mod machine_memory;
pub mod master_host;
pub mod measured_master;
pub mod null;
pub mod ofi;
pub mod ordered;
pub mod own_server;
mod payload;
mod peer_table;
pub mod runner;
pub mod sample_log;
pub mod self_test;
pub mod server;
pub mod service;
pub mod shm;
#[cfg(test)]
mod simulated;
mod socket;
pub mod spread;
pub mod stream;
pub mod transport;
pub mod warm_up;
pub mod way;
pub mod wire;

pub use error::{DerCode, RpcError};
pub use runner::RpcRunner;
