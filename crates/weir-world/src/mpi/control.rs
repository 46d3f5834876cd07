//! The world over MPI: messages with a deadline, on a tag of their own.
//!
//! MPI's own receive waits for ever, so this one asks whether a message is here, and sends are
//! posted and asked for; each message goes in pieces of lengths that do not disturb what is measured
//! ([`super::pieces`]). Between questions it first spins, then lets others run, then naps: ranks
//! may share a processor, and what comes here is never what is measured.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::{RankMonitor, World, WorldError};

use super::abi::Abi;
use super::error::MpiError;
use super::nonblocking::Owned;
use super::pieces::{Joined, cut};
use super::rank::{Mpi, PeerRank, Tag};

/// Questions before others may run, and before the first nap.
const SPINS: u32 = 200;
const YIELDS: u32 = 400;
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// A message that has begun to come is whole within this time.
const ON_ITS_WAY: Duration = Duration::from_secs(60);

/// Waiting for another rank.
struct RankWait<'a> {
    peer: u32,
    deadline: Deadline<'a>,
    asked: u32,
}

impl<'a> RankWait<'a> {
    fn new(peer: u32, until: Instant, monitor: &'a RankMonitor) -> Self {
        Self {
            peer,
            deadline: Deadline::new(peer, until, Some(monitor)),
            asked: 0,
        }
    }

    fn rest(&mut self) -> Result<(), WorldError> {
        self.asked = self.asked.saturating_add(1);
        if self.asked <= SPINS {
            std::hint::spin_loop();
            return Ok(());
        }
        let left = self.deadline.left()?;
        if self.asked <= YIELDS {
            std::thread::yield_now();
        } else {
            let nap = Duration::from_micros(u64::from(self.asked - YIELDS));
            std::thread::sleep(nap.min(LONGEST_SLEEP).min(left));
        }
        Ok(())
    }
}

impl<A: Abi> World for Mpi<A> {
    fn rank(&self) -> u32 {
        self.rank.unsigned_abs()
    }

    fn size(&self) -> u32 {
        self.size.unsigned_abs()
    }

    fn send(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError> {
        let sent = self.post(to, bytes, until);
        self.note(to, sent)
    }

    fn monitor(&self) -> Option<&RankMonitor> {
        Some(&self.monitor)
    }

    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let received = self.take(from, until);
        self.note(from, received)
    }
}

impl<A: Abi> Mpi<A> {
    fn post(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError> {
        let failed = |e| failure(to, e);
        let peer = self.peer(to).map_err(failed)?;
        // Before the copy: nobody copies what cannot be sent.
        if c_int::try_from(bytes.len()).is_err() {
            let bytes = bytes.len();
            return Err(WorldError::TooLong { peer: to, bytes });
        }
        // All at once: a message that is not taken in time may come late, but it comes whole.
        let post = |piece| Owned::isend(self, peer, piece, Tag::CONTROL);
        let pieces = cut(bytes).into_iter().map(post);
        let pieces = pieces.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        self.posted.count(peer, pieces.len());
        let mut wait = RankWait::new(to, until, &self.monitor);
        for mut piece in pieces {
            while !piece.is_done().map_err(failed)? {
                wait.rest()?;
            }
        }
        Ok(())
    }

    fn take(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let peer = self.peer(from).map_err(|e| failure(from, e))?;
        let mut wait = RankWait::new(from, until, &self.monitor);
        let first = self.piece(peer, &mut wait)?;
        let mut message = Joined::first(&first).ok_or_else(|| WorldError::Garbled {
            peer: from,
            detail: "no length".to_owned(),
        })?;
        loop {
            message = match message.whole() {
                Ok(bytes) => return Ok(bytes),
                Err(message) => message,
            };
            message.add(&self.piece(peer, &mut wait)?);
        }
    }

    /// The next piece of a message.
    fn piece(&self, from: PeerRank, wait: &mut RankWait<'_>) -> Result<Vec<u8>, WorldError> {
        let peer = wait.peer;
        let failed = |e| failure(peer, e);
        let length = loop {
            match self.arrived(from, Tag::CONTROL).map_err(failed)? {
                Some(length) => break length,
                None => wait.rest()?,
            }
        };
        // The message is here and would be lost if it were left now: whoever waits for a moment
        // at a time asks again.
        wait.deadline.extend(Instant::now() + ON_ITS_WAY);
        let mut piece = Owned::irecv(self, from, length, Tag::CONTROL).map_err(failed)?;
        while !piece.is_done().map_err(failed)? {
            wait.rest()?;
        }
        Ok(piece.into_bytes())
    }

    /// Keeps in mind who does not answer, for the end.
    fn note<T>(&self, peer: u32, outcome: Result<T, WorldError>) -> Result<T, WorldError> {
        match &outcome {
            Ok(_) if self.silent.get() == Some(peer) => self.silent.set(None),
            Err(WorldError::Late { .. } | WorldError::Gone { .. }) => self.silent.set(Some(peer)),
            _ => {}
        }
        outcome
    }
}

fn failure(peer: u32, error: MpiError) -> WorldError {
    match error {
        MpiError::NoSuchRank { rank, size } => WorldError::NoSuchRank { rank, size },
        MpiError::TooLong { bytes } => WorldError::TooLong { peer, bytes },
        other => WorldError::Gone {
            peer,
            detail: other.to_string(),
        },
    }
}
