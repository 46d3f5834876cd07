//! Mixes as operations of the house's loop: kinds and keys are drawn one by one, among keys that are there.
//!
//! In: a session, a mix. Out: operations, each a call of the store, made before its time begins. A value of a
//! mix has bytes of its own, so that a fetch can be held against the last update of its key. Not here: the
//! numbers that are drawn (`key_draws`).

use weir_run::RecordedStarts;
use weir_run::generate::Streams;
use weir_run::generate::arrivals::{Arrivals, Even, Poisson, Rate};
use weir_run::generate::rng::Rng;
use weir_schema::{
    Load, MixShares, ObjectAction, ObjectEngine, ObjectMix, ObjectRun, ObjectTest, ObjectWorkload,
    Schedule,
};
use weir_units::Nanos;

use super::key_draws::KeyDraws;
use super::keys::At;
use super::load::{StoreOp, StoreWork, extent, iod};
use super::session::{Session, add_freed};
use crate::prelude::*;

/// Places of the operations in [`MixShares::KINDS`].
const UPDATE: usize = 0;
const FETCH: usize = 1;
const PUNCH: usize = 2;
const SCAN: usize = 3;
const MODIFY: usize = 4;
const INSERT: usize = 5;

/// Number of the write that a key got before all mixes.
const BEFORE: u32 = 1;

/// A reason against each mix that cannot be carried out.
pub(super) fn wrong_mixes(work: &ObjectWorkload) -> impl Iterator<Item = String> + '_ {
    let tests = work.tests.iter().enumerate();
    tests.filter_map(|(number, test)| match &test.action {
        ObjectAction::Mix(mix) => wrong_mix(work, number, mix),
        _ => None,
    })
}

fn wrong_mix(work: &ObjectWorkload, number: usize, mix: &ObjectMix) -> Option<String> {
    let (test, layout) = (&work.tests[number], &work.layout);
    let (mut before, mut after) = (work.tests[..number].iter(), work.tests[number..].iter());
    let scanned = test.size.0.saturating_mul(mix.scan_keys.into());
    let drops = |action: &ObjectAction| {
        matches!(
            action,
            ObjectAction::Punch { .. } | ObjectAction::Discard { .. }
        )
    };
    let is_whole = layout.akeys == 1 && layout.strides == 1 && test.size == layout.stride_bytes;
    let is_plain = !work.zero_copy && !work.thread_per_operation && work.in_flight <= 1;
    let wrong = reasons! {
        (mix.shares.sum() == 0) => "needs a share above 0";
        mix.keys.wrong().is_some() => mix.keys.wrong().unwrap_or_default();
        (mix.operations.is_none() && mix.runtime_ns.is_none()) => "needs a bound, of operations or time";
        !is_whole => "acts on whole values, one attribute key and stride for each distribution key";
        (!is_plain || work.truncate) =>
            "is one call after the other, in nanoseconds: no zero copy, no threads, one in flight";
        (work.engine == ObjectEngine::Echo) => "needs a store that keeps values; echo keeps none";
        (keys_before(work, number) == 0) => "draws keys that were written: put an update of them before it";
        before.any(|test| drops(&test.action)) => "draws keys that are there: put no punch or discard before it";
        after.any(|test| matches!(test.action, ObjectAction::Update | ObjectAction::Verify)) =>
            "leaves values of its own: put updates and verifications before it";
        (mix.shares.scan > 0 && !(1..=u64::from(u32::MAX)).contains(&scanned)) =>
            "scans from 1 key on, and no more than 4 GiB at once";
    };
    wrong.first().map(|why| format!("a mix {why}"))
}

/// Keys that the updates before a test have written, objects innermost.
pub(super) fn keys_before(work: &ObjectWorkload, number: usize) -> u64 {
    let updates = work.tests[..number].iter().filter(|test| {
        let objects = test.objects.unwrap_or(work.layout.objects);
        let is_whole = objects == work.layout.objects;
        test.action == ObjectAction::Update && is_whole && test.size == work.layout.stride_bytes
    });
    let keys = updates.map(|test| {
        let dkeys = test.dkeys.unwrap_or(work.layout.dkeys);
        dkeys.saturating_mul(work.layout.objects)
    });
    keys.max().unwrap_or_default()
}

