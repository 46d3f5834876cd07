//! Fetches and listings of a target.
//!
//! In: requests that were read. Out: steps. Not here: everything else that a target answers (`server`).

use std::hash::Hash;

use super::super::held::{Pushing, Source, found_by};
use super::super::wire::{Descriptors, Field, Found, ListPlace, Request};
use super::super::{HEAD, INLINE, MOST_ENTRIES};

use super::{FETCH, Fetched, State, Step, Target};
use crate::prelude::*;

/// A fetch as it came.
#[derive(Debug)]
pub(in crate::remote) struct FetchCall<'a> {
    pub(in crate::remote) at: CallAt<'a>,
    pub(in crate::remote) iods: Descriptors<'a>,
    /// Bytes of its values.
    pub(in crate::remote) room: usize,
}

impl<'a> FetchCall<'a> {
    fn read(payload: &'a [u8], most: u64) -> Result<Self> {
        let Request::Fetch {
            key,
            epoch,
            conditions,
            iods,
        } = Request::decode(FETCH, payload)?
        else {
            return ObjectCode::Inval.fail("this is no fetch");
        };
        let room = iods.room()?;
        refuse!(room > most => Inval, "values of this length travel by bulk");
        let (at, room) = (CallAt::new(key, epoch, conditions), local(room));
        Ok(Self { at, iods, room })
    }
}

impl<S: ObjectStore, H: Copy + Eq + Hash> Target<S, H> {
    /// Entries into the reply, as many as are wanted and fit.
    pub(super) fn list(
        &mut self,
        (container, level, epoch): (ContainerId, ListLevel<'_>, Epoch),
        (from, skip, most): (&ListPlace, u32, u32),
        room: usize,
    ) -> Result<()> {
        let mut most = most.clamp(1, MOST_ENTRIES);
        let mut entries = Vec::new();
        loop {
            entries.clear();
            let (mut passed, mut count, mut is_full) = (0, 0, false);
            let mut anchor = ListAnchor {
                next: from.next,
                key: from.key.clone(),
                ..ListAnchor::default()
            };
            let visit = &mut |entry: crate::ListEntry<'_>| {
                if passed < skip {
                    passed += 1;
                    return true;
                }
                let before = entries.len();
                entry.put(&mut entries);
                if entries.len() + 64 > room {
                    entries.truncate(before);
                    is_full = true;
                    return false;
                }
                count += 1;
                count < most
            };
            self.stored()?
                .list(container, level, epoch, &mut anchor, visit)?;
            let fits = entries.len() + anchor.key.len() + 64 <= room;
            if (is_full || !fits) && count > 0 {
                // Once more, to end where the reply does.
                most = if is_full { count } else { count / 2 };
                if most > 0 {
                    continue;
                }
            }
            refuse!(!fits => Rec2Big, "a key is too long for this listing");
            let (next, key) = (anchor.next, anchor.key);
            anchor.done.put(&mut self.reply);
            ListPlace { next, key }.put(&mut self.reply);
            count.put(&mut self.reply);
            self.reply.extend_from_slice(&entries);
            return Ok(());
        }
    }

    /// Values with sums, damaged ones, and those of them that fit.
    pub(super) fn scrub(&mut self, room: usize) -> Result<()> {
        let (mut damaged, mut list) = (0_u64, Vec::new());
        let checked = self.stored()?.scrub(&mut |bad| {
            damaged += 1;
            let before = list.len();
            true.put(&mut list);
            bad.put(&mut list);
            if list.len() + 64 > room {
                list.truncate(before);
            }
        })?;
        checked.put(&mut self.reply);
        damaged.put(&mut self.reply);
        self.reply.extend_from_slice(&list);
        false.put(&mut self.reply);
        Ok(())
    }

