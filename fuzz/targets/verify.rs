//! Verification: read buffers as a device could return them.
//!
//! The first ten bytes choose method, interval, place of the header and pattern. What follows is
//! the buffer itself when the tenth is even: it is judged without a panic, and only a buffer whose
//! headers name this place is good. Otherwise it is a list of changes to a good buffer: four bytes
//! each, a place, a length of up to sixteen bytes and what is laid over them. Damage that a method
//! must find is found, and what the interval held is told from its header alone.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_block::verify::{Expected, IntervalFinding, Marker, Stamp};
use weir_schema::{Damage, Verify, VerifyMethod, VerifyPattern};
use weir_units::Bytes;

const METHODS: [VerifyMethod; 18] = [
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
    VerifyMethod::Meta,
    VerifyMethod::Pattern,
    VerifyMethod::PatternHeader,
    VerifyMethod::Null,
];
const OFFSET: u64 = 0x0123_4567_8000;
const EXPECTED: Expected = Expected {
    offset: OFFSET,
    seed: None,
    count: None,
    run: None,
};

fuzz_target!(|data: &[u8]| {
    let Some((
        &[
            method,
            length,
            more,
            at,
            beyond,
            unit,
            place,
            text,
            peer,
            what,
        ],
        rest,
    )) = data.split_first_chunk()
    else {
        return;
    };
    let method = METHODS[usize::from(method) % METHODS.len()];
    let interval = u32::from(u16::from_le_bytes([length, more]) % 4096);
    let verify = Verify {
        peer_rules: peer % 2 == 1,
        header_at_bytes: Bytes(u64::from(u16::from_le_bytes([at, beyond]) % 4096)),
        pattern: (unit > 0).then(|| VerifyPattern {
            bytes: vec![text; usize::from(unit)],
            offsets_at: (place % 2 == 0)
                .then_some(u32::from(place))
                .into_iter()
                .collect(),
        }),
        ..Verify::by(method)
    };
    let Ok(marker) = Marker::new(&verify, interval, 1, Some(5)) else {
        return;
    };
    if what % 2 == 0 {
        judge(&marker, &verify, rest);
    } else {
        damage(&marker, &verify, rest);
    }
});

/// Any buffer is judged, and a good one says that it belongs here.
fn judge(marker: &Marker, verify: &Verify, buffer: &[u8]) {
    for seed in [None, Some(7)] {
        let expected = Expected { seed, ..EXPECTED };
        for finding in marker.findings(buffer, expected).take(8) {
            let rebuilt = marker.rebuilt(buffer, expected, &finding);
            assert_eq!(rebuilt.len(), finding.length as usize);
        }
    }
    let headerless = [VerifyMethod::Pattern, VerifyMethod::Null].contains(&verify.method);
    if headerless || marker.check(buffer, EXPECTED).is_err() {
        return;
    }
    let interval = marker.interval() as usize;
    let header_at = verify.header_at_bytes.0 as usize;
    for (number, part) in buffer.chunks_exact(interval).enumerate() {
        let header = &part[header_at..];
        let at = OFFSET + (number * interval) as u64;
        assert_eq!(header[..2], [0xca, 0xac], "accepted without a header");
        assert_eq!(
            header[4..8],
            marker.interval().to_le_bytes(),
            "accepted another length"
        );
        assert_eq!(header[16..24], at.to_le_bytes(), "accepted another offset");
    }
}

/// A good buffer is changed.
fn damage(marker: &Marker, verify: &Verify, changes: &[u8]) {
    let interval = marker.interval() as usize;
    let mut good = vec![0; 3 * interval];
    let stamp = Stamp {
        offset: OFFSET,
        seed: 9,
        count: 2,
        seconds: 3,
        nanos: 4,
    };
    marker.write(&mut good, stamp);
    assert!(
        marker.check(&good, EXPECTED).is_ok(),
        "a written buffer is not good"
    );
    let mut buffer = good.clone();
    for &[place, more, length, over] in changes.as_chunks().0 {
        let start = usize::from(u16::from_le_bytes([place, more])) % buffer.len();
        let end = buffer.len().min(start + usize::from(length % 16) + 1);
        buffer[start..end].fill(over);
    }
    let found = marker
        .findings(&buffer, EXPECTED)
        .collect::<Vec<IntervalFinding>>();
    for (number, part) in buffer.chunks(interval).enumerate() {
        let at = OFFSET + (number * interval) as u64;
        let was = &good[number * interval..][..interval];
        let finding = found.iter().find(|finding| finding.at == at);
        match finding {
            Some(finding) => explained(marker, verify, &buffer, finding, part, was),
            None => assert!(!must_find(verify, part, was), "damage went unseen"),
        }
    }
}

/// A finding tells what is true of it.
fn explained(
    marker: &Marker,
    verify: &Verify,
    buffer: &[u8],
    finding: &IntervalFinding,
    part: &[u8],
    was: &[u8],
) {
    assert!(part != was, "a good interval was found bad: {finding:?}");
    let header_at = verify.header_at_bytes.0 as usize;
    let header_stands = verify.method == VerifyMethod::Pattern
        || part[header_at..header_at + 40] == was[header_at..header_at + 40];
    if header_stands {
        let rebuilt = marker.rebuilt(buffer, EXPECTED, finding);
        assert!(rebuilt == was, "what was there is not told");
        if let Damage::BitFlip { at_bytes, bits } = finding.damage {
            let differing = part.iter().zip(was).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(differing.sum::<u32>(), bits);
            assert_eq!(
                part.iter().zip(was).position(|(a, b)| a != b),
                Some(at_bytes.0 as usize)
            );
        }
    }
}

/// Digests see any change; so do comparisons with a pattern. Short checksums have collisions,
/// and what is only a header's number is not compared.
fn must_find(verify: &Verify, part: &[u8], was: &[u8]) -> bool {
    let header_at = verify.header_at_bytes.0 as usize;
    let number = header_at + 2..header_at + 4;
    let changed = |index: &usize| part[*index] != was[*index] && !number.contains(index);
    let weak = match verify.method {
        VerifyMethod::Pattern => return part != was,
        VerifyMethod::Sha512 => verify.peer_rules,
        VerifyMethod::Null | VerifyMethod::Meta => true,
        VerifyMethod::PatternHeader
        | VerifyMethod::Md5
        | VerifyMethod::Sha256
        | VerifyMethod::Sha1
        | VerifyMethod::Sha3_224
        | VerifyMethod::Sha3_256
        | VerifyMethod::Sha3_384
        | VerifyMethod::Sha3_512 => false,
        VerifyMethod::Crc64
        | VerifyMethod::Crc32
        | VerifyMethod::Crc32c
        | VerifyMethod::Crc16
        | VerifyMethod::Crc7
        | VerifyMethod::Xxhash => {
            // One changed byte, none of it in the header, is no collision of any of these.
            let changes = (0..part.len()).filter(|index| part[*index] != was[*index]);
            changes.count() != 1
        }
    };
    !weak && (0..part.len()).any(|index| changed(&index))
}
