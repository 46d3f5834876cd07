//! Conditions of updates, fetches and punches.

use crate::error::{ObjectCode, refuse};
use crate::store::{Iod, Result};

/// A distribution key that has to exist does not.
pub(crate) fn no_dkey<T>() -> Result<T> {
    ObjectCode::NonExist.fail("the distribution key does not exist")
}

/// The same of an attribute key.
pub(crate) fn no_akey<T>() -> Result<T> {
    ObjectCode::NonExist.fail("the attribute key does not exist")
}

/// Conditions of an operation; one that fails gives `NONEXIST` or `EXIST` and changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions(pub u32);

impl Conditions {
    /// No condition.
    pub const NONE: Self = Self(0);
    /// Punch only what exists.
    pub const PUNCH: Self = Self(1);
    /// Update only if the distribution key does not exist.
    pub const DKEY_INSERT: Self = Self(2);
    /// Update only if the distribution key exists.
    pub const DKEY_UPDATE: Self = Self(4);
    /// Fetch fails if the distribution key does not exist.
    pub const DKEY_FETCH: Self = Self(8);
    /// Update only if the attribute keys do not exist.
    pub const AKEY_INSERT: Self = Self(16);
    /// Update only if the attribute keys exist.
    pub const AKEY_UPDATE: Self = Self(32);
    /// Fetch fails if an attribute key does not exist.
    pub const AKEY_FETCH: Self = Self(64);
    /// The conditions of attribute keys are per key. Engines here check every key anyway.
    pub const PER_AKEY: Self = Self(128);

    /// Refuses an update whose keys are there or not, against its conditions.
    pub(crate) fn check(
        self,
        iods: &[Iod<'_>],
        dkey_exists: impl FnOnce() -> Result<bool>,
        mut akey_exists: impl FnMut(&[u8]) -> Result<bool>,
    ) -> Result<()> {
        let (insert, update) = (self.has(Self::DKEY_INSERT), self.has(Self::DKEY_UPDATE));
        if insert || update {
            let exists = dkey_exists()?;
            refuse!(exists && insert => Exist, "the distribution key exists");
            refuse!(!exists && update => no_dkey());
        }
        let (insert, update) = (self.has(Self::AKEY_INSERT), self.has(Self::AKEY_UPDATE));
        for iod in iods.iter().filter(|_| insert || update) {
            let exists = akey_exists(iod.akey)?;
            refuse!(exists && insert => Exist, "the attribute key exists");
            refuse!(!exists && update => no_akey());
        }
        Ok(())
    }

    /// True if every condition of `other` is among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These and the conditions of `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
