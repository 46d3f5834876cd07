//! The history of this user's runs: its place, its contents, `weir history`.

mod import;
mod keep;
mod place;
mod spreads;
mod verbs;

pub(crate) use keep::{Keep, check_save, keep, keep_runs, save_runs};
pub(crate) use place::texts;
pub(crate) use spreads::add_spreads;
pub(crate) use verbs::run;

/// `1 run`, `2 runs`.
fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}
