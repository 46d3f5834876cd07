//! Results that last: what verbs make of stored results, and of runs in turns.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod compare;
#[path = "../stage/mod.rs"]
mod stage;
