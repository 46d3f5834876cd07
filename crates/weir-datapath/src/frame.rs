//! The bytes of a frame: Ethernet, IPv4, UDP, and the header of a message in each of its packets.
//!
//! In: addresses, ports, the message that a packet is of. Out: bytes, and what is read from them again.
//! The message header has 16 bytes: the stream, 7 bytes of the instant when the request was made, packets
//! of the message (2), the packet's place among them (2), the message's number (4); all little-endian. Every
//! read checks the length first.

use weir_schema::{PacketPathWorkload, PathSide};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP_AT: usize = ETHERNET + IPV4;
/// Where the header of the message begins.
pub(crate) const MESSAGE_AT: usize = UDP_AT + 8;
/// Where its payload begins.
pub(crate) const PAYLOAD_AT: usize = MESSAGE_AT + 16;

/// Bits of an instant that a packet bears.
const STAMP_BITS: u32 = 56;

/// Header of a message, as it stands in one of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketHeader {
    /// Of which stream it is.
    pub(crate) stream: u8,
    /// When the request was made: the low bits of a tick.
    pub(crate) stamp: u64,
    /// Packets of the message.
    pub(crate) packets: u16,
    /// Which of them this is.
    pub(crate) segment: u16,
    /// The message: the thread that asks in the highest four bits.
    pub(crate) message: u32,
}

impl PacketHeader {
    /// Writes it into a frame that is long enough.
    #[inline]
    pub(crate) fn write(&self, frame: &mut [u8]) {
        let Some(at) = frame.get_mut(MESSAGE_AT..PAYLOAD_AT) else {
            return;
        };
        let first = u64::from(self.stream) | self.stamp << 8;
        at[..8].copy_from_slice(&first.to_le_bytes());
        let second =
            u64::from(self.packets) | u64::from(self.segment) << 16 | u64::from(self.message) << 32;
        at[8..].copy_from_slice(&second.to_le_bytes());
    }

