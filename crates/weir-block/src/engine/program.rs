//! Another program beside the other jobs: an operation starts it and waits for its end.
//!
//! In: a program and its arguments. Out: one operation of no bytes, as long as the program ran.
//! When the job's time is up, or the run ends, the program and its children are asked to end, and
//! killed if they do not within the grace. Not here: what the program does.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use weir_run::{Engine, LoopStop, Submit, failure};
use weir_schema::catalogue::{ActsOn, EngineInfo, SettingInfo, SettingKind};
use weir_schema::{EngineChoice, Failure, Job};
use weir_sys::Availability;
use weir_sys::socket::wait_ready;

use super::spin::SpinRounds;
use super::{EngineEntry, EngineRun, Opens, Warnings, number, switch};
use crate::op::BlockOp;

/// Interval between two looks at a running program.
const LOOK: Duration = Duration::from_millis(20);

const fn text(name: &'static str, help: &'static str) -> SettingInfo {
    SettingInfo {
        name,
        value: SettingKind::Text,
        default: "",
        help,
    }
}

pub(super) const ENTRY: EngineEntry = EngineEntry {
    info: EngineInfo {
        name: "exec",
        summary: "runs a program once; its run is the one operation",
        settings: &[
            text("program", "the program"),
            text(
                "arguments",
                "its arguments, separated by blanks; %r is the runtime in seconds, %n the job",
            ),
            // Beyond it the run takes a worker for hung.
            number(
                "grace_s",
                (0, 4),
                "1",
                "seconds between asking the program to end and killing it",
            ),
            switch(
                "redirect",
                "true",
                "its output goes to JOB.stdout and JOB.stderr",
            ),
        ],
        synchronous: true,
        acts_on: ActsOn::Nothing,
    },
    availability: || Availability::Ready,
    is_inline: |_| true,
    opens: Opens::AsNeeded,
    drive,
};

fn drive(ride: EngineRun<'_, '_>) -> Result<LoopStop, Failure> {
    let EngineRun {
        worker,
        plan,
        setup,
        ..
    } = ride;
    let choice = &setup.choice;
    let command = command(choice, worker.job, worker.clone)?;
    let grace = choice.number("grace_s").and_then(|n| n.try_into().ok());
    let mut engine = Program {
        command,
        grace: Duration::from_secs(grace.unwrap_or(1)),
        runtime: plan
            .runtime
            .map(|ns| Duration::from_nanos(ns.0 + plan.ramp.0)),
        stop: worker.stop,
        warnings: setup.warnings,
        failed: None,
    };
    let stop = worker.drive(&mut engine, &mut SpinRounds { left: 1 }, &plan);
    match (engine.failed, stop) {
        (Some(failure), _) => Err(failure),
        (None, stop) => Ok(stop),
    }
}

fn command(choice: &EngineChoice, job: &Job, clone: u32) -> Result<Command, Failure> {
    let Some(program) = choice.text("program") else {
        let message = "exec: no program= is set";
        return Err(failure("engine", Some(libc::EINVAL), message));
    };
    let mut command = Command::new(program);
    let runtime = job
        .load()
        .bounds
        .runtime_ns
        .map_or(0, |ns| ns.0 / 1_000_000_000);
    let arguments = choice.text("arguments").unwrap_or_default();
    command.args(arguments.split_whitespace().map(|word| {
        word.replace("%r", &runtime.to_string())
            .replace("%n", &job.name)
    }));
    // A group of its own: its children end with it, and the terminal's Ctrl-C is ours to pass on.
    command.process_group(0).stdin(Stdio::null());
    if choice.flag("redirect", true) {
        let own = if clone == 0 {
            job.name.replace('/', ".")
        } else {
            format!("{}.{clone}", job.name.replace('/', "."))
        };
        let file = |end: &str| {
            let path = format!("{own}.{end}");
            File::create(&path).map_err(|error| {
                let message = format!("exec: {path} cannot be written: {error}");
                failure("open", error.raw_os_error(), message)
            })
        };
        command.stdout(file("stdout")?).stderr(file("stderr")?);
    }
    Ok(command)
}

/// A program to run.
#[derive(Debug)]
struct Program<'a> {
    command: Command,
    grace: Duration,
    runtime: Option<Duration>,
    stop: &'a AtomicU32,
    warnings: Warnings,
    /// Reason that it could not be run.
    failed: Option<Failure>,
}

impl Program<'_> {
    fn name(&self) -> String {
        self.command.get_program().to_string_lossy().into_owned()
    }

    fn run(&mut self) -> io::Result<ExitStatus> {
        let end = self.runtime.map(|runtime| Instant::now() + runtime);
        let mut child = self.command.spawn()?;
        let is_over = || {
            self.stop.load(Ordering::Relaxed) != 0 || end.is_some_and(|end| Instant::now() >= end)
        };
        if let Some(status) = wait(&mut child, is_over)? {
            if !status.success() {
                let cause = format!("The program {} ended with {status}.", self.name());
                self.warnings.add("program-failed", cause);
            }
            return Ok(status);
        }
        let pid = Pid::from_child(&child);
        // It may have ended in this moment.
        let _ = kill_process_group(pid, Signal::TERM);
        let killed = Instant::now() + self.grace;
        if let Some(status) = wait(&mut child, || Instant::now() >= killed)? {
            return Ok(status);
        }
        let _ = kill_process_group(pid, Signal::KILL);
        child.wait()
    }
}

/// Waits for its end; `None` if something else is over first.
fn wait(child: &mut Child, is_over: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if is_over() {
            return Ok(None);
        }
        // A signal ends the pause early.
        let _ = wait_ready(&mut [PollFd::new(&ended, PollFlags::IN)], LOOK);
    }
}

impl<'a> Engine for Program<'a> {
    type Op = BlockOp;
    type Setup = Program<'a>;
    const INLINE: bool = true;

    fn attach(setup: Program<'a>) -> io::Result<Self> {
        Ok(setup)
    }

    fn submit(&mut self, _slot: u32, _op: &BlockOp) -> Submit {
        match self.run() {
            Ok(_) => Submit::Done(0),
            Err(error) => {
                let message = format!("exec: {} cannot be run: {error}", self.name());
                self.failed = Some(failure("open", error.raw_os_error(), message));
                Submit::Over
            }
        }
    }
}
