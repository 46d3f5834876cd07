//! A target of a server: requests in, calls of its store, replies out.
//!
//! In: requests of any client, each with a buffer and a handle, ends of rounds. Out: steps, which whoever
//! hosts the target carries out. Small fetches of a round are looked up together at its end. Values longer
//! than a buffer are held whole, within a limit. A target without a store answers the same and stores
//! nothing. Not here: sessions, frames, bulk transfers.

mod fetches;

pub(super) use fetches::FetchCall;

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use super::held::Pushing;
use super::wire::{Counters, Field, Found, Reply, Request, ServerInfo, ValueSum};
use super::{HEAD, INLINE, MOST_CONTAINERS};
use crate::prelude::*;

/// Operation of small fetches, which are looked up together.
const FETCH: u16 = 4;

/// A request with what belongs to it.
#[derive(Debug)]
pub struct TargetRequest<'a, H> {
    /// Number of its operation.
    pub operation: u16,
    /// Body.
    pub payload: &'a [u8],
    /// Bytes of the caller's memory that it may reach.
    pub bulk: Option<u64>,
    /// Its buffer, which it has to itself until its reply is sent.
    pub buffer: &'a mut [u8],
    /// Its name.
    pub handle: H,
}

/// Next step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Answer with so many bytes of the buffer.
    Reply(usize),
    /// Fetch bytes of the caller's memory, from a place on, into the buffer; then call `pulled`.
    Pull {
        /// First byte.
        from: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Write the target's [`parts`](Target::parts) into the caller's memory; then call `resumed`.
    Push,
    /// Write them, then answer with so many bytes of the buffer.
    PushAndReply(usize),
    /// Nothing until `end_of_round` names the request.
    Later,
    /// It cannot even be answered.
    Fail(ObjectCode),
}

/// Bytes of a buffer that go to a place in the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From the start of the buffer.
    pub from: u64,
    /// From the start of the caller's memory.
    pub to: u64,
    /// Number of bytes.
    pub length: u64,
}

/// A small fetch that was looked up.
#[derive(Debug)]
struct Fetched<H> {
    handle: H,
    result: Result<()>,
    found: Found,
    /// Place of its values.
    at: usize,
}

/// A request between its steps.
#[derive(Debug)]
enum State {
    /// A value longer than a buffer is on its way: bytes so far, number of them, of how many.
    Pulling(Vec<u8>, u64, u64),
    /// So is the answer of a fetch.
    Pushing(Pushing),
    /// An update or a punch has come to its end.
    Ended(Result<u64>),
}

/// A target. `H` names requests.
#[derive(Debug)]
pub struct Target<S, H> {
    /// None: it stores nothing.
    store: Option<S>,
    about: ServerInfo,
    counters: Counters,
    /// Bytes of values longer than buffers, and the most of them.
    held: (u64, u64),
    /// The last epoch that it gave.
    clock: u64,
    /// The greatest epoch that a client gave.
    seen: Epoch,
    /// Small fetches of this round, by the places of their payloads.
    batch: Vec<(H, Range<usize>)>,
    payloads: Vec<u8>,
    fetched: VecDeque<Fetched<H>>,
    values: Vec<u8>,
    states: HashMap<H, State>,
    /// Operations that the store has in flight.
    tickets: HashMap<u64, H>,
    parts: Vec<Part>,
    reply: Vec<u8>,
}

impl<S: ObjectStore, H: Copy + Eq + Hash> Target<S, H> {
    /// A target over a store, or over none. `most_held` bounds the bytes of values longer than a buffer that
    /// requests make it hold.
    pub fn new(store: Option<S>, mut about: ServerInfo, most_held: u64) -> Self {
        if store.is_none() {
            // Its values are any bytes.
            about.sums = ValueSums::None;
        }
        Self {
            store,
            about,
            counters: Counters::default(),
            held: (0, most_held),
            clock: 0,
            seen: Epoch(0),
            batch: Vec::new(),
            payloads: Vec::new(),
            fetched: VecDeque::new(),
            values: Vec::new(),
            states: HashMap::new(),
            tickets: HashMap::new(),
            parts: Vec::new(),
            reply: Vec::new(),
        }
    }

