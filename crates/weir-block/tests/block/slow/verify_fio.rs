//! Verification beside real fio: each checks what the other has written, by every method.
//!
//! Skips, saying so, where fio is not installed.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::print_stderr,
    reason = "tests; skips are shown"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use weir_block::verify::{Expected, IntervalFinding, Marker, Stamp};
use weir_schema::{Damage, FailedCheck, Verify, VerifyMethod, VerifyPattern};
use weir_units::Bytes;

const BLOCK: usize = 16384;
const BLOCKS: usize = 4;

/// fio's words, and the same here.
const METHODS: [(&str, VerifyMethod); 17] = [
    ("md5", VerifyMethod::Md5),
    ("crc64", VerifyMethod::Crc64),
    ("crc32", VerifyMethod::Crc32),
    ("crc32c", VerifyMethod::Crc32c),
    ("crc32c-intel", VerifyMethod::Crc32c),
    ("crc16", VerifyMethod::Crc16),
    ("crc7", VerifyMethod::Crc7),
    ("xxhash", VerifyMethod::Xxhash),
    ("sha256", VerifyMethod::Sha256),
    ("sha512", VerifyMethod::Sha512),
    ("sha1", VerifyMethod::Sha1),
    ("sha3-224", VerifyMethod::Sha3_224),
    ("sha3-256", VerifyMethod::Sha3_256),
    ("sha3-384", VerifyMethod::Sha3_384),
    ("sha3-512", VerifyMethod::Sha3_512),
    ("meta", VerifyMethod::Meta),
    ("null", VerifyMethod::Null),
];
/// A pattern as fio reads it, its bytes, and where the offset stands in it.
const PATTERNS: [(&str, &[u8], &[u32]); 3] = [
    ("0x5a", b"\x5a", &[]),
    ("\"abc\"", b"abc", &[]),
    (
        "0x112233%o\"xyz\"",
        b"\x11\x22\x33\0\0\0\0\0\0\0\0xyz",
        &[3],
    ),
];

/// One way to verify, in both languages.
struct Case {
    words: Vec<String>,
    verify: Verify,
    interval: u32,
}

impl Case {
    fn new(word: &str, method: VerifyMethod) -> Self {
        let verify = Verify {
            peer_rules: true,
            ..Verify::by(method)
        };
        Self {
            words: vec![format!("verify={word}")],
            verify,
            interval: BLOCK as u32,
        }
    }

    fn every(mut self, interval: u32) -> Self {
        self.words.push(format!("verify_interval={interval}"));
        self.interval = interval;
        self
    }

    fn header_at(mut self, at: u64) -> Self {
        self.words.push(format!("verify_offset={at}"));
        self.verify.header_at_bytes = Bytes(at);
        self
    }

    fn pattern(mut self, (text, bytes, offsets_at): (&str, &[u8], &[u32])) -> Self {
        self.words.push(format!("verify_pattern={text}"));
        self.verify.pattern = Some(VerifyPattern {
            bytes: bytes.to_vec(),
            offsets_at: offsets_at.to_vec(),
        });
        self
    }

    fn marker(&self) -> Marker {
        Marker::new(&self.verify, self.interval, 1, Some(7)).unwrap()
    }

    fn expected(index: usize) -> Expected {
        Expected {
            offset: (index * BLOCK) as u64,
            ..Expected::default()
        }
    }

    /// A file's contents, written here.
    fn written(&self) -> Vec<u8> {
        let marker = self.marker();
        let mut data = vec![0; BLOCK * BLOCKS];
        for (index, block) in data.chunks_mut(BLOCK).enumerate() {
            let stamp = Stamp {
                offset: (index * BLOCK) as u64,
                seed: 99,
                count: index as u16,
                seconds: 1,
                nanos: 2,
            };
            marker.write(block, stamp);
        }
        data
    }

    /// The first bad interval of a file's contents.
    fn check(&self, data: &[u8]) -> Result<(), Box<IntervalFinding>> {
        let marker = self.marker();
        let mut blocks = data.chunks(BLOCK).enumerate();
        blocks.try_for_each(|(index, block)| marker.check(block, Self::expected(index)))
    }
}

/// One run of fio over all cases at once, each a job with its number as file; `None` without fio.
fn fio(directory: &Path, cases: &[Case], words: &str) -> Option<Output> {
    let size = BLOCK * BLOCKS;
    let mut jobs = format!("[global]\nthread=1\nbs={BLOCK}\nsize={size}\n{words}\n");
    jobs.push_str("verify_state_save=0\n");
    for (number, case) in cases.iter().enumerate() {
        writeln!(
            jobs,
            "[job{number}]\nfilename={number}\n{}",
            case.words.join("\n")
        )
        .unwrap();
    }
    std::fs::write(directory.join("jobs.fio"), jobs).unwrap();
    let mut fio = Command::new("fio");
    fio.current_dir(directory).arg("jobs.fio").output().ok()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (word, method) in METHODS {
        let case = || Case::new(word, method);
        cases.push(case());
        if method != VerifyMethod::Null {
            cases.push(case().every(4096));
            cases.push(case().every(512).header_at(256));
            cases.push(case().header_at(1000));
        }
    }
    // Odd rests of the private rules: around one and two blocks' padding.
    for interval in [128, 256, 1024] {
        cases.push(Case::new("sha256", VerifyMethod::Sha256).every(interval));
    }
    for pattern in PATTERNS {
        for (word, method) in [
            ("pattern", VerifyMethod::Pattern),
            ("meta", VerifyMethod::Meta),
            ("crc32c", VerifyMethod::Crc32c),
        ] {
            let case = || Case::new(word, method).pattern(pattern);
            cases.push(case());
            cases.push(case().every(4096));
        }
    }
    // fio 3.33 fails its own blocks when such a pattern has no offsets: it swaps in the header
    // that the buffer held before.
    let meta = Case::new("meta", VerifyMethod::Meta).pattern(PATTERNS[2]);
    cases.push(meta.every(1024).header_at(512));
    cases
}

