//! Which endpoint is next: one after another, the one with the fewest calls out, any, or the one that
//! the slot belongs to.
//!
//! In: a list of endpoints, of which some may be lost, and how many calls there shall be. Out: the calls
//! of a loop, until there are enough or no endpoint is left; for how long each endpoint was called where
//! each has a turn of its own. Not here: how a call is made (`engine`).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use weir_run::generate::rng::Rng;
use weir_run::{OpTarget, Operation, Source};
use weir_schema::RpcSpread;

/// A call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RpcOp {
    /// The entry of the list.
    pub entry: u32,
    /// The number of its endpoint among those that differ.
    pub target: u32,
    /// Bytes of request and reply, as far as the number goes.
    pub length: u32,
}

impl Operation for RpcOp {
    #[inline]
    fn kind_index(&self) -> usize {
        0
    }

    #[inline]
    fn length(&self) -> u32 {
        self.length
    }

    #[inline]
    fn acts_on(&self) -> OpTarget {
        OpTarget {
            number: self.target,
            offset: None,
        }
    }

    /// A call has no parts.
    fn rest(&self, _done: u32) -> Option<Self> {
        None
    }
}

/// State of the entries of a thread's list.
#[derive(Debug)]
pub struct EntryStates {
    entries: Box<[EntryState]>,
    /// Entries that can be called.
    up: Cell<u32>,
    /// Calls that are out are counted.
    pub(crate) counts: bool,
    /// Lost endpoints are called, too, while there is no other: they may come back.
    pub(crate) waits: Cell<bool>,
    /// The turn that goes on: its entry, and since when.
    turn: Cell<Option<(u32, Instant)>>,
    /// Times of the turns that are over.
    turns: RefCell<Vec<Duration>>,
    /// Calls that each rank may still take.
    room: Box<[Cell<u32>]>,
}

#[derive(Debug)]
struct EntryState {
    target: u32,
    is_up: Cell<bool>,
    in_flight: Cell<u32>,
    /// The place of its rank.
    rank: usize,
}

impl EntryStates {
    /// Of entries whose endpoints have these numbers. All of them can be called.
    pub fn new(targets: &[u32], counts: bool) -> Rc<Self> {
        let all: Vec<_> = targets.iter().map(|target| (*target, 0)).collect();
        Self::of_ranks(&all, None, counts)
    }

    /// The same, each with its rank, which takes so many calls at once.
    pub fn of_ranks(all: &[(u32, u32)], limit: Option<u32>, counts: bool) -> Rc<Self> {
        let mut ranks: Vec<u32> = all.iter().map(|(_, rank)| *rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let entry = |(target, rank): &(u32, u32)| EntryState {
            target: *target,
            is_up: Cell::new(true),
            in_flight: Cell::new(0),
            rank: ranks.binary_search(rank).unwrap_or(0),
        };
        Rc::new(Self {
            entries: all.iter().map(entry).collect(),
            room: vec![Cell::new(limit.unwrap_or(u32::MAX)); ranks.len()].into(),
            up: Cell::new(u32::try_from(all.len()).unwrap_or(u32::MAX)),
            counts,
            waits: Cell::new(false),
            turn: Cell::new(None),
            turns: RefCell::new(vec![Duration::ZERO; all.len()]),
        })
    }

    /// An entry has its first call.
    #[cold]
    fn begin_turn(&self, entry: u32) {
        self.turn.set(Some((entry, Instant::now())));
    }

    /// Its last call was answered.
    #[cold]
    fn end_turn(&self) {
        let Some((entry, began)) = self.turn.take() else {
            return;
        };
        if let Some(took) = self.turns.borrow_mut().get_mut(entry as usize) {
            *took = began.elapsed();
        }
    }

    /// Time that the turn of each entry took; the last one ends now. Zero where there are no turns.
    pub fn turns(&self) -> Vec<Duration> {
        self.end_turn();
        self.turns.borrow().clone()
    }

    /// Number of entries.
    pub fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if an entry can be called.
    pub fn is_up(&self, entry: u32) -> bool {
        let state = self.entries.get(entry as usize);
        state.is_some_and(|state| state.is_up.get())
    }

    /// An endpoint is lost, or is back.
    #[cold]
    pub fn set_up(&self, entry: u32, is_up: bool) {
        let Some(state) = self.entries.get(entry as usize) else {
            return;
        };
        match (state.is_up.replace(is_up), is_up) {
            (true, false) => self.up.set(self.up.get() - 1),
            (false, true) => self.up.set(self.up.get() + 1),
            _ => {}
        }
    }

    #[inline]
    pub(crate) fn count_out(&self, entry: u32) {
        if let Some(state) = self.entries.get(entry as usize) {
            state.in_flight.set(state.in_flight.get() + 1);
            self.change_room(state, u32::wrapping_sub);
        }
    }

    #[inline]
    fn change_room(&self, entry: &EntryState, change: fn(u32, u32) -> u32) {
        if let Some(room) = self.room.get(entry.rank) {
            room.set(change(room.get(), 1));
        }
    }

    #[inline]
    pub(crate) fn count_back(&self, entry: u32) {
        if let Some(state) = self.entries.get(entry as usize) {
            state.in_flight.set(state.in_flight.get().saturating_sub(1));
            self.change_room(state, u32::wrapping_add);
        }
    }
}

/// Calls to the entries of a list. `WAITS`: there may be none now and one later, as some endpoint has
/// a limit or may come back.
#[derive(Debug)]
pub struct RpcSource<const WAITS: bool> {
    entries: Rc<EntryStates>,
    spread: RpcSpread,
    /// Of each entry.
    limit: u32,
    /// Calls that are still to be made.
    left: u64,
    /// Where the next look at the list begins.
    at: usize,
    random: Rng,
    length: u32,
    turns: Option<EntryTurns>,
}

/// One entry after another gets all its calls, and the next one's begin when they are answered.
#[derive(Clone, Copy, Debug)]
struct EntryTurns {
    /// Calls that the present entry still gets.
    left: u64,
    /// Calls of each entry, and how many entries get one more.
    each: (u64, u64),
}

impl EntryTurns {
    fn new(calls: u64, entries: u64) -> Self {
        let mut turns = Self {
            left: 0,
            each: (calls / entries.max(1), calls % entries.max(1)),
        };
        turns.left = turns.of(0);
        turns
    }

