//! The engine over a transport whose answers a test writes down.

use std::cell::RefCell;

use super::*;
use crate::DerCode;
use crate::transport::RpcCounters;

/// Answers by a script: what the next polls bring.
#[derive(Default)]
struct Scripted {
    out: Vec<(u32, u32)>,
    lost: Vec<bool>,
    may_return: bool,
    polls: u32,
    canceled: bool,
    answers: bool,
}

impl RpcTransport for &RefCell<Scripted> {
    fn request(&mut self, endpoint: u32, slot: u32) -> Requested {
        let mut this = self.borrow_mut();
        if this.lost[endpoint as usize] {
            return Requested::Gone;
        }
        this.out.push((endpoint, slot));
        Requested::Queued
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll(
        &mut self,
        _timeout_ns: Option<u64>,
        at_most: u32,
        mut done: impl FnMut(u32, i64),
    ) -> io::Result<u32> {
        let mut this = self.borrow_mut();
        this.polls += 1;
        if this.may_return && this.polls == 3 {
            this.lost.fill(false);
        }
        if at_most == 0 || !(this.answers || this.canceled) {
            return Ok(0);
        }
        let out = std::mem::take(&mut this.out);
        let count = u32::try_from(out.len()).unwrap();
        for (endpoint, slot) in out {
            let result = if this.canceled {
                DerCode::Canceled.result()
            } else if this.lost[endpoint as usize] {
                DerCode::Unreachable.result()
            } else {
                48
            };
            done(slot, result);
        }
        Ok(count)
    }

    fn is_up(&self, endpoint: u32) -> bool {
        !self.borrow().lost[endpoint as usize]
    }

    fn may_return(&self) -> bool {
        self.borrow().may_return
    }

    fn cancel(&mut self) {
        self.borrow_mut().canceled = true;
    }

    fn counters(&self) -> RpcCounters {
        RpcCounters::default()
    }

    fn close(self) -> io::Result<RpcCounters> {
        Ok(RpcCounters::default())
    }
}

fn op(entry: u32) -> RpcOp {
    RpcOp {
        entry,
        target: entry,
        length: 48,
    }
}

fn wait() -> Wait {
    Wait {
        at_least: 1,
        at_most: 8,
        timeout_ns: None,
    }
}

/// Runs a test with an engine over two endpoints.
fn with_engine<'s>(
    scripted: &'s RefCell<Scripted>,
    stop: &'s AtomicU32,
) -> (RpcEngine<'s, &'s RefCell<Scripted>>, Rc<EntryStates>) {
    scripted.borrow_mut().lost = vec![false; 2];
    let entries = EntryStates::new(&[0, 1], true);
    let signs = EndSigns {
        stop,
        findings: None,
    };
    let engine = RpcEngine::new(scripted, Rc::clone(&entries), (8, 48), signs);
    (engine, entries)
}

fn reaped(engine: &mut RpcEngine<'_, &RefCell<Scripted>>) -> Vec<(u32, i64)> {
    let mut seen = Vec::new();
    let take = |done: Completed| seen.push((done.slot, done.result));
    engine.reap(wait(), take).unwrap();
    seen
}

#[test]
fn a_lost_endpoint_fails_its_calls_and_is_not_called_again() {
    let scripted = RefCell::new(Scripted {
        answers: true,
        ..Scripted::default()
    });
    let stop = AtomicU32::new(0);
    let (mut engine, entries) = with_engine(&scripted, &stop);
    assert_eq!(engine.submit(3, &op(0)), Submit::Queued);
    assert_eq!(engine.submit(5, &op(1)), Submit::Queued);
    scripted.borrow_mut().lost[1] = true;
    let seen = reaped(&mut engine);
    assert_eq!(seen, [(3, 48), (5, -1006)]);
    assert!(!entries.is_up(1) && entries.is_up(0));
    // A call that nobody sends has failed too.
    assert_eq!(engine.submit(5, &op(1)), Submit::Done(-1006));
}

#[test]
fn an_endpoint_that_may_return_is_waited_for() {
    let scripted = RefCell::new(Scripted {
        may_return: true,
        answers: true,
        ..Scripted::default()
    });
    let stop = AtomicU32::new(0);
    let (mut engine, entries) = with_engine(&scripted, &stop);
    scripted.borrow_mut().lost = vec![true, true];
    assert_eq!(engine.submit(0, &op(0)), Submit::Full);
    assert_eq!(engine.submit(0, &op(0)), Submit::Full);
    assert_eq!(engine.submit(0, &op(0)), Submit::Queued);
    assert!(entries.is_up(0) && entries.is_up(1));
    assert_eq!(reaped(&mut engine), [(0, 48)]);
}

#[test]
fn calls_without_an_answer_are_given_up_a_while_after_the_end_was_asked_for() {
    let scripted = RefCell::new(Scripted::default());
    let stop = AtomicU32::new(0);
    let (mut engine, _) = with_engine(&scripted, &stop);
    assert_eq!(engine.submit(2, &op(0)), Submit::Queued);
    assert_eq!(reaped(&mut engine), []);
    stop.store(1, Ordering::Relaxed);
    assert_eq!(reaped(&mut engine), []);
    assert!(!scripted.borrow().canceled, "there is time for answers");
    engine.ending = Instant::now().checked_sub(DRAIN_ASKED);
    assert_eq!(reaped(&mut engine), []);
    assert_eq!(reaped(&mut engine), [(2, -1018)]);
}
