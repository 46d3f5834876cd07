//! Traffic of a configuration: a rate in packets, bits or a share of the line, and requests of several sizes.
//!
//! In: the texts of keys. Out: messages per second; sizes in turn. Sizes of frames count the four bytes of the
//! frame check, as measuring gear does; on the line a frame has 20 bytes beside it.

use weir_schema::{PACKET_HEADER_BYTES, PacketPathWorkload};
use weir_units::Bytes;

/// The check at the end of a frame, which no link here hands over.
pub(super) const FRAME_CHECK: u64 = 4;
/// Preamble and gap, which a frame takes on the line beside its own bytes.
const BESIDE: u64 = 20;
/// The smallest frame that Ethernet has.
pub(super) const SMALLEST_FRAME: u64 = 64;

/// The highest rate.
const MOST: f64 = 1e9;

pub(super) const RATE_TAKES: &str = "messages per second, 1 to 1000000000, as 250000 or 100k; bits of frames, as 1Gbps; a share of line_rate, as 50%";
pub(super) const LINE_TAKES: &str = "bits per second, 1k to 1000T, as 10G or 25Gbps";
pub(super) const IMIX_TAKES: &str = "simple, or letters in turn: a 64, b 128, c 256, d 512, e 1024, f 1280, g 1518, \
     h 2112, i 9000, j 16000";

/// Rate as written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AskedRate {
    /// Messages per second.
    Messages(f64),
    /// Bits of frames per second.
    Bits(f64),
    /// Share of the line.
    Share(f64),
}

/// `100k`, `1.5Mpps`, `1Gbps`, `50%`.
pub(super) fn rate(text: &str) -> Option<AskedRate> {
    if let Some(percent) = text.strip_suffix('%') {
        let share = plain_number(percent)? / 100.0;
        return (share > 0.0 && share <= 1.0).then_some(AskedRate::Share(share));
    }
    if let Some(bits) = text.strip_suffix("bps") {
        return scaled(bits)
            .filter(|bits| *bits >= 1.0)
            .map(AskedRate::Bits);
    }
    let messages = scaled(text.strip_suffix("pps").unwrap_or(text))?;
    (1.0..=MOST)
        .contains(&messages)
        .then_some(AskedRate::Messages(messages))
}

/// `10G`, `25Gbps`: bits per second.
pub(super) fn line_rate(text: &str) -> Option<f64> {
    let bits = scaled(text.strip_suffix("bps").unwrap_or(text))?;
    (1e3..=1e15).contains(&bits).then_some(bits)
}

/// A number with k, M, G or T, which are steps of 1000.
fn scaled(text: &str) -> Option<f64> {
    let factor = match text.chars().last()? {
        'k' | 'K' => 1e3,
        'm' | 'M' => 1e6,
        'g' | 'G' => 1e9,
        't' | 'T' => 1e12,
        _ => return plain_number(text),
    };
    Some(plain_number(text.get(..text.len() - 1)?)? * factor)
}

/// Digits and a point, no sign, no exponent.
pub(super) fn plain_number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse::<f64>()
        .ok()
        .filter(|n| is_plain && n.is_finite())
}

/// Rate of a line, which bounds that of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LineRate {
    pub(super) bits_per_s: f64,
}

impl LineRate {
    /// Frames of this size that it carries per second.
    pub(super) fn frames_per_s(self, frame: f64) -> f64 {
        self.bits_per_s / ((frame + real(BESIDE)) * 8.0)
    }
}

/// Messages per second at a rate with these messages.
///
/// # Errors
/// A value that is missing, or a rate below one message or above the limit.
pub(super) fn messages_per_s(
    rate: AskedRate,
    work: &PacketPathWorkload,
    line: Option<LineRate>,
) -> Result<u64, String> {
    let frames = MessageFrames::of(work);
    let per_s = match rate {
        AskedRate::Messages(messages) => messages,
        AskedRate::Bits(bits) => bits / (frames.bytes * 8.0),
        AskedRate::Share(share) => {
            let line =
                line.ok_or("a percentage is of line_rate, which is missing (line_rate : 10G)")?;
            share * frames.messages_on(line)
        }
    };
    if !(0.5..=MOST).contains(&per_s) {
        return Err(format!(
            "these are {per_s:.2} messages per second (valid: 1 to {MOST:.0})"
        ));
    }
    Ok(whole(per_s))
}

/// The frames of a message, in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MessageFrames {
    /// Number of frames.
    count: f64,
    /// All their bytes, frame checks included.
    bytes: f64,
}

impl MessageFrames {
    /// Frames of requests.
    pub(super) fn of(work: &PacketPathWorkload) -> Self {
        let cycle = &work.request_cycle;
        if cycle.is_empty() {
            let packets = work.packets(work.request_bytes);
            let headers = u64::from(packets) * (u64::from(PACKET_HEADER_BYTES) + FRAME_CHECK);
            let bytes = headers + work.request_bytes.0;
            let bytes = bytes.max(SMALLEST_FRAME * u64::from(packets));
            return Self {
                count: f64::from(packets),
                bytes: real(bytes),
            };
        }
        let sum: u64 = cycle.iter().map(|size| frame_of_request(*size)).sum();
        Self {
            count: 1.0,
            bytes: real(sum) / real(cycle.len() as u64),
        }
    }

