//! Two hosts with a wire between them (`lab/net`): a slow wire, a late one, a lossy one, one that
//! is cut.

use std::path::Path;
use std::process::Command;

use crate::stage::{Said, Stage, has, is_root, peer, root, said, skip};
use crate::table;

/// The benchmark with a rank on each of two hosts; nothing where this machine cannot have them.
fn between_hosts(stage: &Stage, wire: &str, words: &str) -> Option<Said> {
    let no = |reason: &str| {
        skip(&format!("two hosts over a wire with {wire}"), reason);
        None
    };
    if !is_root() {
        return no("network namespaces need root");
    }
    if let Some(missing) = ["ip", "cc", "mpirun.mpich"].iter().find(|p| !has(p)) {
        return no(&format!("no {missing}"));
    }
    let lab = root().join("lab/net");
    let trial = said(wired(stage, &lab, wire, &["true"]));
    // What the machine lacks; anything else is a failure.
    if trial.code == Some(3) {
        return no(trial.err.trim());
    }
    trial.code(0);
    let lab_again = lab.to_str()?.to_owned();
    let ranks = [
        "mpirun.mpich",
        "-n",
        "2",
        &lab_again,
        "rank",
        peer("Network_intel"),
    ];
    let words = words.split_whitespace().chain(["--iface", "weir0"]);
    let all: Vec<&str> = ranks.into_iter().chain(words).collect();
    Some(said(wired(stage, &lab, wire, &all)))
}

fn wired(stage: &Stage, lab: &Path, wire: &str, words: &[&str]) -> Command {
    let mut command = stage.command(lab.to_str().unwrap());
    command.arg("run").args(wire.split_whitespace()).args(words);
    command
}

/// Seconds of one exchange, of each row: the time is that of so many one after another per loop.
fn of_an_exchange(said: &Said, exchanges: f64) -> Vec<f64> {
    let rows = table(&said.out);
    let seconds = |row: &Vec<String>| {
        let [loops, time] = [1, 2].map(|field| row[field].parse::<f64>().unwrap());
        time / (exchanges * loops)
    };
    rows.iter().map(seconds).collect()
}

#[test]
fn a_wire_without_options_carries_everything() {
    let words = "--comm-type tcp -n 3 -u 16 -l 16 -m 16";
    let Some(said) = between_hosts(&Stage::new(), "", words) else {
        return;
    };
    said.code(0).out("Validation: SUCCESS!");
}

#[test]
fn a_slow_wire_is_as_fast_as_it_is_said_to_be() {
    let words = "--comm-type tcp -n 3 -u 16 -l 16 --sizes 16";
    let Some(said) = between_hosts(&Stage::new(), "--rate 100mbit", words) else {
        return;
    };
    let said = said.code(0).out("Validation: SUCCESS!");
    let row = table(&said.out).remove(0);
    let rate: f64 = row[3].parse().unwrap();
    // Both ways at once, and the messages do not wait for headers alone.
    assert!(rate <= 2.0 * 100e6 / 8.0, "{said}");
}

#[test]
fn no_message_is_faster_than_a_late_wire() {
    // One run: of several each rank's own best would count, and one of them may begin late.
    let words = "-n 1 -u 4 -l 4 --sizes 0,10,16 --comm-type";
    // The two replications of tcp exchange one after the other, those of udp together.
    for (transport, exchanges) in [("tcp", 2.0), ("udp", 1.0)] {
        let words = format!("{words} {transport}");
        let Some(said) = between_hosts(&Stage::new(), "--delay 20ms", &words) else {
            return;
        };
        let said = said.code(0).out("Validation: SUCCESS!");
        let found = of_an_exchange(&said, exchanges);
        assert_eq!(found.len(), 3, "{said}");
        assert!(found.iter().all(|time| *time >= 0.02), "{found:?}: {said}");
    }
}

#[test]
fn a_late_wire_is_no_slower_under_load() {
    // Messages of 2 MiB in 1500 frames, which would take 30 s if they travelled one by one.
    let words = "--comm-type tcp --timeout 20 -n 1 -u 2 -l 2 -r 1 --sizes 21";
    let Some(said) = between_hosts(&Stage::new(), "--delay 20ms", words) else {
        return;
    };
    said.code(0).out("Validation: SUCCESS!");
}

#[test]
fn what_the_wire_loses_is_counted() {
    let words = "--comm-type udp -r 1 -n 1 -u 100 -l 100 --sizes 6";
    let Some(said) = between_hosts(&Stage::new(), "--loss 5", words) else {
        return;
    };
    let said = said.code(1);
    let lost = said.out.lines().find_map(|l| l.strip_prefix("lost: "));
    let lost: u32 = lost.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    // 100 messages each way, 5 in 100 of them and of the credits for them.
    assert!((1..200).contains(&lost), "{said}");
}

#[test]
fn a_stream_over_a_lossy_wire_loses_nothing() {
    let words = "--comm-type tcp -n 1 -u 8 -l 8 --sizes 6,14";
    let Some(said) = between_hosts(&Stage::new(), "--loss 2 --delay 1ms", words) else {
        return;
    };
    said.code(0).out("Validation: SUCCESS!");
}

#[test]
fn a_cut_wire_is_noticed_in_time_and_named() {
    for transport in ["tcp", "udp"] {
        let words = "--timeout 2 -n 1000 -u 4000000 -l 4000000 --sizes 12 --comm-type";
        let words = format!("{words} {transport}");
        let Some(said) = between_hosts(&Stage::new(), "--cut-after 2", &words) else {
            return;
        };
        let said = said.code(1);
        assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
        let message = said.err("messages of 4096 B, replication ").err("rank ");
        message.err("rank 1 does not answer: no heartbeat for ");
    }
}

#[test]
fn wrong_words_about_the_wire_are_refused() {
    let stage = Stage::new();
    if !is_root() || !has("ip") || !has("cc") {
        return skip("wrong words about a wire", "needs root, ip and cc");
    }
    let lab = root().join("lab/net");
    for (wire, message) in [
        (
            "--delay soon",
            "--delay soon: expected a number with one of s ms us",
        ),
        ("--rate 5x", "--rate 5x: expected a number"),
        ("--delay 5", "--delay 5: it needs a unit, such as 5ms"),
        ("--rate 100", "--rate 100: it needs a unit, such as 100mbit"),
        ("--loss 101", "at most 100 percent"),
        ("--dely 5ms", "no option --dely"),
    ] {
        said(wired(&stage, &lab, wire, &["true"]))
            .code(2)
            .err(message);
    }
}

#[test]
fn what_a_killed_lab_leaves_the_next_one_removes() {
    let stage = Stage::new();
    if !is_root() || !has("ip") {
        return skip("a killed lab", "needs root and ip");
    }
    let lab = root().join("lab/net");
    let names = ["sh", "-c", "echo $WEIR_LAB; kill -KILL $PPID"];
    let killed = said(wired(&stage, &lab, "", &names));
    if killed.code == Some(3) {
        return skip("a killed lab", killed.err.trim());
    }
    let name = killed.out.trim();
    assert!(name.starts_with("weir-lab-"), "{killed}");
    said(wired(&stage, &lab, "", &["true"])).code(0);
    let below = |directory: &str| -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|found| found.starts_with(&format!("{name}-")))
            .collect()
    };
    assert_eq!(below("/run/netns"), Vec::<String>::new());
    assert_eq!(
        below(std::env::temp_dir().to_str().unwrap()),
        Vec::<String>::new()
    );
}
