//! Results that last: what is kept of them, and what is made of them later.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod compare;
mod compare_history;
mod compare_limits;
mod compare_shown;
mod diagnose;
mod doctor;
mod history;
mod import;
mod manual;
mod monitor;
mod report;
mod slow;
#[path = "../stage/mod.rs"]
mod stage;
mod topo;
mod tune;
mod written;
