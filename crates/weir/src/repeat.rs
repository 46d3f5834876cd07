//! `weir run --repeat`: several runs of each plan, every one in a process of its own.
//!
//! In: what the words ask for. Out: the report over all runs, the exit code. A run cannot know what
//! differs from run to run: where memory lies, what the caches hold, which CPUs it gets. So each
//! begins anew: another process, files made again where the plan changes them, else without what the
//! page cache holds of them. Several plans take turns, A B B A, so that what changes with time is no
//! advantage to one of them. Not here: the figures (`weir-schema`), the report (`weir-report`).

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, getppid, kill_process, set_parent_process_death_signal, test_kill_process,
};
use weir_doors::run::{ProgressStyle, Repeat, Run, exit_code};
use weir_doors::{Refusal, USAGE};
use weir_run::execute::Signals;
use weir_schema::{Plan, RUNS_SCHEMA, RunResult, RunSeries, Runs, TargetsPerRank};
use weir_units::Nanos;
use weir_world::Launcher;

use crate::history::{self, Keep};
use crate::{Outcome, measure, output, run as run_door, signals};

/// The environment variable by which a process knows which run it is.
pub(crate) const WHICH_RUN: &str = "WEIR_WHICH_RUN";
/// The process that started it.
const STARTED_BY: &str = "WEIR_RUN_STARTED_BY";
/// While a run goes on, signals are looked for this often.
const LOOK: Duration = Duration::from_millis(20);

/// A plan with what its runs have left.
struct Turn {
    plan: Plan,
    /// What weir has laid out is made again between runs.
    renews: bool,
    /// Files that the runs have made.
    made: BTreeSet<PathBuf>,
    results: Vec<RunResult>,
}