    fn of(self, entry: usize) -> u64 {
        self.each.0 + u64::from((entry as u64) < self.each.1)
    }
}

/// Parts of a source.
#[derive(Clone, Copy, Debug)]
pub struct SpreadPlan {
    /// Choice of the next one.
    pub spread: RpcSpread,
    /// So many at once to one entry.
    pub limit: Option<u32>,
    /// Calls there shall be.
    pub calls: u64,
    /// The entry that comes first.
    pub first: u32,
    /// Of random choices.
    pub seed: u64,
    /// Of request and reply.
    pub bytes: u64,
    /// Each entry has a turn of its own, in which no other is called; for sources that wait.
    pub has_turns: bool,
}

impl<const WAITS: bool> RpcSource<WAITS> {
    /// Over these entries.
    pub fn new(entries: Rc<EntryStates>, plan: &SpreadPlan) -> Self {
        let count = entries.entries.len() as u64;
        Self {
            turns: (WAITS && plan.has_turns).then(|| EntryTurns::new(plan.calls, count)),
            at: plan.first as usize % entries.entries.len().max(1),
            entries,
            spread: plan.spread,
            limit: plan.limit.unwrap_or(u32::MAX),
            left: plan.calls,
            random: Rng::new(plan.seed),
            length: u32::try_from(plan.bytes).unwrap_or(u32::MAX),
        }
    }

    #[inline]
    fn has_room(&self, entry: &EntryState) -> bool {
        let room = self.entries.room.get(entry.rank);
        entry.in_flight.get() < self.limit && room.is_some_and(|room| room.get() > 0)
    }

    #[inline]
    fn can_take(&self, entry: &EntryState) -> bool {
        let has_room = !WAITS || self.has_room(entry);
        let is_there = entry.is_up.get() || (WAITS && self.calls_lost_ones());
        has_room && is_there
    }

    fn calls_lost_ones(&self) -> bool {
        self.entries.waits.get() && self.entries.up.get() == 0
    }

    /// The first one that can take a call, from a place of the list on.
    #[inline]
    fn from(&self, start: usize) -> Option<usize> {
        let entries = &self.entries.entries;
        match entries.get(start) {
            Some(entry) if self.can_take(entry) => Some(start),
            _ => self.search_from(start),
        }
    }

    #[cold]
    fn search_from(&self, start: usize) -> Option<usize> {
        let entries = &self.entries.entries;
        if !WAITS && self.entries.up.get() == 0 {
            return None;
        }
        let (before, behind) = entries.split_at_checked(start)?;
        let find = |part: &[EntryState]| part.iter().position(|entry| self.can_take(entry));
        find(behind)
            .map(|place| start + place)
            .or_else(|| find(before))
    }

