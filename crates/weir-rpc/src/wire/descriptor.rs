//! Descriptors of bulk memory: what the other side needs to reach it.
//!
//! In: segments of memory. Out: bytes, or the other way. Not here: reaching it (the links), whether
//! a range lies within (`range` says so, its caller asks).

use super::codec::{WireError, WireReader};

/// Segments that a descriptor may have.
pub const MOST_SEGMENTS: usize = 16;

/// Access to bulk memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BulkMode {
    /// By frames: offsets into the call's own buffer.
    Frames = 0,
    /// By the provider of a fabric: address and key.
    Fabric = 1,
    /// An offset into a shared segment.
    Shared = 2,
    /// By UCX, with a packed key.
    Ucx = 3,
}

/// Rights of the other side to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkAccess(u8);

impl BulkAccess {
    /// Read it.
    pub const READ: Self = Self(1);
    /// Write it.
    pub const WRITE: Self = Self(2);
    /// Both.
    pub const BOTH: Self = Self(3);

    /// True if all of `what` is allowed.
    #[inline]
    pub fn allows(self, what: Self) -> bool {
        self.0 & what.0 == what.0
    }
}

/// A stretch of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkSegment {
    /// Its address, or offset.
    pub address: u64,
    /// Length, in bytes.
    pub length: u64,
    /// Key that unlocks it.
    pub key: u64,
}

/// Memory of a caller that a server may read or write during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkDescriptor {
    /// Access to it.
    pub mode: BulkMode,
    /// Rights to it.
    pub access: BulkAccess,
    /// The registration, where the mode has such.
    pub registration: u32,
    /// Bytes of all segments.
    pub length: u64,
    /// Number of segments.
    count: u16,
    segments: [BulkSegment; MOST_SEGMENTS],
}

impl BulkDescriptor {
    /// Memory in one piece.
    pub fn one(mode: BulkMode, access: BulkAccess, registration: u32, part: BulkSegment) -> Self {
        let mut segments = [BulkSegment::default(); MOST_SEGMENTS];
        segments[0] = part;
        Self {
            mode,
            access,
            registration,
            length: part.length,
            count: 1,
            segments,
        }
    }

    /// Memory that is reached by frames: a part of the call's own buffer.
    pub(crate) fn of_frames(offset: u64, length: u64, access: BulkAccess) -> Self {
        let part = BulkSegment {
            address: offset,
            length,
            key: 0,
        };
        Self::one(BulkMode::Frames, access, 0, part)
    }

    /// Its stretches, in order.
    pub fn segments(&self) -> &[BulkSegment] {
        &self.segments[..usize::from(self.count)]
    }

    /// True if these bytes lie within it.
    #[inline]
    pub fn contains(&self, offset: u64, length: u64) -> bool {
        offset
            .checked_add(length)
            .is_some_and(|end| end <= self.length)
    }

    /// As bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.mode as u8);
        out.push(self.access.0);
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.registration.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        for segment in self.segments() {
            out.extend_from_slice(&segment.address.to_le_bytes());
            out.extend_from_slice(&segment.length.to_le_bytes());
            out.extend_from_slice(&segment.key.to_le_bytes());
        }
    }

    /// The descriptor that comes next.
    ///
    /// # Errors
    /// It is cut, has too many segments, or lengths that do not add up.
    pub fn decode(body: &mut WireReader<'_>) -> Result<Self, WireError> {
        let mode = match body.u8("mode")? {
            0 => BulkMode::Frames,
            1 => BulkMode::Fabric,
            2 => BulkMode::Shared,
            3 => BulkMode::Ucx,
            _ => return Err(WireError::Field("mode")),
        };
        let access = match body.u8("access")? {
            bits @ 1..=3 => BulkAccess(bits),
            _ => return Err(WireError::Field("access")),
        };
        let count = body.u16("segments")?;
        if count == 0 || usize::from(count) > MOST_SEGMENTS {
            return Err(WireError::Field("segments"));
        }
        let registration = body.u32("registration")?;
        let length = body.u64("length")?;
        let mut segments = [BulkSegment::default(); MOST_SEGMENTS];
        let mut together = 0_u64;
        for segment in &mut segments[..usize::from(count)] {
            *segment = BulkSegment {
                address: body.u64("address")?,
                length: body.u64("segment length")?,
                key: body.u64("key")?,
            };
            together = together
                .checked_add(segment.length)
                .ok_or(WireError::Field("segment length"))?;
            // Nobody may be sent round the end of the address space.
            segment
                .address
                .checked_add(segment.length)
                .ok_or(WireError::Field("address"))?;
        }
        if together != length {
            return Err(WireError::Field("length"));
        }
        Ok(Self {
            mode,
            access,
            registration,
            length,
            count,
            segments,
        })
    }
}
