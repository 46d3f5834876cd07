//! Slow tests: under the launchers of MPI.

use super::{each_launcher, is_section, under};

#[test]
fn both_launchers_get_one_section_over_mpi() {
    each_launcher("lat-bw under a launcher", |stage, launcher| {
        is_section(&under(stage, launcher, 2, &[]).code(0));
        let said = under(stage, launcher, 3, &["--format", "json"]).code(0);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let done = &json["weir"]["groups"][0]["jobs"][0]["outcome"];
        assert_eq!(done["transport"], "mpi");
        assert_eq!(done["wrong_bytes"], 0);
        assert_eq!(done["ranks"].as_array().unwrap().len(), 3);
        assert_eq!(done["bandwidth"]["pairs"].as_array().unwrap().len(), 6);
    });
}

#[test]
fn too_few_ranks_under_a_launcher_are_told_once() {
    each_launcher("lat-bw on one rank", |stage, launcher| {
        let message = under(stage, launcher, 1, &[]).code(2).silent();
        let count = message.err.matches("needs at least 2 ranks").count();
        assert_eq!(count, 1, "{message}");
    });
}
