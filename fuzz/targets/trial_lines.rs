//! Lines of a search and of a daemon that runs the server's side of its trials, as anybody may send them.
//!
//! The first line of the input is one of either; the rest is a server's configuration, to which settings
//! are applied.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_datapath::remote::{TrialRequest, read_reply, read_request};
use weir_doors::tune::RemoteBounds;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (line, rest) = data.split_at(end.unwrap_or(data.len()));
    if let Ok(reply) = read_reply(line) {
        let again = serde_json::to_vec(&reply).expect("a line");
        assert_eq!(read_reply(&again), Ok(reply));
    }
    let Ok(request) = read_request(line) else {
        return;
    };
    let again = serde_json::to_vec(&request).expect("a line");
    assert_eq!(read_request(&again).as_ref(), Ok(&request));
    let (TrialRequest::Trial(settings) | TrialRequest::Keep(settings)) = request else {
        return;
    };
    let Ok(bounds) = RemoteBounds::of(&String::from_utf8_lossy(rest)) else {
        return;
    };
    match bounds.with(&settings) {
        // Nothing that a search says adds a line but of its own keys.
        Ok(config) => {
            let tuned = [
                "kApp", "kDisp", "kNIC", "inflight", "ring", "nic_ring", "workload",
            ];
            let is_tuned = |key: &str| tuned.iter().any(|known| key.starts_with(known));
            let own = String::from_utf8_lossy(rest);
            let others = |text: &str| {
                let lines = text.lines().filter(|line| !is_tuned(line.trim_start()));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            let (before, after) = (others(&own), others(&config.text()));
            assert!(after.len() <= before.len(), "{before:?} {after:?}");
        }
        Err(why) => assert!(!why.contains('\u{1b}')),
    }
});