    /// Reads it, where the frame has one.
    #[inline]
    pub(crate) fn read(frame: &[u8]) -> Option<Self> {
        let at = frame.get(MESSAGE_AT..PAYLOAD_AT)?;
        let word = |from: usize| -> Option<u64> {
            let bytes = at.get(from..from + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let (first, second) = (word(0)?, word(8)?);
        Some(Self {
            stream: low8(first),
            stamp: first >> 8,
            packets: low16(second),
            segment: low16(second >> 16),
            message: u32::try_from(second >> 32).unwrap_or(0),
        })
    }

    /// The thread that made the request.
    #[inline]
    pub(crate) fn origin(&self) -> usize {
        (self.message >> 28) as usize
    }

    /// A number that is the same in all packets of the message and another in the next.
    #[inline]
    pub(crate) fn turn(&self) -> usize {
        ((self.message & 0xffff) + (self.message >> 16 & 0xfff)) as usize
    }
}

/// True if a frame is a packet of UDP over IPv4.
#[inline]
pub(crate) fn is_udp(frame: &[u8]) -> bool {
    matches!(frame.get(12..24), Some([8, 0, .., 17]))
}

#[inline]
fn low8(word: u64) -> u8 {
    u8::try_from(word & 0xff).unwrap_or(0)
}

#[inline]
fn low16(word: u64) -> u16 {
    u16::try_from(word & 0xffff).unwrap_or(0)
}

/// The low bits of a tick, as packets bear them.
#[inline]
pub(crate) fn stamp_of(tick: u64) -> u64 {
    tick & ((1 << STAMP_BITS) - 1)
}

/// Ticks from a stamp to a tick.
#[inline]
pub(crate) fn ticks_since(stamp: u64, tick: u64) -> u64 {
    stamp_of(tick.wrapping_sub(stamp))
}

/// Writes the ports.
#[inline]
pub(crate) fn write_ports(frame: &mut [u8], source: u16, target: u16) {
    if let Some(at) = frame.get_mut(UDP_AT..UDP_AT + 4) {
        at[..2].copy_from_slice(&source.to_be_bytes());
        at[2..].copy_from_slice(&target.to_be_bytes());
    }
}

/// The port that it goes to.
#[inline]
pub(crate) fn target_port(frame: &[u8]) -> Option<u16> {
    let at = frame.get(UDP_AT + 2..UDP_AT + 4)?;
    Some(u16::from_be_bytes([at[0], at[1]]))
}

/// The headers below the message, which are the same in all frames of a side but for lengths and ports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LowerHeaders {
    /// As they are in a frame of this length, without ports.
    bytes: [u8; MESSAGE_AT],
    length: usize,
    /// The sum of the words of the IPv4 header whose length is 0.
    sum: u32,
}

impl LowerHeaders {
    /// Of what a side sends.
    pub(crate) fn of(work: &PacketPathWorkload, side: PathSide) -> Self {
        let (own, other) = match side {
            PathSide::Client => (0, 1),
            PathSide::Server => (1, 0),
        };
        let mut bytes = [0; MESSAGE_AT];
        bytes[..6].copy_from_slice(&work.hardware_addresses[other]);
        bytes[6..12].copy_from_slice(&work.hardware_addresses[own]);
        bytes[12..14].copy_from_slice(&[8, 0]);
        let ip = &mut bytes[ETHERNET..UDP_AT];
        ip[0] = 0x45;
        // Not to be cut; 64 hops; UDP.
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = 17;
        ip[12..16].copy_from_slice(&work.addresses[own]);
        ip[16..20].copy_from_slice(&work.addresses[other]);
        let words = ip.chunks_exact(2);
        let sum = words
            .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])))
            .sum();
        Self {
            bytes,
            length: 0,
            sum,
        }
    }

    /// Writes them around what is there already.
    #[inline]
    pub(crate) fn write(&mut self, frame: &mut [u8]) {
        let length = frame.len();
        let Some(at) = frame.get_mut(..MESSAGE_AT) else {
            return;
        };
        if length != self.length {
            self.be_of_length(length);
        }
        at[..UDP_AT].copy_from_slice(&self.bytes[..UDP_AT]);
        let after_ports = UDP_AT + 4;
        at[after_ports..].copy_from_slice(&self.bytes[after_ports..]);
    }

    /// Makes them those of frames of another length.
    #[cold]
    fn be_of_length(&mut self, length: usize) {
        self.length = length;
        let ip = u16::try_from(length - ETHERNET).unwrap_or(u16::MAX);
        self.bytes[16..18].copy_from_slice(&ip.to_be_bytes());
        let mut sum = self.sum + u32::from(ip);
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        let check = !u16::try_from(sum).unwrap_or(u16::MAX);
        self.bytes[24..26].copy_from_slice(&check.to_be_bytes());
        let udp = u16::try_from(length - UDP_AT).unwrap_or(u16::MAX);
        self.bytes[38..40].copy_from_slice(&udp.to_be_bytes());
    }
}

/// Sends a frame back: Ethernet addresses change places, and those of IPv4 where it has such; ports stay.
#[inline]
pub(crate) fn turn_round(frame: &mut [u8]) {
    let Some(at) = frame.first_chunk_mut::<UDP_AT>() else {
        return;
    };
    let (ethernet, rest) = at.split_at_mut(ETHERNET);
    if let Some(addresses) = ethernet.first_chunk_mut::<12>() {
        let (target, source) = addresses.split_at_mut(6);
        target.swap_with_slice(source);
    }
    if ethernet[12..] == [8, 0]
        && let Some(addresses) = rest.last_chunk_mut::<8>()
    {
        *addresses = u64::from_ne_bytes(*addresses).rotate_left(32).to_ne_bytes();
    }
}

