//! Byte patterns: `0xff`, `"text"`, `'file'` and decimal numbers, one after the other.

use crate::Files;
use crate::diagnostic::Fault;

/// Longest pattern in bytes.
const MAX_BYTES: usize = 512;

/// Bytes that an offset takes.
const OFFSET: usize = 8;

/// Reads a pattern; decimal numbers become little-endian bytes, as few as hold them.
pub(crate) fn pattern(text: &str, files: &dyn Files) -> Result<Vec<u8>, Fault> {
    let (bytes, offsets) = pattern_with_offsets(text, files)?;
    if offsets.is_empty() {
        return Ok(bytes);
    }
    Err(
        Fault::new("job.unsupported", "`%o` in a pattern is for verify_pattern")
            .label("give fixed bytes")
            .piece("%o"),
    )
}

/// Reads a pattern in which `%o` stands for the block's offset: its bytes, and the places of
/// offsets in them.
pub(crate) fn pattern_with_offsets(
    text: &str,
    files: &dyn Files,
) -> Result<(Vec<u8>, Vec<u32>), Fault> {
    let mut bytes = Vec::new();
    let mut offsets = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = if let Some(rest) = rest.strip_prefix("%o") {
            offsets.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
            bytes.resize(bytes.len() + OFFSET, 0);
            rest
        } else {
            part(rest, files, &mut bytes)?
        };
    }
    if bytes.is_empty() {
        return Err(wrong(text));
    }
    if bytes.len() > MAX_BYTES {
        return Err(Fault::range(format!("a pattern of {} bytes", bytes.len()))
            .label(format!("at most {MAX_BYTES} bytes")));
    }
    Ok((bytes, offsets))
}

fn wrong(text: &str) -> Fault {
    Fault::value(format!("bad pattern \"{text}\""))
        .label("expected 0xhex, \"text\", 'file' or a number")
        .piece(text)
}

fn part<'a>(text: &'a str, files: &dyn Files, out: &mut Vec<u8>) -> Result<&'a str, Fault> {
    if let Some((inner, rest)) = text.strip_prefix('"').and_then(|t| t.split_once('"')) {
        out.extend_from_slice(inner.as_bytes());
        return Ok(rest);
    }
    if let Some((path, rest)) = text.strip_prefix('\'').and_then(|t| t.split_once('\'')) {
        let content = files.read(path).map_err(|e| {
            Fault::new(
                "job.file",
                format!("cannot read the pattern file `{path}`: {e}"),
            )
            .piece(path)
        })?;
        out.extend_from_slice(&content[..content.len().min(MAX_BYTES + 1)]);
        return Ok(rest);
    }
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => hexadecimal(hex, out).ok_or_else(|| wrong(text)),
        None => decimal(text, out).ok_or_else(|| wrong(text)),
    }
}

/// Bytes in the order of the digits; an odd number of digits gets a zero in front.
fn hexadecimal<'a>(text: &'a str, out: &mut Vec<u8>) -> Option<&'a str> {
    let end = text
        .find(|c: char| !c.is_ascii_hexdigit())
        .unwrap_or(text.len());
    let digits: Vec<u8> = text[..end]
        .chars()
        .filter_map(|c| c.to_digit(16))
        .filter_map(|d| u8::try_from(d).ok())
        .collect();
    let (first, pairs) = digits.split_at(digits.len() % 2);
    out.extend(first);
    out.extend(pairs.chunks_exact(2).map(|p| p[0] << 4 | p[1]));
    (end > 0).then(|| &text[end..])
}

/// A whole number as little-endian bytes, as few as hold it; a negative one as four.
fn decimal<'a>(text: &'a str, out: &mut Vec<u8>) -> Option<&'a str> {
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |t| (true, t));
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    if minus {
        let value: i32 = digits[..end].parse().ok()?;
        out.extend((-value).to_le_bytes());
    } else {
        let value: u64 = digits[..end].parse().ok()?;
        let zeros = usize::try_from(value.leading_zeros() / 8).ok()?;
        out.extend(&value.to_le_bytes()[..(8 - zeros).max(1)]);
    }
    Some(&digits[end..])
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    struct One;
    impl Files for One {
        fn read(&self, path: &str) -> io::Result<Vec<u8>> {
            if path == "pf" {
                Ok(b"PQ".to_vec())
            } else {
                Err(io::ErrorKind::NotFound.into())
            }
        }
    }

    #[test]
    fn patterns_are_those_that_fio_writes() {
        for (text, bytes) in [
            ("1000", &[0xe8, 0x03][..]),
            ("0xdeadbe", &[0xde, 0xad, 0xbe]),
            ("0x123", &[0x01, 0x23]),
            ("\"ab\"", b"ab"),
            ("-1", &[0xff; 4]),
            ("0xff\"z\"12", &[0xff, b'z', 12]),
            ("'pf'", b"PQ"),
            ("0", &[0]),
        ] {
            assert_eq!(pattern(text, &One).unwrap(), bytes, "{text}");
        }
        let (bytes, offsets) = pattern_with_offsets("0xff%o\"z\"%o", &One).unwrap();
        assert_eq!((bytes.len(), offsets), (18, vec![1, 10]));
        for bad in [
            "", "x", "%", "%p", "0x", "\"a", "'none'", "%o", "12x", "\"\"",
        ] {
            assert!(pattern(bad, &One).is_err(), "{bad}");
        }
    }
}
