//! Results that last: what is kept of them, and what is made of them later.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod history;
#[path = "../stage/mod.rs"]
mod stage;
