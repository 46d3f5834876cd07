//! Marks what is written and inspects what is read, by what is known of the writes.
//!
//! In: buffers with the numbers of their writes. Out: marked buffers; mismatches among the
//! worker's findings, and their dumps. Shared by a worker and its checkers.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use weir_run::Findings;
use weir_run::generate::Streams;
use weir_schema::{BadByte, BlockSize, BlockWorkload, Kind, Mismatch, Verify, VerifyMethod};
use weir_units::Bytes;

use crate::op::BlockOp;
use crate::source::verified::dump::Dumps;
use crate::source::verified::stamps::{Stamp, Stamps};
use crate::verify::run_mark::RunMark;
use crate::verify::{self, Expected, IntervalFinding, Marker, UnfitInterval};

/// Parameters of a source of verified data besides the workload.
#[derive(Clone, Debug)]
pub struct Verification {
    /// Mark of the run that data comes from.
    pub mark: RunMark,
    /// Mismatches found.
    pub findings: Arc<Findings>,
    /// Names of the targets, in the order of their indices.
    pub names: Vec<String>,
    /// Directory of dumps.
    pub directory: PathBuf,
    /// Passes over the job's operations, each with its own check.
    pub passes: u64,
    /// A mismatch does not end the job.
    pub goes_on: bool,
    /// The job starts over until its time is up.
    pub is_endless: bool,
    /// Writes of an earlier run, where only those are checked.
    pub earlier: Option<EarlierWrites>,
    /// Record of written data, filled when the source is dropped.
    pub written: Arc<OnceLock<EarlierWrites>>,
}

/// Writes of a worker up to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierWrites {
    /// Writes that were begun.
    pub writes: u64,
    /// Those that did not come back whole: numbers from 0, ascending.
    pub lost: Vec<u64>,
}

/// Marks and inspects.
#[derive(Debug)]
pub(in crate::source) struct Inspector {
    marker: Option<Marker>,
    method: VerifyMethod,
    key: u64,
    with: Verification,
    /// The writes' counters can be known.
    counts: bool,
    /// The data was written by this very job.
    is_own: bool,
    stops_in_block: bool,
    dumps: Option<Dumps>,
}

impl Inspector {
    pub(in crate::source) fn new(
        verify: &Verify,
        workload: &BlockWorkload,
        interval: u32,
        (seed, worker): (u64, u32),
        with: Verification,
    ) -> Result<Self, UnfitInterval> {
        let number = u16::try_from(worker.saturating_add(1)).unwrap_or(u16::MAX);
        let marker = match verify.method {
            VerifyMethod::Null => None,
            _ => Some(Marker::new(verify, interval, number, with.mark.written)?),
        };
        let one_size = matches!(workload.sizes.size.of(Kind::Write), BlockSize::Fixed { .. });
        Ok(Self {
            marker,
            method: verify.method,
            key: Streams::new(seed, worker).payload().next_u64(),
            counts: one_size && !with.is_endless && !verify.only,
            is_own: !verify.only || with.earlier.is_some(),
            stops_in_block: verify.fatal,
            dumps: verify.dump.then(|| Dumps::new(with.directory.clone())),
            with,
        })
    }

    pub(super) fn findings(&self) -> &Findings {
        &self.with.findings
    }

    pub(super) fn earlier(&self) -> Option<EarlierWrites> {
        self.with.earlier.clone()
    }

    pub(super) fn leave_word(&self, written: EarlierWrites) {
        // A source is dropped once.
        let _ = self.with.written.set(written);
    }

    pub(super) fn passes(&self) -> u64 {
        self.with.passes.max(1)
    }

    pub(super) fn marks(&self) -> bool {
        self.marker.is_some()
    }

    /// Fills and marks what will be written.
    pub(super) fn mark(&self, buffer: &mut [u8], offset: u64, stamp: Stamp) {
        let Some(marker) = &self.marker else { return };
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let stamp = verify::Stamp {
            offset,
            seed: stamp.seed(self.key),
            count: stamp.count(),
            seconds: u32::try_from(now.as_secs()).unwrap_or(u32::MAX),
            nanos: now.subsec_nanos(),
        };
        marker.write(buffer, stamp);
    }

    /// Inspects what was read.
    pub(super) fn inspect(&self, op: &BlockOp, buffer: &[u8], stamps: &Stamps) {
        let Some(marker) = &self.marker else { return };
        if self.findings().has_ended() {
            return;
        }
        let is_bad = match stamps {
            Stamps::Unknown => self.check(marker, op, buffer, self.expected(op.offset, None)),
            Stamps::One(stamp) => {
                self.check(marker, op, buffer, self.expected(op.offset, Some(*stamp)))
            }
            Stamps::Each(each) => self.check_each(marker, op, buffer, each),
        };
        if is_bad {
            self.findings().count();
            if !self.with.goes_on || self.findings().is_too_many() {
                self.findings().end();
            }
        }
    }

