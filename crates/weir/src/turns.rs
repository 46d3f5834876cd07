//! Runs of several sides in turns, each in a process of its own.
//!
//! In: plans or shell commands. Out: the result of each run. A run cannot know what differs from run to
//! run: where memory lies, what the caches hold, which CPUs it gets. So each begins anew, in
//! another process. Files that the plan changes are made again; of the others the page cache is emptied. Sides take turns, so that what changes with time is no advantage to one of them. Not here: how
//! many runs there are, and what they say together.

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
    Pid, Signal, getppid, kill_process, kill_process_group, set_parent_process_death_signal,
    test_kill_process,
};
use weir_doors::house::{Input, ProgressStyle, Run, begin_anew};
use weir_doors::{Refusal, USAGE};
use weir_run::execute::Signals;
use weir_schema::{Plan, RunResult, TargetsPerRank};
use weir_units::Nanos;
use weir_world::Launcher;

use crate::input::plan_to_run;
use crate::progress::TurnProgress;
use crate::scratch::Scratch;

/// Environment variable with the label of a run, for its process.
pub(crate) const WHICH_RUN: &str = "WEIR_WHICH_RUN";
/// The process that started it.
pub(crate) const STARTED_BY: &str = "WEIR_RUN_STARTED_BY";
/// While a run goes on, signals are looked for this often.
const LOOK: Duration = Duration::from_millis(20);

/// Runs in turns: their results and the signals that end them.
pub(crate) struct Turns<'a> {
    /// The flag that asks for several runs, for messages.
    pub(crate) flag: &'static str,
    /// Arguments that ask for the runs, which every result records.
    pub(crate) command: &'a [String],
    pub(crate) caught: &'a Signals,
    scratch: Scratch,
}

/// A plan that has its turn again and again.
pub(crate) struct PlanTurn {
    pub(crate) plan: Plan,
    /// Files that weir has laid out are laid out again between runs.
    renews: bool,
    /// Files that the runs have made.
    made: BTreeSet<PathBuf>,
    /// Words that the plan does not hold.
    words: Vec<String>,
}

/// Refuses a launcher, which starts processes once. One of them prints the refusal for all.
pub(crate) fn refuse_launcher(flag: &str) -> Result<(), Refusal> {
    let Some(launcher) = Launcher::of_this_process() else {
        return Ok(());
    };
    if !launcher.prints_for_all() {
        return Err(Refusal::new(USAGE, ""));
    }
    Err(Refusal::usage(format!(
        "{flag}: {} starts this process once, and each run needs new ones\n  help: \
         repeat the launcher's command, or let weir start the ranks with --ranks",
        launcher.kind
    )))
}

/// Order of the sides in a round: there and back, so that each is early as often as late; with more than two
/// sides another one begins every other round.
pub(crate) fn order(sides: usize, round: usize) -> Vec<usize> {
    let first = if sides > 2 { round / 2 } else { 0 };
    let mut order: Vec<usize> = (0..sides).map(|place| (first + place) % sides).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

impl<'a> Turns<'a> {
    pub(crate) fn new(
        flag: &'static str,
        command: &'a [String],
        caught: &'a Signals,
    ) -> Result<Self, Refusal> {
        let scratch = Scratch::new("runs");
        let scratch =
            scratch.map_err(|e| Refusal::lacks(format!("{flag}: no room for results: {e}")))?;
        Ok(Self {
            flag,
            command,
            caught,
            scratch,
        })
    }

    pub(crate) fn lacks(&self, why: impl std::fmt::Display) -> Refusal {
        Refusal::lacks(format!("{}: {why}", self.flag))
    }

    /// A file that runs may write, gone with this value.
    pub(crate) fn scratch_file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Refusal for a run that left no result. It names a signal that ended the run, and has no message where
    /// weir itself was interrupted.
    pub(crate) fn without_result(&self, label: &str, status: ExitStatus) -> Refusal {
        let code = status.code().and_then(|c| u8::try_from(c).ok());
        if self.caught.interrupted() {
            // Signals are passed on: it was stopped before it could print anything.
            return Refusal::new(code.unwrap_or(1).max(1), "");
        }
        let how = match (code, status.signal()) {
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (code, _) => format!(
                "ended with exit code {} and without a result",
                code.unwrap_or(1)
            ),
        };
        let message = format!("error: {}: {label} {how}", self.flag);
        Refusal::new(code.unwrap_or(1).max(1), message)
    }

    /// Waits between two runs, unless a signal comes.
    pub(crate) fn pause(&self, time: Nanos) {
        pause(time, self.caught);
    }
}

/// Waits, unless a signal comes.
pub(crate) fn pause(time: Nanos, caught: &Signals) {
    let end = Instant::now() + Duration::from_nanos(time.0);
    while !caught.interrupted() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LOOK));
    }
}