    /// Messages that a line carries per second.
    pub(super) fn messages_on(self, line: LineRate) -> f64 {
        line.frames_per_s(self.bytes / self.count) / self.count
    }
}

/// The frame of a request of one packet.
pub(super) fn frame_of_request(bytes: Bytes) -> u64 {
    (bytes.0 + u64::from(PACKET_HEADER_BYTES) + FRAME_CHECK).max(SMALLEST_FRAME)
}

/// The request of one packet that makes a frame of this size.
pub(super) fn request_of_frame(frame: u64) -> Bytes {
    Bytes(frame.saturating_sub(u64::from(PACKET_HEADER_BYTES) + FRAME_CHECK))
}

/// The largest frame of a path.
pub(super) fn largest_frame(work: &PacketPathWorkload) -> u64 {
    u64::from(work.packet_bytes) + 14 + FRAME_CHECK
}

/// Frames of the simple mix, twelve in turn: seven, four and one, far from their like.
const SIMPLE: [u64; 12] = [64, 594, 64, 64, 594, 64, 64, 594, 64, 594, 64, 1518];
/// Frames by letters.
const GENOME: [(char, u64); 10] = [
    ('a', 64),
    ('b', 128),
    ('c', 256),
    ('d', 512),
    ('e', 1024),
    ('f', 1280),
    ('g', 1518),
    ('h', 2112),
    ('i', 9000),
    ('j', 16000),
];
/// Letters that are read.
const MOST_LETTERS: usize = 4096;

/// The frames of a mix, in turn.
pub(super) fn imix(text: &str) -> Option<Vec<u64>> {
    if text == "simple" {
        return Some(SIMPLE.to_vec());
    }
    if text.is_empty() || text.len() > MOST_LETTERS {
        return None;
    }
    let size = |letter: char| {
        let known = GENOME.iter().find(|(known, _)| *known == letter);
        known.map(|(_, size)| *size)
    };
    text.chars().map(size).collect()
}

/// The nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates from 0 to 10^9"
)]
pub(super) fn whole(rate: f64) -> u64 {
    rate.round() as u64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and rates, far below 2^53"
)]
pub(super) fn real(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_messages_bits_or_a_share_of_the_line() {
        for (text, meant) in [
            ("250000", AskedRate::Messages(250_000.0)),
            ("100k", AskedRate::Messages(100_000.0)),
            ("1.5Mpps", AskedRate::Messages(1_500_000.0)),
            ("1Gbps", AskedRate::Bits(1e9)),
            ("50%", AskedRate::Share(0.5)),
        ] {
            assert_eq!(rate(text), Some(meant), "{text}");
        }
        for text in [
            "", "0", "k", "-1", "1e6", "0%", "101%", "x%", "0bps", "2G", "1GB", "1 k", "nan", "+5",
        ] {
            assert_eq!(rate(text), None, "{text}");
        }
        assert_eq!(line_rate("10G"), line_rate("10Gbps"));
        assert_eq!(line_rate("0"), None);
    }

    #[test]
    fn a_rate_comes_to_messages_by_their_frames() {
        let line = Some(LineRate { bits_per_s: 10e9 });
        let mut work = PacketPathWorkload {
            request_bytes: request_of_frame(1518),
            ..PacketPathWorkload::default()
        };
        let of = |text: &str, work: &PacketPathWorkload| {
            messages_per_s(rate(text).unwrap(), work, line).unwrap()
        };
        assert_eq!(of("100%", &work), 812_744);
        assert_eq!(of("1Gbps", &work), 82_345);
        // Nine frames of a message: all full but the last, which has 266 bytes and four.
        work.request_bytes = Bytes(16384);
        assert_eq!(of("1Gbps", &work), 1_000_000_000 / 8 / (16384 + 9 * 46));
        work.request_bytes = Bytes(1472);
        work.request_cycle = imix("simple")
            .unwrap()
            .into_iter()
            .map(request_of_frame)
            .collect();
        // 7 of 64, 4 of 594, 1 of 1518: 4342 bytes in twelve frames, 361.83 in the mean.
        assert_eq!(of("1Gbps", &work), whole(1e9 / 8.0 / (4342.0 / 12.0)));
        let missing = messages_per_s(AskedRate::Share(0.5), &work, None).unwrap_err();
        assert!(missing.contains("line_rate, which is missing"), "{missing}");
        let few = messages_per_s(AskedRate::Bits(1.0), &work, None).unwrap_err();
        assert!(few.contains("0.00 messages per second"), "{few}");
    }

    #[test]
    fn mixes_are_sizes_in_turn() {
        let simple = imix("simple").unwrap();
        let count = |size| simple.iter().filter(|one| **one == size).count();
        assert_eq!([64, 594, 1518].map(count), [7, 4, 1]);
        assert_eq!(imix("aag").unwrap(), [64, 64, 1518]);
        assert_eq!(imix("hij").unwrap(), [2112, 9000, 16000]);
        for text in ["", "k", "a b", "Simple"] {
            assert_eq!(imix(text), None, "{text}");
        }
    }
}
