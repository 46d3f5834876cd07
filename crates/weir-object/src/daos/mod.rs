//! The engine `daos`: objects of a DAOS system, by its library.
//!
//! In: calls of [`ObjectStore`](crate::ObjectStore), the label or UUID of a pool. Out: what libdaos answers. It is
//! opened at run time; nothing of it is needed to build or start weir. The library gives every update its epoch,
//! so updates and punches are at [`Epoch::LATEST`](crate::Epoch::LATEST) alone, reads there or at a snapshot.
//! Not here: making pools.

mod calls;
mod library;
mod listing;
mod queue;
mod request;
mod store;

pub use library::{LIBRARY_VARIABLE, lacks};
pub use store::{DaosPool, DaosStore};

use weir_schema::{ObjectAction, ObjectDurability, ObjectWorkload};

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
