//! Marking and checking as a worker uses them: what is written is good, what is changed is found,
//! and each kind of damage is named.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests"
)]

use proptest::prelude::*;
use weir_block::verify::{Expected, IntervalFinding, Marker, Stamp, UnfitInterval};
use weir_schema::{Damage, FailedCheck, Verify, VerifyMethod, VerifyPattern};
use weir_units::Bytes;

const METHODS: [VerifyMethod; 16] = [
    VerifyMethod::Md5,
    VerifyMethod::Crc64,
    VerifyMethod::Crc32,
    VerifyMethod::Crc32c,
    VerifyMethod::Crc16,
    VerifyMethod::Crc7,
    VerifyMethod::Sha256,
    VerifyMethod::Sha512,
    VerifyMethod::Sha1,
    VerifyMethod::Sha3_224,
    VerifyMethod::Sha3_256,
    VerifyMethod::Sha3_384,
    VerifyMethod::Sha3_512,
    VerifyMethod::Xxhash,
    VerifyMethod::PatternHeader,
    VerifyMethod::Pattern,
];
const INTERVAL: usize = 4096;
const STAMP: Stamp = Stamp {
    offset: 1 << 20,
    seed: 77,
    count: 3,
    seconds: 1000,
    nanos: 5,
};
const EXPECTED: Expected = Expected {
    offset: STAMP.offset,
    seed: None,
    count: None,
    run: None,
};

fn verify(method: VerifyMethod) -> Verify {
    let patterned = matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader);
    Verify {
        pattern: patterned.then(|| VerifyPattern {
            bytes: b"a pattern of 24 bytes ..".to_vec(),
            offsets_at: vec![8],
        }),
        ..Verify::by(method)
    }
}

fn marker(verify: &Verify) -> Marker {
    Marker::new(verify, INTERVAL as u32, 1, Some(9)).unwrap()
}

fn written(marker: &Marker, stamp: Stamp) -> Vec<u8> {
    let mut buffer = vec![0xee; 4 * INTERVAL];
    marker.write(&mut buffer, stamp);
    buffer
}

fn found(marker: &Marker, buffer: &[u8], expected: Expected) -> IntervalFinding {
    *marker.check(buffer, expected).unwrap_err()
}

/// The damage, when the buffer is changed by `change` between write and read.
fn damage(method: VerifyMethod, change: impl Fn(&mut Vec<u8>)) -> (FailedCheck, Damage) {
    let marker = marker(&verify(method));
    let mut buffer = written(&marker, STAMP);
    let good = buffer.clone();
    change(&mut buffer);
    let finding = found(&marker, &buffer, EXPECTED);
    let start = (finding.at - STAMP.offset) as usize;
    let rebuilt = marker.rebuilt(&buffer, EXPECTED, &finding);
    let headerless = method == VerifyMethod::Pattern;
    let misplaced = matches!(finding.damage, Damage::Misplaced { .. });
    let known = headerless || (!misplaced && buffer[start..start + 2] == [0xca, 0xac]);
    assert!(
        !known || rebuilt == good[start..start + INTERVAL],
        "{method:?}"
    );
    (finding.check, finding.damage)
}

#[test]
fn what_is_written_is_good() {
    for method in METHODS
        .into_iter()
        .chain([VerifyMethod::Meta, VerifyMethod::Null])
    {
        for peer_rules in [false, true] {
            for header_at in [0, 500, INTERVAL - 200] {
                let verify = Verify {
                    peer_rules,
                    header_at_bytes: Bytes(header_at as u64),
                    ..verify(method)
                };
                let marker = marker(&verify);
                let buffer = written(&marker, STAMP);
                let expected = Expected {
                    seed: Some(STAMP.seed),
                    count: Some(STAMP.count),
                    run: Some(9),
                    ..EXPECTED
                };
                assert_eq!(marker.check(&buffer, expected), Ok(()), "{method:?}");
                assert_eq!(marker.check(&buffer, EXPECTED), Ok(()), "{method:?}");
            }
        }
    }
}

