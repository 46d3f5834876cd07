//! Calls as operations of the house's loop, over any transport.
//!
//! In: calls to entries of a list of endpoints. Out: completions, whose failures are negative numbers of
//! the DER family. A call that is still out when its loop has to end is given up. Not here: which
//! endpoint is next (`spread`), how a call travels (the transports).

use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use weir_run::{Completed, Engine, Findings, Submit, Wait};

use crate::master::spread::{EntryStates, RpcOp};
use crate::transport::{Requested, RpcTransport};

/// However long it waits for an answer, it looks up so often whether it is to end.
const LOOK_NS: u64 = 10_000_000;
/// For so long it waits for answers once somebody has asked it to end.
pub(crate) const DRAIN_ASKED: Duration = Duration::from_secs(1);
/// And for so long once its time is up.
const DRAIN_IN_TIME: Duration = Duration::from_secs(3);
/// One of so many waits for answers is timed: what is looked for is a share, and two looks at the clock for
/// each would show.
const TIMED: u32 = 64;
/// Fewer timed waits say nothing.
const LEAST_TIMED: u32 = 16;
/// Lost endpoints that may come back are looked at every so many harvests.
const LOOK_FOR_LOST: u32 = 64;

/// Signs that ask a loop to end.
#[derive(Clone, Copy, Debug)]
pub struct EndSigns<'a> {
    /// Not 0: somebody has asked for it.
    pub stop: &'a AtomicU32,
    /// Its time is up.
    pub findings: Option<&'a Findings>,
}

/// Carries calls out over a transport.
#[derive(Debug)]
pub struct RpcEngine<'a, T> {
    transport: T,
    entries: Rc<EntryStates>,
    /// The entry that each slot calls.
    called: Box<[u32]>,
    /// Result that the loop takes as whole.
    whole: i64,
    may_return: bool,
    harvests: u32,
    signs: EndSigns<'a>,
    /// Since when it is to end.
    ending: Option<Instant>,
    /// Waits that were timed, and the CPU time of their looks that brought nothing.
    timed: (u32, Duration),
}

impl<'a, T: RpcTransport> RpcEngine<'a, T> {
    /// Calls in so many slots, each of so many bytes.
    pub fn new(
        transport: T,
        entries: Rc<EntryStates>,
        (slots, bytes): (u32, u64),
        signs: EndSigns<'a>,
    ) -> Self {
        let may_return = transport.may_return();
        entries.waits.set(may_return);
        // An endpoint that is lost already fails its first call, so that it shows.
        Self {
            transport,
            entries,
            called: vec![0; slots as usize].into(),
            whole: i64::from(u32::try_from(bytes).unwrap_or(u32::MAX)),
            may_return,
            harvests: 0,
            signs,
            ending: None,
            timed: (0, Duration::ZERO),
        }
    }

    /// CPU time that went into looking for answers while there were none, as far as timed waits say; nothing
    /// where they were too few.
    pub fn looked_for_nothing(&self) -> Option<Duration> {
        let (count, time) = self.timed;
        (count >= LEAST_TIMED).then(|| time.saturating_mul(TIMED))
    }

    /// The transport, after the last completion.
    pub fn into_transport(self) -> T {
        self.transport
    }

    #[cold]
    #[inline(never)]
    fn look_at_endpoints(&mut self) {
        for entry in 0..self.entries.len() {
            self.entries.set_up(entry, self.transport.is_up(entry));
        }
        self.entries.waits.set(self.transport.may_return());
    }

    /// Nothing was sent: the endpoint is lost. Where it may come back, a while is waited for that.
    #[cold]
    #[inline(never)]
    fn not_sent(&mut self, slot: u32, entry: u32) -> Submit {
        self.entries.set_up(entry, false);
        if !self.transport.may_return() {
            return Submit::Done(self.transport.why_down(entry).result());
        }
        // No call is out where lost endpoints are called; a broken link shows at the next hand-over.
        let _ = self.transport.poll(Some(LOOK_NS), 0, |_, _| ());
        self.look_at_endpoints();
        match self.transport.request(entry, slot) {
            Requested::Queued => self.sent(slot, entry),
            Requested::Gone => Submit::Full,
        }
    }

    #[inline]
    fn sent(&mut self, slot: u32, entry: u32) -> Submit {
        if let Some(called) = self.called.get_mut(slot as usize) {
            *called = entry;
        }
        if self.entries.counts {
            self.entries.count_out(entry);
        }
        Submit::Queued
    }

    #[inline]
    fn harvest<const IS_TIMED: bool>(
        &mut self,
        timeout: u64,
        at_most: u32,
        mut done: impl FnMut(Completed),
    ) -> io::Result<u32> {
        let Self {
            transport,
            entries,
            called,
            whole,
            timed,
            ..
        } = self;
        let mut has_failures = false;
        let take = |slot: u32, result: i64| {
            if entries.counts {
                entries.count_back(called.get(slot as usize).copied().unwrap_or(u32::MAX));
            }
            has_failures |= result < 0;
            let result = if result < 0 { result } else { *whole };
            done(Completed { slot, result });
        };
        let count = if IS_TIMED {
            let (count, idle) = transport.poll_timed(Some(timeout), at_most, take)?;
            *timed = (timed.0.saturating_add(1), timed.1 + idle);
            count
        } else {
            transport.poll(Some(timeout), at_most, take)?
        };
        self.harvests = self.harvests.wrapping_add(1);
        if has_failures || (self.may_return && self.harvests.is_multiple_of(LOOK_FOR_LOST)) {
            self.look_at_endpoints();
        }
        if count == 0 && timeout > 0 {
            self.look_for_end();
        }
        Ok(count)
    }

    /// Nothing came: whether the loop has to end, and has waited long enough.
    #[cold]
    #[inline(never)]
    fn look_for_end(&mut self) {
        let asked = self.signs.stop.load(Ordering::Relaxed) != 0;
        let is_due = self.signs.findings.is_some_and(Findings::is_end_due);
        if !asked && !is_due {
            return;
        }
        let most = if asked { DRAIN_ASKED } else { DRAIN_IN_TIME };
        if self.ending.get_or_insert_with(Instant::now).elapsed() >= most {
            self.transport.cancel();
        }
    }
}

impl<T: RpcTransport> Engine for RpcEngine<'_, T> {
    type Op = RpcOp;
    type Setup = Self;
    const QUICK: bool = true;

    fn attach(ready: Self) -> io::Result<Self> {
        Ok(ready)
    }

    #[inline]
    fn submit(&mut self, slot: u32, op: &RpcOp) -> Submit {
        match self.transport.request(op.entry, slot) {
            Requested::Queued => self.sent(slot, op.entry),
            Requested::Gone => self.not_sent(slot, op.entry),
        }
    }

    #[inline]
    fn commit(&mut self) -> io::Result<u32> {
        self.transport.flush()?;
        // What cannot go out yet waits in the transport.
        Ok(u32::MAX)
    }

    #[inline]
    fn reap(&mut self, wait: Wait, done: impl FnMut(Completed)) -> io::Result<u32> {
        let timeout = match wait.at_least {
            0 => 0,
            _ => wait.timeout_ns.unwrap_or(LOOK_NS).min(LOOK_NS),
        };
        if timeout > 0 && self.harvests % TIMED == TIMED / 2 {
            return self.harvest::<true>(timeout, wait.at_most, done);
        }
        self.harvest::<false>(timeout, wait.at_most, done)
    }
}

#[cfg(test)]
mod tests;
