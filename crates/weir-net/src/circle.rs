//! The world between runs: agreeing, meeting, telling, and learning that a rank has left.
//!
//! In: a [`World`]. Out: the few things that exchanges need of it, each of which ends when the
//! rank's watch says so. Every message is marked as part of the run or as a rank's last word, so
//! that a rank that waits for one and gets the other knows.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use weir_world::mpi::MpiWorld;
use weir_world::{Crew, World, WorldError};

use crate::error::Halt;
use crate::watch::Watch;

/// Waits are cut into pieces this long, so that the watch is seen.
const PIECE: Duration = Duration::from_millis(50);

const PART: u8 = 0;
const LAST: u8 = 1;

/// Everybody, as one rank sees them.
#[expect(
    missing_debug_implementations,
    reason = "a world need not be printable"
)]
pub struct Circle<'a> {
    world: &'a dyn World,
    /// Messages of this rank to itself.
    own: RefCell<VecDeque<Vec<u8>>>,
    /// Last words that came while something else was waited for, by rank.
    last: RefCell<Vec<Option<Vec<u8>>>>,
}

impl<'a> Circle<'a> {
    /// Around this rank.
    pub fn new(world: &'a dyn World) -> Self {
        let size = world.size() as usize;
        Self {
            world,
            own: RefCell::default(),
            last: RefCell::new(vec![None; size]),
        }
    }

    /// The MPI library that the world lives in, if it is one of MPI.
    pub fn mpi(&self) -> Option<&MpiWorld> {
        self.world.mpi()
    }

    /// The rank that was lost, where this one has started the others.
    pub(crate) fn lost(&self) -> Option<&WorldError> {
        self.world.crew().and_then(Crew::lost)
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.world.rank()
    }

    /// Ranks in all.
    pub fn size(&self) -> u32 {
        self.world.size()
    }

    /// Sends bytes of the run.
    ///
    /// # Errors
    /// The receiver is gone.
    pub fn send(&self, to: u32, bytes: &[u8], watch: &Watch) -> Result<(), Halt> {
        if to == self.rank() {
            self.own.borrow_mut().push_back(bytes.to_vec());
            return Ok(());
        }
        self.post(PART, to, bytes, watch.limit())
    }

    fn post(&self, mark: u8, to: u32, bytes: &[u8], limit: Duration) -> Result<(), Halt> {
        let marked = [&[mark], bytes].concat();
        self.world
            .send(to, &marked, Instant::now() + limit)
            .map_err(halt)
    }

    /// The next bytes of the run that come from a rank.
    ///
    /// # Errors
    /// The sender is gone, or has said its last word; or the watch ended the wait.
    pub fn receive(&self, from: u32, watch: &Watch) -> Result<Vec<u8>, Halt> {
        self.listen(from, watch, || {})
    }

    /// The same where it is others' turn, who watch themselves: it may take any time.
    ///
    /// # Errors
    /// As [`Circle::receive`].
    pub fn wait_for(&self, from: u32, watch: &Watch) -> Result<Vec<u8>, Halt> {
        self.listen(from, watch, || watch.beat())
    }

    /// Receives, and does this now and then meanwhile.
    fn listen(&self, from: u32, watch: &Watch, meanwhile: impl Fn()) -> Result<Vec<u8>, Halt> {
        if from == self.rank() {
            let own = self.own.borrow_mut().pop_front();
            return own.ok_or_else(|| Halt::Garbled("nothing sent to itself".to_owned()));
        }
        if self.last.borrow()[from as usize].is_some() {
            return Err(Halt::Left { peer: from });
        }
        loop {
            watch.check()?;
            match self.world.receive(from, Instant::now() + PIECE) {
                Ok(bytes) if bytes.first() == Some(&PART) => return Ok(bytes[1..].to_vec()),
                Ok(bytes) => {
                    let word = bytes.get(1..).unwrap_or_default().to_vec();
                    self.last.borrow_mut()[from as usize] = Some(word);
                    return Err(Halt::Left { peer: from });
                }
                Err(WorldError::Late { .. }) => meanwhile(),
                Err(error) => return Err(halt(error)),
            }
        }
    }

