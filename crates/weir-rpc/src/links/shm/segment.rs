//! The memory of one connection: a ring of frames for each way, and a slab for each way that long
//! frames lie in.
//!
//! In: memory that client and server have mapped, and which of them this is. Out: the end that
//! sends and the end that receives.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use weir_sys::SysError;
use weir_sys::ring::{Consumer, MappedRing, Producer};
use weir_sys::shared_memory::SharedMemory;

use super::frames::{FrameReceiver, FrameSender, FrameSlot, SLOTS};
use crate::links::LinkSide;

/// Bytes of a slab: several frames of the largest size. Pages come when they are touched.
pub(super) const SLAB: usize = 4 << 20;
const RING: usize = MappedRing::<FrameSlot>::bytes(SLOTS).next_multiple_of(4096);
/// Of the whole memory.
const LENGTH: usize = 2 * (RING + SLAB);

/// New memory for a connection, and the descriptor for the other side.
pub(super) fn create() -> Result<(Arc<SharedMemory>, OwnedFd), SysError> {
    let (memory, file) = SharedMemory::create("weir-rpc-connection", LENGTH)?;
    Ok((Arc::new(memory), file))
}

/// Maps the segment that the other side made.
pub(super) fn open(file: impl AsFd) -> Result<Arc<SharedMemory>, SysError> {
    SharedMemory::open(file, 0, LENGTH).map(Arc::new)
}

/// This side's ends. The client sends through the first ring and slab.
pub(super) fn ends(
    memory: &Arc<SharedMemory>,
    side: LinkSide,
    max_frame: u32,
) -> Result<(FrameSender, FrameReceiver), SysError> {
    let ring = |number| MappedRing::at(memory, number * RING, SLOTS);
    let slab = |number| 2 * RING + number * SLAB;
    let (out, into) = match side {
        LinkSide::Client => (0, 1),
        LinkSide::Server => (1, 0),
    };
    let sender = FrameSender::new(Producer::new(ring(out)?), Arc::clone(memory), slab(out));
    let receiver = FrameReceiver::new(
        Consumer::new(ring(into)?),
        Arc::clone(memory),
        slab(into),
        max_frame,
    );
    Ok((sender, receiver))
}
