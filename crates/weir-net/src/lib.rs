//! Transports between ranks, and exchanges of messages over them.
//!
//! In: a job whose workload is an exchange, or latency and bandwidth, and the world of ranks that
//! carry it out. Out: an [`weir_schema::ExchangeResult`] or [`weir_schema::LatencyBandwidthResult`]
//! at rank 0. Not here: who takes part (`weir-world`), what a
//! bandwidth is made of (the doors), printing.
#![deny(unsafe_code)]

mod buffers;
mod error;
pub mod exchange;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod latency_bandwidth;
mod observer;
mod opencl;
mod pairing;
mod pattern;
mod placement;
mod rank_context;
mod runner;
mod settings;
pub mod transport;
mod wrong_data;

pub use error::{Ended, Halt, NetError, Spot};
pub use observer::{Observer, Position, Seen};
pub use pairing::{Partners, partners, resolve};
pub use runner::{ExchangeRunner, LatencyBandwidthRunner};
pub use transport::{
    Facts, RankDevice, Setup, Transport, TransportInfo, catalogue, find, transports,
};
