//! Recording of an operation that moved everything: counters, and three latencies.
//!
//! In: its slot, and the instant of the harvest. Out: counts and histograms. Operations that were
//! handed over together and come back together took equally long: they are counted as a run and
//! recorded once.

use weir_stats::{Recorder, Tally};
use weir_sys::clock::{Scale, Tick};

use super::{Hot, Slot};
use crate::engine::Operation;
use crate::live::{KIND_MASK, KINDS, LiveKind, WorkerLive};

/// Recorders of a kind, looked up before the loop.
#[derive(Clone, Copy)]
pub(super) struct KindSink<'a> {
    pub(super) live: &'a LiveKind,
    stages: Stages<'a>,
}

/// The recorders of slat, clat and lat.
#[derive(Clone, Copy)]
enum Stages<'a> {
    Off,
    Plain([&'a Recorder<false>; 3]),
    Squares([&'a Recorder<true>; 3]),
}

/// The sinks of all kinds.
pub(in crate::worker) struct Sinks<'a>([KindSink<'a>; KINDS]);

impl<'a> Sinks<'a> {
    /// `None` where a kind records some of the three stages only.
    pub(super) fn of(live: &'a WorkerLive) -> Option<Self> {
        let mut all = live.kinds.each_ref().map(|live| KindSink {
            live,
            stages: Stages::Off,
        });
        for sink in &mut all {
            sink.stages = Stages::of(sink.live)?;
        }
        Some(Self(all))
    }

    #[inline(always)]
    pub(super) fn of_kind(&self, kind: usize) -> &KindSink<'a> {
        &self.0[kind & KIND_MASK]
    }
}

impl<'a> Stages<'a> {
    fn of(live: &'a LiveKind) -> Option<Self> {
        let stages = [&live.slat, &live.clat, &live.lat];
        let plain = stages.map(|stage| stage.plain());
        let squares = stages.map(|stage| stage.squares());
        match (plain, squares) {
            ([Some(s), Some(c), Some(l)], _) => Some(Self::Plain([s, c, l])),
            (_, [Some(s), Some(c), Some(l)]) => Some(Self::Squares([s, c, l])),
            ([None, None, None], [None, None, None]) => Some(Self::Off),
            _ => None,
        }
    }
}

/// Records one operation. Not inlined: it takes as many instructions with the call as without, and
/// serves all loops.
#[inline(never)]
pub(super) fn record<O: Operation>(sink: &KindSink<'_>, slot: &Slot<O>, now: Tick, scale: Scale) {
    sink.live.completed.add(1);
    sink.live.bytes.add(u64::from(slot.op.length()));
    if let Stages::Off = sink.stages {
        return;
    }
    let slat = scale.to_nanos(slot.accepted.since(slot.started));
    let clat = scale.to_nanos(now.since(slot.accepted));
    record_target(sink, slot, slat + clat);
    match sink.stages {
        Stages::Off => {}
        Stages::Plain(stages) => record_all(stages, slat, clat),
        Stages::Squares(stages) => record_all(stages, slat, clat),
    }
}

/// One operation of the target that it acted on, where targets have figures of their own.
#[inline(always)]
fn record_target<O: Operation>(sink: &KindSink<'_>, slot: &Slot<O>, lat: u64) {
    if let Some(target) = sink.live.target(slot.op.acts_on()) {
        target.record(lat);
    }
}

#[inline(always)]
fn record_all<const SQUARES: bool>(stages: [&Recorder<SQUARES>; 3], slat: u64, clat: u64) {
    let [slats, clats, lats] = stages;
    slats.record(slat);
    clats.record(clat);
    lats.record(slat + clat);
}

/// Operations of one kind, harvest by harvest. Their buckets are counted at once, all else when the
/// harvest is over.
pub(super) struct Harvested<'s, 'a> {
    sink: &'s KindSink<'a>,
    count: u64,
    bytes: u64,
    /// Of slat, clat and lat.
    tallies: [Tally; 3],
    /// Number of resets of the measurement: extremes are of since then.
    resets: u64,
}

impl<'s, 'a> Harvested<'s, 'a> {
    pub(super) fn new(sink: &'s KindSink<'a>, resets: u64) -> Self {
        Self {
            sink,
            count: 0,
            bytes: 0,
            tallies: [Tally::NONE; 3],
            resets,
        }
    }

    /// A harvest begins, after so many resets.
    #[inline(always)]
    pub(super) fn begin(&mut self, resets: u64) {
        if resets != self.resets {
            *self = Self::new(self.sink, resets);
        }
    }

