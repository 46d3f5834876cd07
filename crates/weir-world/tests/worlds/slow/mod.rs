//! What only `cargo xtask test --all` runs: launchers of MPI and their headers.

mod headers;
mod launched;
