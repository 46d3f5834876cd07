//! Rounds in which every side of a comparison has its turn.
//!
//! In: plans or commands, how many rounds, what is done before each run. Out: the comparison after as
//! many rounds as it takes, stored and printed; the exit code. Not here: one run (`turns`,
//! `command_turn`), what the figures say (`weir-compare`).

use std::fs;

use weir_compare::{Comparison, Rule, Side, Sides, Verdict, compare, is_of_loops};
use weir_doors::Refusal;
use weir_doors::compare::{Compare, CompareInput, Rounds, RoundsOf};
use weir_doors::house::{ProgressStyle, Run, Strict, exit_code};
use weir_doors::request::NamedFile;
use weir_schema::{Kind, Plan, RUNS_SCHEMA, RunResult, RunSeries, Runs, Workload};

use crate::command_turn::{self, CommandTurn, shell};
use crate::input::STORE;
use crate::progress::{ProgressMode, TurnProgress};
use crate::turns::{PlanTurn, Turns, code_of_signal, order, refuse_launcher};
use crate::{Outcome, history, input, output, signals, written_files};

pub(super) use command_turn::METRICS as COMMAND_METRICS;

/// File that makes the kernel drop its caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Plan or command that takes its turn.
enum Turn {
    Plan(Box<PlanTurn>),
    Command(CommandTurn),
}

/// A side with the results of its runs.
struct Contender {
    name: String,
    turn: Turn,
    results: Vec<RunResult>,
}

/// All sides, and the course of their rounds.
struct Contest<'a> {
    all: Vec<Contender>,
    rounds: &'a Rounds,
    turns: &'a Turns<'a>,
    /// Any run was begun.
    has_begun: bool,
    /// A run left nothing behind.
    is_over: bool,
    /// The gravest exit code of a run.
    worst: u8,
    /// Progress of runs that show none themselves.
    progress: TurnProgress,
}

/// Outcome of the rounds.
pub(crate) struct Measured {
    pub(crate) comparison: Comparison,
    /// Rule by which the comparison was made.
    pub(crate) rule: Rule,
    pub(crate) sides: Sides,
    /// Exit code from the runs, the conditions and signals.
    pub(crate) code: u8,
}

/// Carries rounds out until enough is known; keeps and prints the comparison.
pub(super) fn run(asked: &Compare) -> Outcome {
    let CompareInput::Rounds {
        rounds,
        of,
        command,
        store,
        save,
        ..
    } = &asked.input
    else {
        return Ok(0);
    };
    let flag = flag_of(of);
    refuse_launcher(flag)?;
    if save.is_some() {
        history::check_save()?;
    }
    let Measured {
        comparison,
        rule,
        sides,
        mut code,
    } = measured(asked)?;
    if store.is_some() || save.is_some() {
        let mut runs = runs_of(&sides, rounds, command, &rule);
        let is_saved = save
            .iter()
            .all(|label| history::save_runs(&mut runs, label));
        let is_stored = store.iter().all(|path| is_stored(path, &runs));
        code = code.max(u8::from(!(is_saved && is_stored)));
    }
    if !has_rounds(&comparison) {
        output::error(&format!(
            "error: {flag}: no round came to its end: nothing is compared\n"
        ));
        return Ok(code.max(1));
    }
    Ok(super::show::show(&comparison, &sides.sides, &asked.show).max(code))
}

/// Carries rounds out until enough is known.
pub(crate) fn measured(asked: &Compare) -> Result<Measured, Refusal> {
    let CompareInput::Rounds {
        rounds,
        of,
        command,
        store,
        progress,
        ..
    } = &asked.input
    else {
        return Err(Refusal::usage("stored results have no rounds"));
    };
    let flag = flag_of(of);
    let all = contenders(flag, of)?;
    let mut files = other_files(of);
    files.extend(store.iter().map(|path| NamedFile::written(path, STORE)));
    files.extend(super::show::files(&asked.show));
    written_files::check(&files, plans(&all))?;
    let mut rule = rule(asked, &all)?;
    let looks = rounds.looks(figures(&all, &rule), rule.alpha)?;
    rule.alpha = rounds.alpha_of_a_look(rule.alpha);
    if rounds.drop_caches {
        check_drop_caches()?;
    }
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let turns = Turns::new(flag, command, &caught)?;
    let last = looks.last().copied().unwrap_or(1);
    let runs = (rounds.warmup + last) as usize * all.len();
    let mut contest = Contest {
        all,
        rounds,
        turns: &turns,
        has_begun: false,
        is_over: false,
        worst: 0,
        progress: TurnProgress::new(mode_of(of, *progress), runs),
    };
    contest.warm_up()?;
    let mut comparison = contest.until_settled(&looks, &rule)?;
    comparison.held = super::held_of(asked, &comparison)?;
    if asked.confirm && !comparison.held.is_empty() && !caught.interrupted() {
        comparison = contest.again(asked, &rule)?;
    }
    contest.progress.erase();
    let code = if has_rounds(&comparison) {
        super::code_of_conditions(asked, &comparison)
    } else {
        0
    };
    signals::release();
    Ok(Measured {
        comparison,
        rule,
        sides: contest.sides(),
        code: code_of_signal(&caught).unwrap_or(code.max(contest.worst)),
    })
}

