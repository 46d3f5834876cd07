//! The help page, from the flags' records.

use clap::Command;

use super::flags::FLAGS;
use crate::flags::{command, listing};

/// Examples and exit codes, the end of the page.
pub const HELP: &str = include_str!("help.md");

const USAGE: &str = "weir beff [OPTIONS]";
const ABOUT: &str = "Effective bandwidth: every rank exchanges messages of growing size with its\n\
                     neighbours; b_eff is the mean over the sizes.";

/// The page of `--help`.
pub(super) fn page() -> String {
    format!("{USAGE}\n\n{ABOUT}\n{}\n{HELP}", listing(FLAGS))
}

/// The words, which are parsed in the peer's own manner.
pub(super) fn words() -> Command {
    command("beff", FLAGS)
        .about(ABOUT)
        .after_help(HELP)
        .override_usage(USAGE)
}