impl PlanTurn {
    /// The plan that the arguments ask for, as each of several runs carries it out.
    pub(crate) fn of(flag: &str, run: &Run, input: &Input) -> Result<Self, Refusal> {
        let mut plan = plan_to_run(run, input)?;
        let renews = begin_anew(flag, &mut plan, run.ranks)?;
        Ok(Self {
            plan,
            renews,
            made: BTreeSet::new(),
            words: passed_on(run),
        })
    }

    /// Hides the progress of each run, as that of all runs is shown.
    pub(crate) fn hide_progress(&mut self) {
        let mut words = self.words.iter_mut();
        if let Some(word) = words.find(|word| word.starts_with("--progress=")) {
            "--progress=none".clone_into(word);
        }
    }

    /// Makes one run in another process and returns its result.
    pub(crate) fn run(
        &mut self,
        label: &str,
        turns: &Turns<'_>,
        progress: &mut TurnProgress,
    ) -> Result<RunResult, Refusal> {
        if self.renews {
            self.made.iter().for_each(|path| remove(path));
        }
        let (plan, result) = (
            turns.scratch_file("plan.json"),
            turns.scratch_file("result.json"),
        );
        let text = self.plan.to_json().map_err(|e| turns.lacks(e))?;
        let _ = fs::remove_file(&result);
        fs::write(&plan, text).map_err(|e| turns.lacks(format!("{}: {e}", plan.display())))?;
        let program = std::env::current_exe().map_err(|e| turns.lacks(e))?;
        let child = Command::new(program)
            .arg("run")
            .arg(&plan)
            .arg("--store-result")
            .arg(&result)
            .args(&self.words)
            .env(WHICH_RUN, label)
            .env(STARTED_BY, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| turns.lacks(e))?;
        let look = || progress.look(label);
        let status = wait(child, turns.caught, look).map_err(|e| turns.lacks(e))?;
        let no_result = || turns.without_result(label, status);
        let text = fs::read_to_string(&result).map_err(|_| no_result())?;
        let mut result = RunResult::from_json(&text).map_err(|_| no_result())?;
        result.plan.command = turns.command.to_vec();
        let files = result.host.devices.iter().filter(|device| device.made);
        self.made
            .extend(files.map(|file| PathBuf::from(&file.target)));
        Ok(result)
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
    let timeout = run.rank_timeout.map(Nanos::as_secs_f64);
    words.extend(timeout.map(|seconds| format!("--rank-timeout={seconds}")));
    words
}

/// Lets one of several runs end with the process that started it, the only one to wait for its result. Does
/// nothing in other processes; a program that a run starts has another parent.
pub(crate) fn end_with_parent() -> Result<(), Refusal> {
    let starter = std::env::var(STARTED_BY).ok();
    let Some(starter) = starter.and_then(|id| Pid::from_raw(id.parse().ok()?)) else {
        return Ok(());
    };
    if getppid() == Some(starter) {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|e| Refusal::lacks(format!("one of several runs: {e}")))?;
    }
    // It may have ended before the kernel was asked.
    test_kill_process(starter)
        .map_err(|_| Refusal::lacks("the process that started this run has ended"))
}

