//! Sessions: what a client may have out at once, and the buffers that its calls use.
//!
//! In: what a client asks for. Out: what it gets, within the limits. Buffers are made and touched
//! when a session opens and never later. Not here: calls.

use std::collections::{HashMap, VecDeque};

use weir_schema::RpcPayloadKind;

use crate::links::{Link, PeerId, RegionId};
use crate::service::SessionShape;
use crate::wire::{OpenRequest, RpcId};
use crate::{DerCode, MemoryAccount, RpcError, machine_memory};

/// Buffers of one session that are made or given back in a round, so that others are served meanwhile.
const BUFFERS_A_ROUND: usize = 256;
/// Bytes of buffers that a round makes, if it is more than one.
const BYTES_A_ROUND: usize = 16 << 20;

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
    /// Calls without a buffer, in order, by their tokens; some may have ended.
    pub(super) waiting: VecDeque<u64>,
    /// It is in the poller's list of those with calls that wait.
    pub(super) starving: bool,
    /// Places of calls that are not answered at once.
    pub(super) active: HashMap<RpcId, u32>,
    pub(super) credits: u32,
    /// Most bytes that a request may describe.
    pub(super) longest_bulk: u64,
    pub(super) requests: u64,
    pub(super) buffer_waits: u64,
    /// Memory that it has taken of the limit.
    memory: u64,
    /// CLOSE has come; the answer follows when moves of memory have ended.
    pub(super) closing: bool,
    /// Buffers that are still to be made before OPEN is answered.
    pub(super) opening: Option<Opening>,
}

/// Rest of an OPEN.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    /// The call that the answer is of.
    pub(super) rpc: RpcId,
    left: u32,
    size: usize,
    low_byte: Option<u8>,
    fill: u8,
}

/// Buffers that a round makes, of this size.
fn piece(bytes: usize) -> usize {
    (BYTES_A_ROUND / bytes.max(1)).clamp(1, BUFFERS_A_ROUND)
}

/// Number of buffers that a client asks for, and the memory that they take.
fn memory_needed<L: Link>(
    link: &L,
    asked: &OpenRequest,
    shape: &SessionShape,
) -> Option<(u32, u64)> {
    if shape.buffer_bytes == 0 {
        return Some((0, 0));
    }
    let (buffers, bytes) = (
        asked.buffers.max(1),
        usize::try_from(shape.buffer_bytes).ok()?,
    );
    // Answers that find no room are copied: one at a time, or all where calls fetch their data first.
    let keeps = L::KEEPS_ANSWERS && asked.reply_kind == RpcPayloadKind::Inline;
    let copies = [1, buffers][usize::from(asked.send_kind == RpcPayloadKind::Bulk)];
    let all = buffers as usize + copies as usize * usize::from(keeps);
    let piece = piece(bytes);
    let whole = link.footprint(piece, bytes, asked.low_byte)?;
    let whole = whole.checked_mul((all / piece) as u64)?;
    let rest = match all % piece {
        0 => 0,
        rest => link.footprint(rest, bytes, asked.low_byte)?,
    };
    Some((buffers, whole.checked_add(rest)?))
}

impl ServerSession {
    /// Begins a session with as many buffers as are asked for, which [`ServerSession::make_buffers`] makes; they
    /// have to fit into the memory that is left.
    pub(super) fn open<L: Link>(
        link: &L,
        (peer, rpc): (PeerId, RpcId),
        places: (usize, usize),
        asked: &OpenRequest,
        shape: &SessionShape,
        limits: (&MemoryAccount, u32),
    ) -> Result<Self, RpcError> {
        let (account, most_credits) = limits;
        let needed = memory_needed(link, asked, shape);
        let no_memory = || {
            let (buffers, all) = needed.unwrap_or((asked.buffers, u64::MAX));
            let why = format!(
                "buffers for a session take {all} bytes ({buffers} of {} bytes), and {} bytes are left of \
                 the server's memory limit (`weir rpc serve --mem-limit` says how many there are)",
                shape.buffer_bytes,
                account.left()
            );
            RpcError::new(DerCode::NoMemory, why)
        };
        let (buffers, memory) = needed.ok_or_else(no_memory)?;
        if !account.take(memory) {
            return Err(no_memory());
        }
        // The limit may be more than there is.
        let what = || "the server's buffers for a session".to_owned();
        machine_memory::check(memory, what).inspect_err(|_| account.give(memory))?;
        Ok(Self {
            peer,
            tag: places.0,
            service: places.1,
            send_size: asked.send_size,
            buffers: Vec::new(),
            free: VecDeque::new(),
            waiting: VecDeque::new(),
            starving: false,
            active: HashMap::new(),
            credits: asked.credits.clamp(1, most_credits),
            longest_bulk: shape.longest_bulk.unwrap_or(u64::MAX),
            requests: 0,
            buffer_waits: 0,
            memory,
            closing: false,
            opening: Some(Opening {
                rpc,
                left: buffers,
                size: usize::try_from(shape.buffer_bytes).unwrap_or(usize::MAX),
                low_byte: asked.low_byte,
                fill: shape.fill,
            }),
        })
    }

    /// Makes buffers of a session that opens, as many as one round may make; true once all are there.
    ///
    /// # Errors
    /// The machine has no memory.
    pub(super) fn make_buffers<L: Link>(&mut self, link: &mut L) -> Result<bool, RpcError> {
        let Some(opening) = &mut self.opening else {
            return Ok(true);
        };
        let count = piece(opening.size).min(opening.left as usize);
        if count > 0 {
            let made = link.allocate_many(count, opening.size, opening.low_byte)?;
            for region in made {
                link.bytes(region).fill(opening.fill);
                self.buffers.push(region);
                self.free.push_back(region);
                opening.left -= 1;
            }
        }
        Ok(opening.left == 0)
    }

    /// True between the answers to OPEN and CLOSE.
    pub(super) fn is_open(&self) -> bool {
        !self.closing && self.opening.is_none()
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

    /// Gives buffers back, as many as one round may; true once all are, and their memory with them.
    pub(super) fn give_back<L: Link>(&mut self, link: &mut L, account: &MemoryAccount) -> bool {
        let kept = self.buffers.len().saturating_sub(BUFFERS_A_ROUND);
        for region in self.buffers.drain(kept..) {
            link.release(region);
        }
        if kept == 0 {
            account.give(std::mem::take(&mut self.memory));
        }
        kept == 0
    }
}
