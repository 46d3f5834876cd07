//! Updates, fetches and verifications as operations of the house's loop.
//!
//! In: a session, a test. Out: operations one after the other, each a call of the store; keys and bytes are made
//! before its time begins. Not here: walks that are timed as one (`walk`).

use std::cell::RefCell;
use std::io;

use weir_run::{Engine, Operation, Source, Submit, WorkerContext};
use weir_schema::{ObjectAction, ObjectFailure, ObjectKeys, ObjectTest};
use weir_sys::CpuList;
use weir_sys::clock::Clock;
use weir_sys::pin::{affinity, set_affinity};

use super::keys::{At, Ranges, Written};
use super::session::{Run, Session, code_of};
use crate::{Conditions, Iod, KeyAt, ObjectCode, ObjectError, ObjectStore, RecordExtent, Ticket};

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

/// A test at work, between source and engine.
pub(super) struct Walk<'a, S: ObjectStore> {
    session: &'a mut Session<S>,
    test: &'a ObjectTest,
    ranges: Ranges,
    /// Keys before those of this iteration.
    base: u64,
    op: StoreOp,
    at: Option<At>,
    dkey: Vec<u8>,
    akey: Vec<u8>,
    bytes: Vec<u8>,
    /// Where each call's time is kept in whole microseconds.
    clock: Option<Clock>,
    pub(super) run: Run,
}

impl<'a, S: ObjectStore> Walk<'a, S> {
    pub(super) fn new(
        session: &'a mut Session<S>,
        test: &'a ObjectTest,
        iteration: u64,
        worker: &WorkerContext<'_>,
    ) -> Self {
        let ranges = Ranges::of(&session.work.layout, test);
        let base = if test.keep_counter {
            iteration * session.names.keys_each()
        } else {
            0
        };
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
        let clock = (session.work.truncate || is_alone).then_some(worker.clock);
        Self {
            ranges,
            base,
            op: StoreOp {
                kind: test.action.kind(),
                length: u32::try_from(size).unwrap_or(u32::MAX),
            },
            at: None,
            dkey: Vec::with_capacity(32),
            akey: Vec::with_capacity(32),
            bytes: vec![0; usize::try_from(size).unwrap_or(usize::MAX)],
            clock,
            run: Run::default(),
            session,
            test,
        }
    }

    fn next(&mut self) -> Option<StoreOp> {
        if self.run.failure.is_some() {
            return None;
        }
        let next = match self.at {
            None => At::default(),
            Some(at) => self.ranges.after(at)?,
        };
        self.at = Some(next);
        Some(self.op)
    }

    /// Makes keys and bytes of the present place.
    fn prepare(&mut self) {
        let Some(at) = self.at else { return };
        let names = &self.session.names;
        names.dkey(at.dkey, self.base, &mut self.dkey);
        names.akey(at.akey, self.base, &mut self.akey);
        if self.test.action == ObjectAction::Update {
            let contents = &self.session.contents;
            contents.fill(at, self.base, self.test.offset.0, &mut self.bytes);
        }
        if self.test.verbose {
            self.run.keys.push(self.keys());
        }
    }

    fn keys(&self) -> ObjectKeys {
        let names = &self.session.names;
        let akey = String::from_utf8_lossy(&self.akey).into_owned();
        ObjectKeys {
            dkey: Some(names.shown_dkey(&self.dkey)),
            akey: Some(weir_schema::ObjectKey::Name(akey)).filter(|_| !self.akey.is_empty()),
        }
    }

    /// The call; bytes that moved, or a code below 0.
    fn call(&mut self) -> i64 {
        let Some(at) = self.at else { return 0 };
        let session = &mut *self.session;
        let key = KeyAt {
            container: session.container,
            object: session.names.object(at.object),
            dkey: &self.dkey,
        };
        let size = self.test.size.0;
        let extent = [RecordExtent {
            index: session.names.index(at.stride) + self.test.offset.0,
            count: size,
        }];
        let iod = if session.names.is_array() {
            Iod::array(&self.akey, 1, &extent)
        } else {
            Iod::single(&self.akey, size)
        };
        let none = Conditions::NONE;
        let done = if self.test.action == ObjectAction::Update {
            let epoch = session.next_epoch();
            if session.work.zero_copy {
                session.store.reserve(key, &iod).and_then(|place| {
                    session.store.reserved(&place).copy_from_slice(&self.bytes);
                    session.store.publish(key, &iod, epoch, none, place)
                })
            } else {
                let iods = [iod];
                session.store.update(key, &iods, epoch, none, &self.bytes)
            }
        } else {
            let epoch = session.epoch;
            let mut iods = [iod];
            let store = &mut session.store;
            store.fetch(key, &mut iods, epoch, none, &mut self.bytes)
        };
        match done {
            // Engines of this trait's first users complete at once.
            Ok(Ticket::Done(0)) if size > 0 && self.test.action != ObjectAction::Update => {
                self.run.misses += 1;
                -i64::from(ObjectCode::NonExist.number())
            }
            Ok(Ticket::Done(bytes) | Ticket::Waits(bytes)) => {
                self.run.hits += 1;
                self.run.bytes += bytes;
                i64::from(self.op.length)
            }
            Err(error) => {
                let code = -i64::from(error.code.number());
                self.fail(&error);
                code
            }
        }
    }

