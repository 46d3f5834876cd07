//! Tests of `cargo xtask test --all` alone: beside an installed fio.

mod fio;
