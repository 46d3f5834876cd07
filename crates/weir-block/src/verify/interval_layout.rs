//! Layout of an interval's parts.
//!
//! In: method, interval and the place of the header. Out: header, field and
//! data of a stored interval. A header that does not lie in front has changed
//! places with the data there, as in fio; the data's order stays that of the
//! unchanged interval, so that it comes in up to three pieces.

use thiserror::Error;

use super::header::HEADER;
use super::method::StoreRule;

/// Data in order.
pub(super) type Pieces<'a> = [&'a [u8]; 3];

/// An interval that cannot be marked as wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnfitInterval {
    /// Header and field leave no room for data.
    #[error("an interval of {interval} bytes has no room for header and data: at least {least}")]
    Interval {
        /// The interval.
        interval: u32,
        /// The smallest that works.
        least: u32,
    },
    /// The header would overlap its own place or the interval's end.
    #[error("the header cannot lie at byte {at} of its interval: 0, or {least} to {most}")]
    HeaderAt {
        /// Requested offset.
        at: u64,
        /// The smallest place but 0.
        least: u64,
        /// The largest.
        most: u64,
    },
    /// The method compares a pattern, and there is none.
    #[error("there is no pattern to compare")]
    NoPattern,
}

/// The parts of intervals of one method.
#[derive(Debug, Clone, Copy)]
pub(super) struct IntervalLayout {
    /// Header and field; 0 without a header.
    head: usize,
    /// Offset of header and field.
    at: usize,
}

impl IntervalLayout {
    /// The parts of intervals of `interval` bytes.
    pub(super) fn new(
        rule: StoreRule,
        interval: u32,
        header_at: u64,
    ) -> Result<Self, UnfitInterval> {
        let head = match rule.number() {
            Some(_) => HEADER + rule.field_bytes(),
            None => 0,
        };
        let unfit = UnfitInterval::Interval {
            interval,
            least: u32::try_from(head + 1).unwrap_or(u32::MAX),
        };
        let length = usize::try_from(interval).map_err(|_| unfit)?;
        if length <= head {
            return Err(unfit);
        }
        if head == 0 || header_at == 0 {
            return Ok(Self { head, at: 0 });
        }
        match usize::try_from(header_at) {
            Ok(at) if (head..=length - head.min(length)).contains(&at) => Ok(Self { head, at }),
            _ => Err(UnfitInterval::HeaderAt {
                at: header_at,
                least: head as u64,
                most: (length - head) as u64,
            }),
        }
    }

    /// There is a header.
    pub(super) const fn has_header(self) -> bool {
        self.head > 0
    }

    /// The header's bytes.
    pub(super) fn header(self, interval: &[u8]) -> &[u8] {
        &interval[self.at..self.at + HEADER]
    }

    /// The method's field.
    pub(super) fn field(self, interval: &[u8]) -> &[u8] {
        &interval[self.at + HEADER..self.at + self.head]
    }

    /// The data, in the order in which it was made.
    pub(super) fn data(self, interval: &[u8]) -> Pieces<'_> {
        if self.at == 0 {
            return [&interval[self.head..], &[], &[]];
        }
        [
            &interval[self.head..self.at],
            &interval[..self.head],
            &interval[self.at + self.head..],
        ]
    }

    /// Bytes in front of the data, as it was made.
    pub(super) const fn data_at(self) -> usize {
        self.head
    }

    /// Puts header and field into an interval that holds data alone.
    pub(super) fn seal(self, interval: &mut [u8], header: [u8; HEADER], rule: StoreRule) {
        let field = rule.field(&[&interval[self.head..], &[], &[]]);
        if self.at > 0 {
            interval.copy_within(self.at..self.at + self.head, 0);
        }
        interval[self.at..self.at + HEADER].copy_from_slice(&header);
        interval[self.at + HEADER..self.at + self.head].copy_from_slice(field.as_bytes());
    }
}
