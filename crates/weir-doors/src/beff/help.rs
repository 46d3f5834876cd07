//! The help page, from the flags' records.

use super::flags::FLAGS;
use crate::flags::listing;

/// Examples and exit codes, the end of the page.
pub const HELP: &str = include_str!("help.md");

/// The page of `--help`.
pub(super) fn page() -> String {
    format!(
        "weir beff [OPTIONS]\n\nEffective bandwidth: every rank exchanges messages of growing \
         size with its\nneighbours; b_eff is the mean over the sizes.\n{}\n{HELP}",
        listing(FLAGS)
    )
}
