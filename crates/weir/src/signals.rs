//! Signals: the first SIGINT, SIGTERM or SIGHUP ends the run in order, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Arrivals;
use weir_run::execute::Signals;

/// What arrives sooner after another is the same wish: `timeout` signals the program and then its
/// whole process group.
const ECHO: Duration = Duration::from_millis(100);

/// Catches signals from now on.
pub(crate) fn catch() -> io::Result<Arc<Signals>> {
    let signals = Arc::new(Signals::default());
    let mut arrivals = Arrivals::new([SIGINT, SIGTERM, SIGHUP])?;
    let counted = Arc::clone(&signals);
    thread::Builder::new()
        .name("weir-signals".to_owned())
        .spawn(move || {
            let mut last = None;
            for number in arrivals.forever() {
                if !is_echo(&mut last, Instant::now()) {
                    counted.number.store(number, Ordering::Relaxed);
                    counted.interruptions.fetch_add(1, Ordering::Relaxed);
                }
            }
        })?;
    Ok(signals)
}

/// Whether a signal at this instant repeats the last one that counted.
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

    #[test]
    fn a_signal_sent_twice_at_once_counts_once() {
        let start = Instant::now();
        let mut last = None;
        let arrivals = [0, 1, 99, 100, 150, 5000];
        let echoes = arrivals.map(|ms| is_echo(&mut last, start + Duration::from_millis(ms)));
        assert_eq!(echoes, [false, true, true, false, true, false]);
    }
}
