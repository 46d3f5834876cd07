//! How ranks part: each says what came of its part, and rank 0 hears all of them.
//!
//! In: a rank's outcome and how it ended. Out: at rank 0 the outcomes that were told, in rank
//! order, and of all errors the one nearest to the cause. Not here: what is made of the outcomes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_run::execute::Signals;

use crate::circle::Circle;
use crate::error::{Ended, Halt, LEFT, NetError};
use crate::watch::{LastResort, Watch, say_interrupted};

/// Beyond the time-out, which other ranks reach a little later.
const GRACE: Duration = Duration::from_secs(2);

/// After a signal: a launcher that sent it to all kills soon.
const HURRY: Duration = Duration::from_millis(500);

/// A rank that a signal ended gives the others so long to end, then ends them: they may be in calls
/// of MPI that wait for it.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Farther from the cause than anything that a rank says.
const SILENCE: u8 = u8::MAX;

/// A rank's last word.
#[derive(Serialize, Deserialize)]
struct Word<O> {
    outcome: O,
    /// What went wrong, and how far from the cause that is.
    error: Option<(u8, String)>,
    /// The number of the signal that ended it; 0 where it was told of one.
    signal: Option<i32>,
}

/// How a rank ended, as it counts here.
struct End {
    error: Option<NetError>,
    interrupted: bool,
}

/// The words of all ranks that spoke, by rank, at rank 0; none elsewhere.
pub(crate) type Words<O> = Ended<Vec<(u32, O)>>;

/// All outcomes at rank 0; the end of the others.
pub(crate) fn exchange<O: Serialize + DeserializeOwned>(
    circle: &Circle<'_>,
    (watch, signals): (&Watch, &Signals),
    outcome: O,
    ending: Result<(), NetError>,
) -> Words<O> {
    let at_last = watch.settle();
    if let Err(NetError::At { cause, .. }) = &ending
        && matches!(cause, Halt::Fault { what: "died", .. })
    {
        // As if it had been killed: not a word.
        return Ended {
            done: None,
            error: ending.err(),
        };
    }
    let early = ending.is_err();
    let interrupted = matches!(&ending, Err(error) if error.is_interruption());
    let error = ending.err().filter(|_| !interrupted);
    let end = End { error, interrupted };
    if circle.rank() != 0 {
        let error = tell(circle, (watch, signals), outcome, end, early);
        if let Some(end) = at_last.filter(|_| interrupted && circle.mpi().is_some()) {
            end_others(circle.rank(), signals, end);
        }
        return Ended { done: None, error };
    }
    if early {
        circle.leave(&[], watch.limit());
    }
    collect(circle, (watch, signals), outcome, end)
}

/// Another rank than 0 ends, in the middle of things or in order.
fn tell<O: Serialize>(
    circle: &Circle<'_>,
    (watch, signals): (&Watch, &Signals),
    outcome: O,
    end: End,
    early: bool,
) -> Option<NetError> {
    let said = end.error.as_ref().map(|e| (e.distance(), e.to_string()));
    let word = Word {
        outcome,
        error: said,
        signal: end
            .interrupted
            .then(|| signals.number.load(Ordering::Relaxed)),
    };
    // Plain data has a form in JSON; were it not so, rank 0 would say that the word is garbled.
    let bytes = serde_json::to_vec(&word).unwrap_or_default();
    if early {
        circle.leave(&bytes, watch.limit());
    } else {
        circle.report(&bytes, watch.limit());
    }
    end.error
}

/// Ends all ranks in a while, unless this process has ended by then. It waits for them meanwhile:
/// MPI ends for all together.
fn end_others(rank: u32, signals: &Signals, end: LastResort) {
    let number = signals.number.load(Ordering::Relaxed);
    // Without a thread the others' time-out ends them.
    let _ = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(FAREWELL);
        end(say_interrupted(rank, number));
    });
}

fn collect<O: DeserializeOwned>(
    circle: &Circle<'_>,
    (watch, signals): (&Watch, &Signals),
    own: O,
    end: End,
) -> Words<O> {
    let patience = if end.interrupted {
        HURRY
    } else {
        watch.limit() + GRACE
    };
    let until = Instant::now() + patience;
    let mut outcomes = vec![(0, own)];
    let mut interrupted = end.interrupted;
    let mut worst = None;
    for rank in 1..circle.size() {
        let (distance, message) = match circle.last_word(rank, until) {
            Err(error) => (SILENCE, error.to_string()),
            Ok(bytes) => match serde_json::from_slice::<Word<O>>(&bytes) {
                Err(error) => (SILENCE, format!("rank {rank}: last word garbled: {error}")),
                Ok(word) => {
                    outcomes.push((rank, word.outcome));
                    if let Some(number) = word.signal {
                        signals.hear(number);
                        interrupted = true;
                    }
                    let Some(said) = word.error else { continue };
                    said
                }
            },
        };
        let is_nearer = |(before, _): &(u8, NetError)| distance < *before;
        if worst.as_ref().is_none_or(is_nearer) {
            worst = Some((distance, NetError::Other { rank, message }));
        }
    }
    let done = Some(outcomes);
    if let Some(lost) = circle.lost().filter(|_| !end.interrupted) {
        // Whatever ranks say, it comes of that: the others were told to end.
        let error = Some(NetError::lost(lost, end.error.as_ref()));
        return Ended { done, error };
    }
    let own = end.error.map(|e| (e.distance(), e));
    let nearest = own
        .into_iter()
        .chain(worst)
        .min_by_key(|(distance, _)| *distance);
    // Signals reach the ranks one after the other: the later ones see the earlier ones leave, or
    // hear nothing of those that a launcher ends.
    let error = nearest.filter(|(distance, _)| !interrupted || *distance < LEFT);
    Ended {
        done,
        error: error.map(|(_, error)| error),
    }
}
