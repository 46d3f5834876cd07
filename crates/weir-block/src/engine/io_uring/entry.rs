//! Entries of the submission ring: one for each operation, shaped by the engine's settings.
//!
//! In: an operation and its target. Out: an entry to push, or nothing where the ring has no entry
//! for it. Not here: pushing it, which vouches for the memory that it names.

use std::os::fd::AsRawFd;

use io_uring::opcode;
use io_uring::squeue::Entry as Sqe;
use io_uring::types::{Fd, Fixed, FsyncFlags};
use weir_run::block::{BlockOp, Verb};

use crate::engine::Target;

/// Settings that shape entries.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) fixed_buffers: bool,
    pub(super) fixed_files: bool,
    pub(super) vectored: bool,
    pub(super) polled: bool,
    pub(super) rw_flags: i32,
    pub(super) force_async: u64,
}

impl Shape {
    /// The entry for an operation; `None` for what the ring cannot do.
    #[inline]
    pub(super) fn entry(
        self,
        slot: u32,
        op: &BlockOp,
        target: &Target,
        vectors: &mut [libc::iovec],
    ) -> Option<Sqe> {
        let shape = self;
        let fd = target.file.as_raw_fd();
        let fixed = Fixed(op.target);
        macro_rules! on_target {
            (|$file:ident| $entry:expr) => {
                if shape.fixed_files {
                    let $file = fixed;
                    $entry
                } else {
                    let $file = Fd(fd);
                    $entry
                }
            };
        }
        let (memory, length, offset) = (op.buffer.0, op.length, op.offset);
        let flags = shape.rw_flags;
        let index = u16::try_from(slot).unwrap_or(u16::MAX);
        Some(match op.verb {
            Verb::Read if shape.fixed_buffers => on_target!(|file| {
                let read = opcode::ReadFixed::new(file, memory, length, index);
                read.offset(offset).rw_flags(flags).build()
            }),
            Verb::Write if shape.fixed_buffers => on_target!(|file| {
                let write = opcode::WriteFixed::new(file, memory, length, index);
                write.offset(offset).rw_flags(flags).build()
            }),
            Verb::Read | Verb::Write if shape.vectored => {
                let vector = vectors.get_mut(slot as usize)?;
                *vector = libc::iovec {
                    iov_base: memory.cast(),
                    iov_len: length as usize,
                };
                let vector: *const libc::iovec = vector;
                if op.verb == Verb::Read {
                    on_target!(|file| opcode::Readv::new(file, vector, 1)
                        .offset(offset)
                        .rw_flags(flags)
                        .build())
                } else {
                    on_target!(|file| opcode::Writev::new(file, vector, 1)
                        .offset(offset)
                        .rw_flags(flags)
                        .build())
                }
            }
            Verb::Read => on_target!(|file| {
                opcode::Read::new(file, memory, length)
                    .offset(offset)
                    .rw_flags(flags)
                    .build()
            }),
            Verb::Write => on_target!(|file| {
                opcode::Write::new(file, memory, length)
                    .offset(offset)
                    .rw_flags(flags)
                    .build()
            }),
            // A polled ring takes reads and writes only.
            _ if shape.polled => return None,
            Verb::Sync => on_target!(|file| opcode::Fsync::new(file).build()),
            Verb::DataSync => {
                on_target!(|file| opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build())
            }
            // Discard of a device has no entry of its own.
            Verb::Trim if target.is_block => return None,
            Verb::Trim => on_target!(|file| {
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(file, u64::from(length))
                    .offset(offset)
                    .mode(mode)
                    .build()
            }),
        })
    }
}
