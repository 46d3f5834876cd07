//! Spread of single runs by the history, for comparisons of them.
//!
//! In: the sides of a comparison. Out: those with one run with how far other runs of the same plan on
//! the same machine lie apart. Without history there is nothing to add. Not here: the spread itself
//! (`weir-history`), what is made of it (`weir-compare`).

use weir_compare::{FigureSpread, Side};
use weir_history::MetricSpread;

use super::place::open;
use crate::output;

/// Adds the spread of other runs like it to each side with one run, where all sides have one only.
pub(crate) fn add_spreads(sides: &mut [Side]) {
    if sides.iter().any(|side| side.runs.len() != 1) {
        return;
    }
    let Ok(Some(history)) = open(None) else {
        return;
    };
    let runs = sides.iter().flat_map(|side| &side.runs);
    let ids = runs.filter_map(|run| Some(run.history.as_ref()?.id.clone()));
    let ids: Vec<String> = ids.collect();
    let compared: Vec<&str> = ids.iter().map(String::as_str).collect();
    for side in sides {
        let Some(run) = side.runs.first() else {
            continue;
        };
        match history.spreads(run, &compared) {
            Ok(found) => side.spreads = found.into_iter().map(spread).collect(),
            Err(error) => {
                output::error(&format!("note: how runs differ is not known: {error}\n"));
                return;
            }
        }
    }
}

fn spread(found: MetricSpread) -> FigureSpread {
    FigureSpread {
        job: found.job,
        kind: Some(found.kind).filter(|kind| !kind.is_empty()),
        name: found.name,
        deviation: found.deviation,
        runs: found.runs,
    }
}
