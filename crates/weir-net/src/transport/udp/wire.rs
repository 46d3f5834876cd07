//! The header of a datagram. Whatever comes is looked at with suspicion: it may be a stranger's.

/// Bytes before the payload.
pub(super) const HEADER: usize = 32;

/// Kind of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketKind {
    /// A piece of a message.
    Data,
    /// The receiver has seen all before `number`, or does not wait for it any more.
    Credit,
}

/// Header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Of the run.
    pub(super) token: u64,
    /// Sizes so far.
    pub(super) epoch: u32,
    /// The channel.
    pub(super) replication: u32,
    /// Its kind.
    pub(super) kind: PacketKind,
    /// Of the datagram within its size and channel.
    pub(super) number: u64,
}

impl Header {
    /// Little-endian, in the order of the fields.
    pub(super) fn write(&self, to: &mut [u8]) {
        let kind: u64 = match self.kind {
            PacketKind::Data => 1,
            PacketKind::Credit => 2,
        };
        to[..8].copy_from_slice(&self.token.to_le_bytes());
        to[8..12].copy_from_slice(&self.epoch.to_le_bytes());
        to[12..16].copy_from_slice(&self.replication.to_le_bytes());
        to[16..24].copy_from_slice(&kind.to_le_bytes());
        to[24..HEADER].copy_from_slice(&self.number.to_le_bytes());
    }

    /// Nothing where it is too short or of no known kind.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            bytes
                .get(at..at + 8)?
                .try_into()
                .ok()
                .map(u64::from_le_bytes)
        };
        let half = |at: usize| {
            bytes
                .get(at..at + 4)?
                .try_into()
                .ok()
                .map(u32::from_le_bytes)
        };
        Some(Self {
            token: word(0)?,
            epoch: half(8)?,
            replication: half(12)?,
            kind: match word(16)? {
                1 => PacketKind::Data,
                2 => PacketKind::Credit,
                _ => return None,
            },
            number: word(24)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            token: u64, epoch: u32, replication: u32, credit: bool, number: u64
        ) {
            let kind = if credit { PacketKind::Credit } else { PacketKind::Data };
            let header = Header { token, epoch, replication, kind, number };
            let mut bytes = [0; HEADER];
            header.write(&mut bytes);
            prop_assert_eq!(Header::read(&bytes), Some(header));
            prop_assert_eq!(Header::read(&bytes[..HEADER - 1]), None);
        }

        #[test]
        fn noise_is_no_header_or_one_that_is_checked_further(
            bytes in proptest::collection::vec(any::<u8>(), 0..64)
        ) {
            if let Some(header) = Header::read(&bytes) {
                let mut back = [0; HEADER];
                header.write(&mut back);
                prop_assert_eq!(&back[..], &bytes[..HEADER]);
            }
        }
    }
}
