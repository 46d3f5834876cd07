//! Tests of `cargo xtask test --all` alone: launchers of MPI and their headers.

mod headers;
mod launched;
