//! Options and values that fio takes and weir refuses.

pub(crate) type IsStricter = fn(&str, &str) -> bool;

/// Rows of options that fio takes and weir refuses, and the test for an option with its value.
pub(crate) const STRICTER: &[(&str, IsStricter)] = &[
    (
        "an engine that needs no file, without `size`",
        |key, value| key == "ioengine" && value == "null",
    ),
    (
        "no plain number behind a number (`rwmixread=50%`, `rw=randread:x`, `runtime=10x`)",
        |key, value| {
            matches!(
                (key, value),
                ("rwmixread", "50%") | ("rw" | "readwrite", "randread:x")
            )
        },
    ),
    ("shares of more than 100% (`size=101%`)", |_, value| {
        value == "101%"
    }),
    ("`mem=malloc:FILE`", |_, value| value == "malloc:file"),
    ("`cpus_allowed=x`", |key, value| {
        matches!(key, "cpus_allowed" | "verify_async_cpus") && value == "x"
    }),
    (
        "a switch with another number (`group_reporting=2`)",
        |_, value| value == "2",
    ),
    ("`log_hist_coarseness=7`", |_, value| value == "7"),
    ("a log without a name (`write_bw_log=`)", |key, value| {
        key.starts_with("write_") && value.is_empty()
    }),
    ("a negative number", |_, value| {
        value.starts_with('-') || value.contains(":-")
    }),
    (
        "a range of block sizes from 0 (`bsrange=0-4k`)",
        |_, value| value.starts_with("0-"),
    ),
    ("`bssplit=4k/50:8k/40`", |key, value| {
        key == "bssplit" && value == "4k/101"
    }),
    ("a number that its option cannot hold", |_, value| {
        value == "4g"
    }),
];
