//! A store on the targets of servers, as a client calls it.
//!
//! In: channels, one for each target, and calls of [`ObjectStore`]. Out: what the targets answer. Updates and
//! fetches may be in flight together; everything else is waited for. An epoch of 0 lets the server choose.
//! Not here: how a channel is made.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use weir_run::{BulkMemory, BulkPart, BulkUse, ServiceChannel};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::server::local;
use super::wire::{
    Body, Counters, Descriptors, Field, Found, ListPlace, Reply, Request, ServerInfo, Values,
};
use super::{BUFFERS, HEAD, INLINE, LONGEST_REQUEST, MOST_ENTRIES, SERVICES};
use crate::store::{
    Completion, Conditions, ContainerId, ContainerMode, DamagedValue, Epoch, EpochRange,
    FreedVersions, Iod, KeyAt, KeyOrder, KeyQuery, ListAnchor, ListEntry, ListLevel, ObjectId,
    ObjectStore, PunchScope, QueryAnswer, Reserved, Result, StoreStats, StoreUuid, Ticket,
};
use crate::{ObjectCode, ObjectError};

/// Longest wait of one look for answers.
const LOOK: Duration = Duration::from_millis(100);
/// The same where several targets are waited for in turn.
const SHORT_LOOK: Duration = Duration::from_micros(50);
/// Looks that do not wait, before those that do, and all looks of one poll.
const SPINS: u32 = 200;
const MOST_LOOKS: u32 = 1000;
/// Silence after which a target counts as lost.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bits of a listing's place: the engine's own, and entries of it that are known.
const PLACE_BITS: (u32, u32) = (44, 12);

/// A channel that a store needs.
#[derive(Clone, Copy, Debug)]
pub struct TargetCall {
    /// The service.
    pub service: &'static str,
    /// The target's tag.
    pub tag: u32,
    /// Calls in flight.
    pub slots: u32,
    /// Bytes of a buffer of the session.
    pub buffer: u32,
}

/// Makes channels to targets.
pub trait Dial: Clone + Send + Sync + 'static {
    /// Their type.
    type Channel: ServiceChannel + Send + 'static;

    /// The same for servers that ask for the secret of this file.
    #[must_use]
    fn knowing(&self, token_file: Option<&Path>) -> Self {
        let _ = token_file;
        self.clone()
    }

    /// A channel to a target of the server at an address.
    ///
    /// # Errors
    /// Nobody is there, or the channel is refused.
    fn dial(&self, address: &str, call: &TargetCall) -> io::Result<Self::Channel>;
}

/// Choices of a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteSetup {
    /// Updates and fetches in flight; 0: each is waited for by its call.
    pub in_flight: u32,
    /// Values are moved and not stored.
    pub is_echo: bool,
    /// Longest values of a call; longer ones go as well, with more steps.
    pub usual: u64,
}

/// Place in a target's listing.
#[derive(Clone, Debug, Default)]
struct Place {
    from: ListPlace,
    /// Entries from there that are known.
    skip: u32,
}

/// A call's place with its target.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Slot {
    /// 0 where it is free.
    ticket: u64,
    is_fetch: bool,
    /// Its values are in the memory.
    is_bulk: bool,
    /// Its call waits for it.
    is_waited: bool,
    has_ended: bool,
    /// Reply; or the code of its failure.
    reply: Vec<u8>,
    failure: Option<i64>,
    memory: Option<(BulkMemory, u64)>,
}

#[derive(Debug)]
struct TargetClient<C> {
    channel: C,
    address: String,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Calls without an answer.
    out: u32,
    /// The reason for which it cannot be called any more.
    lost: Option<String>,
    heard: Instant,
}

/// The engine over channels.
#[derive(Debug)]
pub struct RemoteStore<C> {
    targets: Vec<TargetClient<C>>,
    /// Numbers of each container, by target.
    containers: Vec<Vec<ContainerId>>,
    about: ServerInfo,
    in_flight: u32,
    /// Tickets so far.
    count: u64,
    /// Tickets whose calls have ended, in the order of their ends.
    ended: VecDeque<u64>,
    /// Objects of the listing at hand: every target has some of them.
    objects: Vec<ObjectId>,
    request: Vec<u8>,
    stats: StoreStats,
}

