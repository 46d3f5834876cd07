//! The source of jobs whose data is marked or checked.
//!
//! In: the source of the job's own operations, and what is known of earlier writes. Out: those
//! operations, with writes that carry marks; and the reads that check them, after all writes of a
//! pass or after so many. Before it turns from writing to reading and back, everything in flight
//! has returned. Not here: marks and checks themselves ([`crate::verify`]).

mod assemble;
mod checkers;
mod dump;
mod history;
mod inspector;
mod stamps;

use std::collections::BTreeSet;

use weir_schema::{BlockWorkload, Kind};

use crate::op::{BlockOp, Verb};
use crate::source::general::GeneralSource;
pub(super) use assemble::verified;
use checkers::Checkers;
use history::{History, Kept, Redrawn};
use inspector::Inspector;
pub use inspector::{EarlierWrites, Verification, interval};
use stamps::{Stamp, Stamps};
use weir_run::Source;

/// Kind of operations that the source gives at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The job's own operations.
    Own,
    /// Reads that check: so many at most.
    Back(u64),
}

/// Operations are drawn only, in so many at once, before somebody looks whether that is to end.
const DRAWN_AT_ONCE: u64 = 1 << 16;

/// The job's own operations, with marks, and reads that check.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct VerifiedSource {
    own: GeneralSource,
    history: History,
    checkers: Checkers,
    phase: Phase,
    /// The own operations of this pass are over.
    is_last: bool,
    over: bool,
    /// Bytes that every pass may move.
    pass_bytes: u64,
    passes_left: u64,
    /// Drawn, and held back because it overlaps one in flight.
    held: Option<BlockOp>,
    flying: Vec<Option<Flying>>,
    in_flight: u32,
    next_stamp: Stamp,
    /// Reads of the job itself are checked: it writes nothing.
    checks_own: bool,
    only_checks: bool,
    backlog: u64,
    batch: u64,
    since_check: u64,
    /// Writes that were begun and did not come back whole, by number.
    lost: BTreeSet<u64>,
    writes: u64,
    /// Writes of an earlier run, where only those are checked.
    earlier: Option<EarlierWrites>,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Flying {
    op: BlockOp,
    stamp: Stamp,
    /// Writes of the worker before it: unlike stamps, these never start over.
    writes_before: u64,
}

impl VerifiedSource {
    pub(super) fn new(
        own: GeneralSource,
        history: History,
        inspector: Inspector,
        workload: &BlockWorkload,
        pass_bytes: u64,
    ) -> Self {
        let verify = workload.verify.as_ref();
        let backlog = verify.map_or(0, |v| v.backlog);
        let batch = verify.map_or(0, |v| v.backlog_batch);
        let passes = inspector.passes();
        Self {
            own,
            history,
            phase: Phase::Own,
            is_last: false,
            over: false,
            pass_bytes,
            passes_left: passes,
            held: None,
            flying: Vec::new(),
            in_flight: 0,
            next_stamp: Stamp::FIRST,
            checks_own: !workload.mix.has(Kind::Write),
            // A job that only reads carries its own reads out either way.
            only_checks: verify.is_some_and(|v| v.only) && workload.mix.read_percent < 100,
            backlog,
            batch: if batch == 0 { backlog } else { batch },
            since_check: 0,
            lost: BTreeSet::new(),
            writes: 0,
            earlier: inspector.earlier(),
            checkers: Checkers::new(inspector, verify),
        }
    }

    /// Draws the job's own operations without carrying them out, so that they can be checked; where
    /// the worker is to end meanwhile, those that were drawn until then.
    fn draw_only(&mut self) {
        let most = self.earlier.as_ref().map_or(u64::MAX, |e| e.writes);
        let mut drawn = 0;
        let mut before_pass = 0;
        while self.writes < most {
            let Some(op) = self.own.next(0) else {
                if self.earlier.is_none() || self.writes == before_pass {
                    break;
                }
                // The earlier run went over its range again.
                before_pass = self.writes;
                self.own.renew(self.pass_bytes);
                continue;
            };
            drawn += 1;
            if drawn % DRAWN_AT_ONCE == 0 && self.checkers.findings().is_end_due() {
                self.checkers.findings().set_unchecked(true);
                break;
            }
            if op.verb == Verb::Write {
                let whole = !self.was_lost(self.writes);
                self.history.written(&op, self.next_stamp, whole);
                self.next_stamp = self.next_stamp.next();
                self.writes += 1;
            }
        }
        self.turn_back_for_all();
    }

