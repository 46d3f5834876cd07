//! Slow tests: under the launchers of MPI.

use super::{each_launcher, each_rank_is_left_out, launch};

#[test]
fn a_rank_of_a_launcher_that_stops_is_left_out_of_the_report() {
    each_launcher("a stopped rank of a job", |_, launcher| {
        each_rank_is_left_out(|stage, words| launch(stage, launcher, 4, words));
    });
}
