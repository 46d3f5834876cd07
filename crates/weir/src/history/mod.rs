//! The history of this user's runs: where it is, what is kept in it, `weir history`.

mod import;
mod keep;
mod place;
mod verbs;

pub(crate) use keep::{Keep, keep, keep_runs};
pub(crate) use place::texts;
pub(crate) use verbs::run;