    /// True if an earlier run began this write and it did not come back.
    fn was_lost(&self, number: u64) -> bool {
        let lost = self.earlier.as_ref().map(|e| &e.lost);
        lost.is_some_and(|lost| lost.binary_search(&number).is_ok())
    }

    /// True once all writes of an earlier run were read.
    fn is_behind_earlier(&self) -> bool {
        let earlier = self.earlier.as_ref();
        self.checks_own && earlier.is_some_and(|e| self.writes >= e.writes)
    }

    fn turn_back(&mut self, most: u64) {
        self.since_check = 0;
        self.history.rewind();
        self.phase = Phase::Back(most);
    }

    /// The own operations of this pass are over: all that they wrote is read back, and not from
    /// the page cache where the job wants none.
    fn turn_back_for_all(&mut self) {
        self.turn_back(u64::MAX);
        self.is_last = true;
        if !matches!(self.history, History::None) {
            self.own.turn_back();
        }
    }

    /// Next operation of the own phase; `None` while it has to wait, or once the phase has changed.
    fn own_operation(&mut self, slot: u32) -> Option<BlockOp> {
        if self.only_checks {
            self.draw_only();
            return None;
        }
        if self.backlog > 0 && self.since_check >= self.backlog {
            if self.in_flight == 0 {
                self.turn_back(self.batch);
            }
            return None;
        }
        if self.is_behind_earlier() {
            self.over = true;
            return None;
        }
        let op = match self.held.take() {
            Some(mut op) => {
                op.buffer = self.own.buffers().at(slot);
                Some(op)
            }
            None => self.own.next(slot),
        };
        let Some(op) = op else {
            if self.in_flight == 0 {
                self.turn_back_for_all();
            }
            return None;
        };
        if self.history.minds_order() && self.overlaps_flying(&op) {
            self.held = Some(op);
            return None;
        }
        Some(op)
    }

    fn overlaps_flying(&self, op: &BlockOp) -> bool {
        let end = |o: &BlockOp| o.offset + u64::from(o.length);
        self.flying
            .iter()
            .flatten()
            .any(|f| f.op.target == op.target && f.op.offset < end(op) && op.offset < end(&f.op))
    }

    /// The next read that checks.
    fn check_operation(&mut self, slot: u32) -> Option<(BlockOp, Stamp)> {
        let (place, stamp) = self.history.next()?;
        let mut op = BlockOp {
            verb: Verb::Read,
            buffer: self.own.buffers().at(slot),
            ..place
        };
        self.own.prioritise(&mut op);
        Some((op, stamp))
    }

    fn end_of_pass(&mut self) {
        self.passes_left = self.passes_left.saturating_sub(1);
        self.checkers.findings().set_unchecked(false);
        // A run that only checks what an earlier one wrote has checked all of it.
        if self.passes_left == 0 || (self.only_checks && self.earlier.is_some()) {
            self.over = true;
        } else {
            self.is_last = false;
            self.own.renew(self.pass_bytes);
            self.history.renew(self.pass_bytes);
            self.phase = Phase::Own;
        }
    }

    fn take_off(&mut self, slot: u32, flying: Flying) -> BlockOp {
        let at = slot as usize;
        if self.flying.len() <= at {
            self.flying.resize(at + 1, None);
        }
        self.flying[at] = Some(flying);
        self.in_flight += 1;
        flying.op
    }

