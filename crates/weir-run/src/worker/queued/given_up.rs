//! The end of a loop whose engine takes nothing any more.
//!
//! In: operations that were issued and not taken. Out: free slots, and counters without them. Not
//! here: completions of those that were taken, which the loop waits for as always.

use super::Loop;
use crate::clock::RunClock;
use crate::engine::{Engine, Operation};
use crate::live::KIND_MASK;
use crate::live::depth_level;
use crate::source::Source;
use crate::worker::slots::Queue;

impl<E, S, C> Loop<'_, '_, E, S, C>
where
    E: Engine,
    S: Source<Op = E::Op>,
    C: RunClock,
{
    /// Nothing can be handed over any more; the engine may still hold what it was offered, so
    /// that it is not asked again. Returns how many were taken: none.
    #[cold]
    #[inline(never)]
    pub(super) fn give_up(&mut self, queue: &mut Queue<E::Op>, error: &std::io::Error) -> u32 {
        self.state.engine_failed(error);
        queue.given_up = true;
        queue.blocked = true;
        self.take_back_all(queue);
        0
    }

    /// Takes back operations that the engine did not take: each counts as never issued, or as lost
    /// where a part of it has moved.
    pub(super) fn take_back_all(&mut self, queue: &mut Queue<E::Op>) {
        while let Some(slot) = queue.fresh.last() {
            queue.fresh.pop();
            self.take_back(queue, slot);
        }
        while let Some(slot) = queue.again.pop() {
            self.take_back(queue, slot);
        }
    }

    /// An operation that was issued will never be taken.
    fn take_back(&mut self, queue: &mut Queue<E::Op>, slot: u32) {
        let drawn = &queue.slots[slot as usize];
        if drawn.moved == 0 {
            let live = self.state.live();
            live.kinds[drawn.op.kind_index() & KIND_MASK]
                .issued
                .take_back();
            live.depth[depth_level(queue.in_flight)].take_back();
        }
        if S::CHECKS {
            self.source.completed(slot, &drawn.op, false);
        }
        queue.release(slot, drawn.accepted);
    }
}
