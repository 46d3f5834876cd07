//! Packet handlers: what the dispatchers of a server do with packets that come, before threads get them.
//!
//! A handler is a file with a [`PacketWork`] and a line in `packet_handlers!` of `weir-schema`. It is called once per
//! batch. In: the packets of a batch. Out: some of them to be sent back, others freed; what it leaves goes to threads.
//! Not here: when it is called (`dispatcher`).

mod echo;

use weir_schema::{PacketHandler, PacketPathWorkload, PathSide, packet_handlers};

use crate::pool::{PacketBuffer, Pool};

/// A batch of packets and where they may go.
#[derive(Debug)]
pub(crate) struct PacketBatch<'a> {
    /// Their bytes are in its memory; it frees packets.
    pub(crate) pool: &'a mut Pool,
    /// Packets that came; those left in it go to threads.
    pub(crate) came: &'a mut Vec<PacketBuffer>,
    /// Packets to the other side. There is room for all that came.
    pub(crate) back: &'a mut Vec<PacketBuffer>,
}

/// Work of a handler on packets.
pub(crate) trait PacketWork: Send {
    /// The memory of one dispatcher.
    fn new(work: &PacketPathWorkload) -> Self;

    /// A dispatcher has a batch.
    fn handle(&mut self, batch: PacketBatch<'_>);
}

macro_rules! types_of_handlers {
    ($($(#[$doc:meta])+ $module:ident::$word:ident,)*) => {
        /// One of them: chosen once per batch.
        #[derive(Debug)]
        pub(crate) enum AnyPacketWork {
            $($word($module::$word),)*
        }

        impl AnyPacketWork {
            /// That of a side, where it has one: servers have.
            pub(crate) fn of(work: &PacketPathWorkload, side: PathSide) -> Option<Self> {
                match (work.packet_handler, side) {
                    (PacketHandler::None, _) | (_, PathSide::Client) => None,
                    $((PacketHandler::$word, PathSide::Server) => {
                        Some(Self::$word(PacketWork::new(work)))
                    })*
                }
            }

            /// A dispatcher has a batch.
            #[inline]
            pub(crate) fn handle(&mut self, batch: PacketBatch<'_>) {
                match self {
                    $(Self::$word(work) => work.handle(batch),)*
                }
            }
        }
    };
}
packet_handlers!(types_of_handlers);
