//! The log: segments of one chunk each, records one behind the other, the last a link to the next.
//!
//! In: records. Out: their places, and at open all records in order. A segment has a salt of its own,
//! so that records of an earlier use of its chunk are never taken for new ones. Not here: what
//! records mean.

use super::medium::{CHUNK, Medium};
use super::record::{Record, RecordKind, decode};
use super::space::Space;
use crate::prelude::*;

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
    end: LogMark,
    segments: Vec<u64>,
    /// The encoded record.
    staged: Vec<u8>,
    /// True once the superblock names this log.
    is_current: bool,
}

/// The end of a log, to which a group that failed goes back.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogMark {
    pos: u64,
    seq: u64,
    salt: u32,
    /// Number of segments.
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
        let start = LogStart {
            at,
            salt: new_salt(medium),
            seq,
        };
        Ok(Self::at(start))
    }

    pub(super) fn at(start: LogStart) -> Self {
        let LogStart { at, salt, seq } = start;
        Self {
            start,
            end: LogMark {
                pos: at,
                seq,
                salt,
                segments: 1,
            },
            segments: vec![at],
            staged: Vec::new(),
            is_current: false,
        }
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

    pub(super) fn mark(&self) -> LogMark {
        self.end
    }

    /// Forgets what was appended since a mark.
    pub(super) fn roll_back(&mut self, mark: LogMark, medium: &mut impl Medium, space: &mut Space) {
        if self.end.salt != mark.salt {
            write_word(medium, LAST_AT, u64::from(mark.salt));
        }
        for segment in self.segments.drain(mark.segments..) {
            space.give_segment(segment);
        }
        self.end = mark;
        self.clear_tail(medium);
    }

    /// Clears the rest of the last segment, so that no record in it can follow a new one.
    pub(super) fn clear_tail(&mut self, medium: &mut impl Medium) {
        let len = (CHUNK - self.end.pos % CHUNK) as usize;
        medium.bytes_mut(self.end.pos, len).fill(0);
        medium.write_back(self.end.pos, len);
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
        if self.end.pos % CHUNK + record.stored_len() as u64 + LINK > CHUNK {
            self.next_segment(medium, space)?;
        }
        record.encode(&mut self.staged, self.end.seq, self.end.salt);
        Ok(self.store(medium))
    }

    #[inline]
    fn store(&mut self, medium: &mut impl Medium) -> u64 {
        let (at, len) = (self.end.pos, self.staged.len());
        medium.bytes_mut(at, len).copy_from_slice(&self.staged);
        medium.write_back(at, len);
        self.end.pos += len as u64;
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
        (self.end.pos, self.end.salt) = (next, link.sum);
        Ok(())
    }

    /// The record at a place that was read before.
    pub(super) fn record(medium: &impl Medium, at: u64, salt: u32) -> Option<Record<'_>> {
        Some(decode(rest(medium, at), salt)?.0)
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
    /// Reads the places and salts of the next group's records; false at the end.
    pub(super) fn read_group(&mut self, medium: &impl Medium, group: &mut Vec<(u64, u32)>) -> bool {
        let log = &mut self.log;
        group.clear();
        self.group_start = log.end.seq;
        while let Some((record, seq)) = decode(rest(medium, log.end.pos), log.end.salt) {
            let is_link = record.kind == RecordKind::Link;
            if seq != log.end.seq || !is_link && usize::from(record.part) != group.len() {
                return false;
            }
            if is_link {
                let inside = record.at.is_multiple_of(CHUNK) && record.at < medium.len();
                if !inside || log.segments.contains(&record.at) {
                    return false;
                }
                (log.end.pos, log.end.salt) = (record.at, record.sum);
                log.segments.push(record.at);
                log.end.segments += 1;
            } else {
                group.push((log.end.pos, log.end.salt));
                log.end.pos += record.stored_len() as u64;
            }
            log.end.seq += 1;
            self.group_start = log.end.seq - group.len() as u64;
            if is_link && group.is_empty() {
                self.good = log.mark();
            }
            if !is_link && !record.more {
                self.records += group.len() as u64;
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
        let mut tail = (log.end.pos..log.end.pos / CHUNK * CHUNK + CHUNK)
            .step_by(64)
            .skip(1);
        let damaged = read_word(medium, LAST_AT) > u64::from(log.end.salt)
            || tail.any(|at| decode(rest(medium, at), log.end.salt).is_some_and(later));
        log.segments.truncate(good.segments);
        log.end = good;
        ReadLog {
            log,
            records,
            damaged,
        }
    }
}
