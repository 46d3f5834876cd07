//! Options about verification: marks in what is written, checks of what is read.

use weir_schema::{RunIdentity, SaveState, Verify, VerifyMethod, VerifyPattern};
use weir_units::Bytes;

use super::needs;
use super::record::{Applied, Category, Env, OptionRecord, option};
use super::small;
use crate::draft::Draft;
use crate::value::list;
use crate::value::pattern::pattern_with_offsets;

/// Shorter intervals have no room for a header.
const SHORTEST: u64 = 80;

/// Verification by default.
pub(crate) fn defaults() -> Verify {
    Verify {
        method: VerifyMethod::Null,
        peer_rules: false,
        interval_bytes: None,
        header_at_bytes: Bytes(0),
        pattern: None,
        read_back: true,
        fatal: false,
        dump: false,
        directory: None,
        threads: 0,
        cpus: None,
        backlog: 0,
        backlog_batch: 0,
        only: false,
        run_identity: RunIdentity::FromStart,
        save_state: SaveState::Interrupted,
        load_state: false,
    }
}

const METHODS: &[(&str, &str)] = &[
    ("0", "Don't do IO verification"),
    ("md5", "Use md5 checksums for verification"),
    ("crc64", "Use crc64 checksums for verification"),
    ("crc32", "Use crc32 checksums for verification"),
    (
        "crc32c-intel",
        "Use crc32c checksums for verification (hw assisted, if available)",
    ),
    (
        "crc32c",
        "Use crc32c checksums for verification (hw assisted, if available)",
    ),
    ("crc16", "Use crc16 checksums for verification"),
    ("crc7", "Use crc7 checksums for verification"),
    ("sha1", "Use sha1 checksums for verification"),
    ("sha256", "Use sha256 checksums for verification"),
    ("sha512", "Use sha512 checksums for verification"),
    ("sha3-224", "Use sha3-224 checksums for verification"),
    ("sha3-256", "Use sha3-256 checksums for verification"),
    ("sha3-384", "Use sha3-384 checksums for verification"),
    ("sha3-512", "Use sha3-512 checksums for verification"),
    ("xxhash", "Use xxhash checksums for verification"),
    (
        "meta",
        "Use io information for verification. Now is implied by default, thus option is obsolete, \
         don't use it",
    ),
    ("pattern", "Verify strict pattern"),
    ("null", "Pretend to verify"),
];

fn method(draft: &mut Draft, word: &str) {
    draft.verifies = word != "0";
    draft.says_verify = true;
    draft.verify.method = match word {
        "md5" => VerifyMethod::Md5,
        "crc64" => VerifyMethod::Crc64,
        "crc32" => VerifyMethod::Crc32,
        "crc32c" | "crc32c-intel" => VerifyMethod::Crc32c,
        "crc16" => VerifyMethod::Crc16,
        "crc7" => VerifyMethod::Crc7,
        "sha1" => VerifyMethod::Sha1,
        "sha256" => VerifyMethod::Sha256,
        "sha512" => VerifyMethod::Sha512,
        "sha3-224" => VerifyMethod::Sha3_224,
        "sha3-256" => VerifyMethod::Sha3_256,
        "sha3-384" => VerifyMethod::Sha3_384,
        "sha3-512" => VerifyMethod::Sha3_512,
        "xxhash" => VerifyMethod::Xxhash,
        "meta" => VerifyMethod::Meta,
        "pattern" => VerifyMethod::Pattern,
        _ => VerifyMethod::Null,
    };
}

fn pattern(draft: &mut Draft, text: &str, env: &Env<'_>) -> Applied {
    let (bytes, offsets_at) = pattern_with_offsets(text, env.files)?;
    draft.verify.pattern = Some(VerifyPattern { bytes, offsets_at });
    if !draft.says_verify {
        draft.verifies = true;
        draft.verify.method = VerifyMethod::PatternHeader;
    }
    Ok(())
}

fn run_identity(draft: &mut Draft, id: u64) {
    draft.verify.run_identity = match u16::try_from(id) {
        Ok(id) if id > 0 => RunIdentity::Given { id },
        _ => RunIdentity::Off,
    };
}

