//! Transports between ranks, and exchanges of messages over them.
//!
//! In: a job whose workload is an exchange, or latency and bandwidth, and the world of ranks that
//! carry it out. Out: an [`weir_schema::ExchangeResult`] or [`weir_schema::LatencyBandwidthResult`]
//! at rank 0. Not here: who takes part (`weir-world`), what a
//! bandwidth is made of (the doors), printing.
#![deny(unsafe_code)]

mod buffers;
mod circle;
mod error;
pub mod exchange;
mod last_words;
pub mod latency_bandwidth;
mod opencl;
mod pairing;
mod part;
mod pattern;
mod placement;
mod settings;
pub mod transport;
mod watch;

pub use circle::Circle;
pub use error::{Ended, Halt, NetError, Spot};
pub use pairing::{Partners, partners, resolve};
pub use transport::{DeviceFacts, Facts, Setup, Transport, TransportInfo, find, transports};
pub use watch::{Observer, Seen, Watch};