    fn least(&self) -> Option<usize> {
        let entries = self.entries.entries.iter().enumerate();
        // Equal ones in turns.
        let count = self.entries.entries.len();
        let turn = |place: usize| (place + count - self.at) % count;
        let able = entries.filter(|(_, entry)| self.can_take(entry));
        let least = able.min_by_key(|(place, entry)| (entry.in_flight.get(), turn(*place)));
        least.map(|(place, _)| place)
    }

    /// The entry whose turn it is; nothing while the next one has to wait for answers, or where all
    /// have had theirs.
    fn in_turn(&mut self, mut turns: EntryTurns) -> Option<usize> {
        let states = Rc::clone(&self.entries);
        let found = loop {
            let entry = states.entries.get(self.at)?;
            if turns.left > 0 && (entry.is_up.get() || states.waits.get()) {
                if !self.has_room(entry) {
                    break None;
                }
                if turns.left == turns.of(self.at) {
                    states.begin_turn(u32::try_from(self.at).unwrap_or(u32::MAX));
                }
                turns.left -= 1;
                break Some(self.at);
            }
            if entry.in_flight.get() > 0 {
                break None;
            }
            states.end_turn();
            // What a lost endpoint was to get is not sent to another one.
            self.left -= turns.left;
            self.at += 1;
            turns.left = turns.of(self.at);
        };
        self.turns = Some(turns);
        found
    }

    #[inline]
    fn pick(&mut self, slot: u32) -> Option<usize> {
        if WAITS && let Some(turns) = self.turns {
            return self.in_turn(turns);
        }
        let count = self.entries.entries.len();
        let place = match self.spread {
            RpcSpread::RoundRobin => self.from(self.at),
            RpcSpread::Least => self.least(),
            RpcSpread::Random => {
                let start = self.random.below(count.max(1) as u64);
                self.from(usize::try_from(start).unwrap_or(0))
            }
            RpcSpread::PerEndpoint => self.from(slot as usize % count.max(1)),
        }?;
        self.at = if place + 1 < count { place + 1 } else { 0 };
        Some(place)
    }
}

impl<const WAITS: bool> Source for RpcSource<WAITS> {
    type Op = RpcOp;
    const ONE_KIND: bool = true;
    const CHECKS: bool = WAITS;

    #[inline]
    fn next(&mut self, slot: u32) -> Option<RpcOp> {
        if self.left == 0 {
            return None;
        }
        let place = self.pick(slot)?;
        self.left -= 1;
        let target = self.entries.entries.get(place)?.target;
        Some(RpcOp {
            entry: u32::try_from(place).unwrap_or(u32::MAX),
            target,
            length: self.length,
        })
    }

