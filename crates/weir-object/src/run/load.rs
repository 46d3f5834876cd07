//! Updates, fetches and verifications as operations of the house's loop.
//!
//! In: a session, a test. Out: operations one after the other, each a call of the store; keys and bytes are made
//! before its time begins. Not here: walks that are timed as one (`walk`).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use weir_run::{Completed, Engine, Operation, Source, Submit, Wait, WorkerContext};
use weir_schema::{ObjectAction, ObjectRun, ObjectTest};
use weir_sys::CpuList;
use weir_sys::clock::{Clock, Tick};
use weir_sys::pin::{affinity, set_affinity};

use super::keys::{At, Ranges, Written};
use super::session::Session;
use crate::prelude::*;

/// One call; where it goes its test knows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoreOp {
    pub(super) kind: usize,
    pub(super) length: u32,
}

impl Operation for StoreOp {
    fn kind_index(&self) -> usize {
        self.kind
    }

    fn length(&self) -> u32 {
        self.length
    }

    /// It has no parts.
    fn rest(&self, _done: u32) -> Option<Self> {
        None
    }
}

/// Work of a test whose operations are calls of a store, between source and engine.
pub(super) trait StoreWork {
    /// Its operations are of one kind.
    const ONE_KIND: bool = false;

    fn only_kind(&self) -> usize {
        0
    }

    fn next(&mut self, slot: u32) -> Option<StoreOp>;

    /// Makes key and bytes of an operation.
    fn prepare(&mut self, slot: u32);

    /// The call; bytes that moved, or a code below 0, once it has ended.
    fn call(&mut self, slot: u32) -> Option<i64>;

    fn poll(&mut self, _ended: &mut Vec<Completion>, _min: usize) {}

    fn completed(&mut self, _end: Completion) -> Option<Completed> {
        None
    }

    /// Holds what was read, whole or not, against what was written.
    fn compare(&mut self, slot: u32, whole: bool);
}

/// An operation of a slot.
#[derive(Clone, Copy, Debug, Default)]
struct Going {
    at: At,
    began: Tick,
}

