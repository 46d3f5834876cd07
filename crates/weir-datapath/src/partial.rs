//! Messages of several packets, some of which have come.
//!
//! In: packets, each with its header; those of a message come in order, between those of others. Out:
//! whole messages; packets of those that will never be whole, to be freed.

use crate::frame::PacketHeader;
use crate::pool::PacketBuffer;

/// Messages that may be incomplete at the same time.
const MOST: usize = 64;

/// A message's packets, in order.
pub(crate) type Packets = Vec<PacketBuffer>;

#[derive(Debug)]
struct Partial {
    message: u32,
    packets: Packets,
    whole: u16,
}

/// Outcome of adding a packet.
#[derive(Debug)]
pub(crate) enum Added {
    /// Others of the message are missing.
    Partial,
    /// The message is whole.
    Whole(Packets),
}

/// Messages that are not whole yet.
#[derive(Debug, Default)]
pub(crate) struct Partials {
    open: Vec<Partial>,
    /// Of messages that will never be whole.
    pub(crate) broken: Packets,
    /// Number of these messages.
    pub(crate) incomplete: u64,
}

impl Partials {
    /// Takes a packet.
    pub(crate) fn add(&mut self, header: &PacketHeader, buffer: PacketBuffer) -> Added {
        let same = |partial: &Partial| partial.message == header.message;
        let at = match self.open.iter().position(same) {
            Some(at) if header.segment == 0 => {
                // The end of the earlier one never came.
                self.give_up(at);
                self.begin(header)
            }
            Some(at) => at,
            None if header.segment == 0 => self.begin(header),
            None => {
                // Its message was given up, or its beginning is missing.
                self.broken.push(buffer);
                return Added::Partial;
            }
        };
        let partial = &mut self.open[at];
        let is_next = usize::from(header.segment) == partial.packets.len();
        partial.packets.push(buffer);
        if !is_next || header.packets != partial.whole {
            self.give_up(at);
            return Added::Partial;
        }
        if partial.packets.len() < usize::from(partial.whole) {
            return Added::Partial;
        }
        Added::Whole(self.open.swap_remove(at).packets)
    }

    /// Gives all up that is open: nothing more will come.
    pub(crate) fn close(&mut self) {
        while !self.open.is_empty() {
            self.give_up(0);
        }
    }

    fn begin(&mut self, header: &PacketHeader) -> usize {
        if self.open.len() >= MOST {
            // The oldest stands first, or near to it.
            self.give_up(0);
        }
        self.open.push(Partial {
            message: header.message,
            packets: Vec::with_capacity(usize::from(header.packets)),
            whole: header.packets,
        });
        self.open.len() - 1
    }

    fn give_up(&mut self, at: usize) {
        let mut given_up = self.open.remove(at);
        self.broken.append(&mut given_up.packets);
        self.incomplete += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::plain_pools;

    fn header(message: u32, segment: u16) -> PacketHeader {
        PacketHeader {
            stream: 1,
            stamp: 0,
            packets: 3,
            segment,
            message,
        }
    }

    #[test]
    fn packets_of_several_messages_become_whole_messages_and_gaps_are_counted() {
        let mut pool = plain_pools(1, 16).remove(0);
        let mut partials = Partials::default();
        let mut add = |partials: &mut Partials, message, segment| {
            let added = partials.add(&header(message, segment), pool.take().unwrap());
            match added {
                Added::Whole(packets) => packets.len(),
                Added::Partial => 0,
            }
        };
        let order = [(1, 0), (2, 0), (1, 1), (2, 1), (2, 2), (1, 2)];
        let whole = order.map(|(message, segment)| add(&mut partials, message, segment));
        assert_eq!(whole, [0, 0, 0, 0, 3, 3]);
        // The second packet is missing, then the first.
        assert_eq!(
            [(3, 0), (3, 2)].map(|(m, s)| add(&mut partials, m, s)),
            [0, 0]
        );
        assert_eq!((partials.incomplete, partials.broken.len()), (1, 2));
        assert_eq!(add(&mut partials, 4, 1), 0);
        assert_eq!(partials.broken.len(), 3);
        add(&mut partials, 5, 0);
        partials.close();
        assert_eq!((partials.incomplete, partials.broken.len()), (2, 4));
    }
}