    /// Numbers a write, or a read that stands for one of an earlier run.
    fn numbered(&mut self, op: BlockOp) -> Flying {
        let writes_before = self.writes;
        let stamp = self.note_write(&op);
        Flying {
            op,
            stamp,
            writes_before,
        }
    }

    fn note_write(&mut self, op: &BlockOp) -> Stamp {
        if op.verb != Verb::Write && !self.checks_own {
            return Stamp::NONE;
        }
        let stamp = self.next_stamp;
        self.next_stamp = stamp.next();
        self.since_check += 1;
        self.writes += 1;
        if !matches!(self.history, History::None) {
            self.checkers.findings().set_unchecked(true);
        }
        stamp
    }
}

impl Source for VerifiedSource {
    type Op = BlockOp;
    const CHECKS: bool = true;

    fn next(&mut self, slot: u32) -> Option<BlockOp> {
        loop {
            if self.checkers.findings().has_ended() {
                self.over = true;
            }
            if self.over {
                return None;
            }
            match self.phase {
                Phase::Own => match self.own_operation(slot) {
                    Some(op) => {
                        let flying = self.numbered(op);
                        return Some(self.take_off(slot, flying));
                    }
                    None if self.phase == Phase::Own => return None,
                    None => {}
                },
                Phase::Back(left) => {
                    if left > 0
                        && let Some((op, stamp)) = self.check_operation(slot)
                    {
                        self.phase = Phase::Back(left - 1);
                        self.own.spend_operation();
                        let flying = Flying {
                            op,
                            stamp,
                            writes_before: self.writes,
                        };
                        return Some(self.take_off(slot, flying));
                    }
                    if self.in_flight > 0 {
                        return None;
                    }
                    if self.is_last {
                        self.end_of_pass();
                    } else {
                        self.phase = Phase::Own;
                    }
                }
            }
        }
    }

    fn has_paused(&mut self) -> bool {
        self.own.has_paused()
    }

    fn prepare(&mut self, slot: u32, op: &BlockOp) {
        if op.verb != Verb::Write {
            return;
        }
        if !self.checkers.marks() {
            self.own.prepare(slot, op);
            return;
        }
        let Some(flying) = self.flying.get(slot as usize).copied().flatten() else {
            return;
        };
        let buffer = self.own.buffers.slot_mut(slot, op.length);
        self.checkers.mark(buffer, op.offset, flying.stamp);
    }

    fn prepare_is_timed(&self) -> bool {
        true
    }

    fn completed(&mut self, slot: u32, op: &BlockOp, whole: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let flying = self.flying.get_mut(slot as usize).and_then(Option::take);
        let Some(Flying {
            stamp,
            writes_before,
            ..
        }) = flying
        else {
            return;
        };
        match op.verb {
            Verb::Write => {
                if !whole {
                    self.lost.insert(writes_before);
                }
                self.history.written(op, stamp, whole);
            }
            Verb::Trim => self.history.trimmed(op),
            Verb::Read if whole && self.phase != Phase::Own => {
                let stamps = self.history.stamps(op, stamp);
                let buffer = self.own.buffers.slot(slot, op.length);
                self.checkers.check(op, buffer, stamps);
            }
            Verb::Read if whole && self.checks_own && !self.was_lost(writes_before) => {
                let buffer = self.own.buffers.slot(slot, op.length);
                self.checkers.check(op, buffer, Stamps::Unknown);
            }
            _ => {}
        }
    }

    fn is_waiting(&self) -> bool {
        !self.over
    }

    fn is_unscheduled(&self) -> bool {
        self.phase != Phase::Own
    }
}

impl Drop for VerifiedSource {
    /// Leaves word of what was written; what is still in flight may be or not.
    fn drop(&mut self) {
        let flying = self.flying.iter().flatten();
        let writes = flying.filter(|f| f.op.verb == Verb::Write);
        self.lost.extend(writes.map(|f| f.writes_before));
        self.checkers.leave_word(EarlierWrites {
            writes: self.writes,
            lost: self.lost.iter().copied().collect(),
        });
    }
}

#[cfg(test)]
mod tests;