    /// A fetch whose values go to the caller's memory, or one of echo.
    pub(super) fn fetch(
        &mut self,
        handle: H,
        (payload, bulk): (&[u8], Option<u64>),
        buffer: &mut [u8],
    ) -> Result<Step> {
        let call = FetchCall::read(payload, bulk.unwrap_or(INLINE))?;
        refuse!(bulk.is_some_and(|bulk| bulk != call.room as u64) => Inval,
            "the memory has not the length of the descriptors");
        self.counters.fetches += 1;
        let (fits, room) = (HEAD + call.room <= buffer.len(), call.room);
        let held = if fits || self.store.is_none() {
            0
        } else {
            room as u64
        };
        self.hold(held)?;
        let Some(store) = &mut self.store else {
            self.counters.fetch_bytes += room as u64;
            let found = Found::whole(&call.iods, room);
            if bulk.is_some() {
                let pushing = Pushing::new(found, Source::Constant, 0);
                return Ok(self.push(handle, pushing, buffer));
            }
            self.begin(Ok(()));
            found.put(&mut self.reply);
            self.send(buffer);
            return Ok(Step::Reply(self.reply.len() + room));
        };
        let mut staged = vec![0; local(held)];
        let data = if fits {
            &mut buffer[HEAD..HEAD + room]
        } else {
            &mut staged[..]
        };
        let mut iods: Vec<_> = call.iods.each().collect();
        let CallAt {
            key,
            epoch,
            conditions,
        } = call.at;
        let done = store.fetch(key, &mut iods, epoch, conditions, data);
        let (result, found) = found_by(store, &call, &iods, done, (data, self.about.sums));
        self.counters.fetch_bytes += found.bytes();
        if let Err(error) = result {
            self.held.0 -= held;
            self.begin(Err(&error));
            found.put(&mut self.reply);
            return Ok(self.send(buffer));
        }
        let source = if fits {
            Source::Buffer
        } else {
            Source::Staged(staged)
        };
        Ok(self.push(handle, Pushing::new(found, source, held), buffer))
    }

    /// Pushes the next parts of a fetch's values, and answers with the last.
    pub(super) fn push(&mut self, handle: H, mut pushing: Pushing, buffer: &mut [u8]) -> Step {
        if pushing.next(buffer, &mut self.parts) {
            self.states.insert(handle, State::Pushing(pushing));
            return Step::Push;
        }
        self.held.0 -= pushing.held;
        let head = &pushing.head;
        buffer[..head.len()].copy_from_slice(head);
        if self.parts.is_empty() {
            Step::Reply(head.len())
        } else {
            Step::PushAndReply(head.len())
        }
    }

    /// Looks up the small fetches of a round.
    pub(super) fn fetch_batch(&mut self) {
        let (batch, payloads) = (&self.batch, &self.payloads);
        let (Some(store), sums) = (&mut self.store, self.about.sums) else {
            return;
        };
        let read = batch.iter().map(|(handle, at)| {
            let call = FetchCall::read(&payloads[at.clone()], INLINE);
            (*handle, call)
        });
        let read: Vec<_> = read.collect();
        self.fetched.clear();
        let calls = read.iter().filter_map(|(_, call)| call.as_ref().ok());
        let calls: Vec<_> = calls.collect();
        let room = calls.iter().map(|call| call.room).sum();
        if self.values.len() < room {
            self.values.resize(room, 0);
        }
        let mut lent: Vec<Vec<_>> = calls.iter().map(|c| c.iods.each().collect()).collect();
        let mut rest = &mut self.values[..];
        let mut requests = Vec::with_capacity(calls.len());
        for (call, iods) in calls.iter().zip(&mut lent) {
            let data;
            (data, rest) = rest.split_at_mut(call.room);
            requests.push(FetchRequest {
                key: call.at.key,
                iods,
                epoch: call.at.epoch,
                conditions: call.at.conditions,
                data,
                result: Ok(Ticket::Done(0)),
            });
        }
        store.fetch_batch(&mut requests);
        let mut requests = requests.into_iter();
        let mut at = 0;
        for (handle, call) in &read {
            let (result, found) = match (call, call.is_ok().then(|| requests.next()).flatten()) {
                (Ok(call), Some(one)) => {
                    found_by(store, call, one.iods, one.result, (one.data, sums))
                }
                (Err(error), _) => (Err(error.clone()), Found::default()),
                (Ok(_), None) => continue,
            };
            self.counters.fetches += 1;
            self.counters.fetch_bytes += found.bytes();
            self.fetched.push_back(Fetched {
                handle: *handle,
                result,
                found,
                at,
            });
            at += call.as_ref().map_or(0, |call| call.room);
        }
        self.batch.clear();
        self.payloads.clear();
    }

    /// Answers a small fetch with what was found, one range behind the other.
    pub(super) fn answer_fetch(&mut self, one: &Fetched<H>, buffer: &mut [u8]) -> Step {
        self.begin(one.result.as_ref().copied());
        one.found.put(&mut self.reply);
        self.send(buffer);
        let mut length = self.reply.len();
        for (from, bytes) in &one.found.ranges {
            let from = one.at + local(*from);
            let range = &self.values[from..from + local(*bytes)];
            buffer[length..length + range.len()].copy_from_slice(range);
            length += range.len();
        }
        Step::Reply(length)
    }
}
