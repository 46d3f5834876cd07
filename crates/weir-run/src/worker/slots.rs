//! The slots of a queue: which are free, in flight, waiting to be accepted or continued.

#![expect(
    clippy::inline_always,
    reason = "parts of one loop, split for the reader only"
)]

use weir_sys::clock::Tick;

use crate::engine::Operation;

/// An operation in flight.
#[derive(Clone, Copy, Default)]
pub(super) struct Slot<O> {
    pub(super) op: O,
    /// Bytes that short completions have moved so far.
    pub(super) moved: u32,
    /// A rest is in flight: what was accepted is its first part.
    pub(super) is_continued: bool,
    pub(super) started: Tick,
    pub(super) accepted: Tick,
    pub(super) intended: Tick,
}

/// Slots in a fixed room: pushing never allocates.
pub(super) struct Stack {
    pub(super) slots: Box<[u32]>,
    pub(super) len: u32,
}

impl Stack {
    pub(super) fn empty(room: u32) -> Self {
        Self {
            slots: vec![0; room as usize].into(),
            len: 0,
        }
    }

    /// Every slot, the first on top.
    pub(super) fn full(room: u32) -> Self {
        Self {
            slots: (0..room).rev().collect(),
            len: room,
        }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// No slot is pushed twice, so there is always room.
    #[inline(always)]
    pub(super) fn push(&mut self, slot: u32) {
        if let Some(top) = self.slots.get_mut(self.len as usize) {
            *top = slot;
            self.len += 1;
        }
    }

    #[inline(always)]
    pub(super) fn last(&self) -> Option<u32> {
        self.slots.get(self.len.wrapping_sub(1) as usize).copied()
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    #[inline(always)]
    pub(super) fn first(&self, count: u32) -> &[u32] {
        &self.slots[..count.min(self.len) as usize]
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    #[cold]
    pub(super) fn drop_first(&mut self, count: u32) {
        self.slots.copy_within(count as usize..self.len as usize, 0);
        self.len -= count;
    }
}

/// The queue's bookkeeping.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Queue<O> {
    pub(super) slots: Vec<Slot<O>>,
    pub(super) free: Stack,
    pub(super) in_flight: u32,
    /// Submitted, not yet accepted.
    pub(super) fresh: Stack,
    /// In flight, with a rest that has to be submitted again.
    pub(super) again: Vec<u32>,
    /// Drawn in this slot, not yet due or without room in the engine.
    pub(super) pending: Option<u32>,
    pub(super) exhausted: bool,
    /// No more than this may be in flight.
    pub(super) limit: u32,
    /// The queue was full and shall sink to the refill mark first.
    pub(super) sinking: bool,
    /// The engine did not take all it was offered.
    pub(super) blocked: bool,
    /// The engine takes nothing any more.
    pub(super) given_up: bool,
    /// Time at which a slot became free while none was.
    pub(super) free_since: Tick,
}

impl<O: Operation> Queue<O> {
    pub(super) fn new(depth: u32, now: Tick) -> Self {
        let room = depth as usize;
        Self {
            slots: vec![Slot::default(); room],
            free: Stack::full(depth),
            in_flight: 0,
            fresh: Stack::empty(depth),
            again: Vec::with_capacity(room),
            pending: None,
            exhausted: false,
            limit: u32::MAX,
            sinking: false,
            blocked: false,
            given_up: false,
            free_since: now,
        }
    }

    /// Due time of the drawn operation that could not be issued yet.
    pub(super) fn due(&self) -> Option<Tick> {
        let slot = self.slots.get(self.pending? as usize)?;
        Some(slot.intended)
    }

    /// True if an operation in flight touches the same bytes as the drawn one.
    #[cold]
    pub(super) fn overlaps_pending(&self) -> bool {
        let Some(drawn) = self.pending.and_then(|slot| self.slots.get(slot as usize)) else {
            return false;
        };
        let drawn = &drawn.op;
        let is_free = |slot: u32| self.free.first(self.free.len()).contains(&slot);
        let others = (0_u32..).zip(&self.slots);
        others
            .filter(|(number, _)| Some(*number) != self.pending)
            .any(|(number, slot)| slot.op.overlaps(drawn) && !is_free(number))
    }

    /// Operations whose rest the engine had no room for yet.
    #[inline(always)]
    pub(super) fn waiting_again(&self) -> u32 {
        u32::try_from(self.again.len()).unwrap_or(u32::MAX)
    }

    /// The drawn operation may not go before this instant.
    #[cold]
    pub(super) fn hold(&mut self, until: Tick) {
        if let Some(slot) = self.pending {
            self.slots[slot as usize].intended = until;
        }
    }

    #[inline(always)]
    pub(super) fn release(&mut self, slot: u32, now: Tick) {
        if self.free.is_empty() {
            self.free_since = now;
        }
        self.free.push(slot);
        self.in_flight -= 1;
    }
}