/// Carries all runs out and reports them.
pub(crate) fn run(run: &Run, repeat: Repeat) -> Outcome {
    refuse_launcher()?;
    let mut turns = Vec::new();
    for input in run.input.each_file() {
        let mut plan = run_door::plan_to_run(run, &input)?;
        let renews = repeat.adjust(&mut plan, run.ranks)?;
        turns.push(Turn {
            plan,
            renews,
            made: BTreeSet::new(),
            results: Vec::new(),
        });
    }
    measure::check_store(run.store.as_deref(), &run_door::other_files(run))?;
    let scratch = Scratch::new().map_err(|e| lacks(&format!("no room for results: {e}")))?;
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let mut worst = carry_out(run, repeat, &mut turns, &scratch.0, &caught)?;
    let mut runs = collect(run, repeat, turns);
    let kept = history::keep_runs(&mut runs, Keep::Always(run.history.as_deref()));
    let strict = |series: &RunSeries| {
        let mut raised = series.warnings.iter();
        raised.any(|w| run.options.strict.holds(&w.id))
    };
    if runs.series.iter().any(strict) {
        worst = worst.max(1);
    }
    if caught.interrupted() {
        let signal = caught.number.load(Ordering::Relaxed);
        worst = u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    let code = run_door::report_runs(run, &runs).max(worst);
    if let Some(kept) = kept {
        kept.tell_changes();
    }
    Ok(code)
}

/// A launcher starts processes once. What all of them would say one of them says.
fn refuse_launcher() -> Result<(), Refusal> {
    let Some(launcher) = Launcher::of_this_process() else {
        return Ok(());
    };
    if !launcher.speaks() {
        return Err(Refusal::new(USAGE, ""));
    }
    Err(Refusal::usage(format!(
        "--repeat: {} starts this process once, and each run needs new ones\n  help: \
         repeat the launcher's command, or let weir start the ranks with --ranks",
        launcher.kind
    )))
}

/// One run after the other, until all are done or a signal comes; the gravest exit code.
fn carry_out(
    run: &Run,
    repeat: Repeat,
    turns: &mut [Turn],
    scratch: &Path,
    caught: &Signals,
) -> Outcome {
    let mut worst = 0;
    let plans = turns.len();
    for (number, which) in order(plans, repeat.runs).into_iter().enumerate() {
        if number > 0 {
            pause(Duration::from_nanos(repeat.pause.0), caught);
        }
        if caught.interrupted() {
            break;
        }
        let turn = &mut turns[which];
        let named = (plans > 1).then(|| format!("{}, ", turn.plan.name));
        let named = named.unwrap_or_default();
        let label = format!("{named}run {} of {}", number / plans + 1, repeat.runs);
        match turn.run(run, &label, scratch, caught) {
            Ok(result) => worst = worst.max(exit_code(result, &run.options.strict)),
            Err(refusal) if number == 0 && !caught.interrupted() => return Err(refusal),
            Err(refusal) => {
                output::error(&refusal.message);
                worst = worst.max(refusal.code);
                break;
            }
        }
    }
    Ok(worst)
}

/// Whose turn it is: there and back, so that each comes early as often as late.
fn order(plans: usize, rounds: u32) -> Vec<usize> {
    let round = |round| -> Vec<usize> {
        if round % 2 == 0 {
            (0..plans).collect()
        } else {
            (0..plans).rev().collect()
        }
    };
    (0..rounds).flat_map(round).collect()
}

fn collect(run: &Run, repeat: Repeat, turns: Vec<Turn>) -> Runs {
    let is_whole = |turn: &Turn| {
        let whole = turn.results.iter().filter(|r| r.complete);
        whole.count() == repeat.runs as usize
    };
    Runs {
        schema: RUNS_SCHEMA.to_owned(),
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: run.command().to_vec(),
        asked: repeat.runs,
        pause_ns: repeat.pause,
        complete: turns.iter().all(is_whole),
        series: turns
            .into_iter()
            .map(|turn| RunSeries::new(&turn.plan.name, turn.results))
            .collect(),
    }
}

impl Turn {
    /// One run, in another process; its result.
    fn run(
        &mut self,
        words: &Run,
        label: &str,
        scratch: &Path,
        caught: &Signals,
    ) -> Result<&RunResult, Refusal> {
        if self.renews {
            self.made.iter().for_each(|path| remove(path));
        }
        let (plan, result) = (scratch.join("plan.json"), scratch.join("result.json"));
        let text = self.plan.to_json().map_err(|e| lacks(&e.to_string()))?;
        let _ = fs::remove_file(&result);
        fs::write(&plan, text).map_err(|e| lacks(&format!("{}: {e}", plan.display())))?;
        let program = std::env::current_exe().map_err(|e| lacks(&e.to_string()))?;
        let child = Command::new(program)
            .arg("run")
            .arg(&plan)
            .arg("--store-result")
            .arg(&result)
            .args(passed_on(words))
            .env(WHICH_RUN, label)
            .env(STARTED_BY, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| lacks(&e.to_string()))?;
        let status = wait(child, caught).map_err(|e| lacks(&e.to_string()))?;
        let no_result = || without_result(label, status);
        let text = fs::read_to_string(&result).map_err(|_| no_result())?;
        let mut result = RunResult::from_json(&text).map_err(|_| no_result())?;
        result.plan.command = words.command().to_vec();
        let files = result.host.devices.iter().filter(|device| device.made);
        self.made
            .extend(files.map(|file| PathBuf::from(&file.target)));
        self.results.push(result);
        self.results.last().ok_or_else(no_result)
    }
}

/// Words that a plan does not hold.
fn passed_on(run: &Run) -> Vec<String> {
    let progress = match run.options.progress {
        ProgressStyle::Auto => "auto",
        ProgressStyle::Plain => "plain",
        ProgressStyle::None => "none",
        ProgressStyle::Json => "json",
    };
    // What is kept is what all runs say together.
    let mut words = vec![format!("--progress={progress}"), "--history=off".to_owned()];
    words.extend(run.ranks.map(|ranks| format!("--ranks={ranks}")));
    words.extend(match run.targets {
        TargetsPerRank::Own => None,
        TargetsPerRank::Split => Some("--per-rank=split".to_owned()),
        TargetsPerRank::Shared => Some("--per-rank=shared".to_owned()),
    });
    let timeout = run.timeout.map(Nanos::as_secs_f64);
    words.extend(timeout.map(|seconds| format!("--timeout={seconds}")));
    words
}

/// In one of several runs: lets it end with the process that started it, whose result nobody else
/// waits for. Elsewhere nothing; a program that a run starts has another parent.
pub(crate) fn end_with_parent() -> Result<(), Refusal> {
    let starter = std::env::var(STARTED_BY).ok();
    let Some(starter) = starter.and_then(|id| Pid::from_raw(id.parse().ok()?)) else {
        return Ok(());
    };
    if getppid() == Some(starter) {
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| lacks(&e.to_string()))?;
    }
    // It may have ended before the kernel was told.
    test_kill_process(starter).map_err(|_| lacks("the process that started this run has ended"))
}