fn failed(code: ObjectCode, why: String) -> ObjectError {
    ObjectError::new(code, why)
}

/// The code of a channel as one of a store.
fn code_of(number: i64) -> ObjectCode {
    let mut all = ObjectCode::ALL.iter().copied();
    all.find(|code| i64::from(code.number()) == -number)
        .unwrap_or(ObjectCode::Io)
}

/// A body of one field.
fn whole<T: for<'a> Field<'a>>(body: &mut Body<'_>) -> Result<T> {
    body.get()
}

fn no_space_of_its_own<T>() -> Result<T> {
    Err(ObjectError::new(
        ObjectCode::NoSys,
        "a store on servers has no space that its caller could fill (zero copy)",
    ))
}

impl<C: ServiceChannel> RemoteStore<C> {
    /// Calls the targets of the servers at these addresses.
    ///
    /// # Errors
    /// A server is not there, or refuses.
    pub fn open<D: Dial<Channel = C>>(
        dial: &D,
        servers: &[String],
        setup: RemoteSetup,
    ) -> Result<Self> {
        let usual = u32::try_from(setup.usual).unwrap_or(u32::MAX);
        let buffer = usual.saturating_add(u32::try_from(HEAD).unwrap_or(0));
        let mut call = TargetCall {
            service: SERVICES[usize::from(setup.is_echo)],
            tag: 0,
            slots: setup.in_flight.max(1),
            buffer: buffer.clamp(BUFFERS.0, BUFFERS.1),
        };
        let dialled = |address: &String, call: &TargetCall| {
            let gone = |why| failed(ObjectCode::Io, format!("{address}: {why}"));
            dial.dial(address, call).map_err(gone)
        };
        let mut channels = Vec::new();
        for address in servers {
            call.tag = 0;
            let first = vec![(address.clone(), dialled(address, &call)?)];
            let mut first = Self::over(first, setup)?;
            channels.extend(
                first
                    .targets
                    .drain(..)
                    .map(|one| (one.address, one.channel)),
            );
            for tag in 1..first.about.targets {
                call.tag = tag;
                channels.push((address.clone(), dialled(address, &call)?));
            }
        }
        Self::over(channels, setup)
    }

    /// Calls these targets, each with its server's address.
    ///
    /// # Errors
    /// There is none, or the first does not answer.
    pub fn over(channels: Vec<(String, C)>, setup: RemoteSetup) -> Result<Self> {
        let slots = setup.in_flight.max(1);
        let target = |(address, channel)| TargetClient {
            channel,
            address,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            free: (0..slots).rev().collect(),
            out: 0,
            lost: None,
            heard: Instant::now(),
        };
        let mut store = Self {
            targets: channels.into_iter().map(target).collect(),
            containers: Vec::new(),
            about: ServerInfo {
                targets: 0,
                pool: [0; 16],
                durability: crate::Durability::None,
            },
            in_flight: setup.in_flight,
            count: 0,
            ended: VecDeque::new(),
            objects: Vec::new(),
            request: Vec::new(),
            stats: StoreStats::default(),
        };
        if store.targets.is_empty() {
            return Err(failed(ObjectCode::Inval, "no server is named".to_owned()));
        }
        store.about = store.ask(0, &Request::Info {}, whole)?;
        store.refresh()?;
        Ok(store)
    }

    /// Facts about the first server.
    pub fn about(&self) -> ServerInfo {
        self.about
    }

    /// Asks all targets for their counters; [`ObjectStore::stats`] gives those of the last time.
    ///
    /// # Errors
    /// A target does not answer.
    pub fn refresh(&mut self) -> Result<Counters> {
        let (mut stats, mut counters) = (StoreStats::default(), Counters::default());
        for target in 0..self.targets.len() {
            let one =
                |body: &mut Body<'_>| Ok((body.get::<StoreStats>()?, body.get::<Counters>()?));
            let (of_store, of_target) = self.ask(target, &Request::Stats {}, one)?;
            stats.take_in(&of_store);
            counters.updates += of_target.updates;
            counters.fetches += of_target.fetches;
            counters.update_bytes += of_target.update_bytes;
            counters.fetch_bytes += of_target.fetch_bytes;
        }
        self.stats = stats;
        Ok(counters)
    }

