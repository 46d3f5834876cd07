//! Operations in flight: an event queue of libdaos, and slots that own what the library works on.
//!
//! In: updates and fetches. Out: tickets, and their ends when asked. A slot is used again once the library has
//! given its event back, and a fetch's once its bytes were taken.

#![expect(unsafe_code, reason = "memory that is written into behind a call")]

use std::ptr::{null_mut, slice_from_raw_parts_mut};
use std::sync::Arc;

use super::calls::{BLOCKING, DaosEvent, DaosHandle, MOMENT};
use super::descriptors::{CallKind, Descriptors};
use super::library::{DaosLibrary, done};
use crate::prelude::*;

/// Moments in which what is in flight has to end with its store.
const LONGEST_END: u32 = 600;

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    InFlight,
    /// A fetch whose bytes wait for their receiver.
    Holds,
    /// The library has it and says nothing about it any more.
    Lost,
}

#[derive(Debug)]
struct EventSlot {
    request: Descriptors,
    data: Vec<u8>,
    at: (DaosHandle, DaosHandle, u64),
    direction: CallKind,
    ticket: u64,
    state: SlotState,
}

/// Operations in flight.
#[derive(Debug)]
pub(super) struct EventQueue {
    library: Arc<DaosLibrary>,
    handle: DaosHandle,
    slots: Vec<EventSlot>,
    /// Event of each slot: made by a box, which is taken again at the end.
    events: *mut DaosEvent,
    free: Vec<usize>,
    /// Events that a poll gives.
    ended: Vec<*mut DaosEvent>,
    in_flight: usize,
    rounds: u64,
}

// SAFETY: the addresses are of memory that the queue alone owns, and the library may be called by any thread.
unsafe impl Send for EventQueue {}

impl EventQueue {
    /// A queue for so many operations.
    pub(super) fn new(library: &Arc<DaosLibrary>, depth: usize) -> Result<Self> {
        let mut handle = DaosHandle::default();
        // SAFETY: the handle is writable.
        let answer = unsafe { (library.calls.queue_create)(&raw mut handle) };
        done("queue_create", answer)?;
        let events: Box<[DaosEvent]> = (0..depth).map(|_| DaosEvent::new()).collect();
        let mut queue = Self {
            library: Arc::clone(library),
            handle,
            slots: Vec::with_capacity(depth),
            events: Box::into_raw(events).cast(),
            free: (0..depth).collect(),
            ended: vec![null_mut(); depth],
            in_flight: 0,
            rounds: 0,
        };
        for number in 0..depth {
            queue.slots.push(EventSlot {
                request: Descriptors::new(),
                data: Vec::new(),
                at: (DaosHandle::default(), DaosHandle::default(), 0),
                direction: CallKind::Update,
                ticket: 0,
                state: SlotState::Free,
            });
            let event = queue.events.wrapping_add(number);
            // SAFETY: the event is writable and stays where it is until `finish`; it has no parent.
            let answer = unsafe { (library.calls.event_init)(event, handle, null_mut()) };
            done("event_init", answer)?;
        }
        Ok(queue)
    }

