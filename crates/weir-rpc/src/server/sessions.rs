//! Sessions: what a client may have out at once, and the buffers that its calls use.
//!
//! In: what a client asks for. Out: what it gets, within the limits. Buffers are made and touched
//! when a session opens and never later. Not here: calls.

use std::collections::VecDeque;

use super::limits::Quota;
use crate::links::{Link, PeerId, RegionId};
use crate::service::SessionShape;
use crate::wire::OpenRequest;
use crate::{DerCode, RpcError, machine_memory};

/// A client's session.
#[derive(Debug)]
pub(super) struct ServerSession {
    pub(super) peer: PeerId,
    /// Place of the tag with this poller, and of the service with the tag.
    pub(super) tag: usize,
    pub(super) service: usize,
    pub(super) send_size: u32,
    pub(super) buffers: Vec<RegionId>,
    /// Free ones, the longest free first.
    pub(super) free: VecDeque<RegionId>,
    /// Calls without a buffer, in order.
    pub(super) waiting: VecDeque<u32>,
    /// It is in the poller's list of those with calls that wait.
    pub(super) starving: bool,
    /// Calls that are not answered at once.
    pub(super) active: Vec<u32>,
    pub(super) credits: u32,
    pub(super) requests: u64,
    pub(super) buffer_waits: u64,
    /// Memory that it has taken of the limit.
    memory: u64,
    /// CLOSE has come; the answer follows when moves of memory have ended.
    pub(super) closing: bool,
}

/// Checks what a client asks for, and how much memory that is.
fn memory_needed(asked: &OpenRequest, shape: &SessionShape) -> Option<(u32, u64)> {
    let buffers = if shape.buffer_bytes == 0 {
        0
    } else {
        asked.buffers.max(1)
    };
    // What an address may be moved by.
    let spare = if asked.low_byte.is_some() { 256 } else { 0 };
    let each = shape.buffer_bytes.checked_add(spare)?;
    Some((buffers, each.checked_mul(u64::from(buffers))?))
}

impl ServerSession {
    /// Opens a session: as many buffers as are asked for and fit into the memory that is left,
    /// at least one.
    pub(super) fn open<L: Link>(
        link: &mut L,
        peer: PeerId,
        places: (usize, usize),
        asked: &OpenRequest,
        shape: &SessionShape,
        limits: (&Quota, u32),
    ) -> Result<Self, RpcError> {
        let (quota, most_credits) = limits;
        let needed = memory_needed(asked, shape);
        let no_memory = || {
            let (buffers, all) = needed.unwrap_or((asked.buffers, u64::MAX));
            let why = format!(
                "buffers for a session take {all} bytes ({buffers} of {} bytes), and {} bytes are left of \
                 the server's memory limit (`weir rpc serve --mem-limit` says how many there are)",
                shape.buffer_bytes,
                quota.left()
            );
            RpcError::new(DerCode::NoMemory, why)
        };
        let (buffers, memory) = needed.ok_or_else(no_memory)?;
        if !quota.take(memory) {
            return Err(no_memory());
        }
        // The limit may be more than there is.
        let what = || "the server's buffers for a session".to_owned();
        machine_memory::check(memory, what).inspect_err(|_| quota.give(memory))?;
        let mut session = Self {
            peer,
            tag: places.0,
            service: places.1,
            send_size: asked.send_size,
            buffers: Vec::new(),
            free: VecDeque::new(),
            waiting: VecDeque::new(),
            starving: false,
            active: Vec::new(),
            credits: asked.credits.clamp(1, most_credits),
            requests: 0,
            buffer_waits: 0,
            memory,
            closing: false,
        };
        let size = usize::try_from(shape.buffer_bytes).unwrap_or(usize::MAX);
        for _ in 0..buffers {
            match link.allocate(size, asked.low_byte) {
                Ok(region) => {
                    link.bytes(region).fill(shape.fill);
                    session.buffers.push(region);
                    session.free.push_back(region);
                }
                Err(error) => {
                    session.give_back(link, quota);
                    return Err(error);
                }
            }
        }
        Ok(session)
    }

    /// A buffer that nothing refers to any more.
    #[inline]
    pub(super) fn take_buffer<L: Link>(&mut self, link: &L) -> Option<RegionId> {
        let region = *self.free.front()?;
        if link.is_in_use(region) {
            return None;
        }
        self.free.pop_front()
    }

    /// Gives memory back.
    pub(super) fn give_back<L: Link>(&mut self, link: &mut L, quota: &Quota) {
        for region in self.buffers.drain(..) {
            link.release(region);
        }
        self.free.clear();
        quota.give(std::mem::take(&mut self.memory));
    }
}
