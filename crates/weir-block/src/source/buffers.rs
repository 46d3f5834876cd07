//! The memory of a worker's slots, and what is written from it.
//!
//! Registered buffers are cut the same way, so that the slot is their index.

use weir_sys::SysError;
use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use crate::generate::payload::Payload;
use crate::op::{BlockOp, Buffer, Verb};

/// Payload from this length on takes long enough to be timed.
const TIMED_FROM: u32 = 16 << 10;

/// Memory for each slot.
#[derive(Debug)]
pub struct SlotBuffers {
    memory: AlignedBuf,
    base: *mut u8,
    stride: usize,
    payload: Option<Payload>,
    timed: bool,
}

impl SlotBuffers {
    /// Cuts the memory into slots of `stride` bytes and fills them, if there is a payload. `refills`: each write gets all
    /// of its content anew.
    pub fn new(
        mut memory: AlignedBuf,
        stride: u32,
        mut payload: Option<Payload>,
        refills: bool,
    ) -> Self {
        let bytes = stride as usize;
        if let Some(payload) = &mut payload {
            for slot in memory.as_mut_slice().chunks_exact_mut(bytes) {
                payload.fill(slot);
            }
        }
        let changes = payload.as_ref().is_some_and(Payload::changes_every_write);
        Self {
            base: memory.as_ptr(),
            memory,
            stride: bytes,
            payload: payload.filter(|_| changes),
            timed: changes && (refills || stride >= TIMED_FROM),
        }
    }

    /// No memory: for sources that only draw.
    pub(super) fn none() -> Result<Self, SysError> {
        let memory = AlignedBuf::new(&BufferSpec::private(Bytes(1)))?;
        Ok(Self::new(memory, 1, None, false))
    }

    /// Content of a slot.
    pub(super) fn slot(&self, slot: u32, length: u32) -> &[u8] {
        self.memory
            .slot(slot as usize * self.stride, length as usize)
    }

    /// Content of a slot, mutable.
    pub(super) fn slot_mut(&mut self, slot: u32, length: u32) -> &mut [u8] {
        self.memory
            .slot_mut(slot as usize * self.stride, length as usize)
    }

    /// The memory, for registration.
    pub fn memory(&self) -> &AlignedBuf {
        &self.memory
    }

    /// Bytes of a slot.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Memory of a slot.
    #[inline]
    pub fn at(&self, slot: u32) -> Buffer {
        Buffer(self.base.wrapping_add(slot as usize * self.stride))
    }

    /// Makes a write's content.
    #[inline]
    pub fn prepare(&mut self, slot: u32, op: &BlockOp) {
        if op.verb == Verb::Write && self.payload.is_some() {
            self.make(slot, op.length);
        }
    }

    #[inline(never)]
    fn make(&mut self, slot: u32, length: u32) {
        if let Some(payload) = &mut self.payload {
            let start = slot as usize * self.stride;
            payload.prepare(self.memory.slot_mut(start, length as usize));
        }
    }

    /// Making content takes long enough to be timed.
    #[inline]
    pub fn prepare_is_timed(&self) -> bool {
        self.timed
    }
}
