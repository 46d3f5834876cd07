//! Stored results: what is made of them after a run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod doctor;
mod import;
mod manual;
#[path = "../stage/mod.rs"]
mod stage;