#[test]
fn the_same_seed_and_offset_give_the_same_data_however_the_area_is_cut() {
    let marker = marker(&verify(VerifyMethod::Xxhash));
    let whole = written(&marker, STAMP);
    for cut in [1, 2] {
        for (index, part) in whole.chunks(cut * INTERVAL).enumerate() {
            let offset = STAMP.offset + (index * cut * INTERVAL) as u64;
            let mut buffer = vec![0; part.len()];
            marker.write(&mut buffer, Stamp { offset, ..STAMP });
            assert_eq!(buffer, part);
        }
    }
    let other = written(&marker, Stamp { seed: 78, ..STAMP });
    assert_eq!(
        whole
            .iter()
            .zip(&other)
            .skip(44)
            .take(3900)
            .filter(|(a, b)| a != b)
            .count()
            / 100,
        38
    );
}

#[test]
fn flipped_bits_are_counted_and_placed() {
    for method in METHODS {
        for at in [INTERVAL + 333, 2 * INTERVAL - 1] {
            let (check, damage) = damage(method, |buffer| buffer[at] ^= 0x21);
            let patterned = verify(method).pattern.is_some();
            let wanted = if patterned {
                FailedCheck::Pattern
            } else {
                FailedCheck::Data
            };
            assert_eq!(check, wanted, "{method:?}");
            let at_bytes = Bytes((at - INTERVAL) as u64);
            assert_eq!(damage, Damage::BitFlip { at_bytes, bits: 2 }, "{method:?}");
        }
    }
}

#[test]
fn flipped_bits_in_the_header_are_placed_too() {
    for (at, bit, check) in [
        (0, 0x01, FailedCheck::Magic),
        (4, 0x80, FailedCheck::Length),
        (9, 0x02, FailedCheck::HeaderChecksum),
        (17, 0x40, FailedCheck::Offset),
        (25, 0x10, FailedCheck::HeaderChecksum),
        (38, 0x01, FailedCheck::HeaderChecksum),
    ] {
        let (failed, damage) = damage(VerifyMethod::Crc32c, |buffer| buffer[at] ^= bit);
        assert_eq!(failed, check, "{at}");
        let at_bytes = Bytes(at as u64);
        assert_eq!(damage, Damage::BitFlip { at_bytes, bits: 1 }, "{at}");
    }
}

#[test]
fn an_interval_of_zeros_and_one_that_ends_in_zeros_are_zeroed() {
    for method in METHODS {
        for from in [0, 1024] {
            let (_, damage) = damage(method, |buffer| {
                buffer[INTERVAL + from..2 * INTERVAL].fill(0);
            });
            let from_bytes = Bytes(from as u64);
            assert_eq!(damage, Damage::Zeroed { from_bytes }, "{method:?}");
        }
    }
    let (_, damage) = damage(VerifyMethod::Md5, |buffer| buffer[..512].fill(0));
    assert_eq!(
        damage,
        Damage::Zeroed {
            from_bytes: Bytes(0)
        }
    );
}

#[test]
fn a_block_from_elsewhere_is_misplaced() {
    for method in METHODS {
        let marker = marker(&verify(method));
        let from_bytes = Bytes(STAMP.offset + (7 << 20));
        let elsewhere = written(
            &marker,
            Stamp {
                offset: from_bytes.0,
                ..STAMP
            },
        );
        let (check, damage) = damage(method, |buffer| {
            buffer[..INTERVAL].copy_from_slice(&elsewhere[..INTERVAL]);
        });
        assert_eq!(damage, Damage::Misplaced { from_bytes }, "{method:?}");
        let headerless = method == VerifyMethod::Pattern;
        let wanted = if headerless {
            FailedCheck::Pattern
        } else {
            FailedCheck::Offset
        };
        assert_eq!(check, wanted, "{method:?}");
    }
}

#[test]
fn an_earlier_write_and_an_earlier_run_are_stale() {
    let marker = marker(&verify(VerifyMethod::Crc64));
    let buffer = written(&marker, STAMP);
    for (expected, check, wanted, got) in [
        (
            Expected {
                run: Some(10),
                ..EXPECTED
            },
            FailedCheck::Run,
            "10",
            "9",
        ),
        (
            Expected {
                count: Some(4),
                ..EXPECTED
            },
            FailedCheck::Counter,
            "4",
            "3",
        ),
    ] {
        let finding = found(&marker, &buffer, expected);
        assert_eq!((finding.check, finding.damage), (check, Damage::Stale));
        assert_eq!(
            (finding.wanted.as_str(), finding.found.as_str()),
            (wanted, got)
        );
    }
    let expected = Expected {
        seed: Some(78),
        ..EXPECTED
    };
    let finding = found(&marker, &buffer, expected);
    assert_eq!(
        (finding.check, finding.damage),
        (FailedCheck::Seed, Damage::Stale)
    );
}

