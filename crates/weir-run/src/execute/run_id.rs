//! The number of a run, which tells what it writes from what others wrote.

use crate::generate::rng::mix64;

/// The number of the run that started then; 1 to 65535.
pub(super) fn of_run(started_unix_ns: u64) -> u16 {
    let drawn = mix64(started_unix_ns) % u64::from(u16::MAX);
    u16::try_from(drawn).unwrap_or(0) + 1
}
