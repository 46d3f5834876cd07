//! What only `cargo xtask test --all` runs: beside an installed fio.

mod fio;
