//! A client's slots: what each one's call is at.
//!
//! In: calls that begin and end. Out: whether an answer is for a call that is out, for one that is
//! over, or for none. Not here: sending.

use crate::links::RegionId;
use crate::wire::RpcId;

/// Stage of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotStage {
    /// It has no call.
    Free,
    /// Its call waits for credits or room.
    Waiting,
    /// Its call is out.
    Out,
}

/// A slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallSlot {
    pub(super) stage: SlotStage,
    /// Counts its calls.
    pub(super) generation: u32,
    pub(super) endpoint: u32,
    /// Bits of the request's flags.
    pub(super) flags: u8,
    /// When the call began, in nanoseconds of the client's clock.
    pub(super) since_ns: u64,
    pub(super) region: Option<RegionId>,
    /// Checksum that the server checks the payload by, once it is made.
    pub(super) check: Option<u32>,
    /// Bytes of the reply that have been pushed.
    pub(super) pushed: u64,
}

/// Whom an answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerFor {
    /// A call that is out.
    Call,
    /// A call that has ended already.
    Late,
    /// Nobody: no such call was ever sent.
    Nobody,
}

/// All slots.
#[derive(Debug)]
pub(super) struct SlotTable {
    pub(super) slots: Vec<CallSlot>,
}

impl SlotTable {
    pub(super) fn new(count: u32) -> Self {
        let slot = CallSlot {
            stage: SlotStage::Free,
            generation: 0,
            endpoint: 0,
            flags: 0,
            since_ns: 0,
            region: None,
            check: None,
            pushed: 0,
        };
        Self {
            slots: vec![slot; count as usize],
        }
    }

    #[inline]
    pub(super) fn get(&mut self, slot: u32) -> &mut CallSlot {
        &mut self.slots[slot as usize]
    }

    /// The name of a slot's present call.
    #[inline]
    pub(super) fn rpc(&self, slot: u32) -> RpcId {
        RpcId {
            slot,
            generation: self.slots[slot as usize].generation,
        }
    }

    /// Whom an answer is for.
    #[inline]
    pub(super) fn answer_for(&self, rpc: RpcId) -> AnswerFor {
        let Some(slot) = self.slots.get(rpc.slot as usize) else {
            return AnswerFor::Nobody;
        };
        if slot.generation == rpc.generation && slot.stage == SlotStage::Out {
            return AnswerFor::Call;
        }
        // Calls of a slot count up from 1; half of all numbers lie behind the present one.
        let behind = slot.generation.wrapping_sub(rpc.generation);
        let waits = u32::from(slot.stage == SlotStage::Waiting);
        if rpc.generation != 0 && behind >= waits && behind < u32::MAX / 2 {
            AnswerFor::Late
        } else {
            AnswerFor::Nobody
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_for_the_call_that_is_out_and_no_other() {
        let mut table = SlotTable::new(2);
        let rpc = |slot, generation| RpcId { slot, generation };
        assert_eq!(table.answer_for(rpc(0, 1)), AnswerFor::Nobody);
        table.get(0).generation = 3;
        table.get(0).stage = SlotStage::Out;
        assert_eq!(table.answer_for(rpc(0, 3)), AnswerFor::Call);
        assert_eq!(table.answer_for(rpc(0, 2)), AnswerFor::Late);
        assert_eq!(table.answer_for(rpc(0, 4)), AnswerFor::Nobody);
        assert_eq!(table.answer_for(rpc(2, 1)), AnswerFor::Nobody);
        table.get(0).stage = SlotStage::Waiting;
        assert_eq!(table.answer_for(rpc(0, 3)), AnswerFor::Nobody);
    }
}