    /// One more operation.
    #[inline(always)]
    pub(super) fn record<O: Operation>(&mut self, slot: &Slot<O>, now: Tick, scale: Scale) {
        self.count += 1;
        self.bytes += u64::from(slot.op.length());
        if let Stages::Off = self.sink.stages {
            return;
        }
        let slat = scale.to_nanos(slot.accepted.since(slot.started));
        let clat = scale.to_nanos(now.since(slot.accepted));
        record_target(self.sink, slot, slat + clat);
        match self.sink.stages {
            Stages::Off => {}
            Stages::Plain(stages) => self.record_stages(stages, slat, clat),
            Stages::Squares(stages) => self.record_stages(stages, slat, clat),
        }
    }

    #[inline(always)]
    fn record_stages<const SQUARES: bool>(
        &mut self,
        stages: [&Recorder<SQUARES>; 3],
        slat: u64,
        clat: u64,
    ) {
        let [slats, clats, lats] = stages;
        let [slat_tally, clat_tally, lat_tally] = &mut self.tallies;
        slats.record_into(slat_tally, slat);
        clats.record_into(clat_tally, clat);
        lats.record_into(lat_tally, slat + clat);
    }

    /// The harvest is over: records what is left to do.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        if self.count > 0 {
            self.record_rest();
        }
    }

    #[inline(never)]
    fn record_rest(&mut self) {
        self.sink.live.completed.add(self.count);
        self.sink.live.bytes.add(self.bytes);
        (self.count, self.bytes) = (0, 0);
        match self.sink.stages {
            Stages::Off => {}
            Stages::Plain(stages) => self.take_tallies(stages),
            Stages::Squares(stages) => self.take_tallies(stages),
        }
    }

    fn take_tallies<const SQUARES: bool>(&mut self, stages: [&Recorder<SQUARES>; 3]) {
        for (stage, tally) in stages.iter().zip(&mut self.tallies) {
            stage.take(tally);
        }
    }
}

/// Operations of one kind, one after the other in a harvest, that took equally long. Where each
/// operation of a batch has a start of its own only their clat is equal.
#[derive(Clone, Copy)]
pub(super) struct HarvestRun<'s, 'a> {
    sink: &'s KindSink<'a>,
    started: Tick,
    accepted: Tick,
    slat: u64,
    clat: u64,
    count: u64,
    bytes: u64,
    own_starts: bool,
}

impl<'s, 'a> HarvestRun<'s, 'a> {
    #[inline(always)]
    pub(super) fn new(sink: &'s KindSink<'a>, own_starts: bool) -> Self {
        Self {
            sink,
            started: Tick(0),
            accepted: Tick(0),
            slat: 0,
            clat: 0,
            count: 0,
            bytes: 0,
            own_starts,
        }
    }

    /// One more operation: of this run, or the first of another.
    #[inline(always)]
    pub(super) fn count<O: Operation>(
        &mut self,
        sink: &'s KindSink<'a>,
        slot: &Slot<O>,
        hot: &Hot,
    ) {
        let same_start = self.own_starts || slot.started == self.started;
        let same_kind = std::ptr::eq(self.sink, sink);
        if slot.accepted != self.accepted || !same_start || !same_kind {
            self.end();
            *self = Self {
                started: slot.started,
                accepted: slot.accepted,
                slat: hot.scale.to_nanos(slot.accepted.since(slot.started)),
                clat: hot.scale.to_nanos(hot.now.since(slot.accepted)),
                ..Self::new(sink, self.own_starts)
            };
        }
        self.count += 1;
        self.bytes += u64::from(slot.op.length());
        if !self.own_starts {
            record_target(sink, slot, self.slat + self.clat);
            return;
        }
        let slat = hot.scale.to_nanos(slot.accepted.since(slot.started));
        record_target(sink, slot, slat + self.clat);
        match sink.stages {
            Stages::Off => {}
            Stages::Plain(stages) => record_own(stages, slat, self.clat),
            Stages::Squares(stages) => record_own(stages, slat, self.clat),
        }
    }

    /// Records what was counted.
    #[inline(always)]
    pub(super) fn end(&self) {
        if self.count > 0 {
            (*self).record();
        }
    }

    #[inline(never)]
    fn record(self) {
        self.sink.live.completed.add(self.count);
        self.sink.live.bytes.add(self.bytes);
        match self.sink.stages {
            Stages::Off => {}
            Stages::Plain(stages) => self.record_stages(stages),
            Stages::Squares(stages) => self.record_stages(stages),
        }
    }

    #[inline(always)]
    fn record_stages<const SQUARES: bool>(self, stages: [&Recorder<SQUARES>; 3]) {
        let [slats, clats, lats] = stages;
        clats.record_many(self.clat, self.count);
        if !self.own_starts {
            slats.record_many(self.slat, self.count);
            lats.record_many(self.slat + self.clat, self.count);
        }
    }
}

/// Records the stages that differ within a run where each operation has a start of its own.
#[inline(always)]
fn record_own<const SQUARES: bool>(stages: [&Recorder<SQUARES>; 3], slat: u64, clat: u64) {
    let [slats, _, lats] = stages;
    slats.record(slat);
    lats.record(slat + clat);
}
