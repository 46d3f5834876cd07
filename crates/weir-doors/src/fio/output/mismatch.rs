//! Lines of fio about blocks that are not what was written, and one line more: what the damage
//! looks like.

use weir_schema::{FailedCheck, Mismatch, WorkerResult};

/// The flags of a read that checks, as fio prints them.
const FLAGS: u32 = 8;

/// The mismatches of a worker.
pub(super) fn mismatches(worker: &WorkerResult) -> String {
    worker.mismatches.iter().map(one).collect()
}

fn one(m: &Mismatch) -> String {
    let mut out = match m.check {
        FailedCheck::Data | FailedCheck::Method | FailedCheck::Pattern => data(m),
        _ => format!("verify: {}{}\n", header(m), place(m, "")),
    };
    for name in &m.dumps {
        let what = match name.rsplit('.').next() {
            Some("hdr_fail") => "hdr_fail",
            Some("expected") => "expected",
            _ => "received",
        };
        push!(out, "       {what} data dumped as {name}\n");
    }
    if let Some(number) = m.media_method {
        let given = m.method.number();
        push!(
            out,
            "fio: verify type mismatch ({number} media, {given} given)\n"
        );
    }
    push!(out, "       Damage: {}\n", m.damage.sentence());
    out
}

fn header(m: &Mismatch) -> String {
    let (found, wanted) = (&m.found, &m.wanted);
    match m.check {
        FailedCheck::Magic => format!("bad magic header {found}, wanted {wanted}"),
        FailedCheck::Length => format!("bad header length {found}, wanted {wanted}"),
        FailedCheck::Seed => format!("bad header rand_seed {found}, wanted {wanted}"),
        FailedCheck::Offset => format!("bad header offset {found}, wanted {wanted}"),
        FailedCheck::Counter => format!("bad header numberio {found}, wanted {wanted}"),
        FailedCheck::Run => {
            format!("block belongs to an earlier run {found}, wanted {wanted}")
        }
        _ => format!("bad header crc {found}, calculated {wanted}"),
    }
}

fn data(m: &Mismatch) -> String {
    let mut out = String::new();
    if let Some(bad) = m.bad_byte {
        push!(
            out,
            "fio: got pattern '{}', wanted '{}'. Bad bits {}\nfio: bad pattern block offset {}\n",
            m.found,
            m.wanted,
            bad.bits,
            bad.at_bytes.0
        );
    }
    let flags = format!(", flags={FLAGS}");
    push!(
        out,
        "{}: verify failed{}\n",
        m.method.name(),
        place(m, &flags)
    );
    if m.bad_byte.is_none() {
        push!(out, "       Expected CRC: {}\n", m.wanted);
        push!(out, "       Received CRC: {}\n", m.found);
    }
    out
}

fn place(m: &Mismatch, flags: &str) -> String {
    format!(
        " at file {} offset {}, length {} (requested block: offset={}, length={}{flags})",
        m.target,
        m.offset_bytes.0,
        m.length_bytes.0,
        m.request_offset_bytes.0,
        m.request_length_bytes.0
    )
}

#[cfg(test)]
mod tests {
    use weir_schema::{BadByte, Damage, Kind, VerifyMethod};
    use weir_units::Bytes;

    use super::*;

    fn found(check: FailedCheck) -> Mismatch {
        Mismatch {
            method: VerifyMethod::Crc32c,
            check,
            wanted: "047e8587".to_owned(),
            found: "22597e9e".to_owned(),
            damage: Damage::BitFlip {
                at_bytes: Bytes(808),
                bits: 1,
            },
            target: "f5".to_owned(),
            offset_bytes: Bytes(8192),
            length_bytes: Bytes(4096),
            request_offset_bytes: Bytes(0),
            request_length_bytes: Bytes(16384),
            kind: Kind::Read,
            media_method: None,
            bad_byte: None,
            dumps: Vec::new(),
        }
    }

    #[test]
    fn a_bad_checksum_is_told_as_fio_tells_it() {
        let m = Mismatch {
            dumps: vec!["f5.8192.received".to_owned(), "f5.8192.expected".to_owned()],
            ..found(FailedCheck::Data)
        };
        let text = "crc32c: verify failed at file f5 offset 8192, length 4096 (requested block: \
                    offset=0, length=16384, flags=8)\n       Expected CRC: 047e8587\n       \
                    Received CRC: 22597e9e\n       received data dumped as f5.8192.received\n       \
                    expected data dumped as f5.8192.expected\n       Damage: bit flip, 1 bit from \
                    byte 808 on\n";
        assert_eq!(one(&m), text);
    }

    #[test]
    fn a_bad_header_is_told_as_fio_tells_it() {
        let m = Mismatch {
            found: "12288".to_owned(),
            wanted: "8192".to_owned(),
            damage: Damage::Misplaced {
                from_bytes: Bytes(12288),
            },
            dumps: vec!["f5.8192.hdr_fail".to_owned()],
            ..found(FailedCheck::Offset)
        };
        let text = "verify: bad header offset 12288, wanted 8192 at file f5 offset 8192, length \
                    4096 (requested block: offset=0, length=16384)\n       hdr_fail data dumped as \
                    f5.8192.hdr_fail\n       Damage: misplaced, this block belongs at offset \
                    12288\n";
        assert_eq!(one(&m), text);
    }

    #[test]
    fn a_bad_pattern_and_another_method_have_lines_of_their_own() {
        let m = Mismatch {
            method: VerifyMethod::Pattern,
            found: "58".to_owned(),
            wanted: "ab".to_owned(),
            bad_byte: Some(BadByte {
                at_bytes: Bytes(12),
                bits: 6,
            }),
            ..found(FailedCheck::Pattern)
        };
        let text = one(&m);
        assert!(text.starts_with(
            "fio: got pattern '58', wanted 'ab'. Bad bits 6\nfio: bad pattern block offset 12\n\
             pattern: verify failed at file f5"
        ));
        assert!(!text.contains("CRC"), "{text}");
        let m = Mismatch {
            media_method: Some(5),
            ..found(FailedCheck::Method)
        };
        assert!(one(&m).contains("fio: verify type mismatch (5 media, 5 given)\n"));
    }
}
