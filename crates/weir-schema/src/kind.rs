//! Kinds of operation, which are counted apart: a workload declares its own.
//!
//! In the loop a kind is a number, its place in the declaration. In plans, results and everything
//! that is keyed by kind it is its name ([`KindName`]). Not here: what operations do.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

use crate::workload::DECLARED_KINDS;

/// A workload has at most so many kinds.
pub const MOST_KINDS: usize = 16;

/// A kind of operation that a workload declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Its name in plans, results and reports.
    pub name: &'static str,
    /// Direction in which it moves bytes.
    pub moves: Moves,
    /// It only serves the others, like a flush between writes: counted and timed, but no part of
    /// the rates.
    pub is_aside: bool,
}

impl KindInfo {
    /// A kind that is part of the rates.
    pub const fn new(name: &'static str, moves: Moves) -> Self {
        Self {
            name,
            moves,
            is_aside: false,
        }
    }

    /// It only serves the others.
    #[must_use]
    pub const fn aside(self) -> Self {
        Self {
            is_aside: true,
            ..self
        }
    }
}

/// Direction in which a kind moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// From the target.
    In,
    /// To the target.
    Out,
    /// None.
    None,
}

/// The kinds of block I/O, in the order of [`Kind`].
pub const BLOCK_KINDS: &[KindInfo] = &[
    KindInfo::new("read", Moves::In),
    KindInfo::new("write", Moves::Out),
    KindInfo::new("trim", Moves::None),
    KindInfo::new("sync", Moves::None).aside(),
];

/// The name of a kind. Names are in the order in which workloads declare them; a name that none
/// declares, in a result of a newer version, comes last.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct KindName(Cow<'static, str>);

/// A value for each kind that has one.
pub type ByKind<T> = BTreeMap<KindName, T>;

impl KindName {
    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// All kinds that are part of the rates, where a job reports them as one.
    pub const MIXED: Self = Self(Cow::Borrowed("mixed"));

    /// True if operations of another kind count for this one.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || (*self == Self::MIXED && !other.is_aside())
    }

    /// It only serves the others.
    pub fn is_aside(&self) -> bool {
        let mut declared = DECLARED_KINDS.iter().copied().flatten();
        declared.any(|info| info.is_aside && info.name == self.0)
    }

    fn place(&self) -> usize {
        let mut declared = DECLARED_KINDS.iter().copied().flatten();
        let place = declared.position(|info| info.name == self.0);
        place.unwrap_or(usize::MAX)
    }
}

impl Ord for KindName {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_place = self.place().cmp(&other.place());
        by_place.then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for KindName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq<Kind> for KindName {
    fn eq(&self, kind: &Kind) -> bool {
        self.0 == kind.name()
    }
}

impl From<Kind> for KindName {
    fn from(kind: Kind) -> Self {
        Self(Cow::Borrowed(kind.name()))
    }
}

impl From<&KindInfo> for KindName {
    fn from(info: &KindInfo) -> Self {
        Self(Cow::Borrowed(info.name))
    }
}

impl From<&Self> for KindName {
    fn from(name: &Self) -> Self {
        name.clone()
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The kinds of block I/O.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Data from the target.
    Read,
    /// Data to the target.
    Write,
    /// Discard of a range.
    Trim,
    /// fsync, fdatasync or a range sync.
    Sync,
}

impl Kind {
    /// Every kind that moves or discards data, in the order of reports.
    pub const DATA: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Position in the declaration: read 0, write 1, trim 2, sync 3.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        BLOCK_KINDS[self as usize].name
    }

    /// The kind of this name.
    pub fn named(name: &KindName) -> Option<Self> {
        let all = [Self::Read, Self::Write, Self::Trim, Self::Sync];
        all.into_iter().find(|kind| *name == *kind)
    }
}

/// One value for each kind of block I/O that moves or discards data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PerKind<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims.
    pub trim: T,
}

impl<T> PerKind<T> {
    /// The value of a data kind; syncs share the write's.
    pub const fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Read => &self.read,
            Kind::Write | Kind::Sync => &self.write,
            Kind::Trim => &self.trim,
        }
    }

    /// The values by name.
    pub fn by_name(self) -> ByKind<T> {
        let values = [self.read, self.write, self.trim];
        Kind::DATA
            .map(KindName::from)
            .into_iter()
            .zip(values)
            .collect()
    }
}

impl<T> PerKind<Option<T>> {
    /// The values that are given, by name.
    pub fn given_by_name(self) -> ByKind<T> {
        let values = [self.read, self.write, self.trim];
        let given = Kind::DATA.into_iter().zip(values);
        given
            .filter_map(|(kind, value)| Some((kind.into(), value?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_declaration() {
        let later = KindName(Cow::Borrowed("a-kind-of-a-newer-version"));
        let mut names: Vec<KindName> = vec![later.clone()];
        let all = [Kind::Sync, Kind::Trim, Kind::Write, Kind::Read];
        names.extend(all.map(KindName::from));
        names.sort();
        let texts: Vec<&str> = names.iter().map(KindName::as_str).collect();
        assert_eq!(texts, ["read", "write", "trim", "sync", later.as_str()]);
        assert!(names[3].is_aside() && !later.is_aside());
        assert!(all.iter().all(|k| Kind::named(&(*k).into()) == Some(*k)));
        assert_eq!(Kind::named(&later), None);
    }
}