/// A test at work, between source and engine.
pub(super) struct Walk<'a> {
    session: &'a mut Session,
    test: &'a ObjectTest,
    ranges: Ranges,
    /// Keys before those of this iteration.
    base: u64,
    op: StoreOp,
    /// The last place that was drawn.
    at: Option<At>,
    slots: Vec<Going>,
    /// Operations in flight, by ticket and slot, in the order of their beginnings.
    waits: VecDeque<(u64, u32)>,
    /// Keys of the slot that was prepared last.
    dkey: Vec<u8>,
    akey: Vec<u8>,
    /// Values: one of each slot where they are compared later, else one for all.
    bytes: Vec<Vec<u8>>,
    /// Where each call's time is kept in whole microseconds.
    clock: Option<Clock>,
    pub(super) run: ObjectRun,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        test: &'a ObjectTest,
        iteration: u64,
        worker: &WorkerContext<'_>,
        slots: u32,
    ) -> Self {
        let ranges = Ranges::of(&session.work.layout, test);
        let base = session.names.base(test, iteration);
        let (offset, size) = (test.offset.0, test.size.0);
        if test.action == ObjectAction::Update {
            session.contents.begin(Written {
                ranges,
                base,
                offset,
                size,
            });
        }
        let is_alone = session.work.thread_per_operation;
        let clock = (session.work.truncate || is_alone) && slots == 1;
        let clock = clock.then_some(worker.clock);
        let slots = slots as usize;
        let is_kept = test.action == ObjectAction::Verify;
        let buffers = if is_kept { slots } else { 1 };
        let value = vec![0; local(size)];
        Self {
            ranges,
            base,
            op: StoreOp {
                kind: test.action.kind(),
                length: u32::try_from(size).unwrap_or(u32::MAX),
            },
            at: None,
            slots: vec![Going::default(); slots],
            waits: VecDeque::with_capacity(slots),
            dkey: Vec::with_capacity(32),
            akey: Vec::with_capacity(32),
            bytes: vec![value; buffers],
            clock,
            run: ObjectRun::default(),
            session,
            test,
        }
    }

    fn make_keys(&mut self, at: At) {
        let names = &self.session.names;
        names.dkey(at.dkey, self.base, &mut self.dkey);
        names.akey(at.akey, self.base, &mut self.akey);
    }

    /// Place of a slot's value.
    fn buffer(&self, slot: u32) -> usize {
        (slot as usize).min(self.bytes.len() - 1)
    }

    /// The call; bytes that moved, or a code below 0, once it has ended.
    fn call_here(&mut self, slot: u32) -> Option<i64> {
        self.slots[slot as usize].began = self.clock.map(|clock| clock.now()).unwrap_or_default();
        let at = self.slots[slot as usize].at;
        let buffer = self.buffer(slot);
        let session = &mut *self.session;
        let key = session.key(at.object, &self.dkey);
        let extent = [extent(session, self.test, at)];
        let iod = iod(session, self.test, &self.akey, &extent);
        let none = Conditions::NONE;
        let bytes = &mut self.bytes[buffer];
        let done = if self.test.action == ObjectAction::Update {
            let epoch = session.next_epoch();
            if session.work.zero_copy {
                session.store.reserve(key, &iod).and_then(|place| {
                    session.store.reserved(&place).copy_from_slice(bytes);
                    session.store.publish(key, &iod, epoch, none, place)
                })
            } else {
                let iods = [iod];
                session.store.update(key, &iods, epoch, none, bytes)
            }
        } else {
            let epoch = session.epoch;
            let mut iods = [iod];
            let store = &mut session.store;
            store.fetch(key, &mut iods, epoch, none, bytes)
        };
        let done = match done {
            Ok(Ticket::Waits(ticket)) => {
                self.waits.push_back((ticket, slot));
                return None;
            }
            Ok(Ticket::Done(bytes)) => Ok(bytes),
            Err(error) => Err(error),
        };
        Some(self.ended(slot, done))
    }

    fn ended(&mut self, slot: u32, result: Result<u64, ObjectError>) -> i64 {
        if let Some(clock) = self.clock {
            let began = self.slots[slot as usize].began;
            let took = clock.scale().to_nanos(clock.now().since(began));
            self.run.busy_ns.0 += took;
            self.run.truncated_us += took / 1000;
        }
        match result {
            Ok(0) if self.test.size.0 > 0 && self.test.action != ObjectAction::Update => {
                self.run.misses += 1;
                -i64::from(ObjectCode::NonExist.number())
            }
            Ok(bytes) => {
                self.run.hits += 1;
                self.run.bytes.0 += bytes;
                i64::from(self.op.length)
            }
            Err(error) => {
                self.fail(slot, &error);
                -i64::from(error.code.number())
            }
        }
    }

    /// The call on a thread that is made for it, on the next CPU; making and joining it are not in its time.
    fn call_alone(&mut self, slot: u32) -> Option<i64> {
        let cpu = next_cpu();
        let called = std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                // Elsewhere it runs as well.
                let _ = cpu.map(|cpu| set_affinity(&cpu));
                self.call_here(slot)
            });
            call.join()
        });
        called.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    }

    fn fail(&mut self, slot: u32, error: &ObjectError) {
        let at = self.slots[slot as usize].at;
        self.make_keys(at);
        let keys = (&self.dkey[..], &self.akey[..]);
        let failure = self.session.failure(at.object, keys, error);
        self.run.failure.get_or_insert(failure);
    }
}

impl StoreWork for Walk<'_> {
    const ONE_KIND: bool = true;

    fn only_kind(&self) -> usize {
        self.op.kind
    }

    fn next(&mut self, slot: u32) -> Option<StoreOp> {
        if self.run.failure.is_some() {
            return None;
        }
        let next = match self.at {
            None => At::default(),
            Some(at) => self.ranges.after(at)?,
        };
        self.at = Some(next);
        self.slots[slot as usize].at = next;
        Some(self.op)
    }

    /// Makes keys and bytes of a slot.
    fn prepare(&mut self, slot: u32) {
        let at = self.slots[slot as usize].at;
        self.make_keys(at);
        if self.test.action == ObjectAction::Update {
            let contents = &self.session.contents;
            let bytes = &mut self.bytes[0];
            contents.fill(at, self.base, self.test.offset.0, bytes);
        }
        if self.test.verbose {
            let keys = self.session.shown_keys(&self.dkey, &self.akey);
            self.run.keys.push(keys);
        }
    }

    fn call(&mut self, slot: u32) -> Option<i64> {
        if self.session.work.thread_per_operation {
            return self.call_alone(slot);
        }
        self.call_here(slot)
    }

    fn poll(&mut self, ended: &mut Vec<Completion>, min: usize) {
        self.session.store.poll(ended, min);
    }

    /// The end of an operation that was in flight, with its slot; a fetch's bytes are taken.
    fn completed(&mut self, end: Completion) -> Option<Completed> {
        let mut waits = self.waits.iter();
        let place = waits.position(|(ticket, _)| *ticket == end.ticket)?;
        let (ticket, slot) = self.waits.remove(place)?;
        let is_fetch = self.test.action != ObjectAction::Update;
        let result = end.result.and_then(|moved| {
            if !is_fetch {
                return Ok(moved);
            }
            let at = self.slots[slot as usize].at;
            let buffer = self.buffer(slot);
            let session = &mut *self.session;
            let extent = [extent(session, self.test, at)];
            // The store knows the key by the ticket.
            let mut iods = [iod(session, self.test, &[], &extent)];
            let bytes = &mut self.bytes[buffer];
            session.store.receive(ticket, &mut iods, bytes)
        });
        let result = self.ended(slot, result);
        Some(Completed { slot, result })
    }

    /// Holds what was read against what was written.
    fn compare(&mut self, slot: u32, found: bool) {
        let at = self.slots[slot as usize].at;
        let offset = self.test.offset.0;
        let buffer = self.buffer(slot);
        let error = if found {
            let contents = &self.session.contents;
            let place = contents.differs(at, self.base, offset, &self.bytes[buffer]);
            place.map(|byte| {
                let why = format!("byte {byte} of the stride is not the one that was written");
                ObjectCode::Mismatch.error(why)
            })
        } else {
            Some(ObjectCode::NonExist.error("nothing is stored"))
        };
        if let Some(error) = error {
            self.fail(slot, &error);
        }
        self.bytes[buffer].fill(0);
    }
}