    /// Begins an operation; its ticket. `data` are the bytes of an update, or as many as a fetch has room for.
    pub(super) fn begin(
        &mut self,
        direction: CallKind,
        at: (DaosHandle, DaosHandle, u64),
        call: (&[u8], &[Iod<'_>]),
        data: &[u8],
    ) -> Result<u64> {
        let depth = self.slots.len() as u64;
        let Some(&number) = self.free.last() else {
            let why =
                format!("{depth} operations are in flight or wait to be received: poll first");
            return ObjectCode::Busy.fail(why);
        };
        let slot = &mut self.slots[number];
        if direction == CallKind::Update {
            slot.data.clear();
            slot.data.extend_from_slice(data);
        } else {
            slot.data.resize(data.len(), 0);
        }
        slot.request.fill(direction, call, &raw mut *slot.data)?;
        let event = self.events.wrapping_add(number);
        // SAFETY: slot and queue own request, data and event, and leave them alone until the event is given back;
        // those that never are stay with the library.
        unsafe {
            self.library
                .transfer(direction, at, &mut slot.request, event)
        }?;
        self.free.pop();
        self.rounds += 1;
        self.in_flight += 1;
        (slot.at, slot.direction, slot.state) = (at, direction, SlotState::InFlight);
        slot.ticket = self.rounds * depth + number as u64;
        Ok(slot.ticket)
    }

    /// Appends the ends of operations, waiting for `min` of them or for all that are in flight, but for a moment
    /// at the most; their number.
    pub(super) fn poll(&mut self, out: &mut Vec<Completion>, min: usize) -> usize {
        let before = out.len();
        let min = min.min(self.in_flight);
        loop {
            let timeout = if out.len() - before < min { MOMENT } else { 0 };
            let room = u32::try_from(self.ended.len()).unwrap_or(u32::MAX);
            let (calls, ended) = (&self.library.calls, self.ended.as_mut_ptr());
            // SAFETY: the list has so much room.
            let count = unsafe { (calls.queue_poll)(self.handle, 1, timeout, room, ended) };
            if let Err(why) = done("queue_poll", count) {
                self.lose(out, &why);
                return out.len() - before;
            }
            let count = self.ended.len().min(count.unsigned_abs() as usize);
            for place in 0..count {
                let distance = self.ended[place].addr().wrapping_sub(self.events.addr());
                let number = distance / size_of::<DaosEvent>();
                let slot = self.slots.get(number);
                if slot.is_some_and(|slot| slot.state == SlotState::InFlight) {
                    out.push(self.end(number));
                }
            }
            if out.len() - before >= min || count == 0 {
                return out.len() - before;
            }
        }
    }

    /// Fails what is in flight in a queue that does not work any more.
    fn lose(&mut self, out: &mut Vec<Completion>, why: &ObjectError) {
        for slot in &mut self.slots {
            if slot.state == SlotState::InFlight {
                slot.state = SlotState::Lost;
                out.push(Completion {
                    ticket: slot.ticket,
                    result: Err(why.clone()),
                });
            }
        }
    }

    /// The end of a slot's operation, whose event the library has given back.
    fn end(&mut self, number: usize) -> Completion {
        let slot = &mut self.slots[number];
        let event = self.events.wrapping_add(number);
        // SAFETY: the event is the slot's own, and the library has given it back.
        let error = unsafe { (*event).error };
        let is_fetch = slot.direction == CallKind::Fetch;
        let mut result = done(["update", "fetch"][usize::from(is_fetch)], error);
        while is_fetch && result.is_ok() && slot.request.lacked_room() {
            let request = &mut slot.request;
            // SAFETY: it waits for the end; the request was filled with the slot's own data.
            result = unsafe {
                self.library
                    .transfer(slot.direction, slot.at, request, BLOCKING)
            };
        }
        self.in_flight -= 1;
        slot.state = if is_fetch && result.is_ok() {
            SlotState::Holds
        } else {
            self.free.push(number);
            SlotState::Free
        };
        let bytes = if is_fetch {
            slot.request.found()
        } else {
            slot.data.len() as u64
        };
        Completion {
            ticket: slot.ticket,
            result: result.map(|()| bytes),
        }
    }

    /// Takes the bytes of a fetch that has ended, by its ticket.
    pub(super) fn receive(&mut self, of: u64, iods: &mut [Iod<'_>], out: &mut [u8]) -> Result<u64> {
        let number = usize::try_from(of % self.slots.len().max(1) as u64).unwrap_or(0);
        let slot = self.slots.get_mut(number);
        let slot = slot.filter(|slot| slot.ticket == of && slot.state == SlotState::Holds);
        let slot =
            slot.ok_or_else(|| ObjectCode::NoHdl.error("no fetch of this ticket has ended"))?;
        slot.request.copy_found(&slot.data, out);
        slot.request.describe(iods);
        slot.state = SlotState::Free;
        self.free.push(number);
        Ok(slot.request.found())
    }

    /// Waits for all that is in flight, and gives events and queue back.
    pub(super) fn finish(&mut self) -> Result<()> {
        let mut ended = Vec::new();
        let is_lost = |queue: &Self| queue.slots.iter().any(|slot| slot.state == SlotState::Lost);
        for _ in 0..LONGEST_END {
            if self.in_flight == 0 || is_lost(self) {
                break;
            }
            self.poll(&mut ended, usize::MAX);
        }
        if self.in_flight > 0 {
            // The library may still write there.
            std::mem::forget(std::mem::take(&mut self.slots));
            return ObjectCode::Io.fail("operations in flight did not end");
        }
        let depth = self.slots.len();
        self.slots.clear();
        let mut result = Ok(());
        for number in 0..depth {
            let event = self.events.wrapping_add(number);
            // SAFETY: the event was made for this queue and is not in flight.
            let answer = unsafe { (self.library.calls.event_fini)(event) };
            result = result.and(done("event_fini", answer));
        }
        let events = slice_from_raw_parts_mut(self.events, self.ended.len());
        // SAFETY: made by a box of this length in `new`; the library has let all of them go.
        drop(unsafe { Box::from_raw(events) });
        self.ended.clear();
        // SAFETY: no memory is given.
        let answer = unsafe { (self.library.calls.queue_destroy)(self.handle, 0) };
        result.and(done("queue_destroy", answer))
    }
}

impl Drop for EventQueue {
    fn drop(&mut self) {
        if !self.slots.is_empty() {
            // Whoever wants to know calls `finish`.
            let _ = self.finish();
        }
    }
}