    /// The target of a distribution key; of some classes it is that of the object.
    pub fn target_of(&self, object: ObjectId, dkey: &[u8]) -> usize {
        let dkey = if object.is_on_one_target() { &[] } else { dkey };
        let seed = object.lo ^ object.hi.rotate_left(32);
        let hash = u128::from(xxh3_64_with_seed(dkey, seed));
        usize::try_from((hash * self.targets.len() as u128) >> 64).unwrap_or(0)
    }

    /// Number of a container with a target.
    fn there(&self, container: ContainerId, target: usize) -> Result<ContainerId> {
        let numbers = self.containers.get(container.0 as usize);
        let number = numbers.and_then(|numbers| numbers.get(target));
        number
            .copied()
            .ok_or_else(|| ObjectError::new(ObjectCode::NoHdl, "no such container"))
    }

    /// Hears what a target says, waiting so long for it.
    fn hear(&mut self, number: usize, wait: Duration) {
        let ended = &mut self.ended;
        let TargetClient {
            channel,
            slots,
            out,
            lost,
            heard,
            ..
        } = &mut self.targets[number];
        let mut end = |slot: &mut Slot, reply: std::result::Result<&[u8], i64>| {
            if slot.ticket == 0 || slot.has_ended {
                return;
            }
            slot.has_ended = true;
            *out -= 1;
            slot.reply.clear();
            slot.failure = reply.map(|bytes| slot.reply.extend_from_slice(bytes)).err();
            if !slot.is_waited {
                ended.push_back(slot.ticket);
            }
        };
        let polled = channel.poll(wait, |slot, reply| {
            if let Some(slot) = slots.get_mut(slot as usize) {
                end(slot, reply);
            }
        });
        let why = match polled {
            Ok(0) if heard.elapsed() < PATIENCE => return,
            Ok(0) => "it does not answer any more".to_owned(),
            Ok(_) => {
                *heard = Instant::now();
                return;
            }
            Err(why) => why.to_string(),
        };
        lost.get_or_insert(why);
        let failure = Err(-i64::from(ObjectCode::Io.number()));
        for slot in slots.iter_mut() {
            end(slot, failure);
        }
    }

    /// A free slot of a target, once there is one.
    fn slot(&mut self, number: usize) -> Result<u32> {
        loop {
            let target = &mut self.targets[number];
            if let Some(why) = &target.lost {
                let why = format!("{}: {why}", target.address);
                return Err(failed(ObjectCode::Io, why));
            }
            if let Some(slot) = target.free.pop() {
                return Ok(slot);
            }
            if target.out == 0 {
                let why = "as many operations are in flight as may be";
                return Err(ObjectError::new(ObjectCode::Busy, why));
            }
            self.hear(number, LOOK);
        }
    }

    /// Sends a request, with room in the caller's memory or values for it.
    fn launch(
        &mut self,
        number: usize,
        request: &Request<'_>,
        bulk: Option<(BulkUse, u64, &[u8])>,
        is_waited: bool,
    ) -> Result<u64> {
        self.request.clear();
        let operation = request.encode(&mut self.request);
        if self.request.len() > LONGEST_REQUEST as usize {
            let why = "the keys of one call to a server take 512 KiB at the most";
            return Err(ObjectError::new(ObjectCode::Key2Big, why));
        }
        let slot = self.slot(number)?;
        let sent = self.send(number, (slot, operation), bulk);
        let target = &mut self.targets[number];
        if let Err(why) = sent {
            target.free.push(slot);
            let why = format!("{}: {why}", target.address);
            return Err(failed(ObjectCode::Io, why));
        }
        self.count += 1;
        let place = (number as u64) << 16 | u64::from(slot);
        let ticket = self.count << 32 | place;
        if target.out == 0 {
            target.heard = Instant::now();
        }
        target.out += 1;
        let slot = &mut target.slots[slot as usize];
        slot.ticket = ticket;
        slot.is_fetch = matches!(request, Request::Fetch { .. });
        slot.is_bulk = bulk.is_some();
        (slot.is_waited, slot.has_ended) = (is_waited, false);
        Ok(ticket)
    }

