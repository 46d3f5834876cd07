//! Messages between ranks outside of measurements: data, agreements, barriers, final reports.
//!
//! In: a [`World`]. Out: calls that end when the rank's [`Watchdog`] stops it. Every message is
//! marked as data or as a rank's final report, so that a rank that waits for data and gets the
//! report knows that the sender has ended its part. Not here: what the bytes mean.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::deadline::Deadline;
use crate::mpi::MpiWorld;
use crate::rank_monitor::RankState;
use crate::{RankMonitor, Watchdog, World, WorldError};

/// Waits are cut into pieces this long, so that the watchdog is seen.
const SLICE: Duration = Duration::from_millis(50);

/// An empty report is on its way within this time, or its receiver takes nothing.
const FAREWELL: Duration = Duration::from_millis(500);

/// The first byte of a message.
const DATA: u8 = 0;
const REPORT: u8 = 1;

/// Reason that a rank's wait for the others ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// The rank's own watchdog stopped it; [`Watchdog::stop_cause`] says why.
    #[error("stopped")]
    Stopped,
    /// Another rank ended its part early.
    #[error("rank {peer} has left")]
    Left {
        /// The rank that left.
        peer: u32,
    },
    /// The world failed.
    #[error(transparent)]
    World(WorldError),
}

/// A rank that is gone has left, for whatever reason.
impl From<WorldError> for CommError {
    fn from(error: WorldError) -> Self {
        match error {
            WorldError::Gone { peer, .. } => Self::Left { peer },
            error => Self::World(error),
        }
    }
}

/// One rank's messages to and from the others.
#[expect(
    missing_debug_implementations,
    reason = "a world need not be printable"
)]
pub struct RankComm<'a> {
    world: &'a dyn World,
    /// Messages of this rank to itself.
    own: RefCell<VecDeque<Vec<u8>>>,
    /// Final reports that came while data was waited for, by rank.
    reports: RefCell<Vec<Option<Vec<u8>>>>,
}

impl<'a> RankComm<'a> {
    /// Of this rank of the world.
    pub fn new(world: &'a dyn World) -> Self {
        let size = world.size() as usize;
        Self {
            world,
            own: RefCell::default(),
            reports: RefCell::new(vec![None; size]),
        }
    }

    /// The MPI library that the world lives in, if it is one of MPI.
    pub fn mpi(&self) -> Option<&MpiWorld> {
        self.world.mpi()
    }

    /// Monitor of the ranks, which names lost ones.
    pub(crate) fn monitor(&self) -> Option<&RankMonitor> {
        self.world.monitor()
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.world.rank()
    }

    /// Ranks in all.
    pub fn size(&self) -> u32 {
        self.world.size()
    }

    /// Sends data.
    ///
    /// # Errors
    /// The receiver is gone.
    pub fn send(&self, to: u32, bytes: &[u8], watchdog: &Watchdog) -> Result<(), CommError> {
        if to == self.rank() {
            self.own.borrow_mut().push_back(bytes.to_vec());
            return Ok(());
        }
        self.send_marked(DATA, to, bytes, watchdog.limit())
    }

    fn send_marked(
        &self,
        mark: u8,
        to: u32,
        bytes: &[u8],
        limit: Duration,
    ) -> Result<(), CommError> {
        let marked = [&[mark], bytes].concat();
        Ok(self.world.send(to, &marked, Instant::now() + limit)?)
    }

    /// The next data of a rank.
    ///
    /// # Errors
    /// The sender is gone, or has reported its end; or the watchdog ended the wait.
    pub fn receive(&self, from: u32, watchdog: &Watchdog) -> Result<Vec<u8>, CommError> {
        self.receive_meanwhile(from, watchdog, || {})
    }

    /// The same where it is other ranks' turn, which watch themselves: it may take any time.
    ///
    /// # Errors
    /// As [`RankComm::receive`].
    pub fn wait_for(&self, from: u32, watchdog: &Watchdog) -> Result<Vec<u8>, CommError> {
        self.receive_meanwhile(from, watchdog, || watchdog.progress())
    }

