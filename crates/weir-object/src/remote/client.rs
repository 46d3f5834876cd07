//! A store on the targets of servers, as a client calls it.
//!
//! In: channels, one for each target, and calls of [`ObjectStore`]. Out: what the targets
//! answer. Updates and fetches may be in flight together; everything else is waited for. An epoch of 0 lets
//! the server choose.
//! Not here: how a channel is made.

mod calls;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use weir_run::{BulkMemory, BulkPart, BulkUse, ServiceChannel};
use weir_schema::{UNKNOWN_RPC_ERROR, rpc_error_code, rpc_error_name};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::dial::{Dial, RemoteSetup, TargetCall};

use super::wire::{Body, Counters, Field, Found, Reply, Request, ServerInfo, ValueSum};
use super::{BUFFERS, HEAD, LONGEST_REQUEST, SERVICES};
use crate::prelude::*;

/// Longest wait of one look for answers.
const LOOK: Duration = Duration::from_millis(100);
/// The same where several targets are waited for in turn.
const SHORT_LOOK: Duration = Duration::from_micros(50);
/// So long looks do not sleep: to fall asleep and to be woken takes longer than most answers. After the first few
/// microseconds others have the CPU in between, a server that shares it among them.
const SPIN: Duration = Duration::from_micros(50);
const ALONE: Duration = Duration::from_micros(10);
/// Looks of one poll that may sleep.
const MOST_LOOKS: u32 = 800;
/// Silence after which a target counts as lost.
const PATIENCE: Duration = Duration::from_secs(120);
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

impl<C> TargetClient<C> {
    /// The failure of a call to a target that cannot be reached any more.
    fn gone(&self, why: &dyn fmt::Display) -> ObjectError {
        let address = &self.address;
        ObjectCode::Io.error(format!(
            "the connection to the server at {address} was lost: {why}"
        ))
    }
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

/// A reply's success or failure, and the body behind its head.
type Answer<'a> = Result<(Result<()>, &'a [u8])>;
/// Use of the caller's memory by a call, its length, and values for it.
type Bulk<'a> = Option<(BulkUse, u64, &'a [u8])>;

/// A body of one field.
fn whole<T: for<'a> Field<'a>>(body: &mut Body<'_>) -> Result<T> {
    body.get()
}

/// True while a wait that began then shall not sleep.
fn is_soon(began: Instant) -> bool {
    let waited = began.elapsed();
    if (ALONE..SPIN).contains(&waited) {
        std::thread::yield_now();
    }
    waited < SPIN
}

