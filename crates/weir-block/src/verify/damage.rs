//! Damage: what kind of mishap a bad interval looks like.
//!
//! In: an interval that failed a check and what is known of it. Out: the kind
//! of damage, and what the interval should hold. The data that belongs to a
//! header is made again from its seed and compared; data of another tool, which
//! has other rules for seeds, is told by resembling nothing. Only failed
//! intervals come here, so that cost does not matter.

use weir_schema::Damage;
use weir_units::Bytes;

use super::block_mark::{Expected, Marker, fill, interval_seed};
use super::check::IntervalPlace;
use super::header::BlockHeader;

/// Devices and memories lose and mix up data in multiples of this.
const SECTOR: usize = 512;
/// Largest number of flipped bits; more are another kind of damage.
const FLIPPED: u32 = 8;
/// The first bytes of foreign data may happen to be right.
const NEAR: usize = 4;

/// A bad interval.
pub(super) struct Case<'a> {
    marker: &'a Marker,
    found: &'a [u8],
    place: IntervalPlace,
    expected: &'a Expected,
    header: BlockHeader,
}

/// Trust in the header of an interval.
enum Trust {
    /// It is undamaged.
    Good,
    /// This is what it was.
    Mended(BlockHeader),
    /// It is no header, or too damaged.
    Lost,
}

