//! Tests of `cargo xtask test --all` alone: beside an installed fio.

mod generate_fio;
mod verify_fio;
