//! Memory that this machine has left, asked before much of it is touched.
//!
//! In: how much is to be taken, for what. Out: nothing, or why not. Not here: limits that somebody set
//! (`server::limits`).

use weir_sys::Tree;
use weir_sys::memory::MemoryFacts;

use crate::{DerCode, RpcError};

/// Amount below which nothing is asked.
const MUCH: u64 = 16 << 20;

/// The most that buffers take where no limit is set.
const MOST_MEMORY: u64 = 1 << 30;

/// Limit of all buffers where none is set: a quarter of the memory, at most a gibibyte.
pub(crate) fn default_limit() -> u64 {
    let all = MemoryFacts::read(&Tree::real()).total;
    all.map_or(MOST_MEMORY, |all| (all.0 / 4).min(MOST_MEMORY))
}

/// Checks that the machine has so many bytes left, as far as it says. `for_what` begins a sentence.
///
/// # Errors
/// It has not: [`DerCode::NoMemory`], with both numbers.
pub(crate) fn check(all: u64, for_what: impl FnOnce() -> String) -> Result<(), RpcError> {
    if all < MUCH {
        return Ok(());
    }
    let left = MemoryFacts::read(&Tree::real()).available;
    within(all, left.map(|left| left.0), for_what)
}

fn within(all: u64, left: Option<u64>, for_what: impl FnOnce() -> String) -> Result<(), RpcError> {
    let Some(left) = left.filter(|left| *left < all) else {
        return Ok(());
    };
    let what = for_what();
    let why = format!(
        "{what} take {all} bytes, and that machine has {left} left: fewer RPCs at once, or shorter ones"
    );
    Err(RpcError::new(DerCode::NoMemory, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_is_left_is_refused_with_both_numbers() {
        let what = || "buffers".to_owned();
        assert_eq!(within(MUCH, Some(MUCH), what), Ok(()));
        assert_eq!(within(u64::MAX, None, what), Ok(()));
        let refused = within(MUCH + 1, Some(MUCH), what).unwrap_err();
        assert_eq!(refused.code, DerCode::NoMemory);
        let says = "buffers take 16777217 bytes, and that machine has 16777216 left";
        assert!(refused.message.starts_with(says), "{refused}");
        assert!(check(u64::MAX, what).is_err());
    }
}
