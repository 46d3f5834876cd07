//! Queue of bytes to be written to a stream: its own, and parts of regions between them.
//!
//! In: frames. Out: one gathering write per call. Not here: when it is called, whose turn it is.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::memory::RegionTable;
use crate::links::MemoryRange;

/// Pieces of one write.
const PIECES: usize = 64;
/// A buffer above this is given back when it is empty.
const KEPT: usize = 64 << 10;

/// A part of a region that is due after so many of the queue's own bytes.
#[derive(Clone, Copy, Debug)]
struct QueuedPart {
    after: usize,
    range: MemoryRange,
}

/// Bytes on their way out. Empty queues own no memory until they are used.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    bytes: Vec<u8>,
    start: usize,
    parts: VecDeque<QueuedPart>,
    referenced: u64,
}

impl SendQueue {
    /// Adds bytes of its own.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let lacks = self.bytes.capacity() - self.bytes.len() < bytes.len();
        if lacks && self.bytes.capacity() >= KEPT {
            // Doubling would take twice what waits.
            self.bytes.reserve_exact(bytes.len().max(KEPT));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Memory that it holds, apart from regions.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        let parts = self.parts.capacity() * size_of::<QueuedPart>();
        (self.bytes.capacity() + parts) as u64
    }

    /// Adds a part of a region, which is pinned until it is out.
    pub(super) fn push_part(&mut self, range: MemoryRange, memory: &mut RegionTable) {
        memory.pin(range.region);
        self.referenced += range.length;
        self.parts.push_back(QueuedPart {
            after: self.bytes.len(),
            range,
        });
    }

    /// Bytes that wait.
    #[inline]
    pub(super) fn pending(&self) -> u64 {
        (self.bytes.len() - self.start) as u64 + self.referenced
    }

    /// Memory of regions waits.
    #[inline]
    pub(super) fn refers(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Nothing waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.start == self.bytes.len() && self.parts.is_empty()
    }

    /// Writes once, as much as goes. Whether the stream took all that was offered.
    #[inline]
    pub(super) fn write(&mut self, fd: impl AsFd, memory: &mut RegionTable) -> Result<bool, Errno> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let (offered, taken) = if self.parts.is_empty() {
            let bytes = &self.bytes[self.start..];
            (bytes.len(), send(fd, bytes, flags))
        } else {
            self.gather(memory, |pieces| {
                sendmsg(fd, pieces, &mut SendAncillaryBuffer::default(), flags)
            })
        };
        match taken {
            Ok(taken) => {
                self.advance(taken, memory);
                Ok(taken == offered)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn gather<R>(
        &self,
        memory: &RegionTable,
        write: impl FnOnce(&[IoSlice<'_>]) -> R,
    ) -> (usize, R) {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let mut count = 0;
        let mut offered = 0;
        let mut at = self.start;
        let mut add = |bytes| {
            pieces[count] = IoSlice::new(bytes);
            offered += bytes.len();
            count += 1;
        };
        for part in self.parts.iter().take(PIECES / 2 - 1) {
            add(&self.bytes[at..part.after]);
            add(memory.part(part.range));
            at = part.after;
        }
        if self.parts.len() < PIECES / 2 {
            add(&self.bytes[at..]);
        }
        (offered, write(&pieces[..count]))
    }

    fn advance(&mut self, taken: usize, memory: &mut RegionTable) {
        self.pass(taken, memory);
        if self.start == self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            for part in &mut self.parts {
                part.after = 0;
            }
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            }
        } else if self.start > KEPT && self.start >= self.bytes.len() / 2 {
            // As much is moved as was written since the last time, at most.
            self.bytes.drain(..self.start);
            for part in &mut self.parts {
                part.after -= self.start;
            }
            self.start = 0;
        }
    }

    /// So many bytes are out.
    fn pass(&mut self, mut taken: usize, memory: &mut RegionTable) {
        while let Some(part) = self.parts.front_mut() {
            let own = (part.after - self.start).min(taken);
            self.start += own;
            taken -= own;
            if self.start < part.after {
                return;
            }
            let moved = part.range.length.min(taken as u64);
            part.range.offset += moved;
            part.range.length -= moved;
            self.referenced -= moved;
            taken -= usize::try_from(moved).unwrap_or(taken);
            if part.range.length > 0 {
                return;
            }
            memory.unpin(part.range.region);
            self.parts.pop_front();
        }
        self.start += taken;
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self, memory: &mut RegionTable) {
        for part in self.parts.drain(..) {
            memory.unpin(part.range.region);
        }
        *self = Self::default();
    }

    /// Gives memory back that an idle connection need not hold.
    pub(super) fn shrink(&mut self) {
        if self.is_empty() {
            self.bytes = Vec::new();
            self.parts = VecDeque::new();
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_and_parts_leave_in_order_however_little_a_write_takes() {
        let mut memory = RegionTable::default();
        let region = memory.allocate(1 << 20, None).unwrap();
        for (at, byte) in memory.bytes(region).iter_mut().enumerate() {
            *byte = u8::try_from(at % 251).unwrap();
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut queue = SendQueue::default();
        let mut expected = Vec::new();
        for round in 0..40_u8 {
            let range = MemoryRange {
                region,
                offset: u64::from(round),
                length: 20_000,
            };
            queue.push(&[round; 30]);
            queue.push_part(range, &mut memory);
            expected.extend_from_slice(&[round; 30]);
            expected.extend_from_slice(memory.part(range));
        }
        queue.push(b"end");
        expected.extend_from_slice(b"end");
        assert_eq!(queue.pending(), expected.len() as u64);
        let mut got = Vec::new();
        let mut piece = vec![0; 7001];
        while got.len() < expected.len() {
            queue.write(&ours, &mut memory).unwrap();
            let came = theirs.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..came]);
        }
        assert!(queue.is_empty());
        assert!(got == expected);
    }

    #[test]
    fn a_queue_that_is_never_empty_holds_no_more_than_waits() {
        let mut memory = RegionTable::default();
        let region = memory.allocate(16 << 10, None).unwrap();
        let range = MemoryRange {
            region,
            offset: 0,
            length: 16 << 10,
        };
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut queue = SendQueue::default();
        let mut piece = vec![0; 64 << 10];
        for _ in 0..4000 {
            while queue.pending() < 1 << 20 {
                queue.push(&[0; 8191]);
                queue.push_part(range, &mut memory);
            }
            queue.write(&ours, &mut memory).unwrap();
            let came = theirs.read(&mut piece).unwrap();
            assert!(came > 0 && !queue.is_empty());
            assert!(queue.held() < 2 << 20, "{}", queue.held());
        }
    }
}
