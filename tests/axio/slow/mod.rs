//! Slow tests: networks that root makes, DPDK, a thousand callers.

mod dpdk;
mod hostile_callers;
mod wire_sizes;
mod xdp;
