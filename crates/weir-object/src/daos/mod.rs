//! The engine `daos`: objects of a DAOS system, by its library.
//!
//! In: calls of [`ObjectStore`](crate::ObjectStore), the label or UUID of a pool. Out: what libdaos answers. It is
//! opened at run time; nothing of it is needed to build or start weir. The library gives every update its epoch,
//! so updates and punches are at [`Epoch::LATEST`](crate::Epoch::LATEST) alone, reads there or at a snapshot.
//! Not here: making pools.

mod calls;
mod descriptors;
mod library;
mod listing;
mod queue;
mod store;

pub use library::{LIBRARY_VARIABLE, lacks};
pub use store::DaosStore;

use weir_schema::{ObjectAction, ObjectDurability, ObjectWorkload};

/// Pool to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaosPool {
    /// Its label or UUID.
    pub name: String,
    /// Class of objects whose names have none.
    pub class: u32,
    /// Operations in flight; up to 1: each is waited for.
    pub in_flight: u32,
    /// Library to open; without it the one that the environment names, or the system's.
    pub library: Option<String>,
}

impl DaosPool {
    /// Class of objects that lie on all targets.
    pub const ALL_TARGETS: u32 = 0x0100_ffff;

    /// A pool whose objects lie on all targets, for one operation at a time.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            class: Self::ALL_TARGETS,
            in_flight: 1,
            library: None,
        }
    }

    /// The pool of a workload.
    pub(crate) fn of(work: &ObjectWorkload) -> Self {
        Self {
            in_flight: work.in_flight,
            ..Self::new(work.pool.clone().unwrap_or_default())
        }
    }
}

/// Parts of a workload that this engine does not carry out.
pub(crate) fn wrong(work: &ObjectWorkload) -> impl Iterator<Item = &'static str> {
    let has = |is: fn(&ObjectAction) -> bool| work.tests.iter().any(|test| is(&test.action));
    let lasts = work
        .durability
        .is_none_or(|level| level == ObjectDurability::Power);
    [
        (
            work.pool.is_none(),
            "daos makes no pools: name one by its label or UUID",
        ),
        (
            work.zero_copy,
            "daos has no values in place (-z): mem has them",
        ),
        (
            work.layout.flat,
            "daos has objects with attribute keys here: leave -f out",
        ),
        (
            work.thread_per_operation && work.in_flight > 1,
            "daos: operations in flight have no threads of their own",
        ),
        (
            !lasts,
            "the servers of daos keep what they acknowledge: there is --durability power alone",
        ),
        (
            has(|action| matches!(action, ObjectAction::Iterate { .. })),
            "daos lists keys and no versions: I is there on mem",
        ),
        (
            has(|action| matches!(action, ObjectAction::Discard { .. })),
            "daos does not discard epochs: D is there on mem",
        ),
        (
            has(|action| matches!(action, ObjectAction::Collect { .. })),
            "daos frees what was put off by itself: G is there on mem",
        ),
    ]
    .into_iter()
    .filter_map(|(is_wrong, why)| is_wrong.then_some(why))
}
