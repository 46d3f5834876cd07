//! End of the ranks: each reports the outcome of its work, and rank 0 collects the reports.
//!
//! In: a rank's outcome and how it ended. Out: at rank 0 the outcomes that were reported, in rank
//! order, and of all failures the one nearest to the cause. Not here: what is made of the outcomes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_sys::Signals;

use crate::rank_comm::AfterLoss;
use crate::rank_monitor::RankState;
use crate::watchdog::{EndProcess, print, print_interrupted};
use crate::{RankComm, RankMonitor, Watchdog, WorldError};

/// Beyond the time-out, which other ranks reach a little later.
const GRACE: Duration = Duration::from_secs(2);

/// After the loss of a rank the others have stopped within this time, unless they hang.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// After a signal: a launcher that sent it to all kills soon.
const HURRY: Duration = Duration::from_millis(500);

/// Time that the others have to end after a signal has ended a rank; then they are ended, since they may be in
/// calls of MPI that wait for it.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Distance of a rank from the cause of a failure; of several the least counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CauseDistance {
    /// It failed by itself.
    Cause,
    /// It ended without a report.
    NoReport,
    /// It could not reach another rank.
    World,
    /// It made no progress.
    NoProgress,
    /// It saw another rank leave.
    Left,
    /// It was stopped.
    Stopped,
}

/// Failure of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankFailure {
    /// Distance from the cause.
    pub distance: CauseDistance,
    /// For people.
    pub message: String,
}

/// End of a rank's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RankEnd {
    /// All is done.
    Done,
    /// Something went wrong.
    Failed(RankFailure),
    /// A signal ended it.
    Interrupted,
    /// As if the process had been killed: it reports nothing.
    Vanished,
}

/// Source of the failure of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureSource {
    /// This rank's own failure.
    Own,
    /// Failure that another rank reported.
    Other {
        /// The failed rank.
        rank: u32,
        /// Its message.
        message: String,
    },
    /// A rank was lost.
    Lost(WorldError),
}

/// The reports at rank 0.
#[derive(Debug)]
pub struct Reports<O> {
    /// The outcomes of the ranks that reported, by rank, at rank 0; nothing elsewhere.
    pub outcomes: Option<Vec<(u32, O)>>,
    /// Source of the failure, where the reports are not whole. A signal is no failure.
    pub source: Option<FailureSource>,
}

/// A rank's final report.
#[derive(Serialize, Deserialize)]
struct Report<O> {
    outcome: O,
    failure: Option<(CauseDistance, String)>,
    /// The number of the signal that ended it; 0 where another rank got it.
    signal: Option<i32>,
}

/// All outcomes at rank 0; the end of the others.
pub(crate) fn exchange<O: Serialize + DeserializeOwned>(
    comm: &RankComm<'_>,
    (watchdog, signals): (&Watchdog, &Signals),
    outcome: O,
    end: RankEnd,
) -> Reports<O> {
    let on_hang = watchdog.disarm();
    let is_failed = matches!(end, RankEnd::Failed(_) | RankEnd::Vanished);
    let source = is_failed.then_some(FailureSource::Own);
    if end == RankEnd::Vanished {
        if let Some(monitor) = comm.monitor() {
            monitor.set_own_state(RankState::Vanished);
        }
        return Reports {
            outcomes: None,
            source,
        };
    }
    if comm.rank() != 0 {
        let is_interrupted = end == RankEnd::Interrupted;
        report_for_rank_0(comm, &end);
        send(comm, (watchdog, signals), outcome, end);
        if let Some(end) = on_hang.filter(|_| is_interrupted && comm.mpi().is_some()) {
            end_others(comm.rank(), signals, end);
        }
        return Reports {
            outcomes: None,
            source,
        };
    }
    if end != RankEnd::Done {
        comm.leave(&[], watchdog.limit());
    }
    collect(comm, (watchdog, signals), outcome, end)
}

/// Reports the loss of rank 0 from the lowest of the other ranks, as nobody hears the reports then.
fn report_for_rank_0(comm: &RankComm<'_>, end: &RankEnd) {
    let Some(monitor) = comm.monitor().filter(|_| comm.rank() == 1) else {
        return;
    };
    if let RankEnd::Failed(_) = end {
        monitor.settle(0);
    }
    let Some(loss) = monitor.loss_of(0) else {
        return;
    };
    let loss = loss.to_string();
    let message = match end {
        RankEnd::Failed(failure) if failure.message.contains(&loss) => &failure.message,
        _ => &loss,
    };
    print(&format!("error: {message}\n"));
}

