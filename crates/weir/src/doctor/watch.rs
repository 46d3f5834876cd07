//! Activity of the machine for two seconds while nothing is measured.
//!
//! In: the kernel's counters at both ends, the tasks that are ready to run between them, the clock.
//! Out: shares and rates.

use std::time::Duration;

use weir_sys::Tree;
use weir_sys::clock::{Clock, DetectedClock, Residual, Timeline};
use weir_sys::cpu_time::{CpuTimes, cpu_times};

/// Number of observations, and the pause between them.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);
/// Clock readings that are compared.
const ANCHORS: u32 = 4;
/// Busy processes that are named.
const NAMED: usize = 3;

/// Observed activity.
pub(super) struct Watched {
    /// Time of each CPU, by what it did.
    pub(super) cpus: Vec<(u32, CpuTimes)>,
    /// Tasks of others that were ready to run, on average.
    pub(super) runnable: Option<f64>,
    /// Names of the processes that used most CPU time, with the share of a CPU.
    pub(super) busiest: Vec<(String, f64)>,
    pub(super) clock: DetectedClock,
    pub(super) residual: Option<Residual>,
}

impl Watched {
    /// Looks at the machine for two seconds.
    pub(super) fn now(tree: &Tree) -> Self {
        let (clock, facts) = Clock::detect();
        let mut timeline = Timeline::start(&clock);
        let before = cpu_times(tree);
        let tasks = task_times(tree);
        let mut ready = Vec::new();
        for look in 1..=LOOKS {
            std::thread::sleep(PAUSE);
            ready.extend(runnable(tree));
            if look % (LOOKS / ANCHORS) == 0 {
                timeline.re_anchor(&clock);
            }
        }
        let after = cpu_times(tree);
        let spent = after.iter().filter_map(|(cpu, times)| {
            let (_, earlier) = before.iter().find(|(id, _)| id == cpu)?;
            Some((*cpu, times.since(earlier)))
        });
        #[expect(clippy::cast_precision_loss, reason = "a few readings")]
        let mean = |all: &[u32]| f64::from(all.iter().sum::<u32>()) / all.len() as f64;
        Self {
            cpus: spent.collect(),
            runnable: (!ready.is_empty()).then(|| mean(&ready)),
            busiest: busiest(&tasks, &task_times(tree)),
            clock: facts,
            residual: timeline.residual(),
        }
    }
}

/// Tasks that are ready to run, this one aside.
fn runnable(tree: &Tree) -> Option<u32> {
    // `0.12 0.10 0.09 2/345 6789`.
    let text = tree.text("proc/loadavg")?;
    let (ready, _) = text.split_whitespace().nth(3)?.split_once('/')?;
    ready.parse::<u32>().ok().map(|n| n.saturating_sub(1))
}

/// A process, its name and the ticks of CPU time that it has used.
type TaskTime = (u32, String, u64);

fn task_times(tree: &Tree) -> Vec<TaskTime> {
    let own = std::process::id();
    let mut all: Vec<TaskTime> = Vec::new();
    for pid in tree
        .numbered("proc", "")
        .into_iter()
        .filter(|pid| *pid != own)
    {
        // `12 (name) S …`; user and system time are the 12th and 13th after the name.
        let text = tree.text(format!("proc/{pid}/stat")).unwrap_or_default();
        let Some((name, rest)) = text.split_once('(').and_then(|(_, t)| t.rsplit_once(')')) else {
            continue;
        };
        let words = rest.split_whitespace().skip(11).take(2);
        let ticks = words.filter_map(|word| word.parse::<u64>().ok()).sum();
        all.push((pid, name.to_owned(), ticks));
    }
    all
}

fn busiest(before: &[TaskTime], after: &[TaskTime]) -> Vec<(String, f64)> {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    let seconds = (PAUSE * LOOKS).as_secs_f64();
    let mut all: Vec<(String, f64)> = Vec::new();
    for (pid, name, ticks) in after {
        let earlier = before.iter().find(|(id, ..)| id == pid);
        let used = ticks.saturating_sub(earlier.map_or(0, |(.., ticks)| *ticks));
        #[expect(clippy::cast_precision_loss, reason = "a few hundred ticks")]
        let share = used as f64 / per_second as f64 / seconds;
        all.push((name.clone(), share));
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.retain(|(_, share)| *share >= 0.005);
    all.truncate(NAMED);
    all
}