    /// Ends the use of the store.
    pub fn close(&mut self) {
        // It is whole already: what fails here costs the next opening time alone.
        let _ = self.store.take().map(|store| Box::new(store).close());
    }

    /// Takes a request.
    pub fn request(&mut self, call: TargetRequest<'_, H>) -> Step {
        let (handle, buffer) = (call.handle, call.buffer);
        if buffer.len() < HEAD + local(INLINE) {
            return Step::Fail(ObjectCode::Inval);
        }
        if call.operation == FETCH && call.bulk.is_none() && self.store.is_some() {
            let from = self.payloads.len();
            self.payloads.extend_from_slice(call.payload);
            self.batch.push((handle, from..self.payloads.len()));
            return Step::Later;
        }
        let step = if call.operation == FETCH {
            self.fetch(handle, (call.payload, call.bulk), buffer)
        } else {
            Request::decode(call.operation, call.payload)
                .and_then(|request| self.carry_out(&request, call.bulk, handle, buffer))
        };
        step.unwrap_or_else(|error| self.refuse(&error, buffer))
    }

    /// Goes on once the bytes of [`Step::Pull`] are in the buffer.
    pub fn pulled(&mut self, call: TargetRequest<'_, H>) -> Step {
        let (handle, buffer) = (call.handle, call.buffer);
        let mut whole = None;
        if let Some(State::Pulling(bytes, got, all)) = self.states.get_mut(&handle) {
            let came = local(*all - *got).min(buffer.len());
            if self.store.is_some() {
                bytes.extend_from_slice(&buffer[..came]);
            }
            *got += came as u64;
            if got < all {
                let (from, left) = (*got, *all - *got);
                let length = left.min(buffer.len() as u64);
                return Step::Pull { from, length };
            }
            whole = Some(std::mem::take(bytes));
            self.forget(handle);
        }
        let done = Request::decode(call.operation, call.payload).and_then(|request| {
            let room = local(call.bulk.unwrap_or(0));
            let held = whole.as_deref().or(buffer.get(..room));
            self.update(&request, held.unwrap_or_default())
        });
        self.settle(handle, done, buffer)
    }

    /// Goes on with a request that `end_of_round` has named, or whose parts are on their way.
    pub fn resumed(&mut self, handle: H, buffer: &mut [u8]) -> Step {
        let place = self.fetched.iter().position(|one| one.handle == handle);
        if let Some(one) = place.and_then(|place| self.fetched.remove(place)) {
            return self.answer_fetch(&one, buffer);
        }
        match self.states.remove(&handle) {
            Some(State::Ended(result)) => self.answer_count(&result, buffer),
            Some(State::Pushing(pushing)) => self.push(handle, pushing, buffer),
            _ => Step::Fail(ObjectCode::NoHdl),
        }
    }

