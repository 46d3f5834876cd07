//! `weir compare`: differences between results, job files or commands.
//!
//! In: the arguments after `compare`. Out: the comparison on standard output, the exit code. Not here: how
//! rounds go on (`rounds`), which results make a side (`sides`), where it is shown (`show`), the
//! statistics and renderings (`weir-compare`).

mod rounds;
mod show;
mod sides;

use weir_compare::{
    CompareError, Comparison, Condition, ConditionError, HeldCondition, Method, Rule,
    USUAL_METRICS, Verdict, blind, compare, held, is_of_loops,
};
use weir_doors::compare::{Action, Compare, CompareInput, StoredSide, read};
use weir_doors::request::NamedFile;
use weir_doors::{Refusal, USAGE};
use weir_schema::RunResult;

use crate::{Outcome, output, printed, prints_for_all, written_files};

pub(crate) use rounds::{Measured, measured};
pub(crate) use sides::{StoredRuns, of_stored as sides_of};

/// Carries out the arguments after `compare`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words) {
        Err(_) | Ok(Action::Print(_)) if !prints_for_all() => Ok(0),
        Err(refusal) => Err(refusal),
        Ok(Action::Print(text)) => Ok(printed(&text)),
        Ok(Action::Compare(compare)) => match &compare.input {
            CompareInput::Stored(sides) => of_stored(&compare, sides),
            CompareInput::Rounds { .. } => rounds::run(&compare),
        },
    }
}

/// Prints a stored comparison again, in the form that the arguments ask for.
pub(crate) fn shown(file: &str, words: &[String]) -> Outcome {
    let words = [&[file.to_owned()], words].concat();
    match read(&words)? {
        Action::Compare(asked) if asked.show.outputs.is_empty() => match &asked.input {
            CompareInput::Stored(sides) => of_stored(&asked, sides),
            CompareInput::Rounds { .. } => Err(only_printed()),
        },
        _ => Err(only_printed()),
    }
}

fn only_printed() -> Refusal {
    Refusal::usage(
        "a stored comparison is only printed here\n  help: `weir compare` takes all words",
    )
}

/// Carries the rounds of a comparison out that another door has asked for.
pub(crate) fn in_rounds(asked: &Compare) -> Outcome {
    rounds::run(asked)
}

fn of_stored(asked: &Compare, stored: &[StoredSide]) -> Outcome {
    if !prints_for_all() {
        return Ok(0);
    }
    let operands = stored.iter().flat_map(|side| &side.operands);
    let read = operands.map(|operand| NamedFile::read(operand, "a result that is compared"));
    let files: Vec<NamedFile> = read.chain(show::files(&asked.show)).collect();
    written_files::check(&files, [])?;
    let (sides, stored_rule) = sides::of_operands(stored)?;
    if sides::are_one_run(&sides) {
        output::error("note: the sides hold the same run, which does not differ from itself\n");
    }
    let runs = || sides.sides.iter().flat_map(|side| &side.runs);
    let jobs: Vec<String> = runs()
        .flat_map(RunResult::jobs)
        .map(|job| job.name.clone())
        .collect();
    let has = |name: &str| {
        let metrics = runs()
            .flat_map(RunResult::jobs)
            .flat_map(|job| &job.metrics);
        let ends = format!(" {name}");
        is_of_loops(last_word(name))
            || metrics
                .into_iter()
                .any(|m| m.name == name || m.name.ends_with(&ends))
    };
    let mut own = asked.rule.clone();
    if let Some(stored) = &stored_rule {
        own.fill_from(stored, asked.is_alpha_given);
    }
    let rule = rule(asked, own, has, &jobs)?;
    let mut comparison = compare(&sides, &rule).map_err(|error| refuse_metric(&error))?;
    comparison.held = held_of(asked, &comparison)?;
    let code = code_of_conditions(asked, &comparison);
    Ok(show::show(&comparison, &sides.sides, &asked.show).max(code))
}

/// A rule with the figures that conditions are about among those that are compared.
fn rule(
    asked: &Compare,
    mut rule: Rule,
    is_metric: impl Fn(&str) -> bool,
    jobs: &[String],
) -> Result<Rule, Refusal> {
    let names = rule.metrics.iter();
    let mut named = names.chain(rule.thresholds.iter().map(|(name, _)| name));
    if let Some(odd) = named.find(|name| !is_metric(name)) {
        return Err(unknown("--metrics, --threshold", odd));
    }
    for condition in &asked.fail_if {
        let wanted = condition
            .metrics(&is_metric, jobs)
            .map_err(|why| refuse_condition(&why))?;
        for name in wanted {
            let general = last_word(&name).to_owned();
            if rule.metrics.is_empty() {
                if !is_of_loops(&general) || USUAL_METRICS.contains(&general.as_str()) {
                    continue;
                }
                rule.metrics = USUAL_METRICS.map(str::to_owned).to_vec();
            }
            if !rule.metrics.contains(&name) && !rule.metrics.contains(&general) {
                rule.metrics.push(name);
            }
        }
    }
    Ok(rule)
}