/// True if a round of all sides ended.
fn has_rounds(comparison: &Comparison) -> bool {
    comparison.sides.iter().all(|side| side.runs > 0)
}

/// The flag that asks for rounds, for messages.
fn flag_of(of: &RoundsOf) -> &'static str {
    match of {
        RoundsOf::Plans(_) => "--run",
        RoundsOf::Commands(_) => "--cmd",
    }
}

/// Progress of rounds: runs of plans print their own for programs, and people see the progress of all rounds.
fn mode_of(of: &RoundsOf, style: ProgressStyle) -> ProgressMode {
    let tells = |run: &Run| run.options.progress == ProgressStyle::Json;
    match of {
        RoundsOf::Plans(sides) if sides.iter().any(|(_, run)| tells(run)) => ProgressMode::None,
        RoundsOf::Plans(sides) => {
            let first = sides.first().map(|(_, run)| run.options.progress);
            ProgressMode::of_style(first.unwrap_or(style))
        }
        RoundsOf::Commands(_) => ProgressMode::of_style(style),
    }
}

fn contenders(flag: &'static str, of: &RoundsOf) -> Result<Vec<Contender>, Refusal> {
    let contender = |name: &str, turn| Contender {
        name: name.to_owned(),
        turn,
        results: Vec::new(),
    };
    match of {
        RoundsOf::Plans(sides) => sides
            .iter()
            .map(|(name, run)| {
                let mut turn = PlanTurn::of(flag, run, &run.input)?;
                if run.options.progress != ProgressStyle::Json {
                    turn.hide_progress();
                }
                Ok(contender(name, Turn::Plan(Box::new(turn))))
            })
            .collect(),
        RoundsOf::Commands(commands) => Ok(commands
            .iter()
            .map(|(name, command)| contender(name, Turn::Command(CommandTurn(command.clone()))))
            .collect()),
    }
}

/// Files that are read besides the stored results.
fn other_files(of: &RoundsOf) -> Vec<NamedFile> {
    match of {
        RoundsOf::Plans(sides) => {
            let files = sides.iter().flat_map(|(_, run)| input::other_files(run));
            files.collect()
        }
        RoundsOf::Commands(_) => Vec::new(),
    }
}

fn plans(all: &[Contender]) -> impl Iterator<Item = &Plan> {
    all.iter().filter_map(|one| match &one.turn {
        Turn::Plan(turn) => Some(&turn.plan),
        Turn::Command(_) => None,
    })
}

/// The rule; figures that none of the sides can have are refused before anything runs.
fn rule(asked: &Compare, all: &[Contender]) -> Result<Rule, Refusal> {
    let jobs: Vec<String> = plans(all)
        .flat_map(|plan| plan.jobs().map(|(_, job)| job.name.clone()))
        .collect();
    let is_command = plans(all).next().is_none();
    let others = || {
        plans(all)
            .flat_map(Plan::jobs)
            .any(|(_, job)| job.workload.load().is_none())
    };
    // What jobs that are no loops measure, only their results say.
    let has = |name: &str| {
        if is_command {
            COMMAND_METRICS.contains(&name)
        } else {
            is_of_loops(super::last_word(name)) || others()
        }
    };
    super::rule(asked, asked.rule.clone(), has, &jobs)
}

/// Number of figures to be compared, as far as the plans determine it.
fn figures(all: &[Contender], rule: &Rule) -> usize {
    let pairs = all.len() - 1;
    let of_plan = plans(all).next().map(|plan| {
        let jobs = plan
            .jobs()
            .map(|(_, job)| match (&job.workload, job.workload.load()) {
                (Workload::Block(work), Some(load)) if !load.recording.unify_kinds => {
                    let kinds = Kind::DATA.iter().filter(|kind| work.mix.has(**kind));
                    kinds.count().max(1) * rule.figures()
                }
                (_, Some(_)) => rule.figures(),
                (_, None) => rule.metrics.len().max(1),
            });
        jobs.sum::<usize>()
    });
    let of_commands = match rule.metrics.len() {
        0 => COMMAND_METRICS.len(),
        named => named,
    };
    pairs * of_plan.unwrap_or(of_commands)
}

fn check_drop_caches() -> Result<(), Refusal> {
    let opened = fs::File::options().write(true).open(DROP_CACHES);
    opened.map(drop).map_err(|e| {
        Refusal::lacks(format!(
            "--drop-caches: {DROP_CACHES}: {e}\n  help: run weir as root, or leave it out: files that \
             jobs work on are dropped from the cache anyway"
        ))
    })
}