    /// Intervals of one write in a row are checked together, as they were written.
    fn check_each(&self, marker: &Marker, op: &BlockOp, buffer: &[u8], each: &[Stamp]) -> bool {
        let length = marker.interval() as usize;
        let mut is_bad = false;
        let mut at = 0;
        for run in each.chunk_by(|a, b| a == b) {
            let end = (at + run.len() * length).min(buffer.len());
            if let Some(&stamp) = run.first().filter(|s| **s != Stamp::NONE) {
                let expected = self.expected(op.offset + at as u64, Some(stamp));
                is_bad |= self.check(marker, op, &buffer[at..end], expected);
            }
            at = end;
        }
        is_bad
    }

    fn expected(&self, offset: u64, stamp: Option<Stamp>) -> Expected {
        match stamp.filter(|_| self.is_own) {
            Some(stamp) => Expected {
                offset,
                seed: Some(stamp.seed(self.key)),
                count: self.counts.then(|| stamp.count()),
                run: self.with.mark.written,
            },
            None => Expected {
                offset,
                seed: None,
                count: None,
                run: self.with.mark.required,
            },
        }
    }

    /// Notes every bad interval; whether there was one.
    fn check(&self, marker: &Marker, op: &BlockOp, buffer: &[u8], expected: Expected) -> bool {
        let mut is_bad = false;
        for finding in marker.findings(buffer, expected) {
            is_bad = true;
            self.findings()
                .add(|| self.mismatch(marker, op, buffer, expected, finding));
            if self.stops_in_block {
                break;
            }
        }
        is_bad
    }

    #[cold]
    fn mismatch(
        &self,
        marker: &Marker,
        op: &BlockOp,
        buffer: &[u8],
        expected: Expected,
        finding: IntervalFinding,
    ) -> Mismatch {
        let target = self.with.names.get(op.target as usize).cloned();
        let target = target.unwrap_or_default();
        let dumps = self.dumps.as_ref().map(|dumps| {
            let wanted = marker.rebuilt(buffer, expected, &finding);
            let from = usize::try_from(finding.at.wrapping_sub(expected.offset)).unwrap_or(0);
            let end = (from + finding.length as usize).min(buffer.len());
            let found = &buffer[from.min(end)..end];
            let (stored, lost) = dumps.store(&target, &finding, found, &wanted);
            if let Some(why) = lost {
                self.findings().lose_dump(why);
            }
            stored
        });
        Mismatch {
            method: self.method,
            check: finding.check,
            wanted: finding.wanted,
            found: finding.found,
            damage: finding.damage,
            target,
            offset_bytes: Bytes(finding.at),
            length_bytes: Bytes(finding.length.into()),
            request_offset_bytes: Bytes(op.offset),
            request_length_bytes: Bytes(op.length.into()),
            kind: Kind::Read,
            media_method: finding.media_method,
            bad_byte: finding.bad_byte.map(|bad| BadByte {
                at_bytes: Bytes(bad.at),
                bits: bad.bits,
            }),
            dumps: dumps.unwrap_or_default(),
        }
    }
}

/// The interval between headers: a divisor of every block size and alignment.
pub fn interval(workload: &BlockWorkload) -> Option<u32> {
    let verify = workload.verify.as_ref()?;
    let kind = if workload.mix.has(Kind::Write) {
        Kind::Write
    } else {
        Kind::Read
    };
    let sizes = sizes(workload.sizes.size.of(kind))?;
    let smallest = sizes.iter().copied().min()?;
    let largest = sizes.iter().copied().max()?;
    let wanted = match verify.interval_bytes {
        Some(Bytes(bytes)) => bytes.min(smallest),
        None => smallest,
    };
    let divides = wanted > 0 && sizes.iter().all(|size| size % wanted == 0);
    let common = if divides {
        wanted
    } else {
        sizes.iter().copied().fold(largest, gcd)
    };
    let align = workload.access.align_bytes.map_or(0, |a| a.of(kind).0);
    u32::try_from(gcd(common, align)).ok().filter(|&n| n > 0)
}

/// Every size that occurs, or numbers with the same divisors.
fn sizes(size: &BlockSize) -> Option<Vec<u64>> {
    match size {
        BlockSize::Fixed { bytes } => Some(vec![bytes.0]),
        BlockSize::Range {
            unaligned: true, ..
        } => None,
        BlockSize::Range {
            min_bytes,
            max_bytes,
            ..
        } => Some(vec![min_bytes.0, max_bytes.0]),
        BlockSize::Split { entries } => Some(entries.iter().map(|e| e.bytes.0).collect()),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
