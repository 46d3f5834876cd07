//! Checking: what a worker reads, interval by interval.
//!
//! In: a whole read buffer and what is known of it. Out: the intervals that do
//! not hold what they should, the first failed check of each in the order
//! magic, length, seed, run, offset, count, header checksum, data. Nothing is
//! generated and nothing allocated for an interval that is good.

use std::fmt::Write as _;

use weir_schema::{Damage, FailedCheck, VerifyMethod};

use super::block_mark::{Expected, Marker, interval_seed};
use super::damage::Case;
use super::header::{BlockHeader, MAGIC, SEED_BITS};

/// Intervals that a block written over this one may have begun earlier.
const MOST_BEFORE: u64 = 1024;

/// An interval that does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalFinding {
    /// The check that failed. [`FailedCheck::Method`] is a failed check of the
    /// data where the header names another method than the job's.
    pub check: FailedCheck,
    /// Expected value: lengths, offsets, seeds, runs and counts in decimal, the rest
    /// in hexadecimal; of the data the stored checksum, of a pattern the byte.
    pub wanted: String,
    /// Value found: of the data the calculated checksum.
    pub found: String,
    /// Probable kind of damage.
    pub damage: Damage,
    /// Offset of the interval on the target.
    pub at: u64,
    /// Its length.
    pub length: u32,
    /// The method that the header names, where it is not the job's.
    pub media_method: Option<u16>,
    /// The first byte that is not the pattern's.
    pub bad_byte: Option<WrongByte>,
}

/// A byte that is not the pattern's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongByte {
    /// Offset in the data, counted behind header and field.
    pub at: u64,
    /// Bits in it that differ.
    pub bits: u32,
}

/// Place of an interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalPlace {
    /// Within the buffer.
    pub(super) position: usize,
    /// On the target.
    pub(super) at: u64,
}

/// A check that failed.
#[derive(Debug)]
struct FailedInterval {
    check: FailedCheck,
    wanted: String,
    found: String,
    media_method: Option<u16>,
    bad_byte: Option<WrongByte>,
}

impl FailedInterval {
    fn new(check: FailedCheck, wanted: String, found: String) -> Self {
        Self {
            check,
            wanted,
            found,
            media_method: None,
            bad_byte: None,
        }
    }

    fn decimal(check: FailedCheck, wanted: u64, found: u64) -> Self {
        Self::new(check, wanted.to_string(), found.to_string())
    }
}

impl Marker {
    /// Checks a whole buffer.
    ///
    /// # Errors
    /// The first bad interval.
    pub fn check(&self, buffer: &[u8], expected: Expected) -> Result<(), Box<IntervalFinding>> {
        match self.findings(buffer, expected).next() {
            None => Ok(()),
            Some(finding) => Err(Box::new(finding)),
        }
    }