    fn send(
        &mut self,
        number: usize,
        (slot, operation): (u32, u16),
        bulk: Option<(BulkUse, u64, &[u8])>,
    ) -> io::Result<()> {
        let target = &mut self.targets[number];
        let channel = &mut target.channel;
        let mut part = None;
        if let Some((access, length, values)) = bulk {
            let kept = &mut target.slots[slot as usize].memory;
            let memory = match *kept {
                Some((memory, size)) if size >= length => memory,
                _ => {
                    let size = length.next_power_of_two();
                    let memory = channel.register(local(size))?;
                    *kept = Some((memory, size));
                    memory
                }
            };
            channel.memory(memory)[..values.len()].copy_from_slice(values);
            part = Some(BulkPart {
                memory,
                offset: 0,
                length,
                access,
            });
        }
        channel.request(slot, operation, &self.request, part)
    }

    /// Target and slot of a ticket that is out or has ended.
    fn place(&self, ticket: u64) -> Result<(usize, usize)> {
        let (number, slot) = (local(ticket >> 16 & 0xffff), local(ticket & 0xffff));
        let target = self.targets.get(number);
        let there = target.and_then(|target| target.slots.get(slot));
        if there.is_some_and(|there| ticket != 0 && there.ticket == ticket) {
            return Ok((number, slot));
        }
        Err(ObjectError::new(
            ObjectCode::NoHdl,
            "no operation of this ticket is in flight",
        ))
    }

    fn release(&mut self, (number, slot): (usize, usize)) {
        let target = &mut self.targets[number];
        target.slots[slot].ticket = 0;
        target.free.extend(u32::try_from(slot));
    }

    /// The reply of a call that has ended: its result, and what follows.
    fn answer(&self, place: (usize, usize)) -> Result<(Result<()>, &[u8])> {
        self.answer_in(place, &self.targets[place.0].slots[place.1].reply)
    }