/// Difference of two byte strings.
struct Difference {
    first: usize,
    last: usize,
    bytes: usize,
    bits: u32,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        marker: &'a Marker,
        found: &'a [u8],
        place: IntervalPlace,
        expected: &'a Expected,
    ) -> Self {
        let header = if marker.layout.has_header() && found.len() == marker.step() {
            BlockHeader::read(marker.layout.header(found))
        } else {
            BlockHeader::default()
        };
        Self {
            marker,
            found,
            place,
            expected,
            header,
        }
    }

    /// Correct content of the interval.
    pub(super) fn wanted(&self) -> Vec<u8> {
        let header = match self.trust() {
            Trust::Good => self.header,
            Trust::Mended(header) => header,
            Trust::Lost => self.guess(),
        };
        let like = self.like();
        self.build(BlockHeader {
            seed: self.wanted_seed().unwrap_or(header.seed),
            worker: header.worker,
            seconds: header.seconds,
            nanos: header.nanos,
            count: self.expected.count.unwrap_or(header.count),
            ..like
        })
    }

    /// Probable kind of damage.
    pub(super) fn damage(&self) -> Damage {
        if self.found.iter().all(|&byte| byte == 0) {
            return zeroed(0);
        }
        if !self.has_header() {
            return self.pattern_damage();
        }
        match self.trust() {
            Trust::Good => self.data_damage(),
            Trust::Mended(header) => self.compare(&self.build(header)),
            Trust::Lost => self.lost(),
        }
    }

    fn has_header(&self) -> bool {
        self.marker.layout.has_header() && self.found.len() == self.marker.step()
    }

    /// The header is good, so that the block tells whose it is.
    fn data_damage(&self) -> Damage {
        let like = self.like();
        if self.header.length != like.length {
            return Damage::OtherInterval {
                written_bytes: Bytes(self.header.length.into()),
                checked_bytes: Bytes(like.length.into()),
            };
        }
        if self.header.method != like.method {
            return Damage::Foreign;
        }
        if self.header.offset != self.place.at {
            return Damage::Misplaced {
                from_bytes: Bytes(self.header.offset),
            };
        }
        let field = self.marker.rule.field(&self.marker.layout.data(self.found));
        if field.as_bytes() == self.marker.layout.field(self.found) && !self.is_wanted() {
            return Damage::Stale;
        }
        self.compare(&self.build(self.header))
    }

    /// The header is that of the write that is expected, as far as this is known.
    fn is_wanted(&self) -> bool {
        let seed = self.wanted_seed().unwrap_or(self.header.seed);
        let run = self.expected.run.unwrap_or(self.header.run());
        let count = self.expected.count.unwrap_or(self.header.count);
        (seed, run, count) == (self.header.seed, self.header.run(), self.header.count)
    }

    fn lost(&self) -> Damage {
        if let Some(seed) = self.wanted_seed() {
            let good = self.build(BlockHeader {
                seed,
                ..self.guess()
            });
            if difference(self.found, &good).is_some_and(|d| d.bytes < self.found.len() / 2) {
                return self.compare(&good);
            }
        }
        if self
            .marker
            .layout
            .header(self.found)
            .iter()
            .all(|&byte| byte == 0)
        {
            return zeroed(0);
        }
        if self.header.magic == self.like().magic {
            return Damage::Garbled { at_bytes: None };
        }
        Damage::Foreign
    }

    fn pattern_damage(&self) -> Damage {
        let Some(pattern) = &self.marker.pattern else {
            return Damage::Garbled { at_bytes: None };
        };
        if let Some(block) = pattern.offset_in(self.found, self.place.position)
            && block != self.expected.offset
            && pattern
                .first_bad(self.found, self.place.position, block)
                .is_none()
        {
            return Damage::Misplaced {
                from_bytes: Bytes(block.wrapping_add(self.place.position as u64)),
            };
        }
        self.compare(&self.build(BlockHeader::default()))
    }

    fn trust(&self) -> Trust {
        if self.header.is_good() {
            return Trust::Good;
        }
        match self.header.repaired(&self.like()) {
            Some(header) => Trust::Mended(header),
            None => Trust::Lost,
        }
    }

    /// A header with what this job wants in every one.
    fn like(&self) -> BlockHeader {
        BlockHeader {
            offset: self.place.at,
            ..self.marker.blank()
        }
    }

    /// The seed that is expected, run and all.
    fn wanted_seed(&self) -> Option<u64> {
        let seed = self.expected.seed?;
        let run = self.expected.run.unwrap_or(self.header.run());
        Some(interval_seed(seed, self.place.at) | u64::from(run) << 48)
    }

    /// Probable values of a lost header.
    fn guess(&self) -> BlockHeader {
        BlockHeader {
            seed: self.wanted_seed().unwrap_or(self.header.seed),
            ..self.header
        }
    }

    /// The interval that goes with `header`.
    fn build(&self, header: BlockHeader) -> Vec<u8> {
        let len = self.found.len();
        if self.marker.layout.has_header() && !self.has_header() {
            return vec![0; len];
        }
        let mut interval = vec![0; len];
        match &self.marker.pattern {
            Some(pattern) => {
                for (index, byte) in interval.iter_mut().enumerate() {
                    *byte = pattern.byte(self.place.position + index, self.expected.offset);
                }
            }
            None => fill(&mut interval, header.seed),
        }
        self.marker.seal(&mut interval, header);
        interval
    }

    /// Damage that turned `good` into the bytes found.
    fn compare(&self, good: &[u8]) -> Damage {
        let found = self.found;
        let Some(d) = difference(found, good) else {
            return Damage::Garbled { at_bytes: None };
        };
        if d.bits <= FLIPPED {
            return Damage::BitFlip {
                at_bytes: Bytes(d.first as u64),
                bits: d.bits,
            };
        }
        let from = edge(d.first);
        if found[from..=d.last].iter().all(|&byte| byte == 0) {
            return zeroed(from);
        }
        // Unrelated bytes agree once in 256 times.
        if d.first < SECTOR && d.bytes > found.len() / 16 * 15 {
            return match found.iter().rposition(|&byte| byte != 0) {
                Some(last) if last + SECTOR < found.len() => zeroed(last + 1),
                _ => Damage::Garbled { at_bytes: None },
            };
        }
        let end = (d.last + 1 + NEAR).min(found.len()) / SECTOR * SECTOR;
        let to_the_end = d.last + NEAR >= found.len();
        let whole_sectors = from.is_multiple_of(SECTOR) && end > d.last;
        let dense = d.bytes >= (d.last + 1 - d.first) / 4 * 3;
        if dense && (to_the_end || whole_sectors) {
            return Damage::Torn {
                at_bytes: Bytes(from as u64),
            };
        }
        Damage::Garbled {
            at_bytes: Some(Bytes(d.first as u64)),
        }
    }
}

fn edge(first: usize) -> usize {
    let start = first / SECTOR * SECTOR;
    if first - start < NEAR { start } else { first }
}

fn zeroed(from: usize) -> Damage {
    Damage::Zeroed {
        from_bytes: Bytes(from as u64),
    }
}

fn difference(found: &[u8], good: &[u8]) -> Option<Difference> {
    let mut differing = found
        .iter()
        .zip(good)
        .enumerate()
        .filter(|(_, (found, good))| found != good)
        .map(|(index, (found, good))| (index, (found ^ good).count_ones()));
    let (first, bits) = differing.next()?;
    let start = Difference {
        first,
        last: first,
        bytes: 1,
        bits,
    };
    Some(differing.fold(start, |sum, (index, bits)| Difference {
        last: index,
        bytes: sum.bytes + 1,
        bits: sum.bits + bits,
        ..sum
    }))
}