/// Starts of a target's part of a mix whose operations have a rate: one schedule of all of them, whatever
/// their kinds.
pub(super) fn starts(load: &Load, targets: u32, streams: Streams) -> Option<RecordedStarts> {
    let Some(Schedule::OpsPerSecond {
        limit_per_s,
        poisson,
        ..
    }) = &load.pacing.schedule
    else {
        return None;
    };
    let sum: f64 = limit_per_s.values().map(|limit| limit.0).sum();
    let share = sum / f64::from(targets);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of a plan is positive; a saturated one is no limit"
    )]
    let rate = Rate::Operations((share.round() as u64).try_into().ok()?);
    let mut arrivals = if *poisson {
        Arrivals::Poisson(Poisson::new(rate, streams.arrivals()))
    } else {
        Arrivals::Even(Even::new(rate))
    };
    let next = move || Some(Nanos(arrivals.next_start_ns(0)));
    Some(RecordedStarts(Box::new(std::iter::from_fn(next))))
}

/// A mix at work, between source and engine.
pub(super) struct Mixer<'a> {
    session: &'a mut Session,
    test: &'a ObjectTest,
    mix: ObjectMix,
    kinds: Rng,
    scans: Rng,
    keys: KeyDraws,
    /// Operations that are left.
    left: u64,
    op: StoreOp,
    /// Place of the present operation in [`MixShares::KINDS`], its first key, and the number of keys.
    drawn: usize,
    key: u64,
    count: u64,
    /// Number of the present write.
    write: u32,
    dkey: Vec<u8>,
    akey: Vec<u8>,
    bytes: Vec<u8>,
    found: Vec<u8>,
    pub(super) run: ObjectRun,
}

impl<'a> Mixer<'a> {
    /// A mix over at least so many keys that were written before.
    pub(super) fn new(
        session: &'a mut Session,
        (test, mix): (&'a ObjectTest, ObjectMix),
        (before, streams): (u64, Streams),
    ) -> Self {
        let known = local(before);
        if session.writes.len() < known {
            session.writes.resize(known, BEFORE);
        }
        let mut akey = Vec::with_capacity(32);
        session.names.akey(0, 0, &mut akey);
        let bytes = vec![0; local(test.size.0)];
        Self {
            test,
            mix,
            kinds: streams.mix(),
            scans: streams.sizes(),
            keys: KeyDraws::new(mix.keys, streams),
            left: mix.operations.unwrap_or(u64::MAX),
            op: StoreOp::default(),
            drawn: UPDATE,
            key: 0,
            count: 1,
            write: session.writes.iter().max().copied().unwrap_or(BEFORE),
            dkey: Vec::with_capacity(32),
            akey,
            found: bytes.clone(),
            bytes,
            run: ObjectRun::default(),
            session,
        }
    }

    /// Number of a key's last write; 0 where it was punched, or never written.
    fn written(&self, key: u64) -> u32 {
        let place = local(key);
        self.session.writes.get(place).copied().unwrap_or_default()
    }

    fn is_there(&self, key: u64) -> bool {
        self.written(key) > 0
    }

    fn at(&self, key: u64) -> At {
        let objects = self.session.work.layout.objects;
        At {
            object: key % objects,
            dkey: key / objects,
            ..At::default()
        }
    }

    fn fail(&mut self, error: &ObjectError) {
        let object = self.at(self.key).object;
        let keys = (&self.dkey[..], &self.akey[..]);
        let failure = self.session.failure(object, keys, error);
        self.run.failure.get_or_insert(failure);
    }

    fn put(&mut self) -> Result<(), ObjectError> {
        let mut done = self.put_once();
        if matches!(&done, Err(full) if full.code == ObjectCode::NoSpace) {
            // Versions that nobody reads make room; the update that needs it waits for them.
            let (container, all) = (self.session.container, self.session.all_epochs());
            let freed = self.session.store.aggregate(container, all)?;
            add_freed(&mut self.run, freed);
            done = self.put_once();
        }
        let _ = done?;
        self.set(self.write);
        Ok(())
    }

    fn put_once(&mut self) -> Result<u64, ObjectError> {
        let (none, epoch) = (Conditions::NONE, self.session.next_epoch());
        let extent = [extent(self.session, self.test, At::default())];
        let iods = [iod(self.session, self.test, &self.akey, &extent)];
        let object = self.at(self.key).object;
        let place = self.session.key(object, &self.dkey);
        let store = &mut self.session.store;
        let ticket = store.update(place, &iods, epoch, none, &self.bytes)?;
        self.session.settled(ticket)
    }

    /// Remembers the last write of the present key.
    fn set(&mut self, write: u32) {
        let place = local(self.key);
        match self.session.writes.get_mut(place) {
            Some(last) => *last = write,
            None => self.session.writes.push(write),
        }
    }

    fn punch(&mut self) -> Result<(), ObjectError> {
        let object = self.session.names.object(self.at(self.key).object);
        let (container, epoch) = (self.session.container, self.session.next_epoch());
        let (scope, none) = (PunchScope::Dkey(&self.dkey), Conditions::NONE);
        let store = &mut self.session.store;
        let ticket = store.punch(container, object, scope, epoch, none)?;
        let _ = self.session.settled(ticket)?;
        self.set(0);
        Ok(())
    }

    /// Reads a value, which is there if the key was written and not punched since.
    fn get(&mut self, key: u64) -> Result<(), ObjectError> {
        let (none, epoch) = (Conditions::NONE, self.session.epoch);
        let extent = [extent(self.session, self.test, At::default())];
        let mut iods = [iod(self.session, self.test, &self.akey, &extent)];
        let object = self.at(key).object;
        let place = self.session.key(object, &self.dkey);
        let store = &mut self.session.store;
        let ticket = store.fetch(place, &mut iods, epoch, none, &mut self.found)?;
        let mut found = self.session.settled(ticket)?;
        if let Ticket::Waits(number) = ticket {
            let store = &mut self.session.store;
            found = store.receive(number, &mut iods, &mut self.found)?;
        }
        let expected = u64::from(self.is_there(key)) * self.test.size.0;
        if found == expected {
            return Ok(());
        }
        let why = format!("{found} bytes are stored where {expected} were written");
        match found {
            0 => ObjectCode::NonExist.fail(why),
            _ => ObjectCode::Mismatch.fail(why),
        }
    }
}

impl StoreWork for Mixer<'_> {
    fn next(&mut self, _slot: u32) -> Option<StoreOp> {
        if self.run.failure.is_some() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let mut place = self.kinds.below(self.mix.shares.sum());
        let weights = self.mix.shares.weights().into_iter().map(u64::from);
        let within = |weight: u64| match place.checked_sub(weight) {
            Some(rest) => {
                place = rest;
                false
            }
            None => true,
        };
        self.drawn = weights.map(within).position(|is| is).unwrap_or(INSERT);
        let known = self.session.writes.len() as u64;
        (self.key, self.count) = match self.drawn {
            INSERT => (known, 1),
            SCAN => {
                let key = self.keys.next(known);
                let most = 1 + self.scans.below(self.mix.scan_keys.into());
                (key, most.min(known - key))
            }
            _ => (self.keys.next(known), 1),
        };
        let length = match self.drawn {
            PUNCH => 0,
            FETCH | SCAN => {
                let there = (self.key..self.key + self.count).filter(|key| self.is_there(*key));
                self.test.size.0 * there.count() as u64
            }
            _ => self.test.size.0,
        };
        self.op = StoreOp {
            kind: MixShares::KINDS[self.drawn].1,
            length: u32::try_from(length).unwrap_or(u32::MAX),
        };
        Some(self.op)
    }

