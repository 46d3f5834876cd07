//! Rates of the kinds of a mix, and pauses.

use super::fio;
use super::stage::Stage;

#[test]
fn each_kind_of_a_mix_keeps_its_own_rate() {
    let stage = Stage::new();
    let writes = |words: &[&str]| {
        let common = ["--rw=randrw", "--size=12m", "--number_ios=3000"];
        fio(&stage, &[&common[..], words].concat()).code(0);
        let report = stage.read("report");
        let line = report.lines().find(|l| l.contains("issued rwts")).unwrap();
        let counts = line.split("total=").nth(1).unwrap();
        counts.split(',').nth(1).unwrap().parse::<u32>().unwrap()
    };
    // No kind waits for another: not by chance, and not by one operation more.
    for (words, expected) in [
        (&["--rate=100m,200m"][..], 2000),
        (&["--rate_iops=60000,20000"], 750),
    ] {
        let found = writes(words);
        assert!(found.abs_diff(expected) <= 1, "{words:?}: {found} writes");
    }
    // Shares of 3000 draws, within five standard deviations.
    let is_near = |found: u32, expected: u32| found.abs_diff(expected) < 140;
    for (words, expected) in [
        // Some writes are shorter: the blocks behind them are taken.
        (&["--rate=100m,200m", "--bs=4k,8k", "--size=24m"][..], 1500),
        // A kind without a rate of its own is mixed in as the plan says.
        (&["--rate=,400m", "--rwmixread=50"], 1500),
        (&["--rwmixread=25"], 2250),
    ] {
        let found = writes(words);
        assert!(is_near(found, expected), "{words:?}: {found} writes");
    }
}

#[test]
fn pauses_count_completed_operations_unless_issued_ones_are_asked_for() {
    let stage = Stage::new();
    let counted = |words: &[&str]| {
        let common = [
            "fio",
            "--name=a",
            "--size=4k",
            "--thinktime=1ms",
            "--show-plan",
        ];
        let said = stage.peer_says(&[&common[..], words].concat()).code(0);
        let plan: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        plan["groups"][0]["jobs"][0]["workload"]["load"]["pacing"]["thinktime"]["completed"].clone()
    };
    assert_eq!(counted(&[]), true);
    assert_eq!(counted(&["--thinktime_blocks_type=complete"]), true);
    assert_eq!(counted(&["--thinktime_blocks_type=issue"]), false);
}