/// Another rank than 0 ends, early or in order.
fn send<O: Serialize>(
    comm: &RankComm<'_>,
    (watchdog, signals): (&Watchdog, &Signals),
    outcome: O,
    end: RankEnd,
) {
    let is_early = end != RankEnd::Done;
    let is_interrupted = end == RankEnd::Interrupted;
    let report = Report {
        outcome,
        failure: match end {
            RankEnd::Failed(failure) => Some((failure.distance, failure.message)),
            _ => None,
        },
        signal: is_interrupted.then(|| signals.number.load(Ordering::Relaxed)),
    };
    // Plain data has a form in JSON; were it not so, rank 0 would say that the report is garbled.
    let bytes = serde_json::to_vec(&report).unwrap_or_default();
    if is_early {
        comm.leave(&bytes, watchdog.limit());
    } else {
        comm.report(&bytes, watchdog.limit());
    }
}

/// Ends all ranks in a while, unless this process has ended by then. It waits for them meanwhile:
/// MPI ends for all together.
fn end_others(rank: u32, signals: &Signals, end: EndProcess) {
    let number = signals.number.load(Ordering::Relaxed);
    // Without a thread the others' time-out ends them.
    let _ = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(FAREWELL);
        end(print_interrupted(rank, number));
    });
}

/// Reports that rank 0 has received so far.
struct ReceivedReports<O> {
    outcomes: Vec<(u32, O)>,
    is_interrupted: bool,
    /// The failure that is nearest to the cause; of equals the first.
    nearest: Option<(CauseDistance, FailureSource)>,
}

impl<O: DeserializeOwned> ReceivedReports<O> {
    fn add(&mut self, rank: u32, report: Result<Vec<u8>, WorldError>, signals: &Signals) {
        let read = |bytes: Vec<u8>| {
            serde_json::from_slice::<Report<O>>(&bytes).map_err(|error| WorldError::Garbled {
                peer: rank,
                detail: format!("its final report: {error}"),
            })
        };
        match report.and_then(read) {
            Err(error @ WorldError::Hangs { .. }) => {
                self.record(CauseDistance::NoProgress, FailureSource::Lost(error));
            }
            Err(error) => self.record(CauseDistance::NoReport, FailureSource::Lost(error)),
            Ok(report) => {
                self.outcomes.push((rank, report.outcome));
                if let Some(number) = report.signal {
                    signals.hear(number);
                    self.is_interrupted = true;
                }
                if let Some((distance, message)) = report.failure {
                    self.record(distance, FailureSource::Other { rank, message });
                }
            }
        }
    }

    fn record(&mut self, distance: CauseDistance, source: FailureSource) {
        let nearest = self.nearest.as_ref();
        if nearest.is_none_or(|(before, _)| distance < *before) {
            self.nearest = Some((distance, source));
        }
    }
}

fn collect<O: DeserializeOwned>(
    comm: &RankComm<'_>,
    (watchdog, signals): (&Watchdog, &Signals),
    own: O,
    end: RankEnd,
) -> Reports<O> {
    let is_interrupted = end == RankEnd::Interrupted;
    let patience = if is_interrupted {
        HURRY
    } else {
        watchdog.limit() + GRACE
    };
    let until = Instant::now() + patience;
    let mut after_loss = AfterLoss::new(AFTER_LOSS);
    let mut received = ReceivedReports {
        outcomes: vec![(0, own)],
        is_interrupted,
        nearest: None,
    };
    if let RankEnd::Failed(failure) = end {
        received.record(failure.distance, FailureSource::Own);
    }
    for rank in 1..comm.size() {
        let report = comm.final_report(rank, until, &mut after_loss);
        received.add(rank, report, signals);
    }
    let lost = comm.monitor().and_then(RankMonitor::lost);
    let source = match lost.filter(|_| !is_interrupted) {
        // Whatever ranks report, it comes of that: the others were told to end.
        Some(lost) => Some(FailureSource::Lost(lost)),
        // Signals reach the ranks one after the other: the later ones see the earlier ones leave, or
        // hear nothing of those that a launcher ends.
        None => received
            .nearest
            .filter(|(distance, _)| {
                let is_after_signal =
                    matches!(distance, CauseDistance::NoReport | CauseDistance::Left);
                !received.is_interrupted
                    || !(is_after_signal || *distance == CauseDistance::Stopped)
            })
            .map(|(_, source)| source),
    };
    Reports {
        outcomes: Some(received.outcomes),
        source,
    }
}