impl<C: ServiceChannel> RemoteStore<C> {
    /// Calls the targets of the servers at these addresses.
    ///
    /// # Errors
    /// A server is not there, or refuses.
    pub fn open<D: Dial<Channel = C>>(dial: &D, to: &[String], setup: RemoteSetup) -> Result<Self> {
        let usual = u32::try_from(setup.usual).unwrap_or(u32::MAX);
        let buffer = usual.saturating_add(u32::try_from(HEAD).unwrap_or(0));
        let mut call = TargetCall {
            service: SERVICES[usize::from(setup.is_echo)],
            tag: 0,
            slots: setup.in_flight.max(1),
            buffer: buffer.clamp(BUFFERS.0, BUFFERS.1),
        };
        let dialled = |address: &String, call: &TargetCall| {
            dial.dial(address, call).map_err(|why| {
                let mut why = why.to_string();
                if !why.contains(address) {
                    why = format!("{address}: {why}");
                }
                ObjectCode::Io.error(why)
            })
        };
        let mut channels = Vec::new();
        for address in to {
            call.tag = 0;
            let first = vec![(address.clone(), dialled(address, &call)?)];
            let first = Self::over(first, setup)?;
            let targets = first.targets.into_iter();
            channels.extend(targets.map(|one| (one.address, one.channel)));
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
                sums: ValueSums::None,
            },
            in_flight: setup.in_flight,
            count: 0,
            ended: VecDeque::new(),
            objects: Vec::new(),
            request: Vec::new(),
            stats: StoreStats::default(),
        };
        refuse!(store.targets.is_empty() => Inval, "no server is named");
        store.about = store.ask(0, &Request::Info {}, whole)?;
        store.refresh()?;
        Ok(store)
    }

    /// Facts about the first server.
    pub fn about(&self) -> ServerInfo {
        self.about
    }

    /// Asks all targets for their counters; [`stats`](crate::ObjectStore::stats) gives those of the last time.
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
            .ok_or_else(|| ObjectCode::NoHdl.error("no such container"))
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
                return Err(target.gone(why));
            }
            if let Some(slot) = target.free.pop() {
                return Ok(slot);
            }
            refuse!(target.out == 0 => Busy, "as many operations are in flight as may be");
            self.hear(number, LOOK);
        }
    }

    /// Sends a request, with room in the caller's memory or values for it.
    fn launch(
        &mut self,
        number: usize,
        request: &Request<'_>,
        bulk: Bulk<'_>,
        is_waited: bool,
    ) -> Result<u64> {
        self.request.clear();
        let operation = request.encode(&mut self.request);
        refuse!(self.request.len() > LONGEST_REQUEST as usize => Key2Big,
            "the keys of one call to a server take 512 KiB at the most");
        let slot = self.slot(number)?;
        let sent = self.send(number, (slot, operation), bulk);
        let target = &mut self.targets[number];
        if let Err(why) = sent {
            target.free.push(slot);
            return Err(target.gone(&why));
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

    fn send(&mut self, to: usize, (slot, operation): (u32, u16), bulk: Bulk<'_>) -> io::Result<()> {
        let target = &mut self.targets[to];
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
        ObjectCode::NoHdl.fail("no operation of this ticket is in flight")
    }

    fn release(&mut self, (number, slot): (usize, usize)) {
        let target = &mut self.targets[number];
        target.slots[slot].ticket = 0;
        target.free.extend(u32::try_from(slot));
    }

    /// The reply of a call that has ended: its result, and what follows.
    fn answer(&self, place: (usize, usize)) -> Answer<'_> {
        self.answer_in(place, &self.targets[place.0].slots[place.1].reply)
    }

    fn answer_in<'r>(&self, (number, slot): (usize, usize), reply: &'r [u8]) -> Answer<'r> {
        let target = &self.targets[number];
        match (target.slots[slot].failure, &target.lost) {
            (None, _) => Reply::decode(reply),
            (Some(_), Some(why)) => Err(target.gone(why)),
            (Some(code), None) => {
                let number = i32::try_from(code).unwrap_or(0);
                let name = rpc_error_name(number).unwrap_or(UNKNOWN_RPC_ERROR);
                let why = format!("{name}({code})");
                if rpc_error_code("DER_UNREACH") == Some(number) {
                    return Err(target.gone(&why));
                }
                let why = format!("the server at {} answers with {why}", target.address);
                ObjectCode::of(code).unwrap_or(ObjectCode::Io).fail(why)
            }
        }
    }

    fn wait(&mut self, ticket: u64) -> Result<(usize, usize)> {
        let place = self.place(ticket)?;
        let began = Instant::now();
        while !self.targets[place.0].slots[place.1].has_ended {
            let is_soon = is_soon(began);
            self.hear(place.0, if is_soon { Duration::ZERO } else { LOOK });
        }
        Ok(place)
    }

    /// Waits for a call's reply, and reads it.
    fn reply<T>(&mut self, ticket: u64, get: impl FnOnce(&mut Body<'_>) -> Result<T>) -> Result<T> {
        let place = self.wait(ticket)?;
        let get = self.answer(place).and_then(|(result, body)| {
            result?;
            get(&mut Body(body))
        });
        self.release(place);
        get
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
}

/// Takes a fetch's reply: sizes into the descriptors, values into the data; the bytes found.
fn take_values(
    body: &[u8],
    memory: Option<&[u8]>,
    iods: &mut [Iod<'_>],
    data: &mut [u8],
) -> Result<u64> {
    let malformed = || ObjectCode::Io.error("a server's reply makes no sense");
    let mut body = Body(body);
    let found = Found::take(&mut body)?;
    refuse!(found.iods.len() != iods.len() => Err(malformed()));
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
    let arrived = ValueSum::of_ranges(found.sum.kind, &found.ranges, data);
    found.sum.check(arrived)?;
    Ok(found.bytes())
}
