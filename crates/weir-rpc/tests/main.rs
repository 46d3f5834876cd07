//! Servers and clients of remote procedure calls, by what they say to each other over real links.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail by panicking, and say what they skip"
)]

mod bounds;
mod buffers;
mod calls;
mod fabric;
mod frames;
mod hostile;
mod key_value;
mod later_answers;
mod losses;
mod shm;
mod testbed;
