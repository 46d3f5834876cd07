//! Signals: the first SIGINT or SIGTERM ends the run in order, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Arrivals;
use weir_run::execute::Signals;

/// Catches signals from now on.
pub(crate) fn catch() -> io::Result<Arc<Signals>> {
    let signals = Arc::new(Signals::default());
    let mut arrivals = Arrivals::new([SIGINT, SIGTERM])?;
    let counted = Arc::clone(&signals);
    thread::Builder::new()
        .name("weir-signals".to_owned())
        .spawn(move || {
            for number in arrivals.forever() {
                counted.number.store(number, Ordering::Relaxed);
                counted.interruptions.fetch_add(1, Ordering::Relaxed);
            }
        })?;
    Ok(signals)
}
