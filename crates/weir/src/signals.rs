//! Signals: the first SIGINT, SIGTERM or SIGHUP ends the run in order, the second at once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals as Arrivals;
use signal_hook::{flag, low_level};
use weir_doors::Refusal;
use weir_run::execute::Signals;
use weir_sys::HeldSignals;
use weir_world::{First, RankProcesses, STOP_SIGNALS};

/// Time within which a second signal counts as the same interruption: `timeout` signals the program and then
/// its whole process group.
const ECHO: Duration = Duration::from_millis(100);

/// Time after which a rank whose first rank is gone ends at a signal: it may be about to report the lost
/// rank.
const MESSAGE_TIME: Duration = Duration::from_millis(300);

const CAUGHT: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Signals to catch: not a hang-up that the parent process had this one ignore, as `nohup` does.
fn caught() -> impl Iterator<Item = i32> {
    let keeps = |number: &i32| *number != SIGHUP || !is_ignored(SIGHUP);
    CAUGHT.into_iter().filter(keeps)
}

fn is_ignored(number: i32) -> bool {
    // Where the status is unknown, the signal is caught.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// True while signals keep their default effect, once [`claim`] has registered them.
static UNTOUCHED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Signals caught for runs of this process alone.
static ALONE: Mutex<Option<Arc<Signals>>> = Mutex::new(None);

/// True once the measurement is over, see [`release`].
static RELEASED: AtomicBool = AtomicBool::new(false);

/// Lets a file that may not grow further be an error of its write, not the end of the process.
pub(crate) fn outlive_file_limits() {
    // Where it cannot be caught, it ends this program as it ends others.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Takes signals before libraries are opened that would take them themselves: the compiler in a driver of
/// OpenCL does, and ends the process. Until [`catch`] they keep their default effect.
pub(crate) fn claim() -> Result<(), Refusal> {
    let untouched = Arc::new(AtomicBool::new(true));
    if UNTOUCHED.set(Arc::clone(&untouched)).is_err() {
        return Ok(());
    }
    // One that came while actions are exchanged would be lost.
    let _held = HeldSignals::all();
    if weir_world::started_rank().is_some() {
        // Rank 0 may stop this one before it listens; it then finds the loss by itself.
        for number in STOP_SIGNALS {
            flag::register(number, Arc::default()).map_err(|e| uncaught(&e))?;
        }
    }
    for number in caught() {
        flag::register_conditional_default(number, Arc::clone(&untouched))
            .map_err(|e| uncaught(&e))?;
    }
    Ok(())
}

/// Lets a signal end the process at once from here on. The measurement is over, and printing it takes as long
/// as its reader likes, or for ever where nobody reads a named pipe.
pub(crate) fn release() {
    RELEASED.store(true, Ordering::Relaxed);
}

fn uncaught(error: &io::Error) -> Refusal {
    Refusal::lacks(format!("signals cannot be caught: {error}"))
}

/// Catches signals from now on, and passes them on to the other ranks that weir has started, as a signal to
/// one rank is meant for all. Under a launcher they go to the first rank, if that is another.
///
/// # Errors
/// This machine lacks something.
pub(crate) fn catch(
    ranks: Option<&RankProcesses>,
    first: Option<First>,
) -> Result<Arc<Signals>, Refusal> {
    if ranks.is_some() || first.is_some() {
        return listen(ranks, first);
    }
    // Of many runs one after the other each would have a thread, and not know what came before it.
    let mut alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(signals) = alone.as_ref() {
        return Ok(Arc::clone(signals));
    }
    let signals = listen(None, None)?;
    *alone = Some(Arc::clone(&signals));
    Ok(signals)
}

fn listen(ranks: Option<&RankProcesses>, first: Option<First>) -> Result<Arc<Signals>, Refusal> {
    let ranks = ranks.cloned();
    let stops: &[i32] = match &ranks {
        Some(ranks) if ranks.is_started() => &STOP_SIGNALS,
        _ => &[],
    };
    let signals = Arc::new(Signals::default());
    // In the handler, which the main thread runs before it goes on.
    flag::register(SIGCONT, Arc::clone(&signals.gone_on)).map_err(|e| uncaught(&e))?;
    let mut arrivals =
        Arrivals::new(caught().chain(stops.iter().copied())).map_err(|e| uncaught(&e))?;
    if let Some(untouched) = UNTOUCHED.get() {
        untouched.store(false, Ordering::Relaxed);
    }
    let counted = Arc::clone(&signals);
    thread::Builder::new()
        .name("weir-signals".to_owned())
        .spawn(move || {
            let mut last = None;
            loop {
                let arrived: Vec<i32> = arrivals.wait().collect();
                let before = counted.interruptions.load(Ordering::Relaxed);
                let new = count(&arrived, &counted, &mut last, ranks.as_ref());
                if let (Some(first), Some(number)) = (&first, new)
                    && !first.pass_on(number)
                {
                    // No rank is left that could direct this one.
                    thread::sleep(MESSAGE_TIME);
                    low_level::exit(128 + number);
                }
                let is_news = counted.interruptions.load(Ordering::Relaxed) > before;
                if is_news && RELEASED.load(Ordering::Relaxed) {
                    crate::output::give_up_file();
                    low_level::exit(128 + counted.number.load(Ordering::Relaxed));
                }
            }
        })
        .map_err(|e| uncaught(&e))?;
    Ok(signals)
}

/// Counts signals that arrived together, and returns the last one that counts. A stop signal of rank 0
/// sets the count of this rank.
fn count(
    arrived: &[i32],
    signals: &Signals,
    last: &mut Option<Instant>,
    ranks: Option<&RankProcesses>,
) -> Option<i32> {
    let mut new = None;
    let now = Instant::now();
    let stop = (1..).zip(STOP_SIGNALS).filter(|(_, t)| arrived.contains(t));
    let stop = stop.map(|(times, _)| times).max();
    for number in arrived.iter().filter(|n| CAUGHT.contains(n)) {
        if is_echo(last, now) {
            continue;
        }
        new = Some(*number);
        signals.number.store(*number, Ordering::Relaxed);
        let before = signals.interruptions.fetch_add(1, Ordering::Relaxed);
        if let Some(ranks) = ranks.filter(|_| stop.is_none()) {
            ranks.pass_on(*number, before == 0);
        }
    }
    if let Some(times) = stop {
        *last = Some(now);
        signals.interruptions.fetch_max(times, Ordering::Relaxed);
    }
    new
}

/// True if a signal at this instant repeats the last one that counted.
fn is_echo(last: &mut Option<Instant>, now: Instant) -> bool {
    let echo = last.is_some_and(|at| now.duration_since(at) < ECHO);
    if !echo {
        *last = Some(now);
    }
    echo
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of the signal and count of interruptions after each of these arrivals.
    fn counted(arrivals: &[&[i32]]) -> Vec<(i32, u32)> {
        let (signals, mut last) = (Signals::default(), None);
        let so_far = |arrived: &&[i32]| {
            count(arrived, &signals, &mut last, None);
            let number = signals.number.load(Ordering::Relaxed);
            (number, signals.interruptions.load(Ordering::Relaxed))
        };
        arrivals.iter().map(so_far).collect()
    }

    #[test]
    fn the_word_of_rank_0_is_no_second_wish() {
        let [in_order, at_once] = STOP_SIGNALS;
        // Ctrl-C reaches all ranks, and rank 0 passes it on to the others.
        assert_eq!(counted(&[&[SIGINT, in_order]]), [(SIGINT, 1)]);
        assert_eq!(counted(&[&[SIGINT], &[in_order]]), [(SIGINT, 1); 2]);
        assert_eq!(counted(&[&[in_order], &[at_once]]), [(0, 1), (0, 2)]);
    }

    #[test]
    fn a_signal_sent_twice_at_once_counts_once() {
        let start = Instant::now();
        let mut last = None;
        let arrivals = [0, 1, 99, 100, 150, 5000];
        let echoes = arrivals.map(|ms| is_echo(&mut last, start + Duration::from_millis(ms)));
        assert_eq!(echoes, [false, true, true, false, true, false]);
    }
}
