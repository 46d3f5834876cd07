//! The log: segments of one chunk each, records one behind the other, the last a link to the next.
//!
//! In: records. Out: their places, and at open all records in order. A segment has a salt of its own,
//! so that records of an earlier use of its chunk are never taken for new ones. Not here: what
//! records mean.

use super::medium::{CHUNK, Medium};
use super::record::{Record, RecordKind, checked, decode};
use super::space::Space;
use crate::store::{ObjectId, Result};

/// Bytes that the link at the end of a segment takes.
const LINK: u64 = 128;

/// Word with the greatest salt that any segment was given.
const SALTS_AT: u64 = 8_192;
/// Word with the salt of the log's last segment: a log that ends in an earlier one lost its end.
const LAST_AT: u64 = 8_256;

/// Place where a log starts, as the superblock says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogStart {
    pub(super) at: u64,
    pub(super) salt: u32,
    pub(super) seq: u64,
}

/// A log that is written.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) start: LogStart,
    pos: u64,
    seq: u64,
    salt: u32,
    segments: Vec<u64>,
    /// The encoded record.
    staged: Vec<u8>,
    /// True once the superblock names this log.
    is_current: bool,
}

/// Place to which a group that failed goes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogMark {
    pos: u64,
    seq: u64,
    salt: u32,
    segments: usize,
}

/// Log that was read at open.
#[derive(Debug)]
pub(super) struct ReadLog {
    pub(super) log: Log,
    /// Records that were applied.
    pub(super) records: u64,
    /// True if records follow that a damaged one cuts off.
    pub(super) damaged: bool,
}

fn read_word(medium: &impl Medium, at: u64) -> u64 {
    medium
        .bytes(at, 8)
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
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
        let start = LogStart {
            at,
            salt: new_salt(medium),
            seq,
        };
        Ok(Self::at(start))
    }

    pub(super) fn at(start: LogStart) -> Self {
        let LogStart { at, salt, seq } = start;
        let (segments, staged) = (vec![at], Vec::new());
        Self {
            start,
            pos: at,
            seq,
            salt,
            segments,
            staged,
            is_current: false,
        }
    }

    /// Notes that the superblock names this log.
    pub(super) fn set_current(&mut self, medium: &mut impl Medium) {
        self.is_current = true;
        write_word(medium, LAST_AT, u64::from(self.salt));
    }

    pub(super) fn bytes(&self) -> u64 {
        self.segments.len() as u64 * CHUNK
    }

    pub(super) fn segments(&self) -> &[u64] {
        &self.segments
    }

    pub(super) fn seq(&self) -> u64 {
        self.seq
    }

    pub(super) fn mark(&self) -> LogMark {
        LogMark {
            pos: self.pos,
            seq: self.seq,
            salt: self.salt,
            segments: self.segments.len(),
        }
    }

    /// Forgets what was appended since a mark.
    pub(super) fn roll_back(&mut self, mark: LogMark, medium: &mut impl Medium, space: &mut Space) {
        if self.salt != mark.salt {
            write_word(medium, LAST_AT, u64::from(mark.salt));
        }
        for segment in self.segments.drain(mark.segments..) {
            space.give_segment(segment);
        }
        (self.pos, self.seq, self.salt) = (mark.pos, mark.seq, mark.salt);
        self.clear_tail(medium);
    }

    /// Clears the rest of the last segment, so that no record in it can follow a new one.
    pub(super) fn clear_tail(&mut self, medium: &mut impl Medium) {
        let len = (CHUNK - self.pos % CHUNK) as usize;
        medium.bytes_mut(self.pos, len).fill(0);
        medium.write_back(self.pos, len);
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
        if self.pos % CHUNK + record.stored_len() as u64 + LINK > CHUNK {
            self.next_segment(medium, space)?;
        }
        record.encode(&mut self.staged, self.seq, self.salt);
        Ok(self.store(medium))
    }

    #[inline]
    fn store(&mut self, medium: &mut impl Medium) -> u64 {
        let (at, len) = (self.pos, self.staged.len());
        medium.bytes_mut(at, len).copy_from_slice(&self.staged);
        medium.write_back(at, len);
        self.pos += len as u64;
        self.seq += 1;
        at
    }

    fn next_segment(&mut self, medium: &mut impl Medium, space: &mut Space) -> Result<()> {
        let next = space.take_segment(medium)?;
        let mut link = Record::new(RecordKind::Link, 0, ObjectId::default(), 0);
        (link.at, link.sum) = (next, new_salt(medium));
        link.encode(&mut self.staged, self.seq, self.salt);
        self.store(medium);
        medium.fence();
        if self.is_current {
            write_word(medium, LAST_AT, u64::from(link.sum));
        }
        self.segments.push(next);
        (self.pos, self.salt) = (next, link.sum);
        Ok(())
    }

    /// The record at a place that was read before.
    pub(super) fn record(medium: &impl Medium, at: u64) -> Option<Record<'_>> {
        checked(rest(medium, at))
    }

    /// A log that is read from its start.
    pub(super) fn reader(start: LogStart) -> LogReader {
        let mut log = Self::at(start);
        log.is_current = true;
        LogReader {
            good: log.mark(),
            log,
            records: 0,
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
    log: Log,
    good: LogMark,
    records: u64,
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
        self.group_start = log.seq;
        while let Some((record, seq)) = decode(rest(medium, log.pos), log.salt) {
            let is_link = record.kind == RecordKind::Link;
            if seq != log.seq || !is_link && usize::from(record.part) != places.len() - before {
                return false;
            }
            if is_link {
                let inside = record.at.is_multiple_of(CHUNK) && record.at < medium.len();
                if !inside || log.segments.contains(&record.at) {
                    return false;
                }
                (log.pos, log.salt) = (record.at, record.sum);
                log.segments.push(record.at);
            } else {
                places.push(log.pos);
                log.pos += record.stored_len() as u64;
            }
            log.seq += 1;
            let count = (places.len() - before) as u64;
            self.group_start = log.seq - count;
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

    /// The log, to be written on behind its last whole group.
    pub(super) fn finish(self, medium: &impl Medium) -> ReadLog {
        let Self {
            mut log,
            good,
            records,
            group_start,
        } = self;
        let later = |(record, seq): (Record<'_>, u64)| {
            seq.saturating_sub(u64::from(record.part)) > group_start
        };
        let mut tail = (log.pos..log.pos / CHUNK * CHUNK + CHUNK)
            .step_by(64)
            .skip(1);
        let damaged = read_word(medium, LAST_AT) > u64::from(log.salt)
            || tail.any(|at| decode(rest(medium, at), log.salt).is_some_and(later));
        log.segments.truncate(good.segments);
        (log.pos, log.seq, log.salt) = (good.pos, good.seq, good.salt);
        ReadLog {
            log,
            records,
            damaged,
        }
    }
}