    fn is_waiting(&self) -> bool {
        self.left > 0 && (self.entries.up.get() > 0 || self.entries.waits.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(spread: RpcSpread, calls: u64) -> SpreadPlan {
        SpreadPlan {
            spread,
            limit: None,
            calls,
            first: 0,
            seed: 7,
            bytes: 24,
            has_turns: false,
        }
    }

    fn drawn<const WAITS: bool>(source: &mut RpcSource<WAITS>, calls: u32) -> Vec<u32> {
        let next = |slot| source.next(slot).map(|op| op.entry);
        (0..calls).map_while(next).collect()
    }

    #[test]
    fn round_robin_goes_on_over_what_is_left_until_nothing_is() {
        let entries = EntryStates::new(&[0, 1, 1], false);
        let mut source =
            RpcSource::<false>::new(Rc::clone(&entries), &plan(RpcSpread::RoundRobin, 20));
        assert_eq!(drawn(&mut source, 4), [0, 1, 2, 0]);
        assert_eq!(source.next(0).unwrap().target, 1);
        entries.set_up(0, false);
        entries.set_up(0, false);
        assert_eq!(drawn(&mut source, 3), [2, 1, 2]);
        entries.set_up(1, false);
        assert_eq!(drawn(&mut source, 2), [2, 2]);
        entries.set_up(2, false);
        assert_eq!(source.next(0), None);
        entries.set_up(0, true);
        assert_eq!(drawn(&mut source, 100).len(), 10);
        assert_eq!(source.next(0), None, "as many as were asked for");
    }

    #[test]
    fn the_least_busy_is_next_and_equal_ones_take_turns() {
        let entries = EntryStates::new(&[0, 1, 2], true);
        let mut source = RpcSource::<false>::new(Rc::clone(&entries), &plan(RpcSpread::Least, 20));
        assert_eq!(drawn(&mut source, 3), [0, 1, 2]);
        entries.count_out(0);
        entries.count_out(1);
        entries.count_out(1);
        assert_eq!(drawn(&mut source, 1), [2]);
        entries.count_out(2);
        entries.count_out(2);
        assert_eq!(drawn(&mut source, 2), [0, 0]);
    }

    #[test]
    fn each_slot_keeps_its_endpoint() {
        let entries = EntryStates::new(&[0, 1, 2], false);
        let mut source = RpcSource::<false>::new(entries, &plan(RpcSpread::PerEndpoint, 20));
        let of = |source: &mut RpcSource<false>, slot| source.next(slot).unwrap().entry;
        assert_eq!([5, 3, 5, 1].map(|slot| of(&mut source, slot)), [2, 0, 2, 1]);
    }

    #[test]
    fn an_endpoint_at_its_limit_is_passed_over_and_waited_for() {
        let entries = EntryStates::new(&[0, 1], true);
        let limited = SpreadPlan {
            limit: Some(1),
            ..plan(RpcSpread::RoundRobin, 20)
        };
        let mut source = RpcSource::<true>::new(Rc::clone(&entries), &limited);
        assert_eq!(drawn(&mut source, 1), [0]);
        entries.count_out(1);
        assert_eq!(drawn(&mut source, 2), [0, 0]);
        entries.count_out(0);
        assert!(source.next(0).is_none() && source.is_waiting());
        entries.count_back(1);
        assert_eq!(drawn(&mut source, 1), [1]);
    }

    #[test]
    fn the_endpoints_of_a_rank_share_its_limit() {
        let entries = EntryStates::of_ranks(&[(0, 5), (1, 5), (2, 8)], Some(2), true);
        let mut source =
            RpcSource::<true>::new(Rc::clone(&entries), &plan(RpcSpread::RoundRobin, 20));
        entries.count_out(0);
        entries.count_out(1);
        assert_eq!(drawn(&mut source, 2), [2, 2]);
        (0..2).for_each(|_| entries.count_out(2));
        assert!(source.next(0).is_none() && source.is_waiting());
        entries.count_back(0);
        assert_eq!(drawn(&mut source, 1), [0]);
    }

    #[test]
    fn lost_endpoints_are_called_only_where_they_may_come_back_and_none_else_is_there() {
        let entries = EntryStates::new(&[0, 1], false);
        let mut source =
            RpcSource::<true>::new(Rc::clone(&entries), &plan(RpcSpread::RoundRobin, 20));
        entries.set_up(0, false);
        assert_eq!(drawn(&mut source, 2), [1, 1]);
        entries.set_up(1, false);
        assert!(source.next(0).is_none() && !source.is_waiting());
        entries.waits.set(true);
        assert!(source.is_waiting());
        assert_eq!(drawn(&mut source, 2), [0, 1]);
    }

    #[test]
    fn in_turns_the_next_endpoint_waits_for_the_answers_of_the_one_before() {
        let entries = EntryStates::new(&[0, 1, 2], true);
        let turns = SpreadPlan {
            has_turns: true,
            ..plan(RpcSpread::RoundRobin, 7)
        };
        let mut source = RpcSource::<true>::new(Rc::clone(&entries), &turns);
        assert_eq!(
            drawn(&mut source, 3),
            [0, 0, 0],
            "the first gets the remainder"
        );
        (0..3).for_each(|_| entries.count_out(0));
        entries.count_back(0);
        assert!(source.next(0).is_none() && source.is_waiting());
        (0..2).for_each(|_| entries.count_back(0));
        assert_eq!(source.next(0).unwrap().entry, 1);
        entries.set_up(1, false);
        assert_eq!(
            drawn(&mut source, 3),
            [2, 2],
            "a lost one's calls go to nobody"
        );
        assert!(source.next(0).is_none() && !source.is_waiting());
        let took = entries.turns();
        assert!(
            took.len() == 3 && took.iter().all(|took| !took.is_zero()),
            "{took:?}"
        );
        assert_eq!(entries.turns(), took);
    }

    #[test]
    fn random_choices_reach_every_endpoint() {
        let entries = EntryStates::new(&[0, 1, 2, 3], false);
        let mut source = RpcSource::<false>::new(entries, &plan(RpcSpread::Random, 200));
        let drawn = drawn(&mut source, 200);
        assert!((0..4).all(|entry| drawn.iter().filter(|one| **one == entry).count() > 20));
    }
}