impl Contest<'_> {
    fn warm_up(&mut self) -> Result<(), Refusal> {
        for round in 0..self.rounds.warmup as usize {
            self.round(round, "warm-up")?;
        }
        for one in &mut self.all {
            one.results.clear();
        }
        Ok(())
    }

    /// Goes on with rounds; compares at each look, until the primary figures are settled.
    fn until_settled(&mut self, looks: &[u32], rule: &Rule) -> Result<Comparison, Refusal> {
        let last = looks.last().copied().unwrap_or(1);
        let mut done = 0;
        for look in looks {
            while done < *look && self.goes_on() {
                done += 1;
                self.round(done as usize - 1, &format!("round {done} of {last}"))?;
            }
            let comparison = self.comparison(rule)?;
            if *look == last || !self.goes_on() || is_settled(&comparison) {
                return Ok(comparison);
            }
        }
        self.comparison(rule)
    }

    /// Repeats the rounds, and finds out whether the conditions hold in them as well.
    fn again(&mut self, asked: &Compare, rule: &Rule) -> Result<Comparison, Refusal> {
        let rounds = self
            .all
            .iter()
            .map(|one| one.results.len())
            .min()
            .unwrap_or(0);
        for one in &mut self.all {
            one.results.clear();
        }
        for round in 0..rounds {
            if self.goes_on() {
                self.round(round, &format!("fresh round {} of {rounds}", round + 1))?;
            }
        }
        let mut comparison = self.comparison(rule)?;
        comparison.held = super::held_of(asked, &comparison)?;
        comparison.confirmed = Some(!comparison.held.is_empty());
        Ok(comparison)
    }

    fn goes_on(&self) -> bool {
        !self.turns.caught.interrupted() && !self.is_over
    }

    /// Every side once. A run that leaves nothing behind ends the contest: the first with a refusal.
    fn round(&mut self, round: usize, label: &str) -> Result<(), Refusal> {
        for which in order(self.all.len(), round) {
            if !self.goes_on() {
                return Ok(());
            }
            let begun = self.before_run();
            let one = &mut self.all[which];
            let label = format!("{}, {label}", one.name);
            let done = begun.and_then(|()| match &mut one.turn {
                Turn::Plan(turn) => turn.run(&label, self.turns, &mut self.progress),
                Turn::Command(turn) => turn.run(&label, self.turns, &mut self.progress),
            });
            self.progress.next();
            match done {
                Ok(result) => {
                    if result.complete {
                        self.worst = self.worst.max(exit_code(&result, &Strict::No));
                    }
                    one.results.push(result);
                }
                Err(refusal) if !self.has_begun && !self.turns.caught.interrupted() => {
                    return Err(refusal);
                }
                Err(refusal) => {
                    output::error(&refusal.message);
                    self.worst = self.worst.max(refusal.code);
                    self.is_over = true;
                }
            }
            self.has_begun = true;
        }
        Ok(())
    }

    /// Prepares each run: a pause, the command that prepares it, empty caches.
    fn before_run(&self) -> Result<(), Refusal> {
        if self.has_begun {
            self.turns.pause(self.rounds.settle);
        }
        if let Some(command) = &self.rounds.prepare {
            let status = shell(command).status().map_err(|e| self.turns.lacks(e))?;
            if !status.success() && !self.turns.caught.interrupted() {
                return Err(Refusal::new(
                    1,
                    format!("error: --prepare `{command}`: {status}"),
                ));
            }
        }
        if self.rounds.drop_caches {
            rustix::fs::sync();
            fs::write(DROP_CACHES, "3")
                .map_err(|e| Refusal::lacks(format!("--drop-caches: {DROP_CACHES}: {e}")))?;
        }
        Ok(())
    }

    fn comparison(&self, rule: &Rule) -> Result<Comparison, Refusal> {
        compare(&self.sides(), rule).map_err(|error| super::refuse_metric(&error))
    }

    fn sides(&self) -> Sides {
        let side = |one: &Contender| Side {
            name: one.name.clone(),
            runs: one.results.clone(),
            spreads: Vec::new(),
        };
        Sides {
            sides: self.all.iter().map(side).collect(),
            in_turns: true,
            is_varied: true,
        }
    }
}

/// True if there is a verdict on the primary figure of every job.
fn is_settled(comparison: &Comparison) -> bool {
    let jobs = comparison.pairs.iter().flat_map(|pair| &pair.jobs);
    let mut primary = jobs.filter_map(|job| job.metrics.first());
    primary.all(|metric| !matches!(metric.verdict, Verdict::Unsure { .. }))
}

/// Stores all runs; true if that worked.
fn is_stored(path: &str, runs: &Runs) -> bool {
    let text = runs
        .to_json(false)
        .map_err(|e| format!("error: {path}: {e}\n"));
    let stored = text.and_then(|text| output::write_file(path, &text));
    stored.map_err(|message| output::error(&message)).is_ok()
}

/// All runs as they are stored.
fn runs_of(sides: &Sides, rounds: &Rounds, command: &[String], rule: &Rule) -> Runs {
    let all = || sides.sides.iter();
    let asked = all().map(|side| side.runs.len()).max();
    Runs {
        schema: RUNS_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_vec(),
        asked: asked
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(u32::MAX),
        pause_ns: rounds.settle,
        complete: all().flat_map(|side| &side.runs).all(|run| run.complete),
        comparison: Some(rule.stored()),
        series: all()
            .map(|side| RunSeries::new(&side.name, side.runs.clone()))
            .collect(),
    }
}