/// Records of a test at a place.
pub(super) fn extent(session: &Session, test: &ObjectTest, at: At) -> RecordExtent {
    RecordExtent {
        index: session.names.index(at.stride) + test.offset.0,
        count: test.size.0,
    }
}

pub(super) fn iod<'i>(
    session: &Session,
    test: &ObjectTest,
    akey: &'i [u8],
    extent: &'i [RecordExtent],
) -> Iod<'i> {
    if session.names.is_array() {
        Iod::array(akey, 1, extent)
    } else {
        Iod::single(akey, test.size.0)
    }
}

/// The CPU behind the one that this thread is on, among those that it may use.
fn next_cpu() -> Option<CpuList> {
    let here = u32::try_from(rustix::thread::sched_getcpu()).ok()?;
    let all = affinity().ok()?;
    let next = all.as_slice().iter().find(|cpu| **cpu > here);
    let next = *next.or(all.as_slice().first())?;
    Some(CpuList::from_iter([next]))
}

/// The store as the loop calls it: each call has its end within, or (`WAITS`) may have it later.
pub(super) struct Calls<'w, W, const WAITS: bool> {
    work: &'w RefCell<W>,
    ended: Vec<Completion>,
}

impl<'w, W, const WAITS: bool> Calls<'w, W, WAITS> {
    pub(super) fn new(work: &'w RefCell<W>) -> Self {
        let ended = Vec::new();
        Self { work, ended }
    }
}

impl<'w, W: StoreWork, const WAITS: bool> Engine for Calls<'w, W, WAITS> {
    type Op = StoreOp;
    type Setup = &'w RefCell<W>;
    const INLINE: bool = !WAITS;

    fn attach(setup: Self::Setup) -> io::Result<Self> {
        Ok(Self::new(setup))
    }

    #[inline]
    fn submit(&mut self, slot: u32, _op: &StoreOp) -> Submit {
        let done = self.work.borrow_mut().call(slot);
        done.map_or(Submit::Queued, Submit::Done)
    }

    fn commit(&mut self) -> io::Result<u32> {
        // The store hands over what it has when it is polled.
        Ok(u32::MAX)
    }

    fn reap(&mut self, wait: Wait, mut done: impl FnMut(Completed)) -> io::Result<u32> {
        if self.ended.is_empty() {
            let least = wait.timeout_ns.map_or(wait.at_least, |_| 0);
            self.work.borrow_mut().poll(&mut self.ended, least as usize);
        }
        let mut count = 0;
        let most = self.ended.len().min(wait.at_most as usize);
        for end in self.ended.drain(..most) {
            // The source hears of it within `done`.
            let completed = self.work.borrow_mut().completed(end);
            if let Some(completed) = completed {
                done(completed);
                count += 1;
            }
        }
        Ok(count)
    }
}

/// The operations of a test, in the reference's order.
pub(super) struct Places<'w, W, const CHECKS: bool>(pub(super) &'w RefCell<W>);

impl<W: StoreWork, const CHECKS: bool> Source for Places<'_, W, CHECKS> {
    type Op = StoreOp;
    const ONE_KIND: bool = W::ONE_KIND;
    const CHECKS: bool = CHECKS;

    fn only_kind(&self) -> usize {
        self.0.borrow().only_kind()
    }

    #[inline]
    fn next(&mut self, slot: u32) -> Option<StoreOp> {
        self.0.borrow_mut().next(slot)
    }

    #[inline]
    fn prepare(&mut self, slot: u32, _op: &StoreOp) {
        self.0.borrow_mut().prepare(slot);
    }

    fn completed(&mut self, slot: u32, _op: &StoreOp, whole: bool) {
        self.0.borrow_mut().compare(slot, whole);
    }

    /// Making keys and bytes takes as long as many a call.
    fn prepare_is_timed(&self) -> bool {
        true
    }
}
