//! A store as one list of versions, and random operations on it and on an engine.

use std::collections::BTreeMap;

use weir_object::*;

/// Numbers of xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ x >> 31) % bound
    }
}

/// Object, dkey, akey: small numbers.
pub(crate) type Place = (u64, u64, u64);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Single(Vec<u8>),
    Extent(u64, Vec<u8>),
    /// A punch of records.
    Hole(u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) epoch: u64,
    pub(crate) what: What,
}

#[derive(Default)]
pub(crate) struct Model {
    /// Changes of each akey, in the order of their arrival.
    pub(crate) akeys: BTreeMap<Place, Vec<Change>>,
    pub(crate) dkey_punches: BTreeMap<(u64, u64), Vec<u64>>,
    /// By object and target: each drops the punches below which it has nothing.
    pub(crate) object_punches: BTreeMap<(u64, usize), Vec<u64>>,
    pub(crate) snapshots: Vec<u64>,
    pub(crate) compared: u64,
    /// Targets of distribution keys; none where the engine has one.
    pub(crate) targets: BTreeMap<(u64, u64), usize>,
    /// Tickets of operations that wait, and the bytes that they are to move; none: they are to be refused.
    pub(crate) waiting: Vec<(u64, Option<u64>)>,
}

/// Most operations that wait for their ends.
const WAITING: usize = 5;

/// Takes an operation for done, or lets it wait beside a few others.
fn acknowledged<S: ObjectStore>(
    store: &mut S,
    model: &mut Model,
    done: Result<Ticket>,
    bytes: u64,
) {
    match done.unwrap() {
        Ticket::Done(moved) => assert_eq!(moved, bytes),
        Ticket::Waits(ticket) => waits(store, model, ticket, Some(bytes)),
    }
}

/// Lets an operation wait beside a few others.
fn waits<S: ObjectStore>(store: &mut S, model: &mut Model, ticket: u64, bytes: Option<u64>) {
    model.waiting.push((ticket, bytes));
    if model.waiting.len() >= WAITING {
        settle(store, model);
    }
}

/// True for the reasons to refuse an update at an epoch that has one.
fn is_refused<T>(result: &Result<T>) -> bool {
    let why = result.as_ref().err().map(|why| why.code);
    matches!(why, Some(ObjectCode::Exist | ObjectCode::Inval))
}

/// Compares the ends of operations with those that they are to have.
fn check_ends(model: &mut Model, ended: &[Completion]) {
    for (ticket, bytes) in model.waiting.drain(..) {
        let end = ended.iter().find(|end| end.ticket == ticket).unwrap();
        match bytes {
            Some(bytes) => assert_eq!(end.result, Ok(bytes)),
            None => assert!(is_refused(&end.result), "{end:?}"),
        }
    }
}

/// Waits for the ends of all operations.
pub(crate) fn settle<S: ObjectStore>(store: &mut S, model: &mut Model) {
    let mut ended = Vec::new();
    while ended.len() < model.waiting.len() {
        store.poll(&mut ended, model.waiting.len());
    }
    check_ends(model, &ended);
}