/// `p99` of `read p99`.
fn last_word(name: &str) -> &str {
    name.rsplit(' ').next().unwrap_or(name)
}

/// Refusal of a figure that does not exist, with the nearest that does.
fn unknown(flag: &str, name: &str) -> Refusal {
    let loops = weir_compare::names_of_loops().chain(rounds::COMMAND_METRICS);
    let near = weir_jobfile::nearest(name, loops).map(str::to_owned);
    let help = near.or_else(|| nearest_percentile(name)).map_or_else(
        || "`weir compare --help` lists the figures".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Refusal::usage(format!("{flag}: no figure `{name}`\n  help: {help}"))
}

/// `p98` for `p98x`.
fn nearest_percentile(name: &str) -> Option<String> {
    let number = name.strip_prefix('p')?;
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let near = format!("p{}", &number[..end]);
    is_of_loops(&near).then_some(near)
}

fn refuse_condition(why: &ConditionError) -> Refusal {
    match why {
        ConditionError::UnknownMetric(name) => unknown("--fail-if", name),
        other => Refusal::usage(format!("--fail-if: {other}")),
    }
}

fn refuse_metric(error: &CompareError) -> Refusal {
    let CompareError::UnknownMetric { name, known } = error;
    let near = weir_jobfile::nearest(name, known.iter().map(String::as_str));
    let help = near.map_or_else(
        || format!("there are {}", known.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    Refusal::usage(format!("--metrics: {error}\n  help: {help}"))
}

/// The conditions that hold.
fn held_of(asked: &Compare, comparison: &Comparison) -> Result<Vec<HeldCondition>, Refusal> {
    held(&asked.fail_if, comparison, asked.single_run_ok).map_err(|why| refuse_condition(&why))
}

/// Exit code that the conditions ask for; 2 where nothing could meet one of them. Limits of the conditions go
/// to standard error.
fn code_of_conditions(asked: &Compare, comparison: &Comparison) -> u8 {
    let blind = blind(&asked.fail_if, comparison);
    for one in &blind {
        output::error(&format!(
            "error: --fail-if {}: no figure of {} can be compared: {}\n  help: `--fail-if \
             not-comparable` fails for that, --allow-different compares other work\n",
            one.condition, one.side, one.why
        ));
    }
    if blind.is_empty() {
        say_limits(asked, comparison);
    }
    match (comparison.held.is_empty(), blind.is_empty()) {
        (false, _) => 1,
        (true, false) => USAGE,
        (true, true) => 0,
    }
}

/// Prints what conditions cannot judge in a comparison that is shown.
fn say_limits(asked: &Compare, comparison: &Comparison) {
    let jobs = comparison.pairs.iter().flat_map(|pair| &pair.jobs);
    let methods = jobs.flat_map(|job| &job.metrics).filter_map(|m| m.method);
    let methods: Vec<Method> = methods.collect();
    let is_known =
        methods.contains(&Method::SpreadOfRuns) && !methods.contains(&Method::WithinRuns);
    let is_single = comparison.sides.iter().all(|side| side.runs == 1);
    if is_single && !is_known && !asked.fail_if.is_empty() && !asked.single_run_ok {
        output::error(
            "note: --fail-if: one run a side says nothing of how runs differ, so that no change is \
             sure (--single-run-ok takes it; so do five other runs in the history)\n",
        );
    }
    say_incomparable(asked, comparison);
}

/// A condition that nothing can meet would look like one that nothing has met.
fn say_incomparable(asked: &Compare, comparison: &Comparison) {
    let jobs = comparison.pairs.iter().flat_map(|pair| &pair.jobs);
    let verdicts = jobs
        .flat_map(|job| &job.metrics)
        .map(|metric| &metric.verdict);
    let (mut all, mut without) = (0, 0);
    for verdict in verdicts {
        all += 1;
        without += usize::from(matches!(verdict, Verdict::NotComparable { .. }));
    }
    let heeds = asked.fail_if.iter().any(Condition::heeds_the_incomparable);
    if without > 0 && !heeds && !asked.fail_if.is_empty() {
        output::error(&format!(
            "warning: --fail-if: {without} of {all} figures cannot be compared, and nothing fails for \
             them (`--fail-if not-comparable` does)\n"
        ));
    }
}
