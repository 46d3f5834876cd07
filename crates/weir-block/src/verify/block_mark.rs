//! Marking: what a worker writes into its buffers.
//!
//! In: a whole write buffer and its stamp. Out: the buffer filled and marked.
//! The seed of an interval is drawn from the stamp's seed and the interval's
//! offset, so that the same two always give the same data, however an area is
//! cut into operations; the run's identity replaces its upper sixteen bits. A
//! rest that is shorter than an interval holds zeros.

use weir_run::generate::rng::mix64;
use weir_schema::Verify;

use super::header::{BlockHeader, MAGIC, SEED_BITS};
use super::interval_layout::{IntervalLayout, UnfitInterval};
use super::method::StoreRule;
use super::pattern::DataPattern;
use crate::generate::payload::{Words, random};

/// Marks and checks buffers by one method.
#[derive(Debug, Clone)]
pub struct Marker {
    pub(super) rule: StoreRule,
    pub(super) layout: IntervalLayout,
    pub(super) interval: u32,
    pub(super) pattern: Option<DataPattern>,
    worker: u16,
    run: u16,
}

/// Properties of a write that its marks show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Offset of the buffer on the target.
    pub offset: u64,
    /// Seed of its data.
    pub seed: u64,
    /// Number of the write.
    pub count: u16,
    /// Time of the write: seconds.
    pub seconds: u32,
    /// And nanoseconds.
    pub nanos: u32,
}

/// Properties that a read buffer should have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// Offset of the buffer on the target.
    pub offset: u64,
    /// The seed it was written with.
    pub seed: Option<u64>,
    /// The number of the write.
    pub count: Option<u16>,
    /// The run that wrote it.
    pub run: Option<u16>,
}

impl Marker {
    /// Marks by `verify`, in intervals of `interval` bytes; worker and run stand
    /// in the headers.
    ///
    /// # Errors
    /// [`UnfitInterval`] for an interval that has no room for what is wanted in it.
    pub fn new(
        verify: &Verify,
        interval: u32,
        worker: u16,
        run: Option<u16>,
    ) -> Result<Self, UnfitInterval> {
        let rule = StoreRule {
            method: verify.method,
            peer: verify.peer_rules,
        };
        let pattern = verify.pattern.as_ref().and_then(DataPattern::new);
        if pattern.is_none() && rule.needs_pattern() {
            return Err(UnfitInterval::NoPattern);
        }
        Ok(Self {
            rule,
            layout: IntervalLayout::new(rule, interval, verify.header_at_bytes.0)?,
            interval,
            pattern,
            worker,
            run: run.unwrap_or(0),
        })
    }

    /// Bytes of an interval.
    pub const fn interval(&self) -> u32 {
        self.interval
    }

    /// Bytes of an interval, as lengths in memory are counted.
    pub(super) const fn step(&self) -> usize {
        self.interval as usize
    }

    /// Fills and marks a whole buffer.
    pub fn write(&self, buffer: &mut [u8], stamp: Stamp) {
        if let Some(pattern) = &self.pattern {
            pattern.fill(buffer, stamp.offset);
        }
        let (mut at, length) = (stamp.offset, u64::from(self.interval));
        let mut intervals = buffer.chunks_exact_mut(self.step());
        for interval in &mut intervals {
            let seed = interval_seed(stamp.seed, at) | u64::from(self.run) << 48;
            let header = BlockHeader {
                seed,
                offset: at,
                seconds: stamp.seconds,
                nanos: stamp.nanos,
                worker: self.worker,
                count: stamp.count,
                ..self.blank()
            };
            if self.pattern.is_none() {
                fill(interval, seed);
            }
            self.seal(interval, header);
            at = at.wrapping_add(length);
        }
        if self.layout.has_header() {
            intervals.into_remainder().fill(0);
        }
    }

    /// A header with what is the same in all of this method.
    pub(super) fn blank(&self) -> BlockHeader {
        BlockHeader {
            magic: MAGIC,
            method: self.rule.number().unwrap_or(0),
            length: self.interval,
            ..BlockHeader::default()
        }
    }

    /// Puts `header`, where there is one, and the field into filled data.
    pub(super) fn seal(&self, interval: &mut [u8], header: BlockHeader) {
        if self.layout.has_header() {
            let header = header.signed().bytes();
            self.layout.seal(interval, header, self.rule);
        }
    }
}

/// The seed of the interval at `at` of data that is made from `seed`.
pub(super) const fn interval_seed(seed: u64, at: u64) -> u64 {
    mix64(seed ^ mix64(!at)) & SEED_BITS
}

/// The data of an interval, before it is marked.
pub(super) fn fill(interval: &mut [u8], seed: u64) {
    random(&mut Words::new(mix64(seed)), interval);
}