    fn answer_in<'r>(
        &self,
        (number, slot): (usize, usize),
        reply: &'r [u8],
    ) -> Result<(Result<()>, &'r [u8])> {
        let target = &self.targets[number];
        match (target.slots[slot].failure, &target.lost) {
            (None, _) => Reply::decode(reply),
            (Some(_), Some(why)) => {
                let why = format!("{}: {why}", target.address);
                Err(failed(ObjectCode::Io, why))
            }
            (Some(code), None) => {
                let why = format!("{} answers with the code {code}", target.address);
                Err(failed(code_of(code), why))
            }
        }
    }

    fn wait(&mut self, ticket: u64) -> Result<(usize, usize)> {
        let place = self.place(ticket)?;
        while !self.targets[place.0].slots[place.1].has_ended {
            self.hear(place.0, LOOK);
        }
        Ok(place)
    }

    /// Waits for a call's reply, and reads it.
    fn reply<T>(
        &mut self,
        ticket: u64,
        read: impl FnOnce(&mut Body<'_>) -> Result<T>,
    ) -> Result<T> {
        let place = self.wait(ticket)?;
        let read = self.answer(place).and_then(|(result, body)| {
            result?;
            read(&mut Body(body))
        });
        self.release(place);
        read
    }

    /// Asks one target.
    fn ask<T>(
        &mut self,
        target: usize,
        request: &Request<'_>,
        read: impl FnOnce(&mut Body<'_>) -> Result<T>,
    ) -> Result<T> {
        let ticket = self.launch(target, request, None, true)?;
        self.reply(ticket, read)
    }

    /// Asks all targets at once about a container; their results in order.
    fn ask_all<'r, T>(
        &mut self,
        container: Option<ContainerId>,
        request: impl Fn(ContainerId) -> Request<'r>,
        read: impl Fn(&mut Body<'_>) -> Result<T>,
    ) -> Result<Vec<Result<T>>> {
        let mut tickets = Vec::with_capacity(self.targets.len());
        for target in 0..self.targets.len() {
            let there = container.map_or(Ok(ContainerId(0)), |one| self.there(one, target))?;
            tickets.push(self.launch(target, &request(there), None, true));
        }
        let replies = tickets.into_iter();
        let replies = replies.map(|ticket| self.reply(ticket?, &read));
        Ok(replies.collect())
    }

    /// The end of an update or a punch.
    fn done(&mut self, ticket: u64) -> Result<Ticket> {
        if self.in_flight > 0 {
            return Ok(Ticket::Waits(ticket));
        }
        self.reply(ticket, whole).map(Ticket::Done)
    }

    /// Objects of all targets, each once.
    fn all_objects(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        let mut objects = Vec::new();
        for target in 0..self.targets.len() {
            let mut next = Some(Place::default());
            let there = self.there(container, target)?;
            while let Some(from) = next {
                let level = (there, ListLevel::Objects, epoch);
                let all = &mut |entry: ListEntry<'_>| {
                    if let ListEntry::Object(id) = entry {
                        objects.push(id);
                    }
                    true
                };
                next = self.list_some(target, level, (from, MOST_ENTRIES), all)?.0;
            }
        }
        objects.sort_unstable();
        objects.dedup();
        self.objects = objects;
        Ok(())
    }

    /// Visits some entries of a target from a place on: where it goes on, if there are more, and whether the
    /// visitor wants them.
    fn list_some(
        &mut self,
        target: usize,
        (container, level, epoch): (ContainerId, ListLevel<'_>, Epoch),
        (place, most): (Place, u32),
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<(Option<Place>, bool)> {
        let request = Request::List {
            container,
            level,
            epoch,
            from: place.from.clone(),
            skip: place.skip,
            most,
        };
        self.ask(target, &request, |body| {
            let (is_done, from, count) = (body.get::<bool>()?, body.get()?, body.get::<u32>()?);
            let behind = Some(Place { from, skip: 0 }).filter(|_| !is_done);
            for number in 1..=count {
                if !visit(body.get()?) {
                    let skip = place.skip + number;
                    let within = Some(Place { skip, ..place });
                    return Ok((if number == count { behind } else { within }, false));
                }
            }
            Ok((behind, true))
        })
    }
}

impl StoreStats {
    /// Adds what another part of a store has; times count once.
    fn take_in(&mut self, other: &Self) {
        self.containers = self.containers.max(other.containers);
        self.objects += other.objects;
        self.akeys += other.akeys;
        self.versions += other.versions;
        self.value_bytes += other.value_bytes;
        self.log_bytes += other.log_bytes;
        self.deferred_bytes += other.deferred_bytes;
        self.free_bytes += other.free_bytes;
        self.index_bytes += other.index_bytes;
        self.prefault_ns = self.prefault_ns.max(other.prefault_ns);
        self.recovery_ns = self.recovery_ns.max(other.recovery_ns);
        self.recovered += other.recovered;
        self.log_damaged |= other.log_damaged;
    }
}

/// Takes a fetch's reply: sizes into the descriptors, values into the data; the bytes found.
fn take_values(
    body: &[u8],
    memory: Option<&[u8]>,
    iods: &mut [Iod<'_>],
    data: &mut [u8],
) -> Result<u64> {
    let malformed = || ObjectError::new(ObjectCode::Io, "a server's reply makes no sense");
    let mut body = Body(body);
    let found = Found::take(&mut body)?;
    if found.iods.len() != iods.len() {
        return Err(malformed());
    }
    for (iod, (size, bytes)) in iods.iter_mut().zip(&found.iods) {
        (iod.size, iod.found) = (*size, *bytes);
    }
    let mut inline = body.0;
    for (from, length) in &found.ranges {
        let range = local(*from)..local(from.saturating_add(*length));
        let bytes = match memory {
            Some(memory) => memory.get(range.clone()),
            None => inline.split_off(..range.len()),
        };
        let place = data.get_mut(range);
        let (bytes, place) = bytes.zip(place).ok_or_else(malformed)?;
        place.copy_from_slice(bytes);
    }
    Ok(found.bytes())
}

impl<C: ServiceChannel + Send> ObjectStore for RemoteStore<C> {
    fn container(&mut self, uuid: StoreUuid, mode: ContainerMode) -> Result<ContainerId> {
        let made = |_| Request::Container { uuid, mode };
        let numbers = self.ask_all(None, made, whole)?;
        let numbers: Vec<ContainerId> = numbers.into_iter().collect::<Result<_>>()?;
        let known = self.containers.iter().position(|other| *other == numbers);
        let number = known.unwrap_or_else(|| {
            self.containers.push(numbers);
            self.containers.len() - 1
        });
        Ok(ContainerId(u32::try_from(number).unwrap_or(u32::MAX)))
    }

    fn update(
        &mut self,
        key: KeyAt<'_>,
        iods: &[Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &[u8],
    ) -> Result<Ticket> {
        let iods = Descriptors::Given(iods);
        let room = iods.room()?;
        if room != data.len() as u64 {
            let why = "the data has not the length of the descriptors";
            return Err(ObjectError::new(ObjectCode::Inval, why));
        }
        let target = self.target_of(key.object, key.dkey);
        let container = self.there(key.container, target)?;
        let is_inline = room <= INLINE;
        let request = Request::Update {
            key: KeyAt { container, ..key },
            epoch,
            conditions,
            iods,
            values: Values(if is_inline { data } else { &[] }),
        };
        let bulk = (!is_inline).then_some((BulkUse::Get, room, data));
        let ticket = self.launch(target, &request, bulk, self.in_flight == 0)?;
        self.done(ticket)
    }

    fn fetch(
        &mut self,
        key: KeyAt<'_>,
        iods: &mut [Iod<'_>],
        epoch: Epoch,
        conditions: Conditions,
        data: &mut [u8],
    ) -> Result<Ticket> {
        let asked = Descriptors::Given(iods);
        let room = asked.room()?;
        if room > data.len() as u64 {
            let why = "the data has less room than the descriptors say";
            return Err(ObjectError::new(ObjectCode::Inval, why));
        }
        let target = self.target_of(key.object, key.dkey);
        let container = self.there(key.container, target)?;
        let request = Request::Fetch {
            key: KeyAt { container, ..key },
            epoch,
            conditions,
            iods: asked,
        };
        let bulk = (room > INLINE).then_some((BulkUse::Put, room, &[][..]));
        let ticket = self.launch(target, &request, bulk, self.in_flight == 0)?;
        if self.in_flight > 0 {
            return Ok(Ticket::Waits(ticket));
        }
        self.wait(ticket)?;
        self.receive(ticket, iods, data).map(Ticket::Done)
    }

    fn receive(&mut self, ticket: u64, iods: &mut [Iod<'_>], data: &mut [u8]) -> Result<u64> {
        let place = self.wait(ticket)?;
        let slot = &mut self.targets[place.0].slots[place.1];
        let memory = slot.memory.filter(|_| slot.is_bulk);
        // Apart while the channel lends its memory.
        let reply = std::mem::take(&mut slot.reply);
        let answer = self.answer_in(place, &reply);
        let target = &mut self.targets[place.0];
        let memory = memory.map(|(memory, _)| &*target.channel.memory(memory));
        let taken = answer.and_then(|(result, body)| {
            // Of a value that is too long its descriptor says the length.
            let taken = take_values(body, memory, iods, data);
            result.and(taken)
        });
        self.targets[place.0].slots[place.1].reply = reply;
        self.release(place);
        taken
    }

    fn reserve(&mut self, _: KeyAt<'_>, _: &Iod<'_>) -> Result<Reserved> {
        no_space_of_its_own()
    }

    fn reserved(&mut self, _: &Reserved) -> &mut [u8] {
        &mut []
    }

    fn publish(
        &mut self,
        _: KeyAt<'_>,
        _: &Iod<'_>,
        _: Epoch,
        _: Conditions,
        _: Reserved,
    ) -> Result<Ticket> {
        no_space_of_its_own()
    }

    fn cancel(&mut self, _: Reserved) {}

    fn punch(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        scope: PunchScope<'_>,
        epoch: Epoch,
        conditions: Conditions,
    ) -> Result<Ticket> {
        let request = |container| Request::Punch {
            container,
            object,
            scope,
            epoch,
            conditions,
        };
        let (PunchScope::Dkey(dkey) | PunchScope::Akey(dkey, _) | PunchScope::Extent(dkey, ..)) =
            scope
        else {
            let all = self.ask_all(Some(container), request, whole)?;
            // It exists if one target has some of it.
            let mut missing = None;
            let mut is_there = false;
            for one in all {
                match one {
                    Ok(bytes) => {
                        let _: u64 = bytes;
                        is_there = true;
                    }
                    Err(why) if why.code == ObjectCode::NonExist => missing = Some(why),
                    Err(why) => return Err(why),
                }
            }
            return missing
                .filter(|_| !is_there)
                .map_or(Ok(Ticket::Done(0)), Err);
        };
        let target = self.target_of(object, dkey);
        let there = self.there(container, target)?;
        let done = self.ask(target, &request(there), whole);
        done.map(Ticket::Done)
    }

    fn list(
        &mut self,
        container: ContainerId,
        level: ListLevel<'_>,
        epoch: Epoch,
        anchor: &mut ListAnchor,
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<()> {
        if level == ListLevel::Objects {
            if anchor.next == 0 {
                self.all_objects(container, epoch)?;
            }
            while let Some(id) = self.objects.get(local(anchor.next)) {
                anchor.next += 1;
                if !visit(ListEntry::Object(*id)) {
                    return Ok(());
                }
            }
            anchor.done = true;
            return Ok(());
        }
        let (place_bits, skip_bits) = PLACE_BITS;
        let part = |shift: u32, bits: u32| anchor.next >> shift & ((1 << bits) - 1);
        let mut place = Place {
            from: ListPlace {
                next: part(0, place_bits),
                key: std::mem::take(&mut anchor.key),
            },
            skip: u32::try_from(part(place_bits, skip_bits)).unwrap_or(0),
        };
        let mut target = local(anchor.next >> (place_bits + skip_bits));
        let last = match level {
            ListLevel::Dkeys(_) | ListLevel::Objects => self.targets.len() - 1,
            ListLevel::Akeys(object, dkey)
            | ListLevel::Visible(object, dkey, _)
            | ListLevel::Versions(object, dkey, _) => {
                target = self.target_of(object, dkey);
                target
            }
        };
        // More and more at once: an end in between costs no more than what was wanted.
        let mut most = 1;
        let mut wants_more = true;
        while !anchor.done && wants_more {
            let there = (self.there(container, target)?, level, epoch);
            let next;
            (next, wants_more) = self.list_some(target, there, (place, most), visit)?;
            if next.is_none() {
                anchor.done = target == last;
                target += 1;
            }
            place = next.unwrap_or_default();
            most = (most * 2).min(MOST_ENTRIES / 2);
            if place.from.next >> place_bits != 0 {
                let why = "the server's place in a listing is too far along";
                return Err(ObjectError::new(ObjectCode::Io, why));
            }
        }
        let skip = u64::from(place.skip) << place_bits;
        anchor.next = (target as u64) << (place_bits + skip_bits) | skip | place.from.next;
        anchor.key = place.from.key;
        Ok(())
    }

    fn query(
        &mut self,
        container: ContainerId,
        object: ObjectId,
        what: KeyQuery,
        epoch: Epoch,
        answer: &mut QueryAnswer,
    ) -> Result<()> {
        let request = |container| Request::Query {
            container,
            object,
            what,
            epoch,
            answer: answer.clone(),
        };
        let replies = if what.has(KeyQuery::DKEY) {
            self.ask_all(Some(container), request, whole)?
        } else {
            let target = self.target_of(object, &answer.dkey);
            let there = self.there(container, target)?;
            vec![self.ask(target, &request(there), whole)]
        };
        let order = |one: &QueryAnswer| {
            let number = <[u8; 8]>::try_from(&one.dkey[..]).map(u64::from_le_bytes);
            let number = number.ok().filter(|_| object.dkeys() == KeyOrder::Integer);
            (number, one.dkey.clone())
        };
        let mut best: Option<QueryAnswer> = None;
        let mut missing = None;
        for one in replies {
            match one {
                Ok(one) => {
                    let (mine, theirs) = (order(&one), best.as_ref().map(order));
                    let is_better = theirs.is_none_or(|theirs| {
                        if what.has(KeyQuery::MAX) {
                            mine > theirs
                        } else {
                            mine < theirs
                        }
                    });
                    best = if is_better { Some(one) } else { best };
                }
                Err(why) if why.code == ObjectCode::NonExist => missing = Some(why),
                Err(why) => return Err(why),
            }
        }
        match (best, missing) {
            (Some(best), _) => *answer = best,
            (None, Some(why)) => return Err(why),
            (None, None) => {}
        }
        Ok(())
    }

    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch> {
        let ends = false;
        let request = |container| Request::Snapshot {
            container,
            epoch,
            ends,
        };
        let all = self.ask_all(Some(container), request, |_| Ok(()))?;
        all.into_iter().collect::<Result<()>>()?;
        Ok(epoch)
    }

    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        let ends = true;
        let request = |container| Request::Snapshot {
            container,
            epoch,
            ends,
        };
        let all = self.ask_all(Some(container), request, |_| Ok(()))?;
        all.into_iter().collect()
    }

    fn aggregate(&mut self, container: ContainerId, range: EpochRange) -> Result<FreedVersions> {
        self.pass(container, range, false)
    }

    fn discard(&mut self, container: ContainerId, range: EpochRange) -> Result<FreedVersions> {
        self.pass(container, range, true)
    }

    fn collect(&mut self) -> Result<u64> {
        let all = self.ask_all(None, |_| Request::Collect {}, whole::<u64>)?;
        all.into_iter().sum()
    }

    fn scrub(&mut self, visit: &mut dyn FnMut(&DamagedValue)) -> Result<u64> {
        let mut checked = 0;
        for target in 0..self.targets.len() {
            checked += self.ask(target, &Request::Scrub {}, |body| {
                let (checked, damaged) = (body.get::<u64>()?, body.get::<u64>()?);
                let mut named = 0;
                while body.get::<bool>()? {
                    visit(&body.get()?);
                    named += 1;
                }
                if named < damaged {
                    let why = format!("{damaged} values are damaged, {named} of them are named");
                    return Err(failed(ObjectCode::Csum, why));
                }
                Ok(checked)
            })?;
        }
        Ok(checked)
    }

    fn stats(&self) -> StoreStats {
        self.stats
    }

    fn poll(&mut self, out: &mut Vec<Completion>, min: usize) -> usize {
        let before = out.len();
        let mut looks = 0;
        loop {
            let busy = self.targets.iter().filter(|target| target.out > 0).count();
            let wait = match busy {
                _ if looks < SPINS || self.ended.len() >= min => Duration::ZERO,
                1 => LOOK,
                _ => SHORT_LOOK,
            };
            for number in 0..self.targets.len() {
                if self.targets[number].out > 0 {
                    self.hear(number, wait);
                }
            }
            looks += 1;
            if self.ended.len() >= min || busy == 0 || looks == MOST_LOOKS || wait == LOOK {
                break;
            }
        }
        while let Some(ticket) = self.ended.pop_front() {
            let Ok(place) = self.place(ticket) else {
                continue;
            };
            let is_fetch = self.targets[place.0].slots[place.1].is_fetch;
            let result = self.answer(place).and_then(|(result, body)| {
                result?;
                let mut body = Body(body);
                if is_fetch {
                    Found::take(&mut body).map(|found| found.bytes())
                } else {
                    body.get()
                }
            });
            // A fetch keeps its place until its values are taken.
            if !is_fetch || result.is_err() {
                self.release(place);
            }
            out.push(Completion { ticket, result });
        }
        out.len() - before
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

impl<C: ServiceChannel> RemoteStore<C> {
    fn pass(
        &mut self,
        container: ContainerId,
        range: EpochRange,
        discards: bool,
    ) -> Result<FreedVersions> {
        let request = |container| Request::Pass {
            container,
            range,
            discards,
        };
        let all = self.ask_all(Some(container), request, whole::<FreedVersions>)?;
        let mut sum = FreedVersions::default();
        for one in all {
            let one = one?;
            sum.visited += one.visited;
            sum.versions += one.versions;
            sum.bytes += one.bytes;
        }
        Ok(sum)
    }
}