    /// The greatest of all ranks' values, on every rank; nobody gets it before all have given
    /// theirs. In round k every rank tells the one 2^k further the greatest it knows.
    ///
    /// # Errors
    /// A rank is gone, or the watch ended the wait.
    pub fn agree(&self, mine: u64, watch: &Watch) -> Result<u64, Halt> {
        self.greatest(mine, watch, |from| self.receive(from, watch))
    }

    /// The same where some ranks come much later than others, who watch themselves.
    ///
    /// # Errors
    /// As [`Circle::receive`].
    pub fn agree_at_last(&self, mine: u64, watch: &Watch) -> Result<u64, Halt> {
        self.greatest(mine, watch, |from| self.wait_for(from, watch))
    }

    fn greatest(
        &self,
        mine: u64,
        watch: &Watch,
        receive: impl Fn(u32) -> Result<Vec<u8>, Halt>,
    ) -> Result<u64, Halt> {
        let (rank, size) = (self.rank(), self.size());
        let mut greatest = mine;
        let mut step = 1;
        while step < size {
            self.send((rank + step) % size, &greatest.to_le_bytes(), watch)?;
            let theirs = receive((rank + size - step) % size)?;
            let theirs = <[u8; 8]>::try_from(theirs.as_slice())
                .map_err(|_| Halt::Garbled("a value of another length".to_owned()))?;
            greatest = greatest.max(u64::from_le_bytes(theirs));
            step *= 2;
        }
        watch.beat();
        Ok(greatest)
    }

    /// What came of a step that all ranks take together: where it failed at one it fails at all,
    /// and nobody lets go of anything before all know.
    ///
    /// # Errors
    /// The rank's own failure; that of another; as [`Circle::agree`].
    pub fn together<T>(&self, own: Result<T, Halt>, watch: &Watch) -> Result<T, Halt> {
        if own.is_err() && watch.stopped() {
            return own;
        }
        let failed = if own.is_ok() { 0 } else { self.rank() + 1 };
        let agreed = self.agree(failed.into(), watch);
        let own = own?;
        match agreed? {
            0 => Ok(own),
            highest => Err(Halt::Left {
                peer: u32::try_from(highest - 1).unwrap_or(u32::MAX),
            }),
        }
    }

    /// Returns on no rank before all have called it.
    ///
    /// # Errors
    /// As [`Circle::agree`].
    pub fn barrier(&self, watch: &Watch) -> Result<(), Halt> {
        self.agree(0, watch).map(|_| ())
    }

    /// The last word to rank 0 and, without its bytes, to everybody who would wait in vain.
    /// Whoever is gone does not hear it.
    pub(crate) fn leave(&self, word: &[u8], limit: Duration) {
        let others = (1..self.size()).filter(|r| *r != self.rank());
        for to in others {
            let _ = self.post(LAST, to, &[], limit);
        }
        self.report(word, limit);
    }

    /// The last word to rank 0.
    pub(crate) fn report(&self, word: &[u8], limit: Duration) {
        if self.rank() != 0 {
            let _ = self.post(LAST, 0, word, limit);
        }
    }

    /// The last word of a rank, for rank 0, which waits no longer than `until`.
    pub(crate) fn last_word(&self, of: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        if let Some(word) = self.last.borrow_mut()[of as usize].take() {
            return Ok(word);
        }
        loop {
            let bytes = self.world.receive(of, until)?;
            if bytes.first() == Some(&LAST) {
                return Ok(bytes[1..].to_vec());
            }
        }
    }
}

/// Who is gone has left, for whatever reason.
fn halt(error: WorldError) -> Halt {
    match error {
        WorldError::Gone { peer, .. } => Halt::Left { peer },
        error => error.into(),
    }
}