#[test]
fn two_writes_that_meet_within_an_interval_are_torn() {
    for method in METHODS {
        if verify(method).pattern.is_some() {
            continue;
        }
        let marker = marker(&verify(method));
        let later = written(
            &marker,
            Stamp {
                seed: 5,
                count: 4,
                ..STAMP
            },
        );
        for at in [512, 2048, 3584] {
            let (check, damage) = damage(method, |buffer| {
                buffer[at..INTERVAL].copy_from_slice(&later[at..INTERVAL]);
            });
            assert_eq!(check, FailedCheck::Data);
            let at_bytes = Bytes(at as u64);
            assert_eq!(damage, Damage::Torn { at_bytes }, "{method:?}");
        }
        // A sector in the middle that never arrived.
        let (_, damage) = damage(method, |buffer| {
            buffer[1024..1536].copy_from_slice(&later[1024..1536]);
        });
        assert_eq!(
            damage,
            Damage::Torn {
                at_bytes: Bytes(1024)
            }
        );
    }
}

#[test]
fn what_is_no_block_is_foreign_and_scattered_damage_garbled() {
    let (check, damage_) = damage(VerifyMethod::Sha1, |buffer| buffer[..INTERVAL].fill(b'X'));
    assert_eq!((check, damage_), (FailedCheck::Magic, Damage::Foreign));
    let (_, damage_) = damage(VerifyMethod::Sha1, |buffer| {
        for at in (300..3000).step_by(100) {
            buffer[at] ^= 0xff;
        }
    });
    let at_bytes = Some(Bytes(300));
    assert_eq!(damage_, Damage::Garbled { at_bytes });
}

#[test]
fn a_block_of_another_method_is_foreign_and_one_of_another_interval_says_so() {
    let mut buffer = written(&marker(&verify(VerifyMethod::Crc32c)), STAMP);
    let finding = found(&marker(&verify(VerifyMethod::Md5)), &buffer, EXPECTED);
    assert_eq!(
        (finding.check, finding.damage),
        (FailedCheck::Method, Damage::Foreign)
    );
    assert_eq!(finding.media_method, Some(5));
    let double = Marker::new(&verify(VerifyMethod::Md5), 8192, 1, None).unwrap();
    double.write(&mut buffer, STAMP);
    let finding = found(&marker(&verify(VerifyMethod::Md5)), &buffer, EXPECTED);
    let other = Damage::OtherInterval {
        written_bytes: Bytes(8192),
        checked_bytes: Bytes(4096),
    };
    assert_eq!(
        (finding.check, finding.damage),
        (FailedCheck::Length, other)
    );
    assert_eq!(
        (finding.wanted.as_str(), finding.found.as_str()),
        ("4096", "8192")
    );
}

#[test]
fn every_bad_interval_is_found() {
    let marker = marker(&verify(VerifyMethod::Md5));
    let mut buffer = written(&marker, STAMP);
    buffer[100] ^= 1;
    buffer[3 * INTERVAL] ^= 1;
    let findings = marker.findings(&buffer, EXPECTED);
    let found: Vec<_> = findings
        .map(|finding| (finding.at, finding.check))
        .collect();
    let third = STAMP.offset + 3 * INTERVAL as u64;
    assert_eq!(
        found,
        [
            (STAMP.offset, FailedCheck::Data),
            (third, FailedCheck::Magic)
        ]
    );
}

#[test]
fn a_wrong_byte_of_a_pattern_is_named() {
    let marker = marker(&verify(VerifyMethod::PatternHeader));
    let mut buffer = written(&marker, STAMP);
    assert_eq!(&buffer[48..56], b"a patter");
    assert_eq!(buffer[56..64], STAMP.offset.to_le_bytes());
    buffer[48] = b'!';
    let finding = found(&marker, &buffer, EXPECTED);
    assert_eq!(
        (finding.wanted.as_str(), finding.found.as_str()),
        ("61", "21")
    );
    let byte = finding.bad_byte.unwrap();
    assert_eq!((byte.at, byte.bits), (8, 1));
}

