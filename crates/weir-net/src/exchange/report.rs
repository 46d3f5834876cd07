//! What each rank has to say in the end, and what rank 0 makes of it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_schema::{ExchangeResult, Method, MpiFacts, Pairing, RankFacts, RankTimes, SizeResult};
use weir_units::Nanos;

use super::Course;
use crate::error::{Halt, LEFT, NetError};

/// Beyond the time-out, which other ranks reach a little later.
const GRACE: Duration = Duration::from_secs(2);

/// Farther from the cause than anything that a rank says.
const SILENCE: u8 = u8::MAX;

/// One rank's part of the result.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(super) facts: RankFacts,
    pub(super) mpi: Option<MpiFacts>,
    pub(super) pairing: Pairing,
    pub(super) sizes: Vec<SizeOfRank>,
    pub(super) barrier_ns: Option<Nanos>,
    pub(super) generation_ns: Nanos,
    pub(super) execution_ns: Nanos,
    pub(super) validation_ns: Nanos,
}

/// One rank's runs of one size.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SizeOfRank {
    pub(super) exponent: u8,
    pub(super) loop_length: u64,
    pub(super) method: Method,
    pub(super) times_ns: Vec<Nanos>,
    pub(super) wrong_bytes: u64,
    pub(super) lost: Option<u64>,
}

/// A rank's last word.
#[derive(Serialize, Deserialize)]
struct Word {
    outcome: Outcome,
    /// What went wrong, and how far from the cause that is.
    error: Option<(u8, String)>,
    /// A signal ended it.
    interrupted: bool,
}

/// How a rank ended, as it counts here.
struct End {
    error: Option<NetError>,
    interrupted: bool,
}

/// The result at rank 0; the end of the others.
pub(super) fn bring_together(
    course: &Course<'_>,
    outcome: Outcome,
    ending: Result<(), NetError>,
) -> Result<Option<ExchangeResult>, NetError> {
    if let Err(NetError::At { cause, .. }) = &ending
        && matches!(cause, Halt::Fault { what: "died", .. })
    {
        // As if it had been killed: not a word.
        return ending.map(|()| None);
    }
    let early = ending.is_err();
    let interrupted = matches!(&ending, Err(error) if error.is_interruption());
    let error = ending.err().filter(|_| !interrupted);
    let end = End { error, interrupted };
    if course.circle.rank() != 0 {
        return tell(course, outcome, end, early);
    }
    if early {
        course.circle.leave(&[], course.watch.limit());
    }
    collect(course, outcome, end)
}

/// Another rank than 0 ends, in the middle of things or in order.
fn tell(
    course: &Course<'_>,
    outcome: Outcome,
    end: End,
    early: bool,
) -> Result<Option<ExchangeResult>, NetError> {
    let said = end.error.as_ref().map(|e| (e.distance(), e.to_string()));
    let word = Word {
        outcome,
        error: said,
        interrupted: end.interrupted,
    };
    // Plain data has a form in JSON; were it not so, rank 0 would say that the word is garbled.
    let bytes = serde_json::to_vec(&word).unwrap_or_default();
    if early {
        course.circle.leave(&bytes, course.watch.limit());
    } else {
        course.circle.report(&bytes, course.watch.limit());
    }
    end.error.map_or(Ok(None), Err)
}

fn collect(
    course: &Course<'_>,
    own: Outcome,
    end: End,
) -> Result<Option<ExchangeResult>, NetError> {
    let until = Instant::now() + course.watch.limit() + GRACE;
    let mut outcomes = vec![own];
    let mut interrupted = end.interrupted;
    let mut worst = end.error.map(|e| (e.distance(), e));
    for rank in 1..course.circle.size() {
        let (distance, message) = match course.circle.last_word(rank, until) {
            Err(error) => (SILENCE, error.to_string()),
            Ok(bytes) => match serde_json::from_slice::<Word>(&bytes) {
                Err(error) => (SILENCE, format!("rank {rank}: last word garbled: {error}")),
                Ok(word) => {
                    outcomes.push(word.outcome);
                    interrupted |= word.interrupted;
                    let Some(said) = word.error else { continue };
                    said
                }
            },
        };
        if worst.as_ref().is_none_or(|(before, _)| distance < *before) {
            worst = Some((distance, NetError::Other { rank, message }));
        }
    }
    let all_spoke = outcomes.len() == course.circle.size() as usize;
    match worst {
        // Signals reach the ranks one after the other: the later ones see the earlier ones leave.
        Some((distance, _)) if interrupted && all_spoke && distance >= LEFT => {
            Ok(Some(merge(course, outcomes)))
        }
        Some((_, error)) => Err(error),
        None => Ok(Some(merge(course, outcomes))),
    }
}

/// In rank order; of the sizes, those that every rank has done.
fn merge(course: &Course<'_>, mut outcomes: Vec<Outcome>) -> ExchangeResult {
    let common = outcomes.iter().map(|o| o.sizes.len()).min().unwrap_or(0);
    let mut sizes: Vec<SizeResult> = Vec::with_capacity(common);
    for (rank, outcome) in (0..).zip(&mut outcomes) {
        for (index, size) in outcome.sizes.drain(..).take(common).enumerate() {
            if sizes.len() == index {
                sizes.push(SizeResult {
                    exponent: size.exponent,
                    loop_length: size.loop_length,
                    method: size.method,
                    ranks: Vec::new(),
                });
            }
            sizes[index].ranks.push(RankTimes {
                rank,
                times_ns: size.times_ns,
                wrong_bytes: size.wrong_bytes,
                lost: size.lost,
            });
        }
    }
    let first = &outcomes[0];
    let longest = |of: fn(&Outcome) -> Nanos| outcomes.iter().map(of).max().unwrap_or_default();
    ExchangeResult {
        transport: course.job.engine.name.clone(),
        pairing: first.pairing,
        mpi: first.mpi.clone(),
        loopback: course.circle.size() == 1,
        sizes,
        barrier_ns: first.barrier_ns,
        generation_ns: longest(|o| o.generation_ns),
        execution_ns: longest(|o| o.execution_ns),
        validation_ns: longest(|o| o.validation_ns),
        ranks: outcomes.into_iter().map(|o| o.facts).collect(),
    }
}
