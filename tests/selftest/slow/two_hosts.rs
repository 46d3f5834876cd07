//! A client and a server on two hosts with a wire between them (`lab/net`): one that is late, one that
//! loses packets, one that is cut.

use std::process::Command;

use serde_json::Value;

use crate::servers::masters;
use crate::stage::{Said, Stage, WEIR, has, is_root, peer, root, said, skip};

/// A server on the first host and the command on the second, after which the server's end is asked for.
/// What is printed last is how many descriptors the server had before the command and how many it has
/// once there are as few again, or after a while.
const SCRIPT: &str = r#"
lab=$1 serve=$2 self_test=$3 test=$4
export PMI_RANK=0
mkfifo ready
"$lab" rank "$0" rpc serve --path . --rank 0 --open-to-anyone --transport tcp://10.77.0.1:0 $serve >ready 2>log &
server=$!
read -r _ <ready || exit 9
open() { ls "/proc/$server/fd" | wc -l; }
before=$(open)
code=0
PMI_RANK=1 "$lab" rank "$self_test" -u --path . -e 0:0 --output json $test || code=$?
tries=0
while [ "$(open)" -gt "$before" ] && [ $tries -lt 150 ]; do
    sleep 0.2
    tries=$((tries + 1))
done
echo "descriptors $before $(open)" >&2
kill "$server"
wait "$server" || code=8
exit $code
"#;

/// Output of the self-test; nothing where this machine cannot have two hosts.
fn between_hosts(wire: &str, serve: &str, test: &str) -> Option<Said> {
    let stage = Stage::new();
    let no = |reason: &str| {
        skip(&format!("a self-test over a wire with {wire}"), reason);
        None
    };
    if !is_root() {
        return no("network namespaces need root");
    }
    if let Some(missing) = ["ip", "cc"].iter().find(|program| !has(program)) {
        return no(&format!("no {missing}"));
    }
    let wired = |words: &[&str]| -> Command {
        let lab = root().join("lab/net");
        let mut command = stage.command(lab.to_str().unwrap());
        command.arg("run").args(wire.split_whitespace()).args(words);
        command
    };
    let trial = said(wired(&["true"]));
    // What the machine lacks; anything else is a failure.
    if trial.code == Some(3) {
        return no(trial.err.trim());
    }
    trial.code(0);
    let lab = root().join("lab/net");
    let self_test = peer("self_test");
    let lab = lab.to_str().unwrap();
    let words = ["sh", "-c", SCRIPT, WEIR, lab, serve, self_test, test];
    let found = said(wired(&words));
    let server = stage.read("log");
    assert_eq!(server.matches("panicked").count(), 0, "{server}");
    Some(found)
}

fn only_master(said: &Said) -> Value {
    masters(said)[0][0].clone()
}

/// The server has given back what the client had opened.
fn is_released(said: &Said) {
    let line = said
        .err
        .lines()
        .find(|line| line.starts_with("descriptors "));
    let words: Vec<&str> = line
        .unwrap_or_else(|| panic!("{said}"))
        .split(' ')
        .collect();
    assert_eq!(words[1], words[2], "{said}");
}

#[test]
fn f13_a_wire_that_loses_packets_loses_no_rpc() {
    let test = "-s 0,b100000 -r 400 --verify full";
    let Some(said) = between_hosts("--loss 1", "", test) else {
        return;
    };
    let said = said.code(0);
    is_released(&said);
    let blocks = masters(&said);
    let again = |master: &Value| master["retransmits"].as_u64().unwrap();
    assert!(
        blocks.iter().map(|block| again(&block[0])).sum::<u64>() > 0,
        "{said}"
    );
    for block in &blocks {
        assert_eq!(block[0]["succeeded"], 400);
    }
}

#[test]
fn f13_no_reply_is_faster_than_a_late_wire() {
    let test = "-s b3000 -r 100 --verify full";
    let Some(said) = between_hosts("--delay 20ms", "", test) else {
        return;
    };
    let said = said.code(0);
    let master = only_master(&said);
    assert_eq!(master["succeeded"], 100);
    // The request and the data that the server fetches, each there and back.
    assert!(
        master["latency"]["min"].as_u64().unwrap() >= 80_000_000,
        "{master}"
    );
}

#[test]
fn f13_rpcs_that_take_too_long_all_time_out_and_their_late_replies_harm_nobody() {
    let test = "-s i3000 -r 200 --timeout 0.01 --verify full";
    let Some(said) = between_hosts("--delay 20ms", "", test) else {
        return;
    };
    let said = said.code(1);
    is_released(&said);
    let master = only_master(&said);
    let failed = &master["endpoints"][0]["failed"];
    assert_eq!(*failed, serde_json::json!({"DER_TIMEDOUT": 200}), "{said}");
    assert!(master["late_replies"].as_u64().unwrap() > 0, "{master}");
    assert_eq!(master["mismatches"], 0);
}

#[test]
fn f13_a_cut_wire_ends_the_test_and_frees_the_server() {
    let test = "-s i1000 -r 100000000 --timeout 1";
    let serve = "--half-frame-timeout 2";
    let Some(said) = between_hosts("--cut-after 4", serve, test) else {
        return;
    };
    let said = said.code(1);
    is_released(&said);
    let master = only_master(&said);
    let failed = master["endpoints"][0]["failed"].as_object().unwrap();
    let known = |code: &String| ["DER_UNREACH", "DER_TIMEDOUT"].contains(&code.as_str());
    assert!(!failed.is_empty() && failed.keys().all(known), "{failed:?}");
    let [done, lost, left] =
        ["succeeded", "failed", "not_sent"].map(|part| master[part].as_u64().unwrap());
    assert!(done > 0 && left > 0, "{master}");
    assert_eq!(done + lost + left, 100_000_000);
}