    /// Every bad interval of a buffer, in order.
    pub fn findings<'a>(
        &'a self,
        buffer: &'a [u8],
        expected: Expected,
    ) -> impl Iterator<Item = IntervalFinding> + 'a {
        let mut position = 0;
        buffer.chunks(self.step()).filter_map(move |interval| {
            let place = IntervalPlace {
                position,
                at: expected.offset.wrapping_add(position as u64),
            };
            position += interval.len();
            let fault = self.fault(interval, place, &expected)?;
            Some(self.finding(fault, interval, place, &expected))
        })
    }

    /// Correct content of the interval of `buffer` that `finding` is about. It is made from the
    /// seed and time in the interval's header where that is undamaged or can be mended, else from
    /// the expected values.
    pub fn rebuilt(&self, buffer: &[u8], expected: Expected, finding: &IntervalFinding) -> Vec<u8> {
        let position = usize::try_from(finding.at.wrapping_sub(expected.offset))
            .map_or(buffer.len(), |position| position.min(buffer.len()));
        let end = buffer.len().min(position.saturating_add(self.step()));
        let place = IntervalPlace {
            position,
            at: finding.at,
        };
        Case::new(self, &buffer[position..end], place, &expected).wanted()
    }

    fn finding(
        &self,
        fault: FailedInterval,
        interval: &[u8],
        place: IntervalPlace,
        expected: &Expected,
    ) -> IntervalFinding {
        IntervalFinding {
            check: fault.check,
            wanted: fault.wanted,
            found: fault.found,
            damage: Case::new(self, interval, place, expected).damage(),
            at: place.at,
            length: u32::try_from(interval.len()).unwrap_or(self.interval),
            media_method: fault.media_method,
            bad_byte: fault.bad_byte,
        }
    }

    /// The first check that an interval fails.
    #[inline]
    fn fault(
        &self,
        interval: &[u8],
        place: IntervalPlace,
        expected: &Expected,
    ) -> Option<FailedInterval> {
        if !self.layout.has_header() {
            return match self.rule.method {
                VerifyMethod::Null => None,
                _ => self.pattern_fault(interval, place, expected),
            };
        }
        if interval.len() < self.step() {
            return rest_fault(interval);
        }
        let header = BlockHeader::read(self.layout.header(interval));
        self.header_fault(&header, place, expected)
            .or_else(|| self.data_fault(interval, &header))
            .or_else(|| {
                let compared = self.rule.compares_pattern();
                compared.then(|| self.pattern_fault(interval, place, expected))?
            })
    }

    #[inline]
    fn header_fault(
        &self,
        header: &BlockHeader,
        place: IntervalPlace,
        expected: &Expected,
    ) -> Option<FailedInterval> {
        if header.magic != MAGIC {
            let (wanted, found) = (format!("{MAGIC:x}"), format!("{:x}", header.magic));
            return Some(FailedInterval::new(FailedCheck::Magic, wanted, found));
        }
        if header.length != self.interval {
            return Some(FailedInterval::decimal(
                FailedCheck::Length,
                self.interval.into(),
                header.length.into(),
            ));
        }
        if let Some(seed) = expected.seed {
            let run = header.seed & !SEED_BITS;
            let wanted = interval_seed(seed, place.at) | run;
            if wanted != header.seed {
                return Some(FailedInterval::decimal(
                    FailedCheck::Seed,
                    wanted,
                    header.seed,
                ));
            }
        }
        if let Some(run) = expected.run.filter(|&run| run != header.run()) {
            return Some(FailedInterval::decimal(
                FailedCheck::Run,
                run.into(),
                header.run().into(),
            ));
        }
        if header.offset != place.at {
            return Some(FailedInterval::decimal(
                FailedCheck::Offset,
                place.at,
                header.offset,
            ));
        }
        if let Some(count) = expected.count.filter(|&count| count != header.count) {
            return Some(FailedInterval::decimal(
                FailedCheck::Counter,
                count.into(),
                header.count.into(),
            ));
        }
        let calculated = header.calculated();
        (calculated != header.checksum).then(|| {
            let (wanted, found) = (format!("{calculated:x}"), format!("{:x}", header.checksum));
            FailedInterval::new(FailedCheck::HeaderChecksum, wanted, found)
        })
    }

    #[inline]
    fn data_fault(&self, interval: &[u8], header: &BlockHeader) -> Option<FailedInterval> {
        let calculated = self.rule.field(&self.layout.data(interval));
        let stored = self.layout.field(interval);
        if calculated.as_bytes() == stored {
            return None;
        }
        let media_method = Some(header.method).filter(|&number| Some(number) != self.rule.number());
        let check = match media_method {
            Some(_) => FailedCheck::Method,
            None => FailedCheck::Data,
        };
        Some(FailedInterval {
            media_method,
            ..FailedInterval::new(check, hex(stored), hex(calculated.as_bytes()))
        })
    }

    fn pattern_fault(
        &self,
        interval: &[u8],
        place: IntervalPlace,
        expected: &Expected,
    ) -> Option<FailedInterval> {
        let fault = self.pattern_fault_of(interval, place.position, expected.offset)?;
        if self.layout.has_header() && self.is_of_another_block(interval, place) {
            return None;
        }
        Some(fault)
    }

    /// True if the pattern is that of a block which began elsewhere: one of another
    /// size, written over this one.
    #[cold]
    fn is_of_another_block(&self, interval: &[u8], place: IntervalPlace) -> bool {
        let length = interval.len().max(1);
        let before = place.at / length as u64;
        (0..=before.min(MOST_BEFORE)).any(|number| {
            let position = usize::try_from(number)
                .unwrap_or(usize::MAX)
                .saturating_mul(length);
            let begun = place.at - position as u64;
            self.pattern_fault_of(interval, position, begun).is_none()
        })
    }

    /// The first byte that is not that of the pattern of a block that begins at `offset`, in which
    /// the interval lies at `position`.
    fn pattern_fault_of(
        &self,
        interval: &[u8],
        position: usize,
        offset: u64,
    ) -> Option<FailedInterval> {
        let pattern = self.pattern.as_ref()?;
        let start = position + self.layout.data_at();
        let mut before = 0;
        for piece in self.layout.data(interval) {
            if let Some(bad) = pattern.first_bad(piece, start + before, offset) {
                let wanted = pattern.byte(start + before + bad, offset);
                let at = (before + bad) as u64;
                return Some(byte_fault(FailedCheck::Pattern, wanted, piece[bad], at));
            }
            before += piece.len();
        }
        None
    }
}

/// A rest without a header holds zeros.
fn rest_fault(rest: &[u8]) -> Option<FailedInterval> {
    let bad = rest.iter().position(|&byte| byte != 0)?;
    Some(byte_fault(FailedCheck::Pattern, 0, rest[bad], bad as u64))
}

fn byte_fault(check: FailedCheck, wanted: u8, found: u8, at: u64) -> FailedInterval {
    FailedInterval {
        bad_byte: Some(WrongByte {
            at,
            bits: (wanted ^ found).count_ones(),
        }),
        ..FailedInterval::new(check, format!("{wanted:02x}"), format!("{found:02x}"))
    }
}

/// As checksums are shown.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