/// Waits for a run, passes signals on to it, and returns its exit status.
pub(crate) fn wait(
    mut child: Child,
    caught: &Signals,
    mut look: impl FnMut(),
) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    let mut passed_on = PassedOn::default();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        passed_on.process(pid, caught);
        look();
        thread::sleep(LOOK);
    }
}

/// Number of the interruptions that were passed on: each is passed on once.
#[derive(Default)]
pub(crate) struct PassedOn(u32);

impl PassedOn {
    /// Passes new signals on to a process.
    pub(crate) fn process(&mut self, run: Pid, caught: &Signals) {
        if let Some(signal) = self.news(caught) {
            // It may have ended in this moment.
            let _ = kill_process(run, signal);
        }
    }

    /// The same to all processes of a group.
    pub(crate) fn group(&mut self, leader: Pid, caught: &Signals) {
        if let Some(signal) = self.news(caught) {
            // They may have ended in this moment.
            let _ = kill_process_group(leader, signal);
        }
    }

    fn news(&mut self, caught: &Signals) -> Option<Signal> {
        let arrived = caught.interruptions.load(Ordering::Relaxed);
        let signal = Signal::from_named_raw(caught.number.load(Ordering::Relaxed));
        let signal = signal.filter(|_| arrived > self.0)?;
        self.0 = arrived;
        Some(signal)
    }
}

/// Exit code after a signal.
pub(crate) fn code_of_signal(caught: &Signals) -> Option<u8> {
    let signal = caught.number.load(Ordering::Relaxed);
    let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
    caught.interrupted().then_some(code)
}

/// Removes a file that a run has made, but no other kind of file.
fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        // Where it cannot be removed the next run says what is wrong with it.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn sides_take_turns_there_and_back() {
        let rounds = |sides, rounds| {
            (0..rounds)
                .flat_map(|r| order(sides, r))
                .collect::<Vec<_>>()
        };
        assert_eq!(rounds(1, 3), [0, 0, 0]);
        assert_eq!(rounds(2, 4), [0, 1, 1, 0, 0, 1, 1, 0]);
        assert_eq!(rounds(3, 4), [0, 1, 2, 2, 1, 0, 1, 2, 0, 0, 2, 1]);
    }

    #[test]
    fn what_a_plan_does_not_hold_is_passed_on_to_each_run() {
        let passed_on = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let run = weir_doors::run::read_run(&words).unwrap();
            passed_on(&run).join(" ")
        };
        assert_eq!(passed_on("--repeat a.fio"), "--progress=auto --history=off");
        for targets in ["split", "shared"] {
            let words = format!("--ranks=2 --per-rank={targets} --rank-timeout=1.5");
            let given = format!("--repeat=3 a.fio --progress=json --history=h.db {words}");
            let expected = format!("--progress=json --history=off {words}");
            assert_eq!(passed_on(&given), expected);
        }
    }

    #[test]
    fn a_signal_ends_a_pause_and_files_alone_are_removed() {
        let caught = Signals::default();
        caught.interruptions.store(1, Ordering::Relaxed);
        let turns = Turns::new("--repeat", &[], &caught).unwrap();
        let begin = Instant::now();
        turns.pause(Nanos::from_secs(3600));
        assert!(begin.elapsed() < Duration::from_secs(60));
        let (file, folder) = (turns.scratch_file("f"), turns.scratch_file("d"));
        fs::write(&file, "x").unwrap();
        fs::create_dir(&folder).unwrap();
        remove(&file);
        remove(&folder);
        remove(&turns.scratch_file("none"));
        assert!(!file.exists() && folder.exists());
        drop(turns);
        assert!(!folder.exists());
    }
}
