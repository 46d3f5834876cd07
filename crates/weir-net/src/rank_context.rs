//! A rank's part in what all do together, whatever that is.
//!
//! In: a job and its work, what the rank runs with, and how the part is done. Out: what came of all
//! parts, at rank 0. Not here: what is done, what is made of it, and how ranks are guarded
//! (`weir-world`).

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_run::execute::Signals;
use weir_schema::Job;
use weir_sys::clock::Clock;
use weir_units::Nanos;
use weir_world::{
    FailureSource, RankComm, RankEnd, RankTask, Reports, StopCause, Supervisor, Watchdog,
    WorkProgress, World,
};

use crate::error::{Ended, Halt, NetError, Spot};
use crate::observer::{Position, Seen};

/// Context of one rank: its job, its place and its clock.
#[expect(missing_debug_implementations, reason = "holds the world")]
pub struct RankContext<'a, W, L = ()> {
    pub(crate) job: &'a Job,
    pub(crate) workload: &'a W,
    pub(crate) comm: &'a RankComm<'a>,
    pub(crate) watchdog: &'a Watchdog,
    pub(crate) position: &'a Position,
    pub(crate) clock: &'a Clock,
    /// Reports of the ranks on the way.
    pub(crate) reports: &'a L,
}

impl<W, L> RankContext<'_, W, L> {
    /// Error of an early end: at a message, or before the first one.
    pub(crate) fn ended(&self, at: Option<Spot>, halt: Halt) -> NetError {
        let cause = halt.with_stop_cause(self.watchdog.stop_cause());
        placed(self.comm.rank(), at, cause)
    }
}

fn placed(rank: u32, at: Option<Spot>, cause: Halt) -> NetError {
    match at {
        Some(spot) => NetError::At { spot, cause },
        None => NetError::Setup { rank, cause },
    }
}

/// Shown how far rank 0 has come.
type OnProgress<'a> = &'a (dyn Fn(&Seen) + Sync);
/// Rank 0 hangs in a call and the process has to end: why, unless it was a signal. The exit code.
type OnHang<'a> = &'a (dyn Fn(Option<NetError>) -> u8 + Sync);

/// Environment of a rank.
pub(crate) struct RankEnvironment<'a> {
    pub(crate) world: &'a dyn World,
    pub(crate) clock: &'a Clock,
    pub(crate) signals: &'a Signals,
    /// Observer of rank 0.
    pub(crate) observer: Option<(OnProgress<'a>, OnHang<'a>)>,
}

/// The outcomes of all ranks that reported, by rank, at rank 0; none elsewhere.
pub(crate) type Outcomes<O> = Ended<Vec<(u32, O)>>;

impl RankEnvironment<'_> {
    /// Carries one rank's part out, guarded by a watchdog that allows `timeout` without progress.
    /// At rank 0 the outcomes of all that reported, nothing elsewhere; those of an early end hold
    /// what was done.
    pub(crate) fn carry_out<W, L, O: Default + Serialize + DeserializeOwned>(
        &self,
        (job, workload, reports): (&Job, &W, &L),
        timeout: Nanos,
        how: impl FnOnce(&RankContext<'_, W, L>, &mut O) -> Result<(), NetError>,
    ) -> Outcomes<O> {
        let rank = self.world.rank();
        let status = Status {
            rank,
            position: Position::default(),
            observer: self.observer.filter(|_| rank == 0),
        };
        let is_observed = status.observer.is_some();
        let on_progress = |progress: &WorkProgress| status.report_progress(progress);
        let hung = |cause: &StopCause| status.hung(cause);
        let task = RankTask {
            world: self.world,
            signals: self.signals,
            limit: Duration::from(timeout),
            supervisor: Supervisor {
                on_progress: is_observed.then_some(&on_progress),
                hung: is_observed.then_some(&hung),
                describe: &|cause| status.describe(cause),
            },
        };
        let own = RefCell::new(None);
        let end = |error: NetError| {
            let end = error.end();
            *own.borrow_mut() = Some(error);
            end
        };
        let work = |comm: &RankComm<'_>, watchdog: &Watchdog| {
            let context = RankContext {
                job,
                workload,
                comm,
                watchdog,
                position: &status.position,
                clock: self.clock,
                reports,
            };
            let mut outcome = O::default();
            let ended = match how(&context, &mut outcome) {
                Ok(()) => RankEnd::Done,
                Err(error) if self.signals.interrupted() => end(error.after_signal()),
                Err(error) => end(error),
            };
            (outcome, ended)
        };
        let unguarded = |source| (O::default(), end(placed(rank, None, no_thread(source))));
        let reports = task.run(work, unguarded);
        ended(reports, own.into_inner())
    }
}

fn no_thread(source: io::Error) -> Halt {
    Halt::Io {
        what: "start a thread that guards this rank (see ulimit -u)".into(),
        source,
    }
}

fn ended<O>(reports: Reports<O>, own: Option<NetError>) -> Outcomes<O> {
    let error = reports.source.and_then(|source| match source {
        FailureSource::Own => own,
        FailureSource::Other { rank, message } => Some(NetError::Other { rank, message }),
        FailureSource::Lost(lost) => Some(NetError::lost(&lost, own.as_ref())),
    });
    Ended {
        done: reports.outcomes,
        error,
    }
}

/// Place of a rank, for its observer.
struct Status<'a> {
    rank: u32,
    position: Position,
    observer: Option<(OnProgress<'a>, OnHang<'a>)>,
}

impl Status<'_> {
    fn report_progress(&self, progress: &WorkProgress) {
        if let Some((on_progress, _)) = self.observer {
            on_progress(&Seen {
                elapsed: progress.elapsed,
                fraction: progress.fraction,
                place: self.position.get(),
                still: progress.still,
            });
        }
    }

    fn hung(&self, cause: &StopCause) -> u8 {
        self.observer
            .map_or(1, |(_, report)| report(self.error(cause)))
    }

    fn describe(&self, cause: &StopCause) -> String {
        let error = self.error(cause);
        error.map_or_else(|| cause.to_string(), |error| error.to_string())
    }

    /// Error of a rank that hangs in a call; nothing after a signal.
    fn error(&self, cause: &StopCause) -> Option<NetError> {
        let is_signal = *cause == StopCause::Interrupted;
        (!is_signal).then(|| placed(self.rank, self.position.get(), cause.clone().into()))
    }
}
