//! Two hosts with a wire between them (`lab/net`): a slow wire, a lossy one, one that is cut.

use std::process::Command;

use crate::stage::{Said, Stage, WEIR, has, is_root, root, said, skip};
use crate::table;

const ADDRESSES: &str = "0=10.77.0.1,1=10.77.0.2";

/// weir beff with a rank on each of two hosts; nothing where this machine cannot have them.
fn between_hosts(stage: &Stage, wire: &str, words: &str) -> Option<Said> {
    let no = |reason: &str| {
        skip("two hosts over a wire", reason);
        None
    };
    if !is_root() {
        return no("network namespaces need root");
    }
    if let Some(missing) = ["ip", "tc", "nft", "mpirun.mpich"].iter().find(|p| !has(p)) {
        return no(&format!("no {missing}"));
    }
    let lab = root().join("lab/net");
    let trial = said(wired(stage, &lab, wire, &["true"]));
    if trial.code != Some(0) {
        return no(trial.err.trim());
    }
    let lab_again = lab.to_str()?.to_owned();
    let ranks = ["mpirun.mpich", "-n", "2", &lab_again, "rank", WEIR, "beff"];
    let words = words.split_whitespace().chain(["--iface", ADDRESSES]);
    let all: Vec<&str> = ranks.into_iter().chain(words).collect();
    Some(said(wired(stage, &lab, wire, &all)))
}

fn wired(stage: &Stage, lab: &std::path::Path, wire: &str, words: &[&str]) -> Command {
    let mut command = stage.command(lab.to_str().unwrap());
    command.arg("run").args(wire.split_whitespace()).args(words);
    command
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
    // Both ways at once, less what headers take; the first 64 KiB pass unhindered.
    let wire = 2.0 * 100e6 / 8.0;
    assert!((0.5 * wire..1.2 * wire).contains(&rate), "{said}");
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
fn a_cut_wire_is_noticed_in_time_and_named() {
    let words = "--comm-type tcp --timeout 2 -n 1000 -u 4000000 -l 4000000 --sizes 12";
    let Some(said) = between_hosts(&Stage::new(), "--cut-after 2", words) else {
        return;
    };
    let said = said.code(1);
    assert_eq!(said.err.matches("error: ").count(), 1, "{said}");
    let told = said
        .err("messages of 4096 B, replication 0 (to rank")
        .err("rank ");
    told.err("no progress for 2 s");
}
