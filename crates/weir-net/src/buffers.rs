//! Buffers of a transport without memory of its own.

use weir_sys::buffer::{AlignedBuf, BufferSpec};
use weir_units::Bytes;

use crate::error::Halt;

/// A buffer each way for every replication, page-aligned, first touched by this thread.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    outgoing: Vec<AlignedBuf>,
    incoming: Vec<AlignedBuf>,
}

/// Some buffers of the same length.
pub(crate) fn some(count: usize, len: Bytes) -> Result<Vec<AlignedBuf>, Halt> {
    (0..count)
        .map(|_| AlignedBuf::new(&BufferSpec::private(len)))
        .collect::<Result<_, _>>()
        .map_err(|error| Halt::Garbled(error.to_string()))
}

impl Buffers {
    /// For messages of this length.
    pub(crate) fn new(replications: usize, len: Bytes) -> Result<Self, Halt> {
        Ok(Self {
            outgoing: some(replications, len)?,
            incoming: some(replications, len)?,
        })
    }

    pub(crate) fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.outgoing[replication].as_mut_slice()
    }

    pub(crate) fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.incoming[replication].as_mut_slice()
    }

    /// Outgoing and incoming buffer of a replication.
    #[inline]
    pub(crate) fn both(&mut self, replication: usize) -> (&[u8], &mut [u8]) {
        (
            self.outgoing[replication].as_slice(),
            self.incoming[replication].as_mut_slice(),
        )
    }
}
