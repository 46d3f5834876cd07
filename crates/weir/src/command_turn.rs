//! A shell command that is run in turns: the time it takes and the resources it uses.
//!
//! In: the command. Out: a result with its figures, as every run has one. Where the stack lies depends on
//! how long the environment is, and changes how fast programs are: each run has a variable of random
//! length, so that no side is lucky with it. Not here: whose turn it is.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, set_child_subreaper};
use weir_doors::Refusal;
use weir_schema::{GroupResult, JobResult, Metric, Plan, RunResult, State};
use weir_sys::child::{EndedChild, wait};
use weir_units::Nanos;

use crate::environment;
use crate::progress::TurnProgress;
use crate::turns::{PassedOn, Turns};

/// The variable of random length.
const PADDING: &str = "WEIR_PADDING";
/// Starts a command once it may, says the number of its process and is gone. What a process had before it became
/// another program counts as memory of that one: a shell had little.
const START: &str =
    "exec 3<&0; { read -r go <&3 && exec sh -c \"$0\" 3<&- </dev/null >/dev/null; } & echo $!";
/// Limit of the length of the padding, shorter than a page.
const LONGEST_PADDING: u64 = 4096;
/// While a command runs, signals are looked for this often.
const LOOK: Duration = Duration::from_millis(20);
/// Characters of a failed command's output that are shown.
const MOST_SAID: usize = 2000;

/// The names of its figures.
pub(crate) const METRICS: [&str; 4] = ["wall", "user", "system", "rss"];

/// A shell command.
pub(crate) struct CommandTurn(pub(crate) String);

impl CommandTurn {
    /// Makes one run and returns its result.
    pub(crate) fn run(
        &self,
        label: &str,
        turns: &Turns<'_>,
        progress: &mut TurnProgress,
    ) -> Result<RunResult, Refusal> {
        let said = turns.scratch_file("stderr");
        let errors = File::create(&said).map_err(|e| turns.lacks(e))?;
        let length = RandomState::new().hash_one(label) % LONGEST_PADDING;
        let padding = "x".repeat(usize::try_from(length).unwrap_or(0));
        let started = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // What the starter leaves becomes a child of this process.
        set_child_subreaper(Some(rustix::process::getpid())).map_err(|e| turns.lacks(e))?;
        let starter = shell(START)
            .arg(&self.0)
            .env(PADDING, padding)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            // A shell ends at a signal and leaves what it has started: all of them get it.
            .process_group(0)
            .spawn()
            .map_err(|e| turns.lacks(e))?;
        let look = || progress.look(label);
        let (begin, ended) = run_started(starter, turns, look).map_err(|e| turns.lacks(e))?;
        let was_cut = turns.caught.interrupted();
        if !ended.status.success() && !was_cut {
            let text = fs::read(&said).unwrap_or_default();
            let text =
                String::from_utf8_lossy(&text[text.len().saturating_sub(MOST_SAID)..]).into_owned();
            return Err(Refusal::new(
                1,
                format!("error: {}: {label}: {}\n{text}", turns.flag, ended.status),
            ));
        }
        let mut result = self.result(&ended, ended.at.duration_since(begin));
        result.started_unix_ns = u64::try_from(started.as_nanos()).unwrap_or(u64::MAX);
        result.plan.command = turns.command.to_vec();
        result.complete = !was_cut;
        Ok(result)
    }

    #[expect(clippy::cast_precision_loss, reason = "memory far below 2^53 bytes")]
    fn result(&self, ended: &EndedChild, wall: Duration) -> RunResult {
        let seconds = |name: &str, time: f64| Metric::low(name, Metric::SECONDS, time);
        let [name_wall, user, system, rss] = METRICS;
        let job = JobResult {
            state: State::Done,
            metrics: vec![
                seconds(name_wall, wall.as_secs_f64()),
                seconds(user, ended.user.as_secs_f64()),
                seconds(system, ended.system.as_secs_f64()),
                Metric::low(rss, Metric::BYTES, ended.peak_memory.0 as f64),
            ],
            ..JobResult::not_started("command")
        };
        RunResult {
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            duration_ns: Nanos(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)),
            groups: vec![GroupResult {
                jobs: vec![job],
                ..GroupResult::default()
            }],
            host: environment::host(),
            program: Some(environment::program()),
            ..RunResult::of(Plan::new(&self.0, "compare", Vec::new()))
        }
    }
}

/// A shell that carries a command out, in silence.
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    shell
}

/// Lets a command begin that its starter leaves behind. Its end is waited for in a thread of its own, so that it
/// is seen at once; signals are passed on. Returns its begin as well.
fn run_started(
    mut starter: Child,
    turns: &Turns<'_>,
    mut look: impl FnMut(),
) -> std::io::Result<(Instant, EndedChild)> {
    let group = Pid::from_child(&starter);
    let said = starter.stdout.take().map(BufReader::new);
    let go = starter.stdin.take();
    let mut number = String::new();
    said.map(|mut said| said.read_line(&mut number))
        .transpose()?;
    starter.wait()?;
    let command = number.trim().parse().map_err(std::io::Error::other)?;
    let begin = Instant::now();
    go.map(|mut go| go.write_all(b"\n")).transpose()?;
    let (send, ended) = channel();
    // Nobody listens any more only where this process ends.
    thread::spawn(move || send.send(wait(command)));
    let mut passed_on = PassedOn::default();
    loop {
        match ended.recv_timeout(LOOK) {
            Ok(ended) => return Ok((begin, ended?)),
            Err(RecvTimeoutError::Timeout) => {
                passed_on.group(group, turns.caught);
                look();
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(std::io::Error::other("nothing waits for the command"));
            }
        }
    }
}
