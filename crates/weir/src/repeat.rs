//! `weir run --repeat`: several runs of each plan, every one in a process of its own.
//!
//! In: the arguments. Out: the report over all runs, the exit code. Not here: one run
//! (`turns`), the figures (`weir-schema`), the report (`weir-report`).

use weir_doors::Refusal;
use weir_doors::house::{Repeat, Run, exit_code};
use weir_schema::{Plan, RUNS_SCHEMA, RunResult, RunSeries, Runs};

use crate::history::{self, Keep};
use crate::progress::{ProgressMode, TurnProgress};
use crate::turns::{PlanTurn, Turns, code_of_signal, order, refuse_launcher};
use crate::{Outcome, house_report, output, signals};

const FLAG: &str = "--repeat";

/// A plan with the results of its runs.
struct Series {
    turn: PlanTurn,
    results: Vec<RunResult>,
}

/// Carries all runs out and reports them; `check` refuses files of the command beside the plans, `each`
/// hears the result of every run.
pub(crate) fn run(
    run: &Run,
    repeat: Repeat,
    check: &dyn Fn(&[&Plan]) -> Result<(), Refusal>,
    each: &dyn Fn(&RunResult),
) -> Outcome {
    refuse_launcher(FLAG)?;
    let mut all = Vec::new();
    for input in run.input.each_file() {
        all.push(Series {
            turn: PlanTurn::of(FLAG, run, &input)?,
            results: Vec::new(),
        });
    }
    let plans: Vec<&Plan> = all.iter().map(|series| &series.turn.plan).collect();
    check(&plans)?;
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let turns = Turns::new(FLAG, run.command(), &caught)?;
    let mut worst = carry_out(run, repeat, &mut all, &turns, each)?;
    let mut runs = collect(run, repeat, all);
    let kept = history::keep_runs(&mut runs, Keep::Always(run.history.as_deref()));
    let strict = |series: &RunSeries| {
        let mut raised = series.warnings.iter();
        raised.any(|w| run.options.strict.holds(&w.id))
    };
    if runs.series.iter().any(strict) {
        worst = worst.max(1);
    }
    let worst = code_of_signal(&caught).unwrap_or(worst);
    let code = house_report::print_runs(run, &runs).max(worst);
    if let Some(kept) = kept {
        kept.print_changes();
    }
    Ok(code)
}

/// Makes one run after the other, until all are done or a signal arrives, and returns the gravest exit code.
fn carry_out(
    run: &Run,
    repeat: Repeat,
    all: &mut [Series],
    turns: &Turns<'_>,
    each: &dyn Fn(&RunResult),
) -> Outcome {
    let mut worst = 0;
    // Each run shows its own.
    let mut progress = TurnProgress::new(ProgressMode::None, 0);
    let plans = all.len();
    let whose = (0..repeat.runs as usize).flat_map(|round| order(plans, round));
    for (number, which) in whose.enumerate() {
        if number > 0 {
            turns.pause(repeat.pause);
        }
        if turns.caught.interrupted() {
            break;
        }
        let Series { turn, results } = &mut all[which];
        let named = (plans > 1).then(|| format!("{}, ", turn.plan.name));
        let named = named.unwrap_or_default();
        let label = format!("{named}run {} of {}", number / plans + 1, repeat.runs);
        match turn.run(&label, turns, &mut progress) {
            Ok(result) => {
                worst = worst.max(exit_code(&result, &run.options.strict));
                each(&result);
                results.push(result);
            }
            Err(refusal) if number == 0 && !turns.caught.interrupted() => return Err(refusal),
            Err(refusal) => {
                output::error(&refusal.message);
                worst = worst.max(refusal.code);
                break;
            }
        }
    }
    Ok(worst)
}

fn collect(run: &Run, repeat: Repeat, all: Vec<Series>) -> Runs {
    let is_whole = |series: &Series| {
        let whole = series.results.iter().filter(|r| r.complete);
        whole.count() == repeat.runs as usize
    };
    Runs {
        schema: RUNS_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: run.command().to_vec(),
        asked: repeat.runs,
        pause_ns: repeat.pause,
        complete: all.iter().all(is_whole),
        comparison: None,
        series: all
            .into_iter()
            .map(|series| RunSeries::new(&series.turn.plan.name, series.results))
            .collect(),
    }
}
