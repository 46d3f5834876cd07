//! Options that are accepted and have no meaning in weir; each is named once in a note.

use super::record::{Category, OptionRecord, ValueKind, meaningless};

pub(super) static RECORDS: &[OptionRecord] = &[
    meaningless(
        "thread",
        ValueKind::Flag,
        "Threads instead of processes",
        "workers are always threads",
    )
    .of(Category::Process),
    meaningless(
        "clocksource",
        ValueKind::Words {
            words: &[
                ("gettimeofday", "Use gettimeofday(2) for timing"),
                ("clock_gettime", "Use clock_gettime(2) for timing"),
                ("cpu", "Use CPU private clock"),
            ],
            tail: false,
        },
        "Source of time",
        "the CPU's counter is used when it is invariant, else the kernel's clock",
    )
    .of(Category::Time),
    meaningless(
        "gtod_cpu",
        ValueKind::Integer {
            min: 0,
            max: u64::MAX,
        },
        "CPU of a thread that reads the clock",
        "each worker reads the clock itself",
    )
    .of(Category::Time),
    meaningless(
        "unique_filename",
        ValueKind::Bool,
        "Prefix names with the client's address",
        "there are no network clients",
    )
    .default("1"),
    meaningless(
        "create_serialize",
        ValueKind::Bool,
        "Lay files out one by one",
        "the layout's order is weir's own",
    )
    .default("1"),
    meaningless(
        "verifysort",
        ValueKind::Bool,
        "Sort blocks before they are verified",
        "fio 3.33 has dropped it too",
    )
    .of(Category::Verify),
    meaningless(
        "verifysort_nr",
        ValueKind::Integer {
            min: 0,
            max: u64::MAX,
        },
        "Blocks that are sorted at once",
        "fio 3.33 has dropped it too",
    )
    .of(Category::Verify),
    meaningless(
        "threads",
        ValueKind::Integer {
            min: 0,
            max: u64::MAX,
        },
        "No option of fio's manual, and taken by it",
        "numjobs=N asks for so many workers",
    )
    .of(Category::Process),
    meaningless(
        "experimental_verify",
        ValueKind::Bool,
        "Draw the writes again to verify them",
        "they are drawn again wherever no block is written twice",
    )
    .of(Category::Verify),
    meaningless(
        "block_error_percentiles",
        ValueKind::Bool,
        "Histogram of trim errors",
        "errors are counted by code",
    )
    .of(Category::Report),
    meaningless(
        "softrandommap",
        ValueKind::Bool,
        "Go on when the random map cannot be had",
        "the map is small enough to be had",
    )
    .of(Category::Pattern),
];
