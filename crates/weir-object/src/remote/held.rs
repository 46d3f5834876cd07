//! Values of a fetch on their way to the caller's memory, and the places where it found any.
//!
//! In: what a store found. Out: ranges of the data, parts to push. Not here: replies within which small
//! values travel (`server`).

use std::collections::VecDeque;

use super::server::{FetchCall, Part};
use super::wire::{Descriptors, Found, Reply, ValueSum};
use super::{HEAD, MOST_RANGES};
use crate::prelude::*;

/// Most parts of one step.
pub(super) const PARTS: usize = 16;

/// Place of the values.
#[derive(Debug)]
pub(super) enum Source {
    /// Behind the head in the buffer, whole.
    Buffer,
    /// Here: they are longer than the buffer.
    Staged(Vec<u8>),
    /// Nowhere: any bytes will do.
    Constant,
}

/// A fetch whose values are on their way.
#[derive(Debug)]
pub(super) struct Pushing {
    /// Its reply.
    pub(super) head: Vec<u8>,
    /// Bytes that it holds.
    pub(super) held: u64,
    ranges: VecDeque<(u64, u64)>,
    source: Source,
}

impl Pushing {
    pub(super) fn new(found: Found, source: Source, held: u64) -> Self {
        let mut head = Vec::with_capacity(64);
        Reply::encode(Ok(()), &mut head);
        found.put(&mut head);
        Self {
            head,
            held,
            ranges: found.ranges.into(),
            source,
        }
    }

    /// Makes the next parts; true if others are left.
    pub(super) fn next(&mut self, buffer: &mut [u8], parts: &mut Vec<Part>) -> bool {
        parts.clear();
        let mut at = HEAD;
        while let Some(range) = self.ranges.front_mut() {
            let (to, left) = *range;
            let room = (buffer.len() - at) as u64;
            if parts.len() == PARTS || room == 0 {
                return true;
            }
            let (from, length) = match &self.source {
                Source::Buffer => (HEAD + local(to), left),
                Source::Constant => (HEAD, left.min(room)),
                Source::Staged(bytes) => {
                    let length = left.min(room);
                    let value = &bytes[local(to)..local(to + length)];
                    buffer[at..at + value.len()].copy_from_slice(value);
                    at += value.len();
                    (at - value.len(), length)
                }
            };
            let from = from as u64;
            parts.push(Part { from, to, length });
            if length == left {
                self.ranges.pop_front();
            } else {
                *range = (to + length, left - length);
            }
        }
        false
    }
}

impl Found {
    fn of(iods: impl Iterator<Item = (u64, u64)>) -> Self {
        Self {
            iods: iods.collect(),
            ..Self::default()
        }
    }

    /// Everything that was asked for.
    pub(super) fn whole(iods: &Descriptors<'_>, room_of_all: usize) -> Self {
        let mut found = Self::of(iods.each().map(|iod| (iod.size, iod.room())));
        found.add(0, room_of_all as u64);
        found
    }

    /// Bytes that were found.
    pub(super) fn bytes(&self) -> u64 {
        self.iods.iter().map(|(_, found)| found).sum()
    }

    fn add(&mut self, from: u64, length: u64) {
        match self.ranges.last_mut() {
            Some(last) if last.0 + last.1 == from => last.1 += length,
            _ if length == 0 => {}
            _ => self.ranges.push((from, length)),
        }
    }
}

/// Values that a fetch found, and their places.
pub(super) fn found_by<S: ObjectStore>(
    store: &mut S,
    call: &FetchCall<'_>,
    iods: &[Iod<'_>],
    done: Result<Ticket>,
    (data, sums): (&mut [u8], ValueSums),
) -> (Result<()>, Found) {
    let mut found = Found::of(iods.iter().map(|iod| (iod.size, iod.found)));
    let result = match done {
        Ok(Ticket::Done(_)) => places(store, call, iods, data, &mut found),
        Ok(Ticket::Waits(_)) => ObjectCode::NoSys.fail("the server's store fetches later"),
        Err(error) => Err(error),
    };
    if result.is_err() {
        found.ranges.clear();
        found.iods.iter_mut().for_each(|(_, found)| *found = 0);
    }
    found.sum = ValueSum::of_ranges(sums, &found.ranges, data);
    (result, found)
}

fn places<S: ObjectStore>(
    store: &mut S,
    call: &FetchCall<'_>,
    iods: &[Iod<'_>],
    data: &mut [u8],
    found: &mut Found,
) -> Result<()> {
    let mut from = 0;
    for (asked, iod) in call.iods.each().zip(iods) {
        let room = asked.room();
        if iod.found == room || asked.kind == IodKind::Single || iod.found == 0 {
            found.add(from, iod.found);
        } else {
            let data = &mut data[local(from)..local(from + room)];
            holes(store, (call, asked), data, from, found)?;
        }
        from += room;
    }
    if found.ranges.len() > MOST_RANGES {
        let why = "more than 1024 ranges with holes between them: ask for fewer records at once";
        return ObjectCode::Rec2Big.fail(why);
    }
    Ok(())
}

/// Ranges of an array with holes: a hole leaves what was there, so that it differs over zeros and over ones.
fn holes<S: ObjectStore>(
    store: &mut S,
    (call, asked): (&FetchCall<'_>, Iod<'_>),
    data: &mut [u8],
    from: u64,
    found: &mut Found,
) -> Result<()> {
    let mut other = vec![0xff; data.len()];
    data.fill(0);
    for data in [&mut *data, &mut other[..]] {
        let mut iods = [asked];
        let at = call.at;
        let _ = store.fetch(at.key, &mut iods, at.epoch, at.conditions, data)?;
    }
    let (mut at, end) = (0, data.len());
    while at < end {
        let is_found = data[at] == other[at];
        let mut next = at..end;
        let next = next.find(|&next| (data[next] == other[next]) != is_found);
        let next = next.unwrap_or(end);
        if is_found {
            found.add(from + at as u64, (next - at) as u64);
        }
        at = next;
    }
    Ok(())
}
