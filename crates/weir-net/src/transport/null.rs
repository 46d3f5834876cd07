//! Nothing moves: what is left is the cost of the loop.

use weir_schema::{MessageSize, Method};

use super::{PLAIN, Setup, Transport, TransportInfo};
use crate::buffers::Buffers;
use crate::error::Halt;
use crate::exchange::drive;
use weir_world::Watchdog;

pub(super) const INFO: TransportInfo = TransportInfo {
    name: "null",
    summary: "nothing moves: what the loop itself costs",
    moves_data: false,
    drive: drive::<Null>,
    ..PLAIN
};

/// Buffers that nobody looks at.
pub(super) struct Null {
    buffers: Buffers,
}

impl Transport for Null {
    fn open(_setup: &Setup<'_>) -> Result<Self, Halt> {
        Ok(Self {
            buffers: Buffers::default(),
        })
    }

    fn prepare(&mut self, size: MessageSize, _: Method, setup: &Setup<'_>) -> Result<(), Halt> {
        self.buffers = Buffers::new(setup.partners.len(), size.bytes())?;
        Ok(())
    }

    fn outgoing(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.outgoing(replication)
    }

    fn incoming(&mut self, replication: usize) -> &mut [u8] {
        self.buffers.incoming(replication)
    }

    #[inline]
    fn exchange(&mut self, replication: usize, _: &Watchdog) -> Result<(), Halt> {
        // The loop stays a loop.
        std::hint::black_box(replication);
        Ok(())
    }
}
