//! From which value on a fact about the machine spoils what is measured on it.
//!
//! One table for the warnings of a run and for `weir doctor`, so that both say the same of a machine.
//! Not here: what is measured, and what helps (`warning`).

/// The frequency governor that keeps CPUs at their best.
pub const GOVERNOR: &str = "performance";
/// Microseconds that a CPU may take to leave its deepest idle state.
pub const MOST_IDLE_EXIT_US: u64 = 20;
/// Parts per million by which the counter may differ from the kernel's clock.
pub const MOST_CLOCK_PPM: f64 = 10.0;
/// The same in nanoseconds between two readings.
pub const MOST_CLOCK_NS: f64 = 1_000.0;
/// Share of a CPU's time that the hypervisor may take.
pub const MOST_STEAL: f64 = 0.01;
/// Tasks of others that may be ready to run, for each CPU.
pub const MOST_RUNNABLE: f64 = 0.1;
/// Share of its time that a CPU may be busy whose core is shared.
pub const MOST_SIBLING_BUSY: f64 = 0.05;
/// Share of its time that a worker may wait for a CPU.
pub const MOST_WAITING: f64 = 0.05;
/// Times per second that a worker may be switched out.
pub const MOST_SWITCHES: f64 = 10.0;
/// Share of a device's interrupts that one CPU may take where there are several.
pub const MOST_INTERRUPTS: f64 = 0.95;
/// Degrees that a drive should stay below its limit.
pub const LEAST_COOLNESS_K: f64 = 5.0;
/// Requests that a device's queue should hold.
pub const LEAST_REQUESTS: u32 = 32;
/// Share of a file system that may be in use.
pub const MOST_FULL: f64 = 0.9;
/// Share of a file that should have been written before it is read.
pub const LEAST_WRITTEN: f64 = 0.5;
/// Memory that should be lockable for registered buffers.
pub const LEAST_LOCKABLE_BYTES: u64 = 8 << 20;
/// libaio requests that should be left.
pub const LEAST_AIO: u64 = 1024;
/// Files that a process should be able to open.
pub const LEAST_FILES: u64 = 1024;
/// From this on the kernel keeps its counters of events from users.
pub const MOST_PARANOID: i64 = 2;
