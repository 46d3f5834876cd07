//! What only `cargo xtask test --all` runs: beside an installed fio.

mod generate_fio;
mod verify_fio;
