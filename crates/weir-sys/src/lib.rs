//! Access to the machine: the clock, pinning, topology, buffers, device facts, the write guard,
//! host facts, limits, sockets over which processes meet, libraries opened at run time.
//!
//! In: the kernel's own words, read from `/proc` and `/sys` below a [`Tree`] (so that a test can
//! hand in a made-up machine) and from system calls. Out: plain structs with public fields; what
//! could not be had is `None`, never zero. Not here: schemas, warnings, and any decision about
//! what a run does with these facts.

#![deny(unsafe_code)]

pub mod buffer;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod closed_stdout;
pub mod cpu_time;
pub mod cpulist;
pub mod device;
pub mod driver_counters;
pub mod error;
pub mod event_source;
pub mod frequency;
pub mod guard;
pub mod hardware_counter;
pub mod host;
pub mod interface;
pub mod library;
pub mod limits;
pub mod local_time;
pub mod memory;
pub mod mempolicy;
pub mod mounts;
pub mod nvme;
pub mod pin;
pub mod priority;
pub mod ring;
#[cfg(not(loom))]
pub mod shared_memory;
mod signal_actions;
mod signals;
pub mod socket;
pub mod takeover;
pub mod tcp_info;
pub mod token;
pub mod topology;
pub mod tree;
pub mod usage;
#[cfg(not(loom))]
pub mod vfio;
#[cfg(not(loom))]
pub mod xdp;

pub use cpulist::CpuList;
pub use error::SysError;
pub use limits::Availability;
pub use signal_actions::{HeldSignals, KeptSignalActions};
pub use signals::Signals;
pub use tree::Tree;
