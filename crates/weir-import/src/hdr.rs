//! Histograms of `HdrHistogram` in their encoded form: base64 of zlib of counts of varying length
//! (version 2).
//!
//! In: the text of one. Out: a histogram of the finest precision, in which each count stands at the
//! middle of its bucket; else what is wrong. Not here: logs of them (`hlog`).

use std::io::Read;

use flate2::read::ZlibDecoder;
use weir_stats::Histogram;

/// The finest that there is, which is close to three significant digits.
const BITS: u8 = 10;
/// Version 2, compressed and plain; the lower of these bits says how wide a count is.
const COMPRESSED: u32 = 0x1c84_9304;
const PLAIN: u32 = 0x1c84_9303;
const WIDTH: u32 = 0xf0;
/// Bytes before the counts.
const HEAD: usize = 40;
/// The longest of a histogram of five digits over all of 64 bits.
const LONGEST: u64 = 64 << 20;
/// Digits that there are.
const DIGITS: std::ops::RangeInclusive<u32> = 0..=5;

/// Nothing, in the precision of all.
pub(crate) fn empty() -> Histogram {
    Histogram::with_bits(BITS).unwrap_or_default()
}

/// The histogram of a text.
pub(crate) fn decode(text: &str) -> Result<Histogram, String> {
    let bytes = base64(text.trim()).ok_or("the histogram is no base64")?;
    let cookie = word(&bytes, 0).ok_or("the histogram ends too early")?;
    if cookie & !WIDTH != COMPRESSED {
        return Err(format!(
            "{cookie:#x} begins no compressed histogram of version 2"
        ));
    }
    let length = word(&bytes, 4).ok_or("the histogram ends too early")?;
    let packed = bytes.get(8..).unwrap_or_default();
    if usize::try_from(length) != Ok(packed.len()) {
        return Err("the histogram is not as long as it says".to_owned());
    }
    let mut plain = Vec::new();
    let unpacked = ZlibDecoder::new(packed)
        .take(LONGEST)
        .read_to_end(&mut plain);
    unpacked.map_err(|e| format!("the histogram cannot be unpacked: {e}"))?;
    counts(&plain).ok_or_else(|| "the histogram is not in order".to_owned())
}

fn counts(plain: &[u8]) -> Option<Histogram> {
    if word(plain, 0)? & !WIDTH != PLAIN {
        return None;
    }
    let length = usize::try_from(word(plain, 4)?).ok()?;
    let digits = word(plain, 12)?;
    let lowest = u64::from(word(plain, 16)?) << 32 | u64::from(word(plain, 20)?);
    let body = plain.get(HEAD..)?.get(..length)?;
    if !DIGITS.contains(&digits) || lowest == 0 {
        return None;
    }
    let layout = Layout::new(digits, lowest);
    let mut histogram = empty();
    let mut index: u64 = 0;
    let mut rest = body;
    while !rest.is_empty() {
        let number = zigzag(&mut rest)?;
        if number < 0 {
            // So many empty ones.
            index = index.checked_add(number.unsigned_abs())?;
        } else {
            if number > 0 {
                histogram.record_n(layout.middle(index)?, number.unsigned_abs());
            }
            index += 1;
        }
    }
    Some(histogram)
}

/// Layout of its buckets.
struct Layout {
    /// Buckets of half a power of two, as a number of bits.
    half_bits: u32,
    /// Bits of a value that are never told apart.
    unit_bits: u32,
}

impl Layout {
    fn new(digits: u32, lowest: u64) -> Self {
        let told_apart = 2 * 10_u64.pow(digits);
        let bits = told_apart.next_power_of_two().ilog2().max(1);
        Self {
            half_bits: bits - 1,
            unit_bits: lowest.ilog2(),
        }
    }

    /// The middle of a bucket.
    fn middle(&self, index: u64) -> Option<u64> {
        let half = 1_u64 << self.half_bits;
        let octave = index >> self.half_bits;
        let within = index & (half - 1);
        let (shift, base) = match u32::try_from(octave).ok()? {
            0 => (0, within),
            octave => (octave - 1, within + half),
        };
        let shift = shift + self.unit_bits;
        let low = base.checked_shl(shift).filter(|low| low >> shift == base)?;
        Some(low + ((1 << shift) >> 1))
    }
}

/// A number of seven bits a byte, the ninth with all of its eight; its lowest bit is its sign.
fn zigzag(rest: &mut &[u8]) -> Option<i64> {
    let mut value: u64 = 0;
    for at in 0..9 {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        let is_last = at == 8;
        let part = if is_last { *byte } else { byte & 0x7f };
        value |= u64::from(part) << (7 * at);
        if is_last || byte & 0x80 == 0 {
            break;
        }
    }
    let sign = (value & 1).cast_signed();
    Some((value >> 1).cast_signed() ^ -sign)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for c in text.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).unwrap_or(0));
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double_after_the_first_power() {
        // Three digits: 2048 values are told apart, then pairs, then fours.
        let layout = Layout::new(3, 1);
        assert_eq!(layout.middle(2047), Some(2047));
        assert_eq!(layout.middle(2048), Some(2049));
        assert_eq!(layout.middle(2049), Some(2051));
        assert_eq!(layout.middle(3072), Some(4098));
        let coarse = Layout::new(3, 1000);
        assert_eq!(coarse.middle(1), Some(512 + 256));
        assert_eq!(layout.middle(u64::MAX), None);
    }

    #[test]
    fn numbers_of_any_length_are_read() {
        let read = |bytes: &[u8]| {
            let mut rest = bytes;
            (zigzag(&mut rest), rest.len())
        };
        assert_eq!(read(&[2]), (Some(1), 0));
        assert_eq!(read(&[3, 9]), (Some(-2), 1));
        assert_eq!(read(&[0x80, 1]), (Some(64), 0));
        assert_eq!(read(&[0x80]), (None, 0));
        assert_eq!(read(&[0xff; 9]).0, Some(i64::MIN));
    }

    #[test]
    fn base64_is_read_with_and_without_its_end() {
        assert_eq!(base64("AQID"), Some(vec![1, 2, 3]));
        assert_eq!(base64("AQI="), Some(vec![1, 2]));
        assert_eq!(base64("AQ"), Some(vec![1]));
        assert_eq!(base64("A-"), None);
    }
}
