//! Messages of a thread that have no answer yet: how many may be sent, which answers are expected,
//! which are lost.
//!
//! A message in flight has a slot, and its number says which, in which use of it. A message that is
//! given up frees its slot for another use, so that an answer that comes later is known as late. Where
//! any number may be in flight they are counted, and the latest have a bit each, so that a second answer
//! does not pass for that of another message: what is lost is known at the end.

/// Uses of a slot that are told apart.
const USES: u16 = 1 << 12;

/// Messages whose answers are told apart where any number may be in flight: more than a path holds.
const LATEST: u32 = 1 << 20;

/// No clock comes so far.
const FREE: u64 = u64::MAX;

/// Messages in flight.
#[derive(Debug)]
pub(crate) struct Outstanding {
    /// None where any number may be in flight.
    slots: Option<MessageSlots>,
    /// Number of the next message where there are no slots.
    next: u32,
    /// Messages in flight where there are no slots.
    open: usize,
    /// The bits of the latest of them that have no answer.
    unanswered: Vec<u64>,
    origin: u32,
}

#[derive(Debug)]
struct MessageSlots {
    free: FreeSlots,
    all: Vec<MessageSlot>,
}

/// Free slots, in the order in which they became free.
#[derive(Debug)]
struct FreeSlots {
    /// A power of two of places, at least as many as there are slots.
    ring: Vec<u16>,
    /// Counts of slots taken and given back; they go round.
    taken: usize,
    given: usize,
}

impl FreeSlots {
    fn new(slots: u16) -> Self {
        let mut ring: Vec<u16> = (0..slots).collect();
        ring.resize(usize::from(slots).next_power_of_two(), 0);
        Self {
            ring,
            taken: 0,
            given: usize::from(slots),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.given.wrapping_sub(self.taken)
    }

    #[inline]
    fn take(&mut self) -> Option<u16> {
        if self.len() == 0 {
            return None;
        }
        let at = self.taken & (self.ring.len() - 1);
        self.taken = self.taken.wrapping_add(1);
        self.ring.get(at).copied()
    }

    /// Each slot is given back once.
    #[inline]
    fn give(&mut self, slot: u16) {
        let at = self.given & (self.ring.len() - 1);
        if let Some(place) = self.ring.get_mut(at) {
            *place = slot;
            self.given = self.given.wrapping_add(1);
        }
    }
}

/// A place of a message: beside each other what is looked at together.
#[derive(Clone, Copy, Debug, Default)]
struct MessageSlot {
    /// When its message was sent; [`FREE`] where it has none.
    sent: u64,
    /// Which use of it that is.
    uses: u16,
}

impl Outstanding {
    /// At most so many of a thread's; any number where it is 0.
    pub(crate) fn new(most: u32, thread: u8) -> Self {
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        let slots = (most > 0).then(|| MessageSlots {
            free: FreeSlots::new(most),
            all: vec![
                MessageSlot {
                    sent: FREE,
                    uses: 0
                };
                usize::from(most)
            ],
        });
        Self {
            slots,
            next: 0,
            open: 0,
            unanswered: vec![0; if most > 0 { 0 } else { LATEST as usize / 64 }],
            origin: u32::from(thread & 15) << 28,
        }
    }

    /// Number of messages that may be sent now.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.slots
            .as_ref()
            .map_or(usize::MAX, |slots| slots.free.len())
    }

    /// Messages without an answer, as far as they are known.
    pub(crate) fn count(&self) -> usize {
        let known = |slots: &MessageSlots| slots.all.len() - slots.free.len();
        self.slots.as_ref().map_or(self.open, known)
    }

    /// The number of a message that is sent now.
    #[inline]
    pub(crate) fn begin(&mut self, now: u64) -> Option<u32> {
        let Some(slots) = &mut self.slots else {
            self.next = self.next.wrapping_add(1) & 0x0fff_ffff;
            self.open += 1;
            let (word, bit) = bit_of(self.next);
            self.unanswered[word] |= bit;
            return Some(self.origin | self.next);
        };
        let slot = slots.free.take()?;
        let place = slots.all.get_mut(usize::from(slot))?;
        place.sent = now;
        Some(self.origin | u32::from(place.uses) << 16 | u32::from(slot))
    }

