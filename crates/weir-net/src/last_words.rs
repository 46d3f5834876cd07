//! How ranks part: each says what came of its part, and rank 0 hears all of them.
//!
//! In: a rank's outcome and how it ended. Out: at rank 0 all outcomes in rank order, or of all
//! errors the one nearest to the cause. Not here: what is made of the outcomes.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::circle::Circle;
use crate::error::{Halt, LEFT, NetError};
use crate::watch::Watch;

/// Beyond the time-out, which other ranks reach a little later.
const GRACE: Duration = Duration::from_secs(2);

/// Farther from the cause than anything that a rank says.
const SILENCE: u8 = u8::MAX;

/// A rank's last word.
#[derive(Serialize, Deserialize)]
struct Word<O> {
    outcome: O,
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

/// All outcomes at rank 0; the end of the others.
pub(crate) fn exchange<O: Serialize + DeserializeOwned>(
    circle: &Circle<'_>,
    watch: &Watch,
    outcome: O,
    ending: Result<(), NetError>,
) -> Result<Option<Vec<O>>, NetError> {
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
    if circle.rank() != 0 {
        return tell(circle, watch, outcome, end, early);
    }
    if early {
        circle.leave(&[], watch.limit());
    }
    collect(circle, watch, outcome, end)
}

/// Another rank than 0 ends, in the middle of things or in order.
fn tell<O: Serialize>(
    circle: &Circle<'_>,
    watch: &Watch,
    outcome: O,
    end: End,
    early: bool,
) -> Result<Option<Vec<O>>, NetError> {
    let said = end.error.as_ref().map(|e| (e.distance(), e.to_string()));
    let word = Word {
        outcome,
        error: said,
        interrupted: end.interrupted,
    };
    // Plain data has a form in JSON; were it not so, rank 0 would say that the word is garbled.
    let bytes = serde_json::to_vec(&word).unwrap_or_default();
    if early {
        circle.leave(&bytes, watch.limit());
    } else {
        circle.report(&bytes, watch.limit());
    }
    end.error.map_or(Ok(None), Err)
}

fn collect<O: DeserializeOwned>(
    circle: &Circle<'_>,
    watch: &Watch,
    own: O,
    end: End,
) -> Result<Option<Vec<O>>, NetError> {
    let until = Instant::now() + watch.limit() + GRACE;
    let mut outcomes = vec![own];
    let mut interrupted = end.interrupted;
    let mut worst = end.error.map(|e| (e.distance(), e));
    for rank in 1..circle.size() {
        let (distance, message) = match circle.last_word(rank, until) {
            Err(error) => (SILENCE, error.to_string()),
            Ok(bytes) => match serde_json::from_slice::<Word<O>>(&bytes) {
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
    let all_spoke = outcomes.len() == circle.size() as usize;
    match worst {
        // Signals reach the ranks one after the other: the later ones see the earlier ones leave.
        Some((distance, _)) if interrupted && all_spoke && distance >= LEFT => Ok(Some(outcomes)),
        Some((_, error)) => Err(error),
        None => Ok(Some(outcomes)),
    }
}