    /// Receives, and does this now and then meanwhile.
    fn receive_meanwhile(
        &self,
        from: u32,
        watchdog: &Watchdog,
        meanwhile: impl Fn(),
    ) -> Result<Vec<u8>, CommError> {
        if from == self.rank() {
            let own = self.own.borrow_mut().pop_front();
            return own.ok_or_else(|| garbled(from, "nothing was sent to itself"));
        }
        if self.reports.borrow()[from as usize].is_some() {
            return Err(CommError::Left { peer: from });
        }
        loop {
            watchdog.check()?;
            match self.world.receive(from, Instant::now() + SLICE) {
                Ok(bytes) if bytes.first() == Some(&DATA) => return Ok(bytes[1..].to_vec()),
                Ok(bytes) => {
                    let report = bytes.get(1..).unwrap_or_default().to_vec();
                    self.reports.borrow_mut()[from as usize] = Some(report);
                    return Err(CommError::Left { peer: from });
                }
                Err(WorldError::Late { .. }) => meanwhile(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The greatest of all ranks' values, on every rank; nobody gets it before all have given
    /// theirs. In round k every rank sends the one 2^k further the greatest it knows.
    ///
    /// # Errors
    /// A rank is gone, or the watchdog ended the wait.
    pub fn agree(&self, mine: u64, watchdog: &Watchdog) -> Result<u64, CommError> {
        self.greatest(mine, watchdog, |from| self.receive(from, watchdog))
    }

    /// The same where some ranks come much later than others, which watch themselves.
    ///
    /// # Errors
    /// As [`RankComm::receive`].
    pub fn agree_unhurried(&self, mine: u64, watchdog: &Watchdog) -> Result<u64, CommError> {
        self.greatest(mine, watchdog, |from| self.wait_for(from, watchdog))
    }

    fn greatest(
        &self,
        mine: u64,
        watchdog: &Watchdog,
        receive: impl Fn(u32) -> Result<Vec<u8>, CommError>,
    ) -> Result<u64, CommError> {
        let (rank, size) = (self.rank(), self.size());
        let mut greatest = mine;
        let mut step = 1;
        while step < size {
            self.send((rank + step) % size, &greatest.to_le_bytes(), watchdog)?;
            let from = (rank + size - step) % size;
            let theirs = <[u8; 8]>::try_from(receive(from)?.as_slice())
                .map_err(|_| garbled(from, "a value of another length"))?;
            greatest = greatest.max(u64::from_le_bytes(theirs));
            step *= 2;
        }
        watchdog.progress();
        Ok(greatest)
    }

    /// Result of a step that all ranks take together. Where it failed at one it fails at all, and
    /// nobody lets go of anything before all know.
    ///
    /// # Errors
    /// The rank's own failure; that of another; as [`RankComm::agree`].
    pub fn together<T, E: From<CommError>>(
        &self,
        own: Result<T, E>,
        watchdog: &Watchdog,
    ) -> Result<T, E> {
        if own.is_err() && watchdog.stopped() {
            return own;
        }
        let failed = if own.is_ok() { 0 } else { self.rank() + 1 };
        let agreed = self.agree(failed.into(), watchdog);
        let own = own?;
        match agreed? {
            0 => Ok(own),
            highest => Err(E::from(CommError::Left {
                peer: u32::try_from(highest - 1).unwrap_or(u32::MAX),
            })),
        }
    }

    /// Returns on no rank before all have called it.
    ///
    /// # Errors
    /// As [`RankComm::agree`].
    pub fn barrier(&self, watchdog: &Watchdog) -> Result<(), CommError> {
        self.agree(0, watchdog).map(|_| ())
    }

    /// The final report to rank 0 and, without its bytes, to everybody who would wait in vain.
    /// Whoever is gone does not get it.
    pub(crate) fn leave(&self, report: &[u8], limit: Duration) {
        let others = (1..self.size()).filter(|r| *r != self.rank());
        for to in others {
            let _ = self.send_marked(REPORT, to, &[], limit.min(FAREWELL));
        }
        self.report(report, limit);
    }

    /// The final report to rank 0.
    pub(crate) fn report(&self, report: &[u8], limit: Duration) {
        if self.rank() != 0 {
            let _ = self.send_marked(REPORT, 0, report, limit);
        }
    }

    /// The final report of a rank, for rank 0, which waits no longer than `until`, and not for a
    /// rank that hangs. After the loss of any rank it waits no longer than `after_loss`.
    pub(crate) fn final_report(
        &self,
        of: u32,
        until: Instant,
        after_loss: &mut AfterLoss,
    ) -> Result<Vec<u8>, WorldError> {
        if let Some(report) = self.reports.borrow_mut()[of as usize].take() {
            return Ok(report);
        }
        let mut wait = Deadline::new(of, until, self.monitor());
        loop {
            match self.world.receive(of, Instant::now() + SLICE) {
                Ok(bytes) if bytes.first() == Some(&REPORT) => return Ok(bytes[1..].to_vec()),
                Ok(_) => {}
                Err(WorldError::Late { .. }) => {
                    wait.left()?;
                    if let Some(monitor) = self.monitor() {
                        if monitor.state_of(of) == Some(RankState::Hangs) {
                            return Err(WorldError::Hangs { peer: of });
                        }
                        after_loss.check(monitor)?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Time that rank 0 waits for reports once a rank is lost.
#[derive(Debug)]
pub(crate) struct AfterLoss {
    limit: Duration,
    since: Option<Instant>,
}

impl AfterLoss {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, since: None }
    }

    fn check(&mut self, monitor: &RankMonitor) -> Result<(), WorldError> {
        let Some(loss) = monitor.lost() else {
            return Ok(());
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() > self.limit {
            return Err(loss);
        }
        Ok(())
    }
}

fn garbled(peer: u32, detail: &str) -> CommError {
    let detail = detail.to_owned();
    CommError::World(WorldError::Garbled { peer, detail })
}
