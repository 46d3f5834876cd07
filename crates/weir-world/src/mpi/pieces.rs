//! A control message in pieces that leave shared memory as they found it.
//!
//! Open MPI passes short messages between two ranks of a host through a ring each way, in slots of
//! half a cache line. Where the two rings do not stand at the same half, every exchange that is
//! measured afterwards fetches one more line from the other core: 5 to 20 % of the time of 8 bytes.
//! Programs of symmetric calls keep the rings together; what this program says in between comes
//! in one direction only, so it has to fill whole lines. (Rings and slots: `btl/vader` of Open MPI
//! 4.1; measured with a loop in C that sends a message of one slot in between.)

/// Bytes before the first piece: the length of the message.
const HEAD: usize = size_of::<u64>();

/// With the library's own headers this is a whole cache line; any multiple of a line more is too.
pub(super) const SHORTEST: usize = 40;
const LINE: usize = 64;

/// The longest that goes through a ring.
const LONGEST: usize = SHORTEST + 15 * LINE;

/// A message, cut.
pub(super) fn cut(bytes: &[u8]) -> Vec<Vec<u8>> {
    let head = (bytes.len() as u64).to_le_bytes();
    let whole: Vec<u8> = head.iter().chain(bytes).copied().collect();
    let padded = |piece: &[u8]| {
        let lines = piece.len().saturating_sub(SHORTEST).div_ceil(LINE);
        let mut piece = piece.to_vec();
        piece.resize(SHORTEST + lines * LINE, 0);
        piece
    };
    whole.chunks(LONGEST).map(padded).collect()
}

/// A message as its pieces come in.
#[derive(Debug)]
pub(super) struct Joined {
    wanted: usize,
    bytes: Vec<u8>,
}

impl Joined {
    /// From the first piece; nothing where that is none.
    pub(super) fn first(piece: &[u8]) -> Option<Self> {
        let (head, bytes) = piece.split_first_chunk::<HEAD>()?;
        let wanted = usize::try_from(u64::from_le_bytes(*head)).ok()?;
        let mut joined = Self {
            wanted,
            bytes: Vec::new(),
        };
        joined.add(bytes);
        Some(joined)
    }

    /// One more, in order.
    pub(super) fn add(&mut self, piece: &[u8]) {
        let rest = self.wanted - self.bytes.len();
        self.bytes
            .extend_from_slice(&piece[..rest.min(piece.len())]);
    }

    /// The message, once it is whole.
    pub(super) fn whole(self) -> Result<Vec<u8>, Self> {
        if self.bytes.len() == self.wanted {
            Ok(self.bytes)
        } else {
            Err(self)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn join(pieces: &[Vec<u8>]) -> Result<Vec<u8>, Joined> {
        let mut joined = Joined::first(&pieces[0]).unwrap();
        for piece in &pieces[1..] {
            joined = joined.whole().unwrap_err();
            joined.add(piece);
        }
        joined.whole()
    }

    #[test]
    fn the_shortest_message_is_one_line() {
        assert_eq!(cut(&[]), [vec![0; SHORTEST]]);
        assert_eq!(cut(&[7; SHORTEST - HEAD]).len(), 1);
        assert_eq!(cut(&[7; SHORTEST - HEAD + 1])[0].len(), SHORTEST + LINE);
        let lengths = |bytes| {
            cut(&vec![1; bytes])
                .iter()
                .map(Vec::len)
                .collect::<Vec<_>>()
        };
        assert_eq!(lengths(LONGEST - HEAD), [LONGEST]);
        assert_eq!(lengths(LONGEST - HEAD + 1), [LONGEST, SHORTEST]);
    }

    #[test]
    fn a_piece_without_a_length_is_no_message() {
        assert!(Joined::first(&[0; HEAD - 1]).is_none());
    }

    proptest! {
        #[test]
        fn what_is_cut_is_joined(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
            let pieces = cut(&bytes);
            for piece in &pieces {
                prop_assert_eq!(piece.len() % LINE, SHORTEST % LINE);
                prop_assert!(piece.len() <= LONGEST);
            }
            prop_assert_eq!(join(&pieces).unwrap(), bytes);
        }
    }
}
