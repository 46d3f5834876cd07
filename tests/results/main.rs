//! What is done with stored results: reports, pages, pictures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod browser;
mod report;
#[path = "../stage/mod.rs"]
mod stage;
