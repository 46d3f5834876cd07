//! Host of the work of all ranks together, and the access of the rest of the process to the world.
//!
//! The thread that entered a world makes every call of it: an MPI library may allow no other. It
//! [serves](serve) while another thread of the process does everything else. In: work for a rank,
//! messages of that other thread. Out: the work done on the thread of each rank that is here; the
//! world as [`RemoteWorld`]. Not here: what the work is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Lane, Lanes, RankMonitor, RankProcesses, World, WorldError, on_threads};

/// The serving thread answers at the latest this long after a call of its own had to end.
const ANSWER: Duration = Duration::from_secs(5);

/// Done by the thread that entered the world.
type Task = Box<dyn FnOnce(&Lanes<'_>) + Send>;

/// One rank's part in what all ranks do together.
pub type RankWork = dyn Fn(&dyn World) + Send + Sync;

/// Host of the ranks of this process.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "holds a queue of functions")]
pub struct RankHost {
    ranks: HostedRanks,
    exit: Arc<ExitCode>,
    /// The rank that is here hangs in a call, and is left behind in it.
    abandoned: Arc<AtomicBool>,
}

#[derive(Clone)]
enum HostedRanks {
    /// All ranks are threads of this process, started for each piece of work.
    Threads(u32),
    /// One rank is here, on a thread that serves.
    Entered(Entered),
}

#[derive(Clone)]
struct Entered {
    rank: u32,
    size: u32,
    processes: Option<RankProcesses>,
    monitor: Option<RankMonitor>,
    tasks: Sender<Task>,
}

/// The exit code of the process, once it is known.
#[derive(Default)]
struct ExitCode {
    code: Mutex<Option<u8>>,
    known: Condvar,
}

/// Does `work` on a thread of its own, and meanwhile on this one whatever it asks of the world.
///
/// # Errors
/// There is no thread for the work; then nothing is done.
///
/// # Panics
/// Passes on a panic of the work.
pub fn serve<R: Send>(
    world: &dyn World,
    work: impl FnOnce(&RankHost) -> R + Send,
) -> Result<R, WorldError> {
    let (sender, tasks) = mpsc::channel::<Task>();
    let entered = Entered {
        rank: world.rank(),
        size: world.size(),
        processes: world.processes().cloned(),
        monitor: world.monitor().cloned(),
        tasks: sender,
    };
    let host = RankHost {
        ranks: HostedRanks::Entered(entered),
        exit: Arc::default(),
        abandoned: Arc::default(),
    };
    let lanes = Lanes::new(world);
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("weir-run".to_owned());
        // The queue ends with the last host, which the work owns.
        let worker = builder.spawn_scoped(scope, move || work(&host));
        let worker = worker.map_err(|error| WorldError::NotStarted {
            rank: world.rank(),
            detail: error.to_string(),
        })?;
        for task in tasks {
            task(&lanes);
        }
        match worker.join() {
            Ok(answer) => Ok(answer),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl RankHost {
    /// Of ranks that are threads of this process.
    pub fn threads(ranks: u32) -> Self {
        Self {
            ranks: HostedRanks::Threads(ranks),
            exit: Arc::default(),
            abandoned: Arc::default(),
        }
    }

    /// Ranks in all.
    pub fn size(&self) -> u32 {
        match &self.ranks {
            HostedRanks::Threads(ranks) => *ranks,
            HostedRanks::Entered(entered) => entered.size,
        }
    }

    /// True if rank 0 is here.
    pub fn has_first(&self) -> bool {
        match &self.ranks {
            HostedRanks::Threads(_) => true,
            HostedRanks::Entered(entered) => entered.rank == 0,
        }
    }

    /// The world in this conversation, for another thread than the one that serves; nothing where
    /// the ranks are threads, which come together for work alone.
    pub fn world(&self, lane: u8) -> Option<RemoteWorld> {
        match &self.ranks {
            HostedRanks::Threads(_) => None,
            HostedRanks::Entered(entered) => Some(RemoteWorld {
                entered: entered.clone(),
                lane,
                ends_at_loss: false,
            }),
        }
    }

    /// The same, where every wait ends as soon as any rank is lost: for what all ranks do together.
    pub fn world_of_all(&self, lane: u8) -> Option<RemoteWorld> {
        let world = self.world(lane)?;
        Some(RemoteWorld {
            ends_at_loss: true,
            ..world
        })
    }

    /// Has each rank that is here do its part, in a conversation of its own; returns at once.
    /// `failed` gets to know that it cannot be begun.
    pub fn start(
        &self,
        lane: u8,
        work: Arc<RankWork>,
        failed: impl FnOnce(WorldError) + Send + 'static,
    ) {
        match &self.ranks {
            HostedRanks::Threads(ranks) => start_threads(*ranks, work, failed),
            HostedRanks::Entered(entered) => {
                let task: Task = Box::new(move |lanes| work(&lanes.lane(lane)));
                // It serves as long as there is a host.
                if entered.tasks.send(task).is_err() {
                    failed(entered.gone());
                }
            }
        }
    }

    /// True if a rank of another process is lost.
    pub fn has_lost_rank(&self) -> bool {
        let HostedRanks::Entered(entered) = &self.ranks else {
            return false;
        };
        let lost = entered.monitor.as_ref().and_then(RankMonitor::lost);
        lost.is_some()
    }

    /// The rank that is here hangs in a call: nobody waits for it any more.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
    }

    /// True once the world is abandoned; then nothing may be asked of it.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// True if the ranks that are here come back from their work within this time.
    pub fn answers(&self, limit: Duration) -> bool {
        let HostedRanks::Entered(entered) = &self.ranks else {
            return true;
        };
        if self.is_abandoned() {
            return false;
        }
        let (sender, answer) = mpsc::channel();
        let task: Task = Box::new(move |_| {
            // Whoever gave up waiting needs no answer.
            let _ = sender.send(());
        });
        entered.tasks.send(task).is_ok() && answer.recv_timeout(limit).is_ok()
    }

    /// Waits for the exit code of the process: for a thread that ends the process in place of one
    /// that hangs.
    pub fn await_exit_code(&self) -> u8 {
        let mut code = self
            .exit
            .code
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(code) = *code {
                return code;
            }
            code = self
                .exit
                .known
                .wait(code)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Everything is said: the process ends with this code.
    pub fn set_exit_code(&self, code: u8) {
        *self
            .exit
            .code
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(code);
        self.exit.known.notify_all();
    }
}

fn start_threads(
    ranks: u32,
    work: Arc<RankWork>,
    failed: impl FnOnce(WorldError) + Send + 'static,
) {
    let each = move || on_threads(ranks, |world| work(&world)).map(|_| ());
    let builder = thread::Builder::new().name("weir-rank-0".to_owned());
    let failed = Arc::new(Mutex::new(Some(failed)));
    let report = Arc::clone(&failed);
    let note = |failed: &Mutex<Option<_>>, error| {
        let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failed) = failed {
            let failed: Box<dyn FnOnce(WorldError)> = Box::new(failed);
            failed(error);
        }
    };
    let started = builder.spawn(move || {
        if let Err(error) = each() {
            note(&report, error);
        }
    });
    if let Err(error) = started {
        let detail = error.to_string();
        note(&failed, WorldError::NotStarted { rank: 0, detail });
    }
}

impl Entered {
    fn gone(&self) -> WorldError {
        WorldError::Gone {
            peer: self.rank,
            detail: "its thread has ended".to_owned(),
        }
    }

    /// Has the serving thread do this, and waits until it was to end.
    fn ask<T: Send + 'static>(
        &self,
        until: Instant,
        ask: impl FnOnce(&Lanes<'_>) -> Result<T, WorldError> + Send + 'static,
    ) -> Result<T, WorldError> {
        let (sender, answer) = mpsc::channel();
        let task: Task = Box::new(move |lanes| {
            // Whoever gave up waiting needs no answer.
            let _ = sender.send(ask(lanes));
        });
        self.tasks.send(task).map_err(|_| self.gone())?;
        let limit = until.saturating_duration_since(Instant::now()) + ANSWER;
        match answer.recv_timeout(limit) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => Err(self.gone()),
            // It hangs in earlier work.
            Err(RecvTimeoutError::Timeout) => Err(WorldError::Late {
                peer: self.rank,
                seconds: limit.as_secs(),
            }),
        }
    }
}

/// A world as another thread than the one that entered it has it: every call is made there.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "holds a queue of functions")]
pub struct RemoteWorld {
    entered: Entered,
    lane: u8,
    ends_at_loss: bool,
}

/// One conversation, on the thread that serves.
fn lane_of<'a>(lanes: &'a Lanes<'_>, number: u8, ends_at_loss: bool) -> Lane<'a> {
    if ends_at_loss {
        lanes.lane_of_all(number)
    } else {
        lanes.lane(number)
    }
}

impl World for RemoteWorld {
    fn rank(&self) -> u32 {
        self.entered.rank
    }

    fn size(&self) -> u32 {
        self.entered.size
    }

    fn send(&self, to: u32, bytes: &[u8], until: Instant) -> Result<(), WorldError> {
        let (bytes, lane, ends) = (bytes.to_vec(), self.lane, self.ends_at_loss);
        let send = move |lanes: &Lanes<'_>| lane_of(lanes, lane, ends).send(to, &bytes, until);
        self.entered.ask(until, send)
    }

    fn receive(&self, from: u32, until: Instant) -> Result<Vec<u8>, WorldError> {
        let (lane, ends) = (self.lane, self.ends_at_loss);
        let receive = move |lanes: &Lanes<'_>| lane_of(lanes, lane, ends).receive(from, until);
        self.entered.ask(until, receive)
    }

    fn monitor(&self) -> Option<&RankMonitor> {
        self.entered.monitor.as_ref()
    }

    fn processes(&self) -> Option<&RankProcesses> {
        self.entered.processes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;
    use crate::Collectives as _;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn another_thread_speaks_through_the_one_that_entered() {
        let sums = on_threads(3, |world| {
            serve(&world, |host| {
                let remote = host.world(0).unwrap();
                let own = [u8::try_from(remote.rank()).unwrap() + 1];
                remote.barrier(LONG).unwrap();
                let all = remote.gather(&own, LONG).unwrap();
                all.map_or(0, |all| all.concat().iter().sum::<u8>())
            })
            .unwrap()
        })
        .unwrap();
        assert_eq!(sums, [6, 0, 0]);
    }

    #[test]
    fn work_is_done_on_the_thread_of_each_rank() {
        let entered = on_threads(2, |world| {
            let here = thread::current().id();
            serve(&world, |host| {
                let (sender, done) = mpsc::channel();
                let work = move |world: &dyn World| {
                    world.barrier(LONG).unwrap();
                    sender.send((thread::current().id(), world.rank())).unwrap();
                };
                host.start(1, Arc::new(work), |error| panic!("{error}"));
                let remote = host.world(0).unwrap();
                assert_eq!(done.recv().unwrap(), (here, remote.rank()));
            })
            .unwrap();
        });
        assert_eq!(entered.unwrap().len(), 2);
    }

    #[test]
    fn ranks_that_are_threads_come_together_for_the_work() {
        let host = RankHost::threads(3);
        assert!(host.world(0).is_none() && host.has_first());
        let (sender, done) = mpsc::channel();
        let sum = AtomicU32::new(0);
        let work = move |world: &dyn World| {
            sum.fetch_add(world.rank() + 1, Ordering::Relaxed);
            world.barrier(LONG).unwrap();
            if world.rank() == 0 {
                sender.send(sum.load(Ordering::Relaxed)).unwrap();
            }
        };
        host.start(1, Arc::new(work), |error| panic!("{error}"));
        assert_eq!(done.recv().unwrap(), 6);
    }

    #[test]
    fn who_ends_the_process_learns_its_code() {
        let host = RankHost::threads(1);
        let waiting = host.clone();
        let waits = thread::spawn(move || waiting.await_exit_code());
        host.set_exit_code(7);
        assert_eq!(waits.join().unwrap(), 7);
    }
}
