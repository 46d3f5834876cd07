//! The log: segments of one chunk each, records one behind the other, the last a link to the next.
//!
//! In: records. Out: their places, and at open all records in order. A segment has a salt of its own,
//! so that records of an earlier use of its chunk are never taken for new ones. Not here: what
//! records mean.

use super::image::{Words, words};
use super::medium::{CHUNK, Medium};
use super::record::{Record, RecordKind, checked, decode};
use super::space::Space;
use crate::prelude::*;

/// Bytes that the link at the end of a segment takes.
const LINK: u64 = 128;

/// Word with the greatest salt that any segment was given.
const SALTS_AT: u64 = 8_192;
/// Word with the salt of the log's last segment: a log that ends in an earlier one lost its end.
const LAST_AT: u64 = 8_256;

/// A log that is written.
#[derive(Debug)]
pub(super) struct Log {
    /// Where it starts, as the superblock says it.
    pub(super) start: LogPlace,
    end: LogPlace,
    segments: Vec<u64>,
    /// The encoded record.
    staged: Vec<u8>,
    /// True once the superblock names this log.
    is_current: bool,
}

/// A place in a log: its start, its end, or the end to which a group that failed goes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogPlace {
    pub(super) at: u64,
    pub(super) seq: u64,
    pub(super) salt: u32,
    /// Number of segments up to it.
    segments: usize,
}

words!(LogPlace {
    at,
    seq,
    salt,
    segments
});

impl LogPlace {
    pub(super) const fn start(at: u64, seq: u64, salt: u32) -> Self {
        let segments = 1;
        Self {
            at,
            seq,
            salt,
            segments,
        }
    }
}

fn read_word(medium: &impl Medium, at: u64) -> u64 {
    word(medium.bytes(at, 8))
}

fn write_word(medium: &mut impl Medium, at: u64, word: u64) {
    medium.bytes_mut(at, 8).copy_from_slice(&word.to_le_bytes());
    medium.write_back(at, 8);
    medium.fence();
}

/// A salt that no segment of the pool ever had.
fn new_salt(medium: &mut impl Medium) -> u32 {
    let salt = read_word(medium, SALTS_AT) + 1;
    write_word(medium, SALTS_AT, salt);
    salt as u32
}

impl Log {
    /// An empty log in a new segment, which the superblock does not name yet.
    pub(super) fn new(medium: &mut impl Medium, space: &mut Space, seq: u64) -> Result<Self> {
        let at = space.take_segment(medium)?;
        let start = LogPlace::start(at, seq, new_salt(medium));
        Ok(Self::at(start))
    }

    pub(super) fn at(start: LogPlace) -> Self {
        Self {
            start,
            end: start,
            segments: vec![start.at],
            staged: Vec::new(),
            is_current: false,
        }
    }

    /// Puts its end and its segments into an image.
    pub(super) fn put_words(&self, out: &mut impl FnMut(u64)) {
        self.end.put_words(out);
        self.segments.put_words(out);
    }

    /// Goes on behind the end that an image has, with its segments; `None` where they are of another log.
    pub(super) fn resume(
        &mut self,
        (end, segments): (LogPlace, Vec<u64>),
        medium: &impl Medium,
    ) -> Option<()> {
        let is_own = segments.first() == Some(&self.start.at)
            && segments.last() == Some(&(end.at / CHUNK * CHUNK))
            && read_word(medium, LAST_AT) == u64::from(end.salt)
            && decode(rest(medium, end.at), end.salt).is_none();
        (self.end, self.segments, self.is_current) = (end, segments, true);
        is_own.then_some(())
    }

    /// Notes that the superblock names this log.
    pub(super) fn set_current(&mut self, medium: &mut impl Medium) {
        self.is_current = true;
        write_word(medium, LAST_AT, u64::from(self.end.salt));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.segments.len() as u64 * CHUNK
    }

    pub(super) fn segments(&self) -> &[u64] {
        &self.segments
    }

    pub(super) fn seq(&self) -> u64 {
        self.end.seq
    }

    pub(super) fn mark(&self) -> LogPlace {
        self.end
    }

    /// Forgets what was appended since a mark.
    pub(super) fn roll_back(&mut self, to: LogPlace, medium: &mut impl Medium, space: &mut Space) {
        if self.end.salt != to.salt {
            write_word(medium, LAST_AT, u64::from(to.salt));
        }
        for segment in self.segments.drain(to.segments..) {
            space.give_segment(segment);
        }
        self.end = to;
        self.clear_tail(medium);
    }

    /// Clears the rest of the last segment, so that no record in it can follow a new one.
    pub(super) fn clear_tail(&mut self, medium: &mut impl Medium) {
        let len = (CHUNK - self.end.at % CHUNK) as usize;
        medium.bytes_mut(self.end.at, len).fill(0);
        medium.write_back(self.end.at, len);
        medium.fence();
    }

