//! Account of the memory that peers make a process hold: sessions, calls, orders, and what waits to be read
//! or written.
//!
//! In: amounts that any thread takes and gives back. Out: whether they may be taken. Not here: what happens to
//! those who ask for more.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes for what peers make a server hold beside sessions and long messages: calls that wait, answers that
/// nobody has read, beginnings of messages. They are apart, so that neither takes what the other needs.
const REST: u64 = 48 << 20;

/// Bytes of the rest that a connection may hold without asking: short calls go on where others have taken all.
pub(crate) const FREE: u64 = 16 << 10;

/// Bytes that may still be taken. Clones are the same account.
#[derive(Clone, Debug)]
pub struct MemoryAccount {
    left: Arc<AtomicU64>,
    rest: Arc<AtomicU64>,
}

impl MemoryAccount {
    /// An account of so many bytes for sessions, and some for the rest.
    pub fn new(all: u64) -> Self {
        Self {
            left: Arc::new(AtomicU64::new(all)),
            rest: Arc::new(AtomicU64::new(REST)),
        }
    }

    /// An account that nothing exhausts.
    pub fn unlimited() -> Self {
        let left = Arc::new(AtomicU64::new(u64::MAX / 2));
        let rest = Arc::clone(&left);
        Self { left, rest }
    }

    /// Takes so much for a session, if that is left; true if it was.
    pub fn take(&self, amount: u64) -> bool {
        take(&self.left, amount)
    }

    /// Gives back what was taken for sessions.
    pub fn give(&self, amount: u64) {
        self.left.fetch_add(amount, Relaxed);
    }

    /// Takes so much for anything else; true if it was left.
    pub(crate) fn take_rest(&self, amount: u64) -> bool {
        take(&self.rest, amount)
    }

    /// Gives back what was taken for anything else.
    pub(crate) fn give_rest(&self, amount: u64) {
        self.rest.fetch_add(amount, Relaxed);
    }

    /// Bytes for sessions that nobody has taken.
    pub fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }
}

fn take(left: &AtomicU64, amount: u64) -> bool {
    let less = |left: u64| left.checked_sub(amount);
    left.fetch_update(Relaxed, Relaxed, less).is_ok()
}

/// Part of an account that something of changing size has taken.
#[derive(Debug)]
pub(crate) struct Charge {
    left: Arc<AtomicU64>,
    taken: u64,
}

impl Charge {
    /// Nothing so far, of what is for sessions and long messages.
    pub(crate) fn new(account: &MemoryAccount) -> Self {
        let left = Arc::clone(&account.left);
        Self { left, taken: 0 }
    }

    /// Nothing so far, of what is for the rest.
    pub(crate) fn of_rest(account: &MemoryAccount) -> Self {
        let left = Arc::clone(&account.rest);
        Self { left, taken: 0 }
    }

    /// It is so large now; false, and as before, where the account has not that much left.
    #[inline]
    pub(crate) fn is_now(&mut self, bytes: u64) -> bool {
        bytes <= self.taken || self.grow(bytes)
    }

    /// Bytes that it may still take at this moment.
    #[inline]
    pub(crate) fn left(&self) -> u64 {
        self.left.load(Relaxed)
    }

    #[cold]
    fn grow(&mut self, bytes: u64) -> bool {
        let more = bytes - self.taken;
        let is_there = take(&self.left, more);
        if is_there {
            self.taken = bytes;
        }
        is_there
    }

    /// It is no larger than this any more.
    pub(crate) fn is_at_most(&mut self, bytes: u64) {
        if self.taken > bytes {
            self.left.fetch_add(self.taken - bytes, Relaxed);
            self.taken = bytes;
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.left.fetch_add(self.taken, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_never_overdrawn_and_gets_all_back() {
        let account = MemoryAccount::new(10);
        assert!(account.take(4) && !account.take(7));
        let mut charge = Charge::new(&account);
        assert!(charge.is_now(6) && !charge.is_now(7) && charge.is_now(2));
        assert_eq!(account.left(), 0);
        // The rest is apart.
        assert!(Charge::of_rest(&account).is_now(REST));
        assert!(account.take_rest(REST) && !account.take_rest(1));
        charge.is_at_most(5);
        assert_eq!(account.left(), 1);
        drop(charge);
        account.give(4);
        assert_eq!(account.left(), 10);
    }
}