    fn timed_call(&mut self) -> i64 {
        let Some(clock) = self.clock else {
            return self.call();
        };
        let begin = clock.now();
        let result = self.call();
        let took = clock.scale().to_nanos(clock.now().since(begin));
        self.run.busy_ns += took;
        self.run.truncated_us += took / 1000;
        result
    }

    /// The call on a thread that is made for it, on the next CPU; making and joining it are not in its time.
    fn call_alone(&mut self) -> i64 {
        let cpu = next_cpu();
        let called = std::thread::scope(|scope| {
            let call = scope.spawn(|| {
                // Elsewhere it runs as well.
                let _ = cpu.map(|cpu| set_affinity(&cpu));
                self.timed_call()
            });
            call.join()
        });
        called.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    }

    fn fail(&mut self, error: &ObjectError) {
        let at = self.at.unwrap_or_default();
        self.run.fail(ObjectFailure {
            object: self.session.names.object(at.object).to_string(),
            keys: self.keys(),
            epoch: self.session.epoch.0,
            code: code_of(error.code),
            text: error.message.clone().into_owned(),
        });
    }

    /// Holds what was read against what was written.
    fn compare(&mut self, found: bool) {
        let at = self.at.unwrap_or_default();
        let offset = self.test.offset.0;
        let error = if found {
            let contents = &self.session.contents;
            let place = contents.differs(at, self.base, offset, &self.bytes);
            place.map(|byte| {
                let why = format!("byte {byte} of the stride is not the one that was written");
                ObjectError::new(ObjectCode::Mismatch, why)
            })
        } else {
            Some(ObjectError::new(ObjectCode::NonExist, "nothing is stored"))
        };
        if let Some(error) = error {
            self.fail(&error);
        }
        self.bytes.fill(0);
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

/// The store as the loop calls it.
pub(super) struct Calls<'w, 'a, S: ObjectStore>(pub(super) &'w RefCell<Walk<'a, S>>);

impl<'w, 'a, S: ObjectStore> Engine for Calls<'w, 'a, S> {
    type Op = StoreOp;
    type Setup = &'w RefCell<Walk<'a, S>>;
    const INLINE: bool = true;

    fn attach(setup: Self::Setup) -> io::Result<Self> {
        Ok(Self(setup))
    }

    #[inline]
    fn submit(&mut self, _slot: u32, _op: &StoreOp) -> Submit {
        let walk = &mut *self.0.borrow_mut();
        Submit::Done(if walk.session.work.thread_per_operation {
            walk.call_alone()
        } else {
            walk.timed_call()
        })
    }
}

/// The operations of a test, in the reference's order.
pub(super) struct Places<'w, 'a, S: ObjectStore, const CHECKS: bool>(
    pub(super) &'w RefCell<Walk<'a, S>>,
);

impl<S: ObjectStore, const CHECKS: bool> Source for Places<'_, '_, S, CHECKS> {
    type Op = StoreOp;
    const ONE_KIND: bool = true;
    const CHECKS: bool = CHECKS;

    fn only_kind(&self) -> usize {
        self.0.borrow().op.kind
    }

    #[inline]
    fn next(&mut self, _slot: u32) -> Option<StoreOp> {
        self.0.borrow_mut().next()
    }

    #[inline]
    fn prepare(&mut self, _slot: u32, _op: &StoreOp) {
        self.0.borrow_mut().prepare();
    }

    fn completed(&mut self, _slot: u32, _op: &StoreOp, whole: bool) {
        self.0.borrow_mut().compare(whole);
    }

    /// Making keys and bytes takes as long as many a call.
    fn prepare_is_timed(&self) -> bool {
        true
    }
}
