//! Entries of the submission ring: one for each operation, shaped by the engine's settings.
//!
//! In: an operation and its target. Out: an entry to push, or nothing where the ring has no entry
//! for it. Not here: pushing it, which vouches for the memory that it names.

use std::os::fd::AsRawFd;

use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, FsyncFlags};

use crate::engine::OpenTarget;
use crate::op::{BlockOp, Verb};

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
    pub(super) rw_flags: i32,
}

impl EntryShape {
    /// The entry for an operation; `None` for what the ring cannot do. `vector`: the list of one
    /// that a vectored operation names.
    #[inline]
    pub(super) fn entry(
        self,
        slot: u32,
        op: &BlockOp,
        target: &OpenTarget,
        vector: Option<&mut libc::iovec>,
    ) -> Option<Entry> {
        let file = if self.fixed_files {
            Fd(i32::try_from(op.target).unwrap_or(i32::MAX))
        } else {
            Fd(target.file.as_raw_fd())
        };
        let entry = match op.verb {
            Verb::Read | Verb::Write if self.fixed_buffers => self.fixed(slot, op, file),
            Verb::Read | Verb::Write => match vector {
                Some(vector) => self.vectored(op, file, vector),
                None => self.plain(op, file),
            },
            _ => self.other(op, target, file)?,
        };
        // With the flag the number is an index.
        Some(if self.fixed_files {
            entry.flags(Flags::FIXED_FILE)
        } else {
            entry
        })
    }

    #[inline]
    fn fixed(self, slot: u32, op: &BlockOp, file: Fd) -> Entry {
        let (memory, length, flags) = (op.buffer.0, op.length, self.rw_flags);
        let index = u16::try_from(slot).unwrap_or(u16::MAX);
        if op.verb == Verb::Read {
            let read = opcode::ReadFixed::new(file, memory, length, index);
            read.offset(op.offset)
                .rw_flags(flags)
                .ioprio(op.priority)
                .build()
        } else {
            let write = opcode::WriteFixed::new(file, memory, length, index);
            write
                .offset(op.offset)
                .rw_flags(flags)
                .ioprio(op.priority)
                .build()
        }
    }

    fn plain(self, op: &BlockOp, file: Fd) -> Entry {
        let (memory, length, flags) = (op.buffer.0, op.length, self.rw_flags);
        if op.verb == Verb::Read {
            let read = opcode::Read::new(file, memory, length);
            read.offset(op.offset)
                .rw_flags(flags)
                .ioprio(op.priority)
                .build()
        } else {
            let write = opcode::Write::new(file, memory, length);
            write
                .offset(op.offset)
                .rw_flags(flags)
                .ioprio(op.priority)
                .build()
        }
    }

    fn vectored(self, op: &BlockOp, file: Fd, vector: &mut libc::iovec) -> Entry {
        *vector = libc::iovec {
            iov_base: op.buffer.0.cast(),
            iov_len: op.length as usize,
        };
        let (vector, flags) = (std::ptr::from_mut(vector).cast_const(), self.rw_flags);
        if op.verb == Verb::Read {
            opcode::Readv::new(file, vector, 1)
                .offset(op.offset)
                .rw_flags(flags)
                .ioprio(op.priority)
                .build()
        } else {
            opcode::Writev::new(file, vector, 1)
                .offset(op.offset)
                .rw_flags(flags)
                .ioprio(op.priority)
                .build()
        }
    }

    #[cold]
    fn other(self, op: &BlockOp, target: &OpenTarget, file: Fd) -> Option<Entry> {
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        match op.verb {
            _ if self.polled => None,
            Verb::Sync => Some(opcode::Fsync::new(file).build()),
            Verb::DataSync => Some(opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build()),
            Verb::RangeSync => {
                let range = opcode::SyncFileRange::new(file, op.range);
                Some(
                    range
                        .offset(op.offset)
                        .flags(u32::from(op.range_flags))
                        .build(),
                )
            }
            // Discard of a device has no entry of its own.
            Verb::Trim if !target.is_block => {
                let punch = opcode::Fallocate::new(file, u64::from(op.length));
                Some(punch.offset(op.offset).mode(hole).build())
            }
            _ => None,
        }
    }
}