    /// Stores a record behind the last. It lasts once the medium's fence was passed.
    #[inline]
    pub(super) fn append(
        &mut self,
        record: &Record<'_>,
        medium: &mut impl Medium,
        space: &mut Space,
    ) -> Result<u64> {
        if self.end.at % CHUNK + record.stored_len() as u64 + LINK > CHUNK {
            self.next_segment(medium, space)?;
        }
        record.encode(&mut self.staged, self.end.seq, self.end.salt);
        Ok(self.store(medium))
    }

    #[inline]
    fn store(&mut self, medium: &mut impl Medium) -> u64 {
        let (at, len) = (self.end.at, self.staged.len());
        medium.bytes_mut(at, len).copy_from_slice(&self.staged);
        medium.write_back(at, len);
        self.end.at += len as u64;
        self.end.seq += 1;
        at
    }

    fn next_segment(&mut self, medium: &mut impl Medium, space: &mut Space) -> Result<()> {
        let next = space.take_segment(medium)?;
        let mut link = Record::new(RecordKind::Link, 0, ObjectId::default(), 0);
        (link.at, link.sum) = (next, new_salt(medium));
        link.encode(&mut self.staged, self.end.seq, self.end.salt);
        self.store(medium);
        medium.fence();
        if self.is_current {
            write_word(medium, LAST_AT, u64::from(link.sum));
        }
        self.segments.push(next);
        self.end.segments += 1;
        (self.end.at, self.end.salt) = (next, link.sum);
        Ok(())
    }

    /// The record at a place that was read before.
    pub(super) fn record(medium: &impl Medium, at: u64) -> Option<Record<'_>> {
        checked(rest(medium, at))
    }

    /// A log that is read from its start.
    pub(super) fn reader(start: LogPlace) -> LogReader {
        let mut log = Self::at(start);
        log.is_current = true;
        LogReader {
            good: log.mark(),
            log,
            records: 0,
            damaged: false,
            group_start: start.seq,
        }
    }
}

/// Bytes from a place to the end of its segment.
fn rest(medium: &impl Medium, at: u64) -> &[u8] {
    medium.bytes(at, (CHUNK - at % CHUNK) as usize)
}

/// A log that is read, up to its last whole group.
#[derive(Debug)]
pub(super) struct LogReader {
    pub(super) log: Log,
    good: LogPlace,
    /// Records of whole groups.
    pub(super) records: u64,
    /// True if records follow that a damaged one cuts off.
    pub(super) damaged: bool,
    /// Sequence number that the first record of the group at hand has, or would have.
    group_start: u64,
}

impl LogReader {
    /// Appends the places of the next group's records; false at the end, where those of a group that is not
    /// whole are left out.
    pub(super) fn read_group(&mut self, medium: &impl Medium, places: &mut Vec<u64>) -> bool {
        let before = places.len();
        let is_whole = self.read_whole(medium, before, places);
        if !is_whole {
            places.truncate(before);
        }
        is_whole
    }

    fn read_whole(&mut self, medium: &impl Medium, before: usize, places: &mut Vec<u64>) -> bool {
        let log = &mut self.log;
        self.group_start = log.end.seq;
        while let Some((record, seq)) = decode(rest(medium, log.end.at), log.end.salt) {
            let is_link = record.kind == RecordKind::Link;
            if seq != log.end.seq || !is_link && usize::from(record.part) != places.len() - before {
                return false;
            }
            if is_link {
                let inside = record.at.is_multiple_of(CHUNK) && record.at < medium.len();
                if !inside || log.segments.contains(&record.at) {
                    return false;
                }
                (log.end.at, log.end.salt) = (record.at, record.sum);
                log.segments.push(record.at);
                log.end.segments += 1;
            } else {
                places.push(log.end.at);
                log.end.at += record.stored_len() as u64;
            }
            log.end.seq += 1;
            let count = (places.len() - before) as u64;
            self.group_start = log.end.seq - count;
            if is_link && count == 0 {
                self.good = log.mark();
            }
            if !is_link && !record.more {
                self.records += count;
                self.good = log.mark();
                return true;
            }
        }
        false
    }

    /// Ends the reading: the log is to be written on behind its last whole group.
    pub(super) fn finish(mut self, medium: &impl Medium) -> Self {
        let log = &mut self.log;
        let later = |(record, seq): (Record<'_>, u64)| {
            seq.saturating_sub(u64::from(record.part)) > self.group_start
        };
        let mut tail = (log.end.at..log.end.at / CHUNK * CHUNK + CHUNK)
            .step_by(64)
            .skip(1);
        self.damaged = read_word(medium, LAST_AT) > u64::from(log.end.salt)
            || tail.any(|at| decode(rest(medium, at), log.end.salt).is_some_and(later));
        log.segments.truncate(self.good.segments);
        log.end = self.good;
        self
    }
}
