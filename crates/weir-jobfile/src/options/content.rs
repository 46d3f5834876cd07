//! Options about what buffers hold.

use weir_units::Bytes;

use super::needs;
use super::record::{Category, OptionRecord, option};
use crate::value::pattern::pattern;

pub(super) static RECORDS: &[OptionRecord] = &[
    option("zero_buffers", "Buffers hold zeros")
        .of(Category::Content)
        .flag(|d, on| d.content.zero = on),
    option("refill_buffers", "New content for each write")
        .of(Category::Content)
        .flag(|d, on| d.content.refill = on),
    option(
        "scramble_buffers",
        "Touch each 512 bytes so that blocks differ",
    )
    .of(Category::Content)
    .long("Has no effect on buffers that are refilled, zero or hold a pattern.")
    .bool(|d, on| d.scramble = Some(on))
    .default("1"),
    option("buffer_pattern", "Bytes that buffers repeat")
        .of(Category::Content)
        .long("`0xff`, `\"text\"`, `'file'`, decimal numbers, one after the other.")
        .text(|d, v, env| {
            d.content.pattern = Some(pattern(v, env.files)?);
            Ok(())
        }),
    option("buffer_compress_percentage", "How compressible buffers are")
        .of(Category::Content)
        .integer(0, 100, |d, n| {
            d.content.compress_percent = u8::try_from(n).unwrap_or(100);
        }),
    option(
        "buffer_compress_chunk",
        "Length over which the compressible share is kept",
    )
    .needs(needs::COMPRESSION)
    .of(Category::Content)
    .default("512")
    .integer(1, super::MAX_32, |d, n| {
        d.content.compress_chunk_bytes = Bytes(n);
    }),
    option(
        "dedupe_percentage",
        "Share of blocks that repeat an earlier one",
    )
    .of(Category::Content)
    .integer(0, 100, |d, n| {
        d.content.dedupe_percent = u8::try_from(n).unwrap_or(100);
    }),
    option("dedupe_mode", "Which blocks come again")
        .needs(needs::DEDUPE)
        .of(Category::Content)
        .default("repeat")
        .words(
            &[
                ("repeat", "repeat previous page"),
                (
                    "working_set",
                    "choose a page randomly from limited working set defined in \
                     dedupe_working_set_percentage",
                ),
            ],
            |d, word| d.dedupe_set = word == "working_set",
        ),
    option(
        "dedupe_working_set_percentage",
        "Size of the working set, as a share of size",
    )
    .needs(needs::WORKING_SET)
    .of(Category::Content)
    .long("As many blocks as this share of the job's region has, for dedupe_mode=working_set.")
    .default("5")
    .integer(0, 100, |d, n| {
        d.dedupe_set_percent = u8::try_from(n).unwrap_or(100);
    }),
    option("dedupe_global", "Jobs share their working set")
        .of(Category::Content)
        .long(
            "All jobs with it have one set of blocks that come again, for dedupe_mode=working_set.",
        )
        .bool(|d, on| d.content.dedupe_set_is_shared = on),
];