/// A fetch with its end.
fn fetched<S: ObjectStore>(
    store: &mut S,
    model: &mut Model,
    (key, at): (KeyAt<'_>, Epoch),
    iods: &mut [Iod<'_>],
    data: &mut [u8],
) -> Result<u64> {
    let ticket = match store.fetch(key, iods, at, Conditions::NONE, data)? {
        Ticket::Done(found) => return Ok(found),
        Ticket::Waits(ticket) => ticket,
    };
    let mut ended = Vec::new();
    while ended.len() <= model.waiting.len() {
        store.poll(&mut ended, model.waiting.len() + 1);
    }
    check_ends(model, &ended);
    let end = ended.into_iter().find(|end| end.ticket == ticket).unwrap();
    end.result?;
    store.receive(ticket, iods, data)
}

/// Numbers of objects, and of distribution keys of each.
const OBJECTS: u64 = 3;
const DKEYS: u64 = 4;
/// Record size of arrays.
const RECORD: u64 = 3;
/// Records that arrays are used up to.
const RECORDS: u64 = 40;

/// Target of a place.
fn target(targets: &BTreeMap<(u64, u64), usize>, place: Place) -> usize {
    targets.get(&(place.0, place.1)).copied().unwrap_or(0)
}

impl Model {
    fn is_hidden(&self, place: Place, version: u64, read: u64) -> bool {
        let hides = |punches: Option<&Vec<u64>>| {
            punches.is_some_and(|p| p.iter().any(|&p| p <= read && p >= version))
        };
        let target = target(&self.targets, place);
        hides(self.object_punches.get(&(place.0, target)))
            || hides(self.dkey_punches.get(&(place.0, place.1)))
    }

    pub(crate) fn single(&self, place: Place, read: u64) -> Option<&[u8]> {
        let changes = self.akeys.get(&place)?;
        let newest = changes
            .iter()
            .filter(|c| c.epoch <= read)
            .max_by_key(|c| c.epoch)?;
        match &newest.what {
            What::Single(bytes) if !self.is_hidden(place, newest.epoch, read) => Some(bytes),
            _ => None,
        }
    }

    /// Number of the change that a record shows at an epoch.
    fn shown(&self, place: Place, record: u64, read: u64) -> Option<usize> {
        let covers = |what: &What| match what {
            What::Single(_) => true,
            What::Extent(start, bytes) => {
                (*start..start + bytes.len() as u64 / RECORD).contains(&record)
            }
            What::Hole(start, end) => (*start..*end).contains(&record),
        };
        let changes = self.akeys.get(&place)?;
        let seen = changes
            .iter()
            .enumerate()
            .filter(|(_, c)| c.epoch <= read && covers(&c.what));
        let (number, change) = seen.max_by_key(|(_, c)| c.epoch)?;
        let visible =
            !matches!(change.what, What::Hole(..)) && !self.is_hidden(place, change.epoch, read);
        visible.then_some(number)
    }

    pub(crate) fn record(&self, place: Place, record: u64, read: u64) -> Option<&[u8]> {
        match &self.akeys[&place][self.shown(place, record, read)?].what {
            What::Extent(start, bytes) => {
                let at = ((record - start) * RECORD) as usize;
                Some(&bytes[at..at + RECORD as usize])
            }
            _ => None,
        }
    }

    pub(crate) fn exists(&self, place: Place, read: u64) -> bool {
        (0..RECORDS).any(|record| self.shown(place, record, read).is_some())
    }

    pub(crate) fn pass(&mut self, aggregate: bool, after: u64, upto: u64) {
        let within = |epoch: u64| epoch > after && epoch <= upto;
        let mut reads = vec![upto];
        reads.extend(self.snapshots.iter().copied().filter(|&e| within(e)));
        let places: Vec<Place> = self.akeys.keys().copied().collect();
        let mut left = BTreeMap::new();
        for place in places {
            let changes = &self.akeys[&place];
            let mut keep: Vec<bool> = changes.iter().map(|c| !within(c.epoch)).collect();
            if aggregate {
                for &read in &reads {
                    for record in 0..RECORDS {
                        if let Some(number) = self.shown(place, record, read) {
                            keep[number] = true;
                        }
                    }
                }
                for at in 0..changes.len() {
                    if let What::Hole(start, end) = changes[at].what {
                        keep[at] |= changes.iter().zip(&keep).any(|(c, kept)| {
                            let range = match &c.what {
                                What::Single(_) => (0, u64::MAX),
                                What::Extent(first, bytes) => {
                                    (*first, first + bytes.len() as u64 / RECORD)
                                }
                                What::Hole(..) => return false,
                            };
                            *kept
                                && c.epoch <= changes[at].epoch
                                && range.0 < end
                                && start < range.1
                        });
                    }
                }
            }
            let kept = changes.iter().zip(keep).filter(|(_, keep)| *keep);
            left.insert(place, kept.map(|(c, _)| c.clone()).collect::<Vec<_>>());
        }
        self.akeys = left;
        let below = |in_scope: &dyn Fn(Place) -> bool, punch: u64| {
            let of = self.akeys.iter().filter(|(place, _)| in_scope(**place));
            of.flat_map(|(_, c)| c)
                .any(|c| c.epoch <= punch && !matches!(c.what, What::Hole(..)))
        };
        for (&(object, dkey), punches) in &mut self.dkey_punches {
            punches.retain(|&p| {
                !within(p) || aggregate && below(&|at| (at.0, at.1) == (object, dkey), p)
            });
        }
        for (&(object, number), punches) in &mut self.object_punches {
            let has = |at: Place| at.0 == object && target(&self.targets, at) == number;
            punches.retain(|&p| !within(p) || aggregate && below(&has, p));
        }
    }
}

/// Each distribution key that operations take, by the numbers of its object and of itself.
pub(crate) fn dkeys() -> impl Iterator<Item = (u64, u64)> {
    (0..OBJECTS).flat_map(|object| (0..DKEYS).map(move |dkey| (object, dkey)))
}

/// Object of a number: hashed, integer and lexical distribution keys.
pub(crate) fn object(number: u64) -> ObjectId {
    ObjectId {
        hi: [0, 2, 5][number as usize % 3] << 56,
        lo: number,
    }
}

pub(crate) fn dkey(number: u64) -> Vec<u8> {
    (number * 257 + 1).to_le_bytes().to_vec()
}

pub(crate) fn akey(number: u64) -> Vec<u8> {
    format!("akey--{number}").into_bytes()
}

/// True for places whose akey is an array.
pub(crate) fn is_array(place: Place) -> bool {
    place.2 % 2 == 1
}

/// One random operation on both, and a comparison.
pub(crate) fn step<S: ObjectStore>(
    store: &mut S,
    model: &mut Model,
    c: ContainerId,
    random: &mut Random,
) {
    let place = (random.below(OBJECTS), random.below(DKEYS), random.below(4));
    let (id, d, a) = (object(place.0), dkey(place.1), akey(place.2));
    let key = KeyAt {
        container: c,
        object: id,
        dkey: &d,
    };
    let epoch = random.below(200) + 1;
    let at = Epoch(epoch);
    match random.below(100) {
        0..35 => {
            let start = random.below(RECORDS - 10);
            let count = random.below(10) + 1;
            let len = if is_array(place) {
                count * RECORD
            } else {
                random.below(200) + 1
            };
            let bytes: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            update(store, model, key, place, &a, at, start, bytes);
        }
        35..40 => {
            let (start, count) = (random.below(RECORDS - 10), random.below(10) + 1);
            let extent = RecordExtent {
                index: start,
                count,
            };
            let (scope, what) = if is_array(place) && random.below(2) == 0 {
                (
                    PunchScope::Extent(&d, &a, extent),
                    What::Hole(start, start + count),
                )
            } else {
                (PunchScope::Akey(&d, &a), What::Hole(0, u64::MAX))
            };
            let done = store.punch(c, id, scope, at, Conditions::NONE);
            let changes = model.akeys.entry(place).or_default();
            let What::Hole(from, to) = what else {
                unreachable!()
            };
            let same: Vec<&Change> = changes
                .iter()
                .filter(|c| c.epoch == epoch && overlaps(&c.what, from, to))
                .collect();
            if same.iter().any(|c| !matches!(c.what, What::Hole(..))) {
                assert_eq!(done.unwrap_err().code, ObjectCode::Inval);
            } else {
                let covered = same
                    .iter()
                    .any(|c| matches!(c.what, What::Hole(s, e) if s <= from && to <= e));
                if !covered {
                    changes.push(Change { epoch, what });
                }
                acknowledged(store, model, done, 0);
            }
        }
        40..42 => {
            let done = store.punch(c, id, PunchScope::Dkey(&d), at, Conditions::NONE);
            acknowledged(store, model, done, 0);
            model
                .dkey_punches
                .entry((place.0, place.1))
                .or_default()
                .push(epoch);
        }
        42 => {
            let done = store.punch(c, id, PunchScope::Object, at, Conditions::NONE);
            acknowledged(store, model, done, 0);
            let last = model.targets.values().max().copied();
            for target in 0..=last.unwrap_or(0) {
                let punches = model.object_punches.entry((place.0, target));
                punches.or_default().push(epoch);
            }
        }
        43 => passes(store, model, c, random),
        44 => list(store, model, c, place.0, at),
        _ => compare(store, model, key, place, &a, at, random),
    }
}

fn overlaps(what: &What, start: u64, end: u64) -> bool {
    match what {
        What::Single(_) => true,
        What::Extent(from, bytes) => *from < end && start < from + bytes.len() as u64 / RECORD,
        What::Hole(from, to) => *from < end && start < *to,
    }
}

#[allow(clippy::too_many_arguments, reason = "what an operation is")]
fn update<S: ObjectStore>(
    store: &mut S,
    model: &mut Model,
    key: KeyAt<'_>,
    place: Place,
    a: &[u8],
    at: Epoch,
    start: u64,
    bytes: Vec<u8>,
) {
    let extents = [RecordExtent {
        index: start,
        count: bytes.len() as u64 / RECORD,
    }];
    let (iod, what) = if is_array(place) {
        (
            Iod::array(a, RECORD, &extents),
            What::Extent(start, bytes.clone()),
        )
    } else {
        (
            Iod::single(a, bytes.len() as u64),
            What::Single(bytes.clone()),
        )
    };
    let done = store.update(key, &[iod], at, Conditions::NONE, &bytes);
    let changes = model.akeys.entry(place).or_default();
    // A short single value has no whole record, and yet meets a punch.
    let end = start + extents[0].count.max(1);
    let same = changes
        .iter()
        .find(|c| c.epoch == at.0 && overlaps(&c.what, start, end));
    match same {
        Some(change) if change.what == what => acknowledged(store, model, done, bytes.len() as u64),
        Some(_) => match done {
            Ok(Ticket::Waits(ticket)) => waits(store, model, ticket, None),
            done => assert!(is_refused(&done), "{done:?}"),
        },
        None => {
            changes.push(Change { epoch: at.0, what });
            acknowledged(store, model, done, bytes.len() as u64);
            let retry = store.update(key, &[iod], at, Conditions::NONE, &bytes);
            acknowledged(store, model, retry, bytes.len() as u64);
        }
    }
}

fn passes<S: ObjectStore>(store: &mut S, model: &mut Model, c: ContainerId, random: &mut Random) {
    let after = random.below(150);
    let range = EpochRange {
        after: Epoch(after),
        upto: Epoch(after + random.below(80) + 1),
    };
    match random.below(10) {
        0..4 => {
            let _ = store.aggregate(c, range).unwrap();
            model.pass(true, after, range.upto.0);
        }
        4..6 => {
            let _ = store.discard(c, range).unwrap();
            model.pass(false, after, range.upto.0);
        }
        6 => {
            let _ = store.collect().unwrap();
            let _ = store.scrub(&mut |bad| panic!("{bad:?}")).unwrap();
        }
        7 => {
            store.snapshot(c, range.upto).unwrap();
            model.snapshots.push(range.upto.0);
        }
        _ => {
            if let Some(epoch) = model.snapshots.pop() {
                model.snapshots.retain(|&e| e != epoch);
                store.drop_snapshot(c, Epoch(epoch)).unwrap();
            }
        }
    }
}

fn list<S: ObjectStore>(store: &mut S, model: &Model, c: ContainerId, number: u64, at: Epoch) {
    let mut listed = Vec::new();
    let mut anchor = ListAnchor::default();
    while !anchor.done {
        store
            .list(
                c,
                ListLevel::Dkeys(object(number)),
                at,
                &mut anchor,
                &mut |entry| {
                    let ListEntry::Key(key) = entry else {
                        panic!("{entry:?}")
                    };
                    listed.push(key.to_vec());
                    false
                },
            )
            .unwrap();
    }
    let there = |d: &u64| (0..4).any(|a| model.exists((number, *d, a), at.0));
    let mut expected: Vec<Vec<u8>> = (0..4).filter(there).map(dkey).collect();
    if number % 3 == 1 && model.targets.is_empty() {
        assert_eq!(listed, expected, "integers come in order");
    }
    let max = KeyQuery::MAX.with(KeyQuery::DKEY);
    let mut answer = QueryAnswer::default();
    let found = store.query(c, object(number), max, at, &mut answer);
    match number % 3 {
        0 => assert_eq!(found.unwrap_err().code, ObjectCode::Inval),
        1 => assert_eq!(found.is_ok().then_some(&answer.dkey), expected.last()),
        _ => assert_eq!(found.is_ok().then_some(&answer.dkey), expected.iter().max()),
    }
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected, "distribution keys of {number} at {at:?}");
    for d in 0..4 {
        let mut listed = Vec::new();
        let level = &mut |entry: ListEntry<'_>| {
            let ListEntry::Key(key) = entry else {
                panic!("{entry:?}")
            };
            listed.push(key.to_vec());
            true
        };
        store
            .list(
                c,
                ListLevel::Akeys(object(number), &dkey(d)),
                at,
                &mut ListAnchor::default(),
                level,
            )
            .unwrap();
        let expected: Vec<Vec<u8>> = (0..4)
            .filter(|&a| model.exists((number, d, a), at.0))
            .map(akey)
            .collect();
        assert_eq!(listed, expected);
    }
}

