//! Slow tests: a file system that root makes.

use super::*;

#[test]
fn a_trail_that_cannot_be_kept_ends_the_search() {
    let what = "a full disk for the trail";
    if let Some(why) = lacks_mounts() {
        return skip(what, why);
    }
    if let Some(missing) = ["mount", "sh"].iter().find(|name| !has(name)) {
        return skip(what, &format!("no {missing}"));
    }
    let stage = stage();
    std::fs::create_dir(stage.path("full")).unwrap();
    let mut command = stage.command("unshare");
    command.args(["--mount", "sh", "-ec", FULL, "sh", WEIR, "tune"]);
    command.args(["--metric", "rate", "--trail", "full/t.jsonl", "--"]);
    command.args(["run", VARIED, "a.fio"]);
    let said = said(command).code(3);
    said.err("--trail full/t.jsonl: No space left on device");
    let mut command = stage.command("unshare");
    command.args(["--mount", "sh", "-ec", FULL, "sh", WEIR, "tune"]);
    command.args(["--metric", "rate", "-o", "full/best", "--"]);
    command.args(["run", VARIED, "a.fio"]);
    let kept = self::said(command).code(1);
    let kept = kept.err("No space left on device");
    assert!(!kept.out.contains("written:"), "{kept}");
}

#[test]
fn a_search_that_was_ended_continues_from_its_trail() {
    let stage = stage();
    let command = ["run", VARIED, "a.fio"];
    let flags = ["--trail", "t.jsonl", "--trials"];
    let first = tune(&stage, &[&flags[..], &["4"]].concat(), &command).code(0);
    first.out("4 trials of").out("ended by --trials");
    let before = stage.read("t.jsonl");
    // The last line was being written when the search ended.
    stage.file("t.jsonl", format!("{before}{{\"point\":[1],\"val"));
    let second = tune(&stage, &[&flags[..], &["50"]].concat(), &command).code(0);
    second.out("kept: limit=1600");
    let after = stage.read("t.jsonl");
    assert!(
        after.starts_with(&before) && after.len() > before.len(),
        "{after}"
    );
    // All is known: nothing is tried again but the start and the best in turns.
    tune(&stage, &["--trail", "t.jsonl"], &command)
        .code(0)
        .out("kept: limit=1600");
    assert_eq!(stage.read("t.jsonl"), after);
    let other = tune(&stage, &["--trail", "t.jsonl", "--seed", "2"], &command);
    other
        .code(2)
        .err("--trail t.jsonl: it is the trail of another search: its seed differs");
    let odd = tune(&stage, &["--trail", "a.fio"], &command);
    odd.code(2).err("--trail a.fio:1: no line of a trail");
}

#[test]
fn a_packet_path_is_tuned_by_its_configuration_alone() {
    let stage = stage();
    stage.file("c", PATH);
    let words = "tune -c c -t 12 --seed 3 --trail t.jsonl --format json";
    let words: Vec<&str> = words.split(' ').collect();
    let report = json(&stage.say(&words).code(0).out);
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.len() <= 12 && trials.len() >= 6, "{report}");
    let names = report["search"]["space"]["dimensions"].as_array().unwrap();
    let names: Vec<&str> = names.iter().map(|d| d["name"].as_str().unwrap()).collect();
    // A workspace that does everything has no other layout.
    assert!(
        names.contains(&"nic_ring") && !names.contains(&"layout"),
        "{names:?}"
    );
    // A run of a packet path is diagnosed, which names what to change first.
    assert!(trials[0]["dimension"].as_u64().is_some(), "{report}");
    let out = stage.read("c.out");
    assert!(
        out.starts_with("# one core\ndevice_name : mlx5_0\n"),
        "{out}"
    );
    assert_eq!(stage.read("c"), PATH);
    stage.say(&["axio", "tools", "-c", "c.out", "-v"]).code(0);
    stage.say(&["axio", "-c", "c.out"]).code(0);
    // The same outcomes and the same seed propose the same: the trail is taken over as it stands.
    let before = stage.read("t.jsonl");
    stage.say(&words).code(0);
    assert_eq!(stage.read("t.jsonl"), before);
    // A search for something else is another one.
    let other = [&words[..], &["--objective", "p99"]].concat();
    stage.say(&other).code(2).err("its figure differs");
    let other = [&words[..], &["--slo", "loss=0"]].concat();
    stage.say(&other).code(2).err("what has to be kept differs");
}