/// Bytes of each packet of a message, its header in it included: all but the last are full.
#[inline]
pub(crate) fn part_of(
    work: &PacketPathWorkload,
    message: u64,
    segment: u32,
    packets: u32,
) -> usize {
    let part = u64::from(work.part_bytes());
    let length = if segment + 1 < packets {
        part
    } else {
        message
            .saturating_sub(part * u64::from(packets - 1))
            .max(16)
    };
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Bytes of the longest packet of both sides, as an MTU counts them.
pub(crate) fn longest_packet(work: &PacketPathWorkload) -> u32 {
    let frames =
        [work.request_bytes, work.whole_response()].map(|message| work.frame_bytes(message));
    let ethernet = u32::try_from(ETHERNET).unwrap_or(0);
    frames[0].max(frames[1]).saturating_sub(ethernet)
}

/// The payload of a frame.
#[inline]
pub(crate) fn payload(frame: &[u8]) -> &[u8] {
    frame.get(PAYLOAD_AT..).unwrap_or_default()
}

/// As the older program fills a payload: `a`, and a zero at the end.
#[inline]
pub(crate) fn fill(payload: &mut [u8]) {
    match payload.len() {
        // Two overlapping writes take less than a call.
        4..8 => {
            if let Some(first) = payload.first_chunk_mut::<4>() {
                *first = *b"aaaa";
            }
            if let Some(last) = payload.last_chunk_mut::<4>() {
                *last = *b"aaaa";
            }
        }
        _ => payload.fill(b'a'),
    }
    if let Some(last) = payload.last_mut() {
        *last = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Bytes;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let header = PacketHeader {
            stream: 3,
            stamp: stamp_of(u64::MAX - 5),
            packets: 1039,
            segment: 1038,
            message: 0xf123_4567,
        };
        let mut frame = [0; 64];
        header.write(&mut frame);
        assert_eq!(PacketHeader::read(&frame), Some(header));
        assert_eq!(header.origin(), 15);
        assert_eq!(ticks_since(header.stamp, 4), 10);
        for length in 0..PAYLOAD_AT {
            assert_eq!(PacketHeader::read(&frame[..length]), None);
        }
    }

    #[test]
    fn the_lower_headers_are_those_of_a_udp_packet_with_a_sound_checksum() {
        let work = PacketPathWorkload::default();
        let mut frame = vec![0; 64];
        LowerHeaders::of(&work, PathSide::Client).write(&mut frame);
        write_ports(&mut frame, 10010, 10013);
        let words = frame[14..34].chunks_exact(2);
        let sum: u32 = words
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(&frame[12..16], [8, 0, 0x45, 0]);
        assert_eq!(&frame[16..18], [0, 50]);
        assert_eq!(&frame[38..40], [0, 30]);
        assert_eq!(target_port(&frame), Some(10013));
        let before = frame.clone();
        turn_round(&mut frame);
        assert_eq!(frame[..6], before[6..12]);
        assert_eq!(frame[26..30], before[30..34]);
        assert_eq!(frame[30..34], before[26..30]);
        assert_eq!(frame[34..], before[34..]);
        // What is no IPv4 has other things there.
        frame[13] = 6;
        turn_round(&mut frame);
        assert_eq!(frame[..12], before[..12]);
        assert_eq!(frame[26..30], before[30..34]);
    }

    #[test]
    fn frames_of_other_lengths_have_the_headers_of_their_own() {
        let of = || LowerHeaders::of(&PacketPathWorkload::default(), PathSide::Client);
        let mut headers = of();
        for length in [64, 1500, 64, 58, 64] {
            let mut frame = vec![9; length];
            let mut fresh = frame.clone();
            headers.write(&mut frame);
            of().write(&mut fresh);
            assert_eq!(frame, fresh);
            assert_eq!(
                usize::from(frame[16]) << 8 | usize::from(frame[17]),
                length - 14
            );
        }
    }

    #[test]
    fn a_filling_ends_with_zero_and_stays_in_its_room() {
        for length in 0..20 {
            let mut bytes = [b'x'; 24];
            fill(&mut bytes[2..2 + length]);
            let filled = bytes[2..].iter().take_while(|byte| **byte == b'a').count();
            assert_eq!(filled, length.saturating_sub(1));
            assert_eq!(length > 0, bytes[2 + filled] == 0);
            assert!(
                bytes[2 + length..]
                    .iter()
                    .chain(&bytes[..2])
                    .all(|byte| *byte == b'x')
            );
        }
    }

    #[test]
    fn the_sizes_of_the_older_program_give_its_frames_and_packets() {
        let work = PacketPathWorkload::default();
        let frame = |bytes| MESSAGE_AT + part_of(&work, bytes, 0, work.packets(Bytes(bytes)));
        let sizes = [22, 86, 214, 470, 982, 1458].map(frame);
        assert_eq!(sizes, [64, 128, 256, 512, 1024, 1500]);
        let packets = [16 << 10, 100 << 10, 2 << 20].map(|bytes| work.packets(Bytes(bytes)));
        assert_eq!(packets, [9, 51, 1039]);
        assert_eq!(part_of(&work, 16384, 0, 9) + MESSAGE_AT, 2062);
        assert_eq!(part_of(&work, 16384, 8, 9) + MESSAGE_AT, 266);
    }
}
