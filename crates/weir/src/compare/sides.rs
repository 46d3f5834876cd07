//! The sides of a comparison of stored results.
//!
//! In: operands, or what they name. Out: one side each, or all that one of them holds; with what the
//! history knows of how single runs differ. Not here: what differs between them.

use weir_compare::{Side, Sides};
use weir_doors::Refusal;
use weir_doors::compare::StoredSide;
use weir_schema::{ComparisonRule, RunResult, RunSeries};

use crate::history;
use crate::stored::Stored;

/// Results of one side.
pub(crate) struct StoredRuns {
    /// Name of the side.
    pub(crate) name: String,
    /// Results that were read, each with the operand that named it.
    pub(crate) read: Vec<(String, Stored)>,
}

/// The sides that the arguments name, and the rule of a stored comparison where one operand holds all of
/// them.
pub(super) fn of_operands(
    sides: &[StoredSide],
) -> Result<(Sides, Option<ComparisonRule>), Refusal> {
    let read = |side: &StoredSide| {
        let operands = side.operands.iter();
        let read = operands.map(|operand| Ok((operand.clone(), Stored::read(operand)?)));
        Ok(StoredRuns {
            name: side.name.clone(),
            read: read.collect::<Result<_, Refusal>>()?,
        })
    };
    let stored: Vec<StoredRuns> = sides.iter().map(read).collect::<Result<_, Refusal>>()?;
    let rule = match stored.as_slice() {
        [StoredRuns { read, .. }] => match read.as_slice() {
            [(_, Stored::Several(runs))] => runs.comparison.clone(),
            _ => None,
        },
        _ => None,
    };
    Ok((of_stored(stored)?, rule))
}

/// The sides of results: one each, or all sides that one of them holds.
pub(crate) fn of_stored(stored: Vec<StoredRuns>) -> Result<Sides, Refusal> {
    let is_alone = stored.len() == 1;
    let alone = stored.first().map(|side| side.name.clone());
    let mut sides = Vec::new();
    for StoredRuns { name, read } in stored {
        let mut runs = Vec::new();
        let mut single: Vec<(String, usize)> = Vec::new();
        for (operand, stored) in read {
            match stored {
                Stored::One(run) => {
                    let known = single.iter().find(|(_, at)| is_same_run(&runs[*at], &run));
                    if let Some((other, _)) = known {
                        return Err(Refusal::usage(format!(
                            "{other} and {operand} are one run, which says nothing more a second \
                             time\n  help: leave one of them out"
                        )));
                    }
                    single.push((operand, runs.len()));
                    runs.push(*run);
                }
                Stored::Several(several) if several.series.len() == 1 => {
                    runs.extend(several.series.into_iter().flat_map(|series| series.runs));
                }
                Stored::Several(several) if is_alone => return Ok(in_turns(several.series)),
                Stored::Several(several) => {
                    return Err(Refusal::usage(format!(
                        "{operand} holds the runs of {} plans, which took turns\n  help: compare it \
                         alone: `weir compare {operand}`",
                        several.series.len()
                    )));
                }
            }
        }
        sides.push(Side {
            name,
            runs,
            spreads: Vec::new(),
        });
    }
    if let Some(name) = alone.filter(|_| is_alone) {
        return Err(Refusal::usage(format!(
            "{name} has nothing beside it: it holds runs of one plan\n  help: name another result"
        )));
    }
    history::add_spreads(&mut sides);
    Ok(Sides {
        sides,
        in_turns: false,
        is_varied: false,
    })
}

/// True if a single run is compared with itself.
pub(super) fn are_one_run(sides: &Sides) -> bool {
    let mut single = sides.sides.iter().map(|side| match side.runs.as_slice() {
        [run] => Some(run),
        _ => None,
    });
    let first = single.next().flatten();
    first.is_some() && single.any(|other| other == first)
}

/// True if two results are copies of one: no two runs of a machine begin in the same nanosecond.
fn is_same_run(one: &RunResult, other: &RunResult) -> bool {
    one.started_unix_ns > 0
        && one.started_unix_ns == other.started_unix_ns
        && one.duration_ns == other.duration_ns
        && one.host.hostname == other.host.hostname
        && one.plan == other.plan
}

/// Plans that were run in turns.
fn in_turns(series: Vec<RunSeries>) -> Sides {
    let side = |series: RunSeries| Side {
        name: series.name,
        runs: series.runs,
        spreads: Vec::new(),
    };
    Sides {
        sides: series.into_iter().map(side).collect(),
        in_turns: true,
        is_varied: true,
    }
}
