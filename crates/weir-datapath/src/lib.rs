//! The packet path: messages in packets from threads of a client over a link to threads of a server,
//! and their answers, with every stage counted and timed apart (spec: packet datapath).
//!
//! In: a job of the plan. Out: what each stage of each thread did, per stretch of time. A thread owns
//! everything it touches: its stages, its counters, its pool; packets travel as numbers of buffers
//! through rings with one producer and one consumer. A link is one file with a `link::PacketLink`, a
//! message handler one with a `handler::MessageWork`, a packet handler one with a `packet_handler::PacketWork`, and
//! each has a line in `weir-schema`'s list.
#![deny(unsafe_code)]

mod application;
mod arp;
mod copy_link;
mod counts;
mod dispatcher;
mod dpdk_library;
mod dpdk_link;
mod flush;
mod frame;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod handler;
mod link;
mod message_form;
mod outstanding;
mod pace;
mod packet_handler;
mod partial;
mod path_thread;
mod peer;
mod pool;
mod request_supply;
mod runner;
mod shared;
mod shm_link;
mod sink;
#[cfg(test)]
mod tests;
mod verbs;
mod wiring;
mod xdp_link;

pub use link::{LinkState, link_states};
pub use runner::PacketPathRunner;
