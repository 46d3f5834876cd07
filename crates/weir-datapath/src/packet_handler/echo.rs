//! Sends every packet back to where it came from.

use weir_schema::PacketPathWorkload;

use super::{PacketBatch, PacketWork};
use crate::frame::turn_round;

/// It needs no memory.
#[derive(Debug)]
pub(crate) struct Echo;

impl PacketWork for Echo {
    fn new(_: &PacketPathWorkload) -> Self {
        Self
    }

    #[inline]
    fn handle(&mut self, batch: PacketBatch<'_>) {
        for packet in batch.came.iter_mut() {
            turn_round(batch.pool.memory.frame_mut(packet));
        }
        batch.back.append(batch.came);
    }
}
