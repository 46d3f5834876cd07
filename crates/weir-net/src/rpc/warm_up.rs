//! Calls before anything counts: connections are made, memory is touched, clocks of CPUs rise.
//!
//! In: a transport. Out: the same, with no call out. Failed calls are no matter here: what is lost is
//! found to be lost again when it counts.

use std::io;
use std::time::{Duration, Instant};

use weir_schema::RpcWarmup;

use super::transport::{Requested, RpcTransport};

/// Calls of the automatic warm-up.
const CALLS: u64 = 1000;
/// And for how long it lasts at least.
const TIME: Duration = Duration::from_millis(500);
/// How long a look for answers waits.
const LOOK_NS: u64 = 10_000_000;

/// Whose calls warm up.
#[derive(Clone, Copy, Debug)]
pub struct WarmUp {
    /// What was asked for.
    pub asked: RpcWarmup,
    /// Slots of the thread.
    pub slots: u32,
    /// Entries of its list.
    pub entries: u32,
    /// Threads of the master, which share the work.
    pub threads: u32,
}

impl WarmUp {
    /// Makes the calls. `is_over` ends it early.
    ///
    /// # Errors
    /// The transport is broken.
    pub fn run(
        self,
        transport: &mut impl RpcTransport,
        is_over: impl Fn() -> bool,
    ) -> io::Result<()> {
        let (calls, time) = match self.asked {
            RpcWarmup::Automatic => (CALLS, TIME),
            RpcWarmup::Requests { count } => (count, Duration::ZERO),
            RpcWarmup::Time { for_ns } => (0, Duration::from_nanos(for_ns.0)),
        };
        let least = calls.div_ceil(u64::from(self.threads.max(1)));
        let began = Instant::now();
        let mut free: Vec<u32> = (0..self.slots).collect();
        let mut entries = (0..self.entries).cycle();
        let mut made = 0;
        loop {
            let is_due = made < least || began.elapsed() < time;
            let goes_on = is_due && !is_over();
            while goes_on && (made < least || !time.is_zero()) {
                let Some(slot) = free.pop() else { break };
                made += 1;
                let up = entries.by_ref().take(self.entries as usize);
                let mut up = up.skip_while(|entry| !transport.is_up(*entry));
                let sent = up.next().map(|entry| transport.request(entry, slot));
                if sent != Some(Requested::Queued) {
                    free.push(slot);
                    if sent.is_none() {
                        return Ok(());
                    }
                }
            }
            if free.len() == self.slots as usize {
                return Ok(());
            }
            transport.flush()?;
            transport.poll(Some(LOOK_NS), u32::MAX, |slot, _| free.push(slot))?;
            if is_over() {
                transport.cancel();
            }
        }
    }
}
