//! Options whose machinery does not exist in this version: refused by name, with the nearest
//! that works. Values that ask for nothing are accepted.

use super::record::{Category, OptionRecord, refused};

const NO_VERIFY: &str = "written blocks are verified without trims among them; leave it out";

const fn verify(name: &'static str, short: &'static str) -> OptionRecord {
    refused(name, short, NO_VERIFY).of(Category::Verify)
}

pub(super) static RECORDS: &[OptionRecord] = &[
    verify("trim_percentage", "Share of verified blocks to trim").neutral(&["0"]),
    verify("trim_verify_zero", "Trimmed blocks must read as zeros"),
    verify("trim_backlog", "Trim after so many writes"),
    verify("trim_backlog_batch", "Blocks trimmed at once"),
    refused("atomic", "Atomic writes", "the nearest is direct=1")
        .of(Category::Engine)
        .neutral(&["0"]),
    refused(
        "write_barrier",
        "Barrier writes",
        "the nearest is fdatasync=N",
    )
    .of(Category::Engine)
    .neutral(&["0"]),
];
