//! The calls of [`ObjectStore`] on targets.
//!
//! In: calls. Out: what the targets answer, joined. Not here: slots, sending and hearing (`client`).

use std::time::{Duration, Instant};

use weir_run::{BulkUse, ServiceChannel};

use super::super::wire::{Body, ClientPlace, Descriptors, Field, Found, Request, ValueSum, Values};
use super::super::{INLINE, MOST_ENTRIES};

use super::{LOOK, MOST_LOOKS, RemoteStore, SHORT_LOOK, is_soon, take_values, whole};
use crate::prelude::*;

impl<C: ServiceChannel> RemoteStore<C> {
    /// Objects of all targets, each once.
    fn all_objects(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        let mut objects = Vec::new();
        for target in 0..self.targets.len() {
            let mut next = Some(ClientPlace::default());
            let there = self.there(container, target)?;
            while let Some(place) = next {
                let level = (there, ListLevel::Objects, epoch);
                let all = &mut |entry: ListEntry<'_>| {
                    if let ListEntry::Object(id) = entry {
                        objects.push(id);
                    }
                    true
                };
                next = self.list_some(target, level, (place, MOST_ENTRIES), all)?.0;
            }
        }
        objects.sort_unstable();
        objects.dedup();
        self.objects = objects;
        Ok(())
    }

    /// Makes a snapshot on all targets: its epoch on each.
    fn make_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Vec<Epoch>> {
        let request = |container| Request::Snapshot {
            container,
            epoch,
            ends: false,
        };
        let all = self.ask_all(Some(container), request, whole)?;
        all.into_iter().collect()
    }

    fn end_snapshot(&mut self, target: usize, of: ContainerId, epoch: Epoch) -> Result<()> {
        let request = Request::Snapshot {
            container: self.there(of, target)?,
            epoch,
            ends: true,
        };
        self.ask(target, &request, |_| Ok(()))
    }

    /// Visits some entries of a target from a place on: where it goes on, if there are more, and whether the
    /// visitor wants them.
    fn list_some(
        &mut self,
        target: usize,
        (container, level, epoch): (ContainerId, ListLevel<'_>, Epoch),
        (place, most): (ClientPlace, u32),
        visit: &mut dyn FnMut(ListEntry<'_>) -> bool,
    ) -> Result<(Option<ClientPlace>, bool)> {
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
            let target = place.target;
            let behind = ClientPlace {
                target,
                from,
                skip: 0,
            };
            let behind = Some(behind).filter(|_| !is_done);
            for number in 1..=count {
                if !visit(body.get()?) {
                    let skip = place.skip + number;
                    let within = Some(ClientPlace { skip, ..place });
                    return Ok((if number == count { behind } else { within }, false));
                }
            }
            Ok((behind, true))
        })
    }
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

    fn drop_container(&mut self, container: ContainerId) -> Result<()> {
        let request = |container| Request::Destroy { container };
        let all = self.ask_all(Some(container), request, |_| Ok(()))?;
        all.into_iter().collect()
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
        refuse!(room != data.len() as u64 => Inval, "the data has not the length of the descriptors");
        let target = self.target_of(key.object, key.dkey);
        let container = self.there(key.container, target)?;
        let is_inline = room <= INLINE;
        let request = Request::Update {
            key: KeyAt { container, ..key },
            epoch,
            conditions,
            iods,
            sum: ValueSum::of(self.about.sums, data),
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
        refuse!(room > data.len() as u64 => Inval, "the data has less room than the descriptors say");
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
        let (Some(dkey), _) = scope.keys() else {
            // It exists if one target has some of it.
            existing::<u64>(self.ask_all(Some(container), request, whole)?)?;
            return Ok(Ticket::Done(0));
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
            visit_from(
                self.objects.iter().copied().map(ListEntry::Object),
                anchor,
                visit,
            );
            return Ok(());
        }
        let mut place = match Body(&anchor.key) {
            Body([]) => ClientPlace::default(),
            mut kept => kept.get()?,
        };
        let last = match level {
            ListLevel::Dkeys(_) | ListLevel::Objects => self.targets.len() as u64 - 1,
            ListLevel::Akeys(object, dkey)
            | ListLevel::Visible(object, dkey, _)
            | ListLevel::Versions(object, dkey, _) => {
                place.target = self.target_of(object, dkey) as u64;
                place.target
            }
        };
        // More and more at once: an end in between costs no more than what was wanted.
        let mut most = 1;
        let mut wants_more = true;
        while !anchor.done && wants_more {
            let target = place.target;
            let there = (self.there(container, local(target))?, level, epoch);
            let next;
            (next, wants_more) = self.list_some(local(target), there, (place, most), visit)?;
            anchor.done = next.is_none() && target == last;
            place = next.unwrap_or(ClientPlace {
                target: target + 1,
                ..ClientPlace::default()
            });
            most = (most * 2).min(MOST_ENTRIES / 2);
        }
        anchor.key.clear();
        place.put(&mut anchor.key);
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
        let mut found = existing(replies)?;
        found.sort_by_key(order);
        let last = if what.has(KeyQuery::MAX) {
            found.len().saturating_sub(1)
        } else {
            0
        };
        if last < found.len() {
            *answer = found.swap_remove(last);
        }
        Ok(())
    }

    fn snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<Epoch> {
        let made = self.make_snapshot(container, epoch)?;
        let last = made.iter().copied().max().unwrap_or(epoch);
        if made.iter().all(|one| *one == last) {
            return Ok(last);
        }
        // Each target chose its own: the last of them sees what all acknowledged.
        self.make_snapshot(container, last)?;
        for (target, epoch) in made.into_iter().enumerate() {
            if epoch != last {
                self.end_snapshot(target, container, epoch)?;
            }
        }
        Ok(last)
    }

    fn drop_snapshot(&mut self, container: ContainerId, epoch: Epoch) -> Result<()> {
        let mut targets = 0..self.targets.len();
        targets.try_for_each(|target| self.end_snapshot(target, container, epoch))
    }

    fn pass(&mut self, id: ContainerId, span: EpochRange, discards: bool) -> Result<FreedVersions> {
        let request = |container| Request::Pass {
            container,
            range: span,
            discards,
        };
        let mut sum = FreedVersions::default();
        for one in self.ask_all(Some(id), request, whole)? {
            sum += one?;
        }
        Ok(sum)
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
                    return ObjectCode::Csum.fail(why);
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
        let (began, mut looks) = (Instant::now(), 0);
        loop {
            let busy = self.targets.iter().filter(|target| target.out > 0).count();
            let is_soon = self.ended.len() >= min || is_soon(began);
            let wait = match busy {
                _ if is_soon => Duration::ZERO,
                1 => LOOK,
                _ => SHORT_LOOK,
            };
            for number in 0..self.targets.len() {
                if self.targets[number].out > 0 {
                    self.hear(number, wait);
                }
            }
            looks += u32::from(!is_soon);
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
}

/// Answers of the targets that have some of an item; `NONEXIST` where none has.
fn existing<T>(all: Vec<Result<T>>) -> Result<Vec<T>> {
    let (mut found, mut missing) = (Vec::new(), None);
    for one in all {
        match one {
            Err(why) if why.code == ObjectCode::NonExist => missing = Some(why),
            one => found.push(one?),
        }
    }
    let missing = missing.filter(|_| found.is_empty());
    missing.map_or(Ok(found), Err)
}
