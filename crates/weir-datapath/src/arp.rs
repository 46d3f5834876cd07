//! Questions for the Ethernet address of an IPv4 address (ARP), and their answers. A device that no kernel
//! has answers none of them by itself.

/// Bytes of a question or an answer, its Ethernet header included.
const ARP_BYTES: usize = 42;
/// Ethernet's type; then Ethernet and IPv4 with lengths of their addresses; then a question.
const QUESTION: [u8; 10] = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];

/// The addresses of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnAddress {
    pub(crate) ip: [u8; 4],
    pub(crate) ethernet: [u8; 6],
}

impl OwnAddress {
    /// Turns a question for this address into its answer; whether it was one.
    pub(crate) fn answer(&self, frame: &mut [u8]) -> bool {
        let Some(at) = frame.get_mut(..ARP_BYTES) else {
            return false;
        };
        if at[12..22] != QUESTION || at[38..42] != self.ip {
            return false;
        }
        at.copy_within(6..12, 0);
        at[6..12].copy_from_slice(&self.ethernet);
        at[21] = 2;
        // Who asked becomes who is told, who was asked for becomes who says it.
        at.copy_within(22..32, 32);
        at[22..28].copy_from_slice(&self.ethernet);
        at[28..32].copy_from_slice(&self.ip);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 10.0.0.1 at 06:06.. for 10.0.0.2.
    pub(crate) fn question() -> [u8; 60] {
        let mut frame = [0; 60];
        frame[..6].fill(0xff);
        frame[6..12].fill(6);
        frame[12..22].copy_from_slice(&QUESTION);
        frame[22..28].fill(6);
        frame[28..32].copy_from_slice(&[10, 0, 0, 1]);
        frame[38..42].copy_from_slice(&[10, 0, 0, 2]);
        frame
    }

    #[test]
    fn a_question_for_the_own_address_is_answered_and_no_other() {
        let own = OwnAddress {
            ip: [10, 0, 0, 2],
            ethernet: [2; 6],
        };
        let mut frame = question();
        assert!(own.answer(&mut frame));
        assert_eq!(frame[..12], [[6; 6], [2; 6]].concat());
        assert_eq!(frame[20..22], [0, 2]);
        assert_eq!(frame[22..32], [2, 2, 2, 2, 2, 2, 10, 0, 0, 2]);
        assert_eq!(frame[32..42], [6, 6, 6, 6, 6, 6, 10, 0, 0, 1]);
        let answered = frame;
        assert!(!own.answer(&mut frame), "an answer is no question");
        assert_eq!(frame, answered);
        let mut other = question();
        other[41] = 3;
        assert!(!own.answer(&mut other));
        for length in 0..ARP_BYTES {
            assert!(!own.answer(&mut question()[..length]));
        }
    }
}
