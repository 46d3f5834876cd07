//! Slow tests: networks that root makes, DPDK.

mod dpdk;
mod wire_sizes;
mod xdp;
