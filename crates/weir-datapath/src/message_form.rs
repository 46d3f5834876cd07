//! Lengths of a message's packets: worked out once for all messages of a side.

use weir_schema::PacketPathWorkload;
use weir_units::Bytes;

use crate::frame::{MESSAGE_AT, part_of};

/// The lengths of what a side sends.
#[derive(Debug)]
pub(crate) struct MessageForm {
    pub(crate) packets: u32,
    /// Length of the frame of each packet.
    pub(crate) frames: Vec<usize>,
}

impl MessageForm {
    pub(crate) fn of(work: &PacketPathWorkload, bytes: Bytes) -> Self {
        let packets = work.packets(bytes);
        let frame = |segment| MESSAGE_AT + part_of(work, bytes.0, segment, packets);
        Self {
            packets,
            frames: (0..packets).map(frame).collect(),
        }
    }
}