/// How a run ended that left no result: a signal leaves nobody else to say so.
fn without_result(label: &str, status: ExitStatus) -> Refusal {
    let code = status.code().and_then(|c| u8::try_from(c).ok());
    let how = match (code, status.signal()) {
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (code, _) => format!(
            "ended with exit code {} and without a result",
            code.unwrap_or(1)
        ),
    };
    let message = format!("error: --repeat: {label} {how}");
    Refusal::new(code.unwrap_or(1).max(1), message)
}

/// Waits for a run and passes signals on to it; how it ended. One that both got is one to it.
fn wait(mut child: Child, caught: &Signals) -> io::Result<ExitStatus> {
    let mut passed_on = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let arrived = caught.interruptions.load(Ordering::Relaxed);
        let signal = Signal::from_named_raw(caught.number.load(Ordering::Relaxed));
        if let Some(signal) = signal.filter(|_| arrived > passed_on) {
            passed_on = arrived;
            // It may have ended in this moment.
            let _ = kill_process(Pid::from_child(&child), signal);
        }
        thread::sleep(LOOK);
    }
}

/// Waits between two runs, unless a signal comes.
fn pause(time: Duration, caught: &Signals) {
    let end = Instant::now() + time;
    while !caught.interrupted() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Removes a file that a run has made; what else may be there by now stays.
fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        // Where it cannot be removed the next run says what is wrong with it.
        let _ = fs::remove_file(path);
    }
}

fn lacks(why: &str) -> Refusal {
    Refusal::lacks(format!("--repeat: {why}"))
}

/// A folder for what the runs leave, gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("weir-repeat-{}", std::process::id()));
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the folder for temporary files harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use weir_doors::run::Action;

    use super::*;

    #[test]
    fn plans_take_turns_there_and_back() {
        assert_eq!(order(1, 3), [0, 0, 0]);
        assert_eq!(order(2, 4), [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!(order(3, 2), [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn what_a_plan_does_not_hold_is_passed_on_to_each_run() {
        let passed_on = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            match weir_doors::run::read(&words) {
                Ok(Action::Run(run)) => passed_on(&run).join(" "),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(passed_on("--repeat a.fio"), "--progress=auto --history=off");
        for targets in ["split", "shared"] {
            let words = format!("--ranks=2 --per-rank={targets} --timeout=1.5");
            assert_eq!(
                passed_on(&format!(
                    "--repeat=3 a.fio --progress=json --history=h.db {words}"
                )),
                format!("--progress=json --history=off {words}")
            );
        }
    }

    #[test]
    fn a_signal_ends_a_pause() {
        let caught = Signals::default();
        caught.interruptions.store(1, Ordering::Relaxed);
        let begin = Instant::now();
        pause(Duration::from_secs(3600), &caught);
        assert!(begin.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn files_alone_are_removed() {
        let scratch = Scratch::new().unwrap();
        let (file, folder) = (scratch.0.join("f"), scratch.0.join("d"));
        fs::write(&file, "x").unwrap();
        fs::create_dir(&folder).unwrap();
        remove(&file);
        remove(&folder);
        remove(&scratch.0.join("none"));
        assert!(!file.exists() && folder.exists());
        let path = scratch.0.clone();
        drop(scratch);
        assert!(!path.exists());
    }
}