    /// An answer has come; whether it was expected.
    #[inline]
    pub(crate) fn end(&mut self, message: u32) -> bool {
        let Some(slots) = &mut self.slots else {
            let age = self.next.wrapping_sub(message) & 0x0fff_ffff;
            let (word, bit) = bit_of(message);
            let is_expected = age < LATEST && self.unanswered[word] & bit != 0;
            self.unanswered[word] &= !(bit * u64::from(is_expected));
            self.open -= usize::from(is_expected);
            return is_expected;
        };
        let slot = u16::try_from(message & 0xffff).unwrap_or(u16::MAX);
        let Some(place) = slots.all.get_mut(usize::from(slot)) else {
            return false;
        };
        let is_expected = place.sent != FREE && u32::from(place.uses) == message >> 16 & 0xfff;
        if is_expected {
            place.end();
            slots.free.give(slot);
        }
        is_expected
    }

    /// Gives all up, at the end; how many.
    pub(crate) fn give_up(&mut self) -> u64 {
        self.unanswered.fill(0);
        std::mem::take(&mut self.open) as u64 + self.expire(u64::MAX, 0)
    }

    /// Gives up those that were sent so many ticks ago or earlier; how many.
    pub(crate) fn expire(&mut self, now: u64, patience: u64) -> u64 {
        let Some(slots) = &mut self.slots else {
            return 0;
        };
        let is_old =
            |slot: &MessageSlot| slot.sent != FREE && now.saturating_sub(slot.sent) >= patience;
        let mut given_up = 0;
        for (place, slot) in slots.all.iter_mut().zip(0..) {
            if is_old(place) {
                place.end();
                slots.free.give(slot);
                given_up += 1;
            }
        }
        given_up
    }
}

/// Word and bit of a message where there are no slots.
#[inline]
fn bit_of(message: u32) -> (usize, u64) {
    let place = (message % LATEST) as usize;
    (place / 64, 1 << (place % 64))
}

impl MessageSlot {
    /// It is free for another use.
    #[inline]
    fn end(&mut self) {
        self.sent = FREE;
        self.uses = (self.uses + 1) % USES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_given_up_frees_its_place_and_its_answer_is_late() {
        let mut all = Outstanding::new(2, 5);
        let first = all.begin(100).unwrap();
        let second = all.begin(150).unwrap();
        assert_eq!((all.room(), all.begin(160)), (0, None));
        assert_eq!(first >> 28, 5);
        assert_eq!(all.expire(199, 100), 0);
        assert_eq!(all.expire(200, 100), 1);
        assert_eq!(all.room(), 1);
        let third = all.begin(201).unwrap();
        assert_eq!(third & 0xffff, first & 0xffff, "the same slot");
        assert!(!all.end(first), "its answer comes too late");
        assert!(all.end(second) && all.end(third));
        assert!(!all.end(third), "a second answer");
        assert_eq!((all.room(), all.count()), (2, 0));
    }

    #[test]
    fn places_become_free_and_are_used_in_order_however_often() {
        // No power of two, so that the list of the free ones is larger than they are.
        let mut all = Outstanding::new(3, 0);
        let mut open = std::collections::VecDeque::new();
        for round in 0..100_u32 {
            while let Some(message) = all.begin(u64::from(round)) {
                open.push_back(message);
            }
            assert_eq!((open.len(), all.room(), all.count()), (3, 0, 3));
            let ended: Vec<u32> = open.drain(..=round as usize % 3).collect();
            assert!(ended.iter().all(|message| all.end(*message)));
            assert_eq!(all.room(), ended.len());
            let next = all.begin(1).unwrap();
            assert_eq!(
                next & 0xffff,
                ended[0] & 0xffff,
                "the one that was free first"
            );
            open.push_back(next);
        }
    }

    #[test]
    fn without_a_limit_any_number_is_sent_and_every_answer_counts() {
        let mut all = Outstanding::new(0, 1);
        let messages: Vec<u32> = (0..70_000).filter_map(|now| all.begin(now)).collect();
        assert_eq!(messages.len(), 70_000);
        assert!(all.end(messages[0]));
        assert!(!all.end(messages[0]), "a second answer is no other's");
        assert_eq!((all.count(), all.expire(u64::MAX, 0)), (69_999, 0));
        assert_eq!((all.give_up(), all.count()), (69_999, 0));
        assert!(!all.end(messages[1]), "it was given up");
    }
}
