//! Slow tests: hosts whose networks root makes.

pub(crate) mod interfaces;
mod two_hosts;
