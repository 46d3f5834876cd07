//! Versioned stores of objects, distribution keys, attribute keys and values.
//!
//! In: a pool to open and calls of [`ObjectStore`]. Out: what each call found, and which error it
//! met. Not here: which operation comes next and how long it took (the runner), words of a door.
#![deny(unsafe_code)]

mod array;
mod conditions;
pub mod daos;
pub mod disk;
mod error;
mod limits;
mod listing;
pub mod mem;
mod pool;
mod prelude;
pub mod remote;
mod run;
mod store;
mod superblock;

pub use error::{ErrorPlace, ObjectCode, ObjectError};
pub use run::{ObjectRunner, uuid_of, uuid_text};
pub use store::*;
pub use superblock::remove_pool;
