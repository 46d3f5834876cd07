//! Entries of the submission ring: one for each operation, shaped by the engine's settings.
//!
//! In: an operation and its target. Out: an entry to offer, or nothing where the ring has no entry
//! for it. Not here: offering it, which vouches for the memory that it names.

use std::os::fd::AsRawFd;

use rustix::io_uring::{IoringOp, IoringSqeFlags};

use super::rings::{EntryHead, RingEntry};
use crate::engine::OpenTarget;
use crate::op::{BlockOp, Verb};

/// `IORING_FSYNC_DATASYNC`: data, without metadata that is not needed to read them.
const DATA_ONLY: u32 = 1;

/// Settings that shape entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryShape {
    /// Buffers are registered: the slot is the index.
    pub(super) fixed_buffers: bool,
    /// Targets are registered: the operation has the index.
    pub(super) fixed_files: bool,
    /// The ring takes reads and writes only.
    pub(super) polled: bool,
    /// Flags of reads and writes.
    pub(super) rw_flags: u32,
}

impl EntryShape {
    /// The entry for an operation; `None` for what the ring cannot do. `vector`: the list of one
    /// that a vectored operation names.
    pub(super) fn entry(
        self,
        slot: u32,
        op: &BlockOp,
        target: &OpenTarget,
        vector: Option<&mut libc::iovec>,
    ) -> Option<RingEntry> {
        match op.verb {
            Verb::Read | Verb::Write => Some(self.transfer(slot, op, target, vector)),
            _ if self.polled => None,
            _ => self.other(op, target),
        }
    }

    /// The first word of the entries of reads (or writes) of a target, without priority.
    pub(super) fn head(
        self,
        verb: Verb,
        target: u32,
        file: &OpenTarget,
        vectored: bool,
    ) -> EntryHead {
        let opcode = match (verb, self.fixed_buffers, vectored) {
            (Verb::Read, true, _) => IoringOp::ReadFixed,
            (Verb::Read, false, true) => IoringOp::Readv,
            (Verb::Read, false, false) => IoringOp::Read,
            (_, true, _) => IoringOp::WriteFixed,
            (_, false, true) => IoringOp::Writev,
            (_, false, false) => IoringOp::Write,
        };
        self.head_of(opcode, target, file)
    }

    fn head_of(self, opcode: IoringOp, target: u32, file: &OpenTarget) -> EntryHead {
        let (flags, file) = if self.fixed_files {
            // With the flag the number is an index.
            let index = i32::try_from(target).unwrap_or(i32::MAX);
            (IoringSqeFlags::FIXED_FILE, index)
        } else {
            (IoringSqeFlags::empty(), file.file.as_raw_fd())
        };
        EntryHead {
            opcode: opcode as u8,
            flags: flags.bits(),
            priority: 0,
            file,
        }
    }

    /// The fields that all reads and writes of a slot share.
    pub(super) fn blank(self, slot: u32) -> RingEntry {
        let buffer = if self.fixed_buffers {
            u16::try_from(slot).unwrap_or(u16::MAX)
        } else {
            0
        };
        RingEntry {
            call_flags: self.rw_flags,
            data: u64::from(slot),
            buffer,
            ..RingEntry::default()
        }
    }

    fn transfer(
        self,
        slot: u32,
        op: &BlockOp,
        target: &OpenTarget,
        vector: Option<&mut libc::iovec>,
    ) -> RingEntry {
        let mut entry = RingEntry {
            head: EntryHead {
                priority: op.priority,
                ..self.head(op.verb, op.target, target, vector.is_some())
            },
            offset: op.offset,
            memory: op.buffer.0.expose_provenance() as u64,
            length: op.length,
            ..self.blank(slot)
        };
        if let Some(vector) = vector {
            *vector = libc::iovec {
                iov_base: op.buffer.0.cast(),
                iov_len: op.length as usize,
            };
            entry.memory = std::ptr::from_mut(vector).expose_provenance() as u64;
            entry.length = 1;
        }
        entry
    }

    #[cold]
    fn other(self, op: &BlockOp, target: &OpenTarget) -> Option<RingEntry> {
        let entry = |opcode, call_flags| RingEntry {
            head: self.head_of(opcode, op.target, target),
            call_flags,
            ..RingEntry::default()
        };
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        Some(match op.verb {
            Verb::Sync => entry(IoringOp::Fsync, 0),
            Verb::DataSync => entry(IoringOp::Fsync, DATA_ONLY),
            Verb::RangeSync => RingEntry {
                offset: op.offset,
                length: op.range,
                ..entry(IoringOp::SyncFileRange, u32::from(op.range_flags))
            },
            // Discard of a device has no entry of its own.
            Verb::Trim if !target.is_block => RingEntry {
                offset: op.offset,
                memory: u64::from(op.length),
                length: hole.unsigned_abs(),
                ..entry(IoringOp::Fallocate, 0)
            },
            _ => return None,
        })
    }
}
