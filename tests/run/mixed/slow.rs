//! Slow tests: under the launchers of MPI.

use super::{each_launcher, is_whole, launch, mixed, said};

#[test]
fn unlike_jobs_run_under_both_launchers() {
    each_launcher("unlike jobs under a launcher", |stage, launcher| {
        let file = stage.file("mixed.json", mixed(stage, true).to_string());
        let words = ["run", "--format=json", &file];
        is_whole(&said(launch(stage, launcher, 2, &words)).code(0), 2);
    });
}
