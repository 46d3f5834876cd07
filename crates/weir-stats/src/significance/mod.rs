//! Comparing two sides that were each measured several times: is the difference more than chance?
//!
//! In: a figure of each round or run. Out: a ratio with its interval ([`ratio_of_medians`],
//! [`ratio_of_unpaired`], [`paired_t`], [`welch`], [`welch_of_runs`]), a probability ([`signed_rank`], [`rank_sum`]),
//! corrected for how many were looked at ([`holm`]), and what is odd about the rounds ([`drift`],
//! [`outliers`]). Not here: the verdict in words, and how many rounds to run.

mod oddities;
mod ranks;
mod ratio;
mod students;

pub use oddities::{drift, outliers};
pub use ranks::{holm, least_rank_sum, least_signed_rank, rank_sum, signed_rank};
pub use ratio::{median, ratio_of_medians, ratio_of_unpaired};
pub use students::{MeanOfLogarithms, RatioTest, RunsApart, paired_t, welch, welch_of_runs};
