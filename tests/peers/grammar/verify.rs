//! Verification of what was written.

use super::Takes::{Bool, Count, Size, Word};
use super::{Known, NUMBERS, SWITCH, known};

/// Options about verification.
pub(super) const OPTIONS: &[Known] = &[
    known(
        &["verify"],
        Word(&[
            "md5",
            "crc64",
            "crc32c",
            "crc32c-intel",
            "crc32",
            "crc16",
            "crc7",
            "xxhash",
            "sha1",
            "sha256",
            "sha512",
            "sha3-224",
            "sha3-512",
            "meta",
            "pattern\nverify_pattern=0xa5",
            "null",
            "0",
        ]),
        &[
            "x",
            "",
            "1",
            "md5:512",
            "crc",
            "MD5",
            "pattern:0xff",
            "pattern_hdr",
        ],
    ),
    known(&["do_verify"], Bool, SWITCH),
    known(
        &["verify_interval"],
        Size(512, 16 << 10),
        &["0", "16", "79", "80", "x", "4000", "1m"],
    ),
    known(
        &["verify_offset"],
        Word(&["40", "64", "100", "256"]),
        &["0", "39", "x", "1m", "41"],
    ),
    known(
        &["verify_pattern"],
        Word(&["0xff", "\"abcd\"", "0xdeadbeef", "%o", "\"ab\"%o", "17"]),
        &["", "x", "0x", "%x", "\"a"],
    ),
    known(&["verify_fatal"], Bool, SWITCH),
    known(&["verify_dump"], Bool, SWITCH),
    known(&["verify_async"], Count(0, 2), &["x", "-1", "4g"]),
    known(&["verify_async_cpus"], Word(&["0", "0-1"]), &["x"]),
    known(&["verify_backlog"], Count(0, 16), NUMBERS),
    known(&["verify_backlog_batch"], Count(0, 16), NUMBERS),
    known(&["verify_state_save"], Bool, SWITCH),
    known(&["verify_state_load"], Word(&["0"]), SWITCH),
    known(&["verify_only"], Word(&["0"]), SWITCH),
    known(&["serialize_overlap"], Bool, SWITCH),
    known(&["experimental_verify"], Word(&["0"]), SWITCH),
];