    /// Makes key and bytes of the present operation.
    fn prepare(&mut self, _slot: u32) {
        let at = self.at(self.key);
        self.session.names.dkey(at.dkey, 0, &mut self.dkey);
        if matches!(self.drawn, UPDATE | MODIFY | INSERT) {
            self.write = self.write.wrapping_add(1).max(BEFORE + 1);
            let contents = &self.session.contents;
            contents.fill_mixed(at, self.write, &mut self.bytes);
        }
    }

    fn call(&mut self, _slot: u32) -> Option<i64> {
        let done = match self.drawn {
            UPDATE | INSERT => self.put(),
            FETCH => self.get(self.key),
            PUNCH => self.punch(),
            SCAN => (self.key..self.key + self.count).try_for_each(|key| {
                let dkey = self.at(key).dkey;
                self.session.names.dkey(dkey, 0, &mut self.dkey);
                self.get(key)
            }),
            _ => self.get(self.key).and_then(|()| self.put()),
        };
        match done {
            Ok(()) if self.op.length == 0 && self.drawn != PUNCH => self.run.misses += 1,
            Ok(()) => self.run.hits += 1,
            Err(error) => {
                self.fail(&error);
                return Some(-i64::from(error.code.number()));
            }
        }
        self.run.bytes.0 += u64::from(self.op.length);
        Some(i64::from(self.op.length))
    }

    /// Holds a value that a fetch read against the last one of its key.
    fn compare(&mut self, _slot: u32, whole: bool) {
        if !whole || self.drawn != FETCH || self.op.length == 0 {
            return;
        }
        let (at, contents) = (self.at(self.key), &self.session.contents);
        let place = match self.written(self.key) {
            BEFORE => contents.differs(at, 0, 0, &self.found),
            write => {
                contents.fill_mixed(at, write, &mut self.bytes);
                let mut pairs = self.found.iter().zip(&self.bytes);
                pairs.position(|(a, b)| a != b).map(|place| place as u64)
            }
        };
        if let Some(byte) = place {
            let why = format!("byte {byte} of the value is not the one that was written");
            self.fail(&ObjectCode::Mismatch.error(why));
        }
        self.found.fill(0);
    }
}