#[test]
fn what_does_not_fit_is_refused() {
    let new = |verify: &Verify, interval| Marker::new(verify, interval, 1, None).map(drop);
    let sha512 = verify(VerifyMethod::Sha512);
    assert_eq!(
        new(&sha512, 128),
        Err(UnfitInterval::Interval {
            interval: 128,
            least: 169
        })
    );
    assert_eq!(
        new(&sha512, 0),
        Err(UnfitInterval::Interval {
            interval: 0,
            least: 169
        })
    );
    let at = |at| Verify {
        header_at_bytes: Bytes(at),
        ..verify(VerifyMethod::Md5)
    };
    let unfit = |at| {
        Err(UnfitInterval::HeaderAt {
            at,
            least: 56,
            most: 4040,
        })
    };
    assert_eq!(new(&at(48), 4096), unfit(48));
    assert_eq!(new(&at(4041), 4096), unfit(4041));
    assert_eq!(new(&at(4040), 4096), Ok(()));
    let pattern = Verify {
        pattern: None,
        ..verify(VerifyMethod::Pattern)
    };
    assert_eq!(new(&pattern, 4096), Err(UnfitInterval::NoPattern));
}

#[test]
fn a_rest_shorter_than_an_interval_holds_zeros() {
    let marker = marker(&verify(VerifyMethod::Md5));
    let mut buffer = vec![1; INTERVAL + 100];
    marker.write(&mut buffer, STAMP);
    assert_eq!(buffer[INTERVAL..], [0; 100]);
    assert_eq!(marker.check(&buffer, EXPECTED), Ok(()));
    buffer[INTERVAL + 99] = 1;
    let finding = found(&marker, &buffer, EXPECTED);
    assert_eq!((finding.check, finding.length), (FailedCheck::Pattern, 100));
    assert_eq!(marker.rebuilt(&buffer, EXPECTED, &finding), [0; 100]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_changed_byte_that_is_covered_is_found(
        method in prop::sample::select(&METHODS[..]),
        interval in 200_usize..5000,
        header_at in prop::option::of(0.0..1.0),
        intervals in 1_usize..4,
        place in any::<prop::sample::Index>(),
        change in 1_u8..,
        seed in any::<u64>(),
        offset in any::<u64>(),
    ) {
        let least = 168_usize;
        let room = interval.saturating_sub(2 * least);
        let header_at = match header_at {
            Some(share) if room > 0 => least + (room as f64 * share) as usize,
            _ => 0,
        };
        let verify = Verify { header_at_bytes: Bytes(header_at as u64), ..verify(method) };
        let marker = Marker::new(&verify, interval as u32, 2, Some(4)).unwrap();
        let mut buffer = vec![0; interval * intervals];
        marker.write(&mut buffer, Stamp { offset, seed, ..STAMP });
        let expected = Expected { offset, seed: Some(seed), run: Some(4), count: Some(3) };
        prop_assert_eq!(marker.check(&buffer, expected), Ok(()));
        let good = buffer.clone();
        let at = place.index(buffer.len());
        buffer[at] ^= change;
        let number = at % interval;
        let header = [VerifyMethod::Meta, VerifyMethod::PatternHeader].contains(&method);
        let method_word = header && (header_at + 2..header_at + 4).contains(&number);
        if let Err(finding) = marker.check(&buffer, expected) {
            prop_assert_eq!(finding.at, offset.wrapping_add((at - number) as u64));
            let rebuilt = marker.rebuilt(&buffer, expected, &finding);
            prop_assert!(rebuilt == good[at - number..][..interval], "{:?}", finding);
            let at_bytes = Bytes(number as u64);
            prop_assert_eq!(finding.damage, Damage::BitFlip { at_bytes, bits: change.count_ones() });
        } else {
            // The generator of crc7 itself is the one change within a byte that it cannot see.
            let generator = method == VerifyMethod::Crc7 && change == 0x89;
            prop_assert!(method_word || generator, "byte {} of {:?}", number, method);
        }
    }
}