/// A directory of this test's own.
fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn skip(name: &str) {
    eprintln!("SKIPPED: {name}: fio is not installed");
    if let Some(log) = std::env::var_os("WEIR_SKIP_LOG") {
        let mut log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(log)
            .unwrap();
        let line = format!("{name}: fio is not installed\n");
        std::io::Write::write_all(&mut log, line.as_bytes()).unwrap();
    }
}

#[test]
fn what_fio_writes_is_good_here() {
    let directory = directory("verify-reads-fio");
    let cases = cases();
    let Some(output) = fio(&directory, &cases, "rw=write\ndo_verify=0") else {
        return skip("what_fio_writes_is_good_here");
    };
    assert!(output.status.success(), "{output:?}");
    for (number, case) in cases.iter().enumerate() {
        let mut data = std::fs::read(directory.join(number.to_string())).unwrap();
        assert_eq!(data.len(), BLOCK * BLOCKS);
        assert_eq!(case.check(&data), Ok(()), "{:?}", case.words);
        // Not for want of looking: the last byte is covered, by all but three methods.
        data[BLOCK - 1] ^= 0x10;
        let covered = match case.verify.method {
            VerifyMethod::Null | VerifyMethod::Sha512 => continue,
            VerifyMethod::Meta => case.verify.pattern.is_some(),
            _ => true,
        };
        assert_eq!(case.check(&data).is_err(), covered, "{:?}", case.words);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_is_written_here_is_good_for_fio() {
    let directory = directory("verify-writes-fio");
    let cases = cases();
    for (number, case) in cases.iter().enumerate() {
        std::fs::write(directory.join(number.to_string()), case.written()).unwrap();
    }
    let Some(output) = fio(&directory, &cases, "rw=read") else {
        return skip("what_is_written_here_is_good_for_fio");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    std::fs::remove_dir_all(directory).unwrap();
}

/// Position of a flipped bit, the check that finds it, and fio's words.
const DAMAGES: [(usize, FailedCheck, &str); 8] = [
    (
        0,
        FailedCheck::Magic,
        "bad magic header FOUND, wanted WANTED",
    ),
    (
        4,
        FailedCheck::Length,
        "bad header length FOUND, wanted WANTED",
    ),
    (
        17,
        FailedCheck::Offset,
        "bad header offset FOUND, wanted WANTED",
    ),
    (
        25,
        FailedCheck::HeaderChecksum,
        "bad header crc FOUND, calculated WANTED",
    ),
    (900, FailedCheck::Data, "Expected CRC: WANTED"),
    (901, FailedCheck::Data, "Received CRC: FOUND"),
    (
        60,
        FailedCheck::Pattern,
        "got pattern 'FOUND', wanted 'WANTED'. Bad bits BITS",
    ),
    (61, FailedCheck::Pattern, "bad pattern block offset AT"),
];

#[test]
fn both_find_the_same_damage_and_word_it_alike() {
    let directory = directory("verify-damage-fio");
    let md5 = || Case::new("md5", VerifyMethod::Md5).every(4096);
    let pattern = || Case::new("pattern", VerifyMethod::Pattern).pattern(PATTERNS[2]);
    let case = |check| match check {
        FailedCheck::Pattern => pattern(),
        _ => md5(),
    };
    let (mut cases, mut words) = (Vec::new(), Vec::new());
    for (number, (place, check, text)) in DAMAGES.into_iter().enumerate() {
        let case = case(check);
        let mut data = case.written();
        data[BLOCK + place] ^= 1;
        std::fs::write(directory.join(number.to_string()), &data).unwrap();
        let finding = case.check(&data).unwrap_err();
        assert_eq!((finding.check, finding.at), (check, BLOCK as u64));
        let at_bytes = Bytes(place as u64);
        assert_eq!(finding.damage, Damage::BitFlip { at_bytes, bits: 1 });
        let mut text = text
            .replace("FOUND", &finding.found)
            .replace("WANTED", &finding.wanted);
        if let Some(byte) = finding.bad_byte {
            text = text.replace("BITS", &byte.bits.to_string());
            text = text.replace("AT", &byte.at.to_string());
        }
        cases.push(case);
        words.push(text);
    }
    // One after the other, so that messages do not mix.
    let Some(output) = fio(&directory, &cases, "rw=read\nstonewall") else {
        return skip("both_find_the_same_damage_and_word_it_alike");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    for text in words {
        assert!(said.contains(&text), "{text:?} in {said}");
    }
    assert!(!output.status.success());
    std::fs::remove_dir_all(directory).unwrap();
}
