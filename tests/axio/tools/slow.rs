//! Slow tests: they take long.

use super::{BATCHES, config, stage};

#[test]
fn a_search_from_batches_of_one_finds_more_and_its_file_is_accepted() {
    let stage = stage();
    let one = config().replace("iteration : 30", "iteration : 1");
    stage.file("c", one.replace("numa : 1\n", ""));
    let said = stage
        .peer_says(&["axio", "tools", "-c", "c", "-t", "20"])
        .code(0);
    assert!(said.out.contains("written: c.out"), "{}", said.out);
    let found = stage.read("c.out");
    assert!(found.contains("device_name : mlx5_0\n"), "{found}");
    // Where others use the machine too, noise may hide what larger batches gain.
    let is_kept = said.out.contains("kept: the settings it started with");
    let is_same = BATCHES
        .iter()
        .all(|key| found.contains(&format!("{key} : 1\n")));
    assert_eq!(is_kept, is_same, "{}{found}", said.out);
    stage
        .peer_says(&["axio", "tools", "-c", "c.out", "-v"])
        .code(0);
    stage
        .peer_says(&["axio", "-c", "c.out", "--loopback"])
        .code(0);
}