fn save_state(draft: &mut Draft, on: bool) {
    draft.verify.save_state = if on {
        SaveState::Always
    } else {
        SaveState::Never
    };
}

const fn verify(name: &'static str, short: &'static str) -> OptionRecord {
    option(name, short).of(Category::Verify)
}

pub(super) static RECORDS: &[OptionRecord] = &[
    verify("verify", "Verify data written")
        .default("0")
        .long("sha256 and sha512 are true digests, which fio 3.33 cannot check; see verify_compat.")
        .words(METHODS, method),
    verify("do_verify", "Run verification stage after write")
        .needs(needs::VERIFY)
        .bool(|d, on| d.verify.read_back = on)
        .default("1"),
    verify(
        "verify_only",
        "Verifies previously written data is still valid",
    )
    .needs(needs::VERIFY)
    .flag(|d, on| d.verify.only = on),
    verify(
        "verify_interval",
        "Store verify buffer header every N bytes",
    )
    .needs(needs::VERIFY)
    .long("The block size when absent; cut down to a divisor of all block sizes.")
    .integer(SHORTEST, super::MAX_32, |d, n| {
        d.verify.interval_bytes = Some(Bytes(n));
    }),
    verify("verify_offset", "Offset verify header location by N bytes")
        .needs(needs::VERIFY)
        .integer(40, super::MAX_32, |d, n| {
            d.verify.header_at_bytes = Bytes(n);
        }),
    verify("verify_pattern", "Fill pattern for IO buffers")
        .long(
            "As buffer_pattern; `%o` is the block's offset in 8 bytes. Without verify, blocks are \
             verified by a header and this pattern.",
        )
        .text(pattern),
    verify(
        "verify_fatal",
        "Exit on a single verify failure, don't continue",
    )
    .needs(needs::VERIFY)
    .bool(|d, on| d.verify.fatal = on),
    verify(
        "verify_dump",
        "Dump contents of good and bad blocks on failure",
    )
    .needs(needs::VERIFY)
    .bool(|d, on| d.verify.dump = on),
    verify("verify_async", "Number of async verifier threads to use")
        .needs(needs::VERIFY)
        .default("0")
        .integer(0, super::MAX_32, |d, n| d.verify.threads = small(n)),
    verify(
        "verify_async_cpus",
        "Set CPUs allowed for async verify threads",
    )
    .needs(needs::VERIFY_THREADS)
    .text(|d, v, env| {
        d.verify.cpus = Some(list::cpus(v, env.environment.cpus)?);
        Ok(())
    }),
    verify(
        "verify_backlog",
        "Verify after this number of blocks are written",
    )
    .needs(needs::VERIFY)
    .default("0")
    .integer(0, u64::MAX, |d, n| d.verify.backlog = n),
    verify("verify_backlog_batch", "Verify this number of IO blocks")
        .needs(needs::BACKLOG)
        .long("The whole backlog when 0.")
        .default("0")
        .integer(0, u64::MAX, |d, n| d.verify.backlog_batch = n),
    verify("verify_state_load", "Load verify termination state")
        .needs(needs::VERIFY)
        .bool(|d, on| d.verify.load_state = on),
    verify("verify_state_save", "Save verify state on termination")
        .needs(needs::VERIFY)
        .long("Without it the state is saved when the job is interrupted.")
        .bool(save_state)
        .default("1"),
    verify("verify_compat", "Whose rules sha256 and sha512 follow")
        .needs(needs::TRUE_DIGEST)
        .long("fio 3.33 keeps to private rules for both; that for sha512 misses damage.")
        .default("none")
        .words(
            &[
                ("none", "The true digests"),
                ("fio-3.33", "The private rules of fio 3.33"),
            ],
            |d, word| d.verify.peer_rules = word == "fio-3.33",
        ),
    verify("verify_run_id", "Marks the data of one run")
        .needs(needs::VERIFY)
        .long(
            "Readers that wait for a writer of the same run take no other run's data. A number \
             replays that run's; 0 takes any run's.",
        )
        .integer(0, 65535, run_identity),
];
