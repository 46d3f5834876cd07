//! `weir axio selftest`: the cost of timing the stages on this machine.
//!
//! In: nothing. Out: processor time per message with stages timed in every pass, in one of eight, and not at
//! all; each in runs of their own that take turns, so that what changes with time is no advantage to one of
//! them. It judges nothing: the figure depends on the machine and on what else that does.

use std::fmt;
use std::process::{Command, Stdio};

use weir_doors::Refusal;
use weir_schema::{Outcome, PacketPathOutcome, PathSide, RunResult};
use weir_sys::child;

use crate::turns::code_of_signal;
use crate::{Outcome as Exit, output, signals};

/// Runs of each.
const ROUNDS: usize = 5;
/// Timings to compare.
const TIMINGS: [&str; 3] = ["off", "1/8", "all"];
/// Arguments common to all runs.
const WORDS: [&str; 13] = [
    "axio",
    "--example",
    "scan",
    "--format",
    "json",
    "--history",
    "off",
    "--set",
    "iteration=1",
    "--set",
    "duration=0.3",
    "--set",
    "stall_timeout=30",
];

/// Outcome of a run.
struct Trial {
    /// Processor time per answered message, in nanoseconds.
    cpu_ns: f64,
    /// Time of a read of the clock, in nanoseconds.
    clock_read_ns: f64,
}

/// Measures and prints; a signal ends it with the trials so far.
pub(crate) fn run() -> Exit {
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let mut trials: [Vec<Trial>; 3] = Default::default();
    'rounds: for _ in 0..ROUNDS {
        for (all, timing) in trials.iter_mut().zip(TIMINGS) {
            let done = trial(timing);
            if caught.interrupted() {
                break 'rounds;
            }
            all.push(done?);
        }
    }
    signals::release();
    let code = u8::from(!output::print(&text(&trials)));
    Ok(code_of_signal(&caught).unwrap_or(code))
}

/// A line for each timing that has runs, and a summary where none is missing.
fn text(trials: &[Vec<Trial>; 3]) -> String {
    let rounds = trials.iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = vec![format!(
        "processor time per message and its answer, both sides, batches of 32: median of {rounds} runs"
    )];
    let spreads = trials.each_ref().map(|trials| Spread::of(trials));
    let [off, _, all] = &spreads;
    let more = |timed: &Spread| (timed.middle / off.middle - 1.0) * 100.0;
    for ((timing, spread), trials) in TIMINGS.iter().zip(&spreads).zip(trials) {
        if trials.is_empty() {
            continue;
        }
        // Of what turns begin with there is always one.
        let beside = if *timing == TIMINGS[0] {
            String::new()
        } else {
            format!(" ({:+.1} %)", more(spread))
        };
        lines.push(format!("stage timing {timing} {spread}{beside}"));
    }
    if trials.iter().any(|trials| trials.len() < ROUNDS) {
        lines.push("The self-test was interrupted".to_owned());
        return lines.join("\n") + "\n";
    }
    let read_ns = all.clock_read_ns;
    lines.push(format!("a read of the clock takes {read_ns:.1} ns"));
    lines.push(if all.lowest > off.highest {
        format!("Timing every pass costs {:.1} % here.", more(all))
    } else {
        "Timing every pass costs less than runs differ from each other here.".to_owned()
    });
    lines.join("\n") + "\n"
}

/// Runs of a kind together, in nanoseconds.
struct Spread {
    lowest: f64,
    middle: f64,
    highest: f64,
    clock_read_ns: f64,
}

impl Spread {
    fn of(trials: &[Trial]) -> Self {
        let mut times: Vec<f64> = trials.iter().map(|trial| trial.cpu_ns).collect();
        times.sort_by(f64::total_cmp);
        let at = |place: usize| times.get(place).copied().unwrap_or(0.0);
        Self {
            lowest: at(0),
            middle: at(times.len() / 2),
            highest: at(times.len().saturating_sub(1)),
            clock_read_ns: trials.first().map_or(0.0, |trial| trial.clock_read_ns),
        }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.lowest, self.highest);
        write!(f, "{:8.1} ns, {low:.1} to {high:.1}", self.middle)
    }
}

/// A run in a process of its own.
fn trial(timing: &str) -> Result<Trial, Refusal> {
    let program = std::env::current_exe().map_err(Refusal::lacks)?;
    let mut command = Command::new(program);
    command.args(WORDS).args(["--stage-timing", timing]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut running = command.spawn().map_err(Refusal::lacks)?;
    let text = running.stdout.take().map(std::io::read_to_string);
    let ended = child::wait(running.id()).map_err(Refusal::lacks)?;
    if !ended.status.success() {
        return Err(failed(format!(
            "with stage timing {timing} it ended with {}",
            ended.status
        )));
    }
    let text = text.transpose().map_err(failed)?.unwrap_or_default();
    let result = RunResult::from_json(&text).map_err(failed)?;
    let mut outcomes = result
        .groups
        .iter()
        .flat_map(|group| &group.jobs)
        .map(|job| &job.outcome);
    let done = outcomes.find_map(|outcome| match outcome {
        Outcome::PacketPath(done) => Some(done.as_ref()),
        _ => None,
    });
    let done = done.ok_or_else(|| failed("no packet path was measured"))?;
    let messages = answered(done);
    if messages == 0 {
        return Err(failed("no message came back"));
    }
    Ok(Trial {
        cpu_ns: per_message(ended.user.0 + ended.system.0, messages),
        clock_read_ns: done.clock_read_ns,
    })
}

#[expect(clippy::cast_precision_loss, reason = "figures for the eye")]
fn per_message(cpu_ns: u64, messages: u64) -> f64 {
    cpu_ns as f64 / messages as f64
}

fn failed(why: impl std::fmt::Display) -> Refusal {
    Refusal::new(1, format!("error: a run of the self-test failed: {why}"))
}

/// Packets that came back to the client. A message is one packet.
fn answered(done: &PacketPathOutcome) -> u64 {
    done.sum(PathSide::Client, |thread| thread.application_rx.packets)
}