    /// The parts of [`Step::Push`] or [`Step::PushAndReply`], once.
    pub fn parts(&mut self) -> impl Iterator<Item = Part> + '_ {
        self.parts.drain(..)
    }

    /// Looks up the small fetches of a round, and hears of what the store had in flight. Requests in `ready` go
    /// on with `resumed`; true if it shall be asked again soon.
    pub fn end_of_round(&mut self, ready: &mut Vec<H>) -> bool {
        if !self.batch.is_empty() {
            self.fetch_batch();
            ready.extend(self.fetched.iter().map(|one| one.handle));
        }
        if let Some(store) = self.store.as_mut().filter(|_| !self.tickets.is_empty()) {
            let mut ended = Vec::new();
            store.poll(&mut ended, 0);
            for one in ended {
                if let Some(handle) = self.tickets.remove(&one.ticket) {
                    self.states.insert(handle, State::Ended(one.result));
                    ready.push(handle);
                }
            }
        }
        !self.tickets.is_empty()
    }

    /// A request is over without its reply.
    pub fn dropped(&mut self, handle: H) {
        self.batch.retain(|(other, _)| *other != handle);
        self.fetched.retain(|one| one.handle != handle);
        self.tickets.retain(|_, other| *other != handle);
        self.forget(handle);
    }

    /// Drops the state of a request, and gives back what it held.
    fn forget(&mut self, handle: H) {
        match self.states.remove(&handle) {
            Some(State::Pulling(_, _, all)) => self.held.0 -= all,
            Some(State::Pushing(pushing)) => self.held.0 -= pushing.held,
            _ => {}
        }
    }

    fn hold(&mut self, bytes: u64) -> Result<()> {
        refuse!(self.held.0 + bytes > self.held.1 => NoMem, "the server holds as many long values as it may");
        self.held.0 += bytes;
        Ok(())
    }

    #[expect(clippy::too_many_lines, reason = "request by request")]
    fn carry_out(
        &mut self,
        request: &Request<'_>,
        bulk: Option<u64>,
        handle: H,
        buffer: &mut [u8],
    ) -> Result<Step> {
        self.begin(Ok(()));
        match *request {
            Request::Update {
                ref iods, values, ..
            } => {
                let room = iods.room()?;
                let has = bulk.unwrap_or(values.0.len() as u64);
                refuse!(has != room || (bulk.is_some() && !values.0.is_empty()) => Inval,
                    "the values have not the length of the descriptors");
                if bulk.is_none() {
                    let done = self.update(request, values.0);
                    return Ok(self.settle(handle, done, buffer));
                }
                let length = room.min(buffer.len() as u64);
                if length < room {
                    self.hold(room)?;
                    let state = State::Pulling(Vec::new(), 0, room);
                    self.states.insert(handle, state);
                }
                return Ok(Step::Pull { from: 0, length });
            }
            Request::Punch {
                container,
                object,
                scope,
                epoch,
                conditions,
            } => {
                let epoch = self.stamp(epoch);
                let done = self.stored()?;
                let done = done.punch(container, object, scope, epoch, conditions);
                return Ok(self.settle(handle, done, buffer));
            }
            Request::Info {} => self.about.put(&mut self.reply),
            Request::Container { uuid, mode } => {
                self.container(uuid, mode)?.put(&mut self.reply);
            }
            Request::List {
                container,
                level,
                epoch,
                ref from,
                skip,
                most,
            } => self.list((container, level, epoch), (from, skip, most), buffer.len())?,
            Request::Query {
                container,
                object,
                what,
                epoch,
                ref answer,
            } => {
                let mut answer = answer.clone();
                self.stored()?
                    .query(container, object, what, epoch, &mut answer)?;
                answer.put(&mut self.reply);
            }
            Request::Snapshot {
                container,
                epoch,
                ends: false,
            } => {
                // Everything that was acknowledged is in it, whoever gave the epochs.
                let chosen = (epoch.0 == 0).then(|| self.stamp(epoch).max(self.seen));
                let made = self
                    .stored()?
                    .snapshot(container, chosen.unwrap_or(epoch))?;
                made.put(&mut self.reply);
            }
            Request::Snapshot {
                container, epoch, ..
            } => self.stored()?.drop_snapshot(container, epoch)?,
            Request::Pass {
                container,
                range,
                discards,
            } => {
                let freed = self.stored()?.pass(container, range, discards)?;
                freed.put(&mut self.reply);
            }
            Request::Destroy { container } => self.stored()?.drop_container(container)?,
            Request::Collect {} => self.stored()?.collect()?.put(&mut self.reply),
            Request::Scrub {} => self.scrub(buffer.len())?,
            Request::Stats {} => {
                let stats = self.store.as_ref().map(S::stats);
                stats.unwrap_or_default().put(&mut self.reply);
                self.counters.put(&mut self.reply);
            }
            Request::Fetch { .. } => {
                return ObjectCode::Inval.fail("a fetch has the number of another");
            }
        }
        Ok(self.send(buffer))
    }

    /// The store, where there is one.
    fn stored(&mut self) -> Result<&mut S> {
        self.store.as_mut().ok_or_else(|| {
            ObjectCode::NoSys.error("echo stores nothing: it takes updates and fetches alone")
        })
    }

    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId> {
        let Some(store) = &mut self.store else {
            return Ok(ContainerId(0));
        };
        if mode == ContainerMode::Open || store.stats().containers < MOST_CONTAINERS {
            return store.container(uuid, mode);
        }
        let full = "the pool has 1024 containers, as many as clients may make; use one of them \
                    (-X UUID; `weir obj info` lists them), or serve a new pool";
        let full = ObjectCode::NoSpace.error(full);
        match (store.container(uuid, ContainerMode::Open), mode) {
            (Ok(there), ContainerMode::OpenOrCreate) => Ok(there),
            (Ok(_), _) => store.container(uuid, mode),
            (Err(_), _) => Err(full),
        }
    }

    /// The epoch of an update or a punch: where the client left it open, the time.
    fn stamp(&mut self, asked: Epoch) -> Epoch {
        if asked.0 != 0 {
            self.seen = self.seen.max(asked.min(Epoch::LATEST));
            return asked;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(0);
        self.clock = now.max(self.clock + 1);
        Epoch(self.clock)
    }

    fn update(&mut self, request: &Request<'_>, values: &[u8]) -> Result<Ticket> {
        let Request::Update {
            key,
            epoch,
            conditions,
            ref iods,
            sum,
            ..
        } = *request
        else {
            return ObjectCode::Inval.fail("nothing else has values");
        };
        sum.check(ValueSum::of(sum.kind, values))?;
        self.counters.updates += 1;
        let (epoch, bytes) = (self.stamp(epoch), iods.room()?);
        let done = match &mut self.store {
            None => Ok(Ticket::Done(bytes)),
            Some(store) => {
                let iods: Vec<_> = iods.each().collect();
                store.update(key, &iods, epoch, conditions, values)
            }
        };
        if done.is_ok() {
            self.counters.update_bytes += bytes;
        }
        done
    }

    /// Answers an update or a punch, at once or once the store says so.
    fn settle(&mut self, handle: H, done: Result<Ticket>, buffer: &mut [u8]) -> Step {
        match done {
            Ok(Ticket::Waits(ticket)) => {
                self.tickets.insert(ticket, handle);
                Step::Later
            }
            Ok(Ticket::Done(bytes)) => self.answer_count(&Ok(bytes), buffer),
            Err(why) => self.refuse(&why, buffer),
        }
    }

    fn answer_count(&mut self, result: &Result<u64>, buffer: &mut [u8]) -> Step {
        self.begin(result.as_ref().map(|_| ()));
        if let Ok(bytes) = result {
            bytes.put(&mut self.reply);
        }
        self.send(buffer)
    }

    fn refuse(&mut self, error: &ObjectError, buffer: &mut [u8]) -> Step {
        self.begin(Err(error));
        self.send(buffer)
    }

    /// Begins a reply.
    fn begin(&mut self, result: Result<(), &ObjectError>) {
        self.reply.clear();
        Reply::encode(result, &mut self.reply);
    }

    /// Answers with the reply that was made.
    fn send(&mut self, buffer: &mut [u8]) -> Step {
        let length = self.reply.len();
        match buffer.get_mut(..length) {
            Some(place) => place.copy_from_slice(&self.reply),
            None => return Step::Fail(ObjectCode::Rec2Big),
        }
        Step::Reply(length)
    }
}