/// Compares what a read of one place finds.
pub(crate) fn compare<S: ObjectStore>(
    store: &mut S,
    model: &mut Model,
    key: KeyAt<'_>,
    place: Place,
    a: &[u8],
    at: Epoch,
    random: &mut Random,
) {
    let mut data = [0xEE; 256];
    if is_array(place) {
        let index = random.below(RECORDS - 10);
        let extents = [RecordExtent {
            index,
            count: random.below(20) + 1,
        }];
        let mut iods = [Iod::array(a, RECORD, &extents)];
        let done = fetched(store, model, (key, at), &mut iods, &mut data);
        let mut found = 0;
        for record in index..index + extents[0].count {
            let place_in = ((record - index) * RECORD) as usize;
            let got = &data[place_in..place_in + RECORD as usize];
            let wanted = model
                .akeys
                .contains_key(&place)
                .then(|| model.record(place, record, at.0))
                .flatten();
            found += wanted.map_or(0, |_| RECORD);
            assert_eq!(
                got,
                wanted.unwrap_or(&[0xEE; RECORD as usize]),
                "record {record} of {place:?} at {at:?}"
            );
        }
        assert_eq!(done, Ok(found));
        model.compared += u64::from(found > 0);
    } else {
        let mut iods = [Iod::single(a, 256)];
        let done = fetched(store, model, (key, at), &mut iods, &mut data);
        let wanted = model.single(place, at.0).unwrap_or(&[]);
        assert_eq!(done, Ok(wanted.len() as u64), "{place:?} at {at:?}");
        assert_eq!(&data[..wanted.len()], wanted);
        assert_eq!(data[wanted.len()], 0xEE);
        model.compared += u64::from(!wanted.is_empty());
    }
}
