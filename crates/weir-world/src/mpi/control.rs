//! The world over MPI: messages with a deadline, on a tag of their own.
//!
//! MPI's own receive waits for ever, so this one asks whether a message is here, and sends are
//! posted and asked for. Between questions it first spins, then lets others run, then naps: ranks
//! may share a processor, and what comes here is never what is measured.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use crate::{World, WorldError};

use super::abi::Abi;
use super::error::MpiError;
use super::nonblocking::Owned;
use super::rank::{Mpi, Tag};

/// Questions before others may run, and before the first nap.
const SPINS: u32 = 200;
const YIELDS: u32 = 400;
const LONGEST_NAP: Duration = Duration::from_millis(1);
/// A message that has begun to come is whole within this time.
const ON_ITS_WAY: Duration = Duration::from_secs(60);

/// Waiting for another rank.
struct Patience {
    peer: u32,
    begun: Instant,
    until: Instant,
    asked: u32,
}

impl Patience {
    fn new(peer: u32, until: Instant) -> Self {
        let begun = Instant::now();
        Self {
            peer,
            begun,
            until,
            asked: 0,
        }
    }

    fn rest(&mut self) -> Result<(), WorldError> {
        self.asked = self.asked.saturating_add(1);
        if self.asked <= SPINS {
            std::hint::spin_loop();
            return Ok(());
        }
        let now = Instant::now();
        if now >= self.until {
            return Err(WorldError::Late {
                peer: self.peer,
                seconds: self.begun.elapsed().as_secs(),
            });
        }
        if self.asked <= YIELDS {
            std::thread::yield_now();
        } else {
            let nap = Duration::from_micros(u64::from(self.asked - YIELDS));
            std::thread::sleep(nap.min(LONGEST_NAP).min(self.until - now));
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
        let mut message = Owned::isend(self, peer, bytes.to_vec(), Tag::CONTROL).map_err(failed)?;
        let mut patience = Patience::new(to, until);
        while !message.is_done().map_err(failed)? {
            patience.rest()?;
        }
        Ok(())
    }

    fn take(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let failed = |e| failure(from, e);
        let peer = self.peer(from).map_err(failed)?;
        let mut patience = Patience::new(from, until);
        let length = loop {
            match self.arrived(peer, Tag::CONTROL).map_err(failed)? {
                Some(length) => break length,
                None => patience.rest()?,
            }
        };
        // It is here and would be lost if it were left now: whoever waits in pieces asks again.
        patience.until = until.max(Instant::now() + ON_ITS_WAY);
        let mut message = Owned::irecv(self, peer, length, Tag::CONTROL).map_err(failed)?;
        while !message.is_done().map_err(failed)? {
            patience.rest()?;
        }
        Ok(message.into_bytes())
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
