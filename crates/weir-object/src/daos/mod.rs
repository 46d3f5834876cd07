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

use weir_schema::ObjectWorkload;

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
