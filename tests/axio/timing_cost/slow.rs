//! Slow tests: they take long.

use super::*;

#[test]
fn the_self_test_says_what_timing_the_stages_costs() {
    let stage = Stage::new();
    let said = stage.peer_says(&["axio", "selftest"]).code(0);
    for timing in ["off", "1/8", "all"] {
        let begin = format!("stage timing {timing} ");
        let line = said.out.lines().find(|line| line.starts_with(&begin));
        let words: Vec<&str> = line.unwrap().split_whitespace().collect();
        let time: f64 = words[3].parse().unwrap();
        assert!(time > 0.0, "{said}");
        assert_eq!(words.contains(&"%)"), timing != "off", "{said}");
    }
    said.out("a read of the clock takes ")
        .out("Timing every pass costs ");
    let running = Running::start(stage.peer(&["axio", "selftest"]));
    until("it catches signals", || running.catches_signals());
    running.signal(Signal::INT);
    let said = running.end().code(130);
    said.out("The self-test was interrupted");
    let list = stage.list();
    assert!(list.is_empty(), "it leaves nothing: {list:?}");
}
