//! Result of the guide "Writing a handler".

use serde_json::Value;

use crate::{shell_fails, stdout};

pub(crate) const PAGE: &str = "writing-a-handler.md";

/// `said`: by the lines that the page runs.
pub(crate) fn check(said: &[String]) {
    let tests = "reverse::tests::the_payload_comes_back_in_reverse_order ... ok";
    assert!(said.iter().any(|text| text.contains(tests)), "{said:?}");
    assert!(
        said.iter()
            .any(|text| text.contains("packets of 64 B to reversed answers")),
        "{said:?}"
    );
    let refused = shell_fails("target/debug/weir axio --example scan --set msg_handler=reverse");
    assert!(refused.contains("FileDecompress, Reverse)"), "{refused}");
    let [lost, answered] = counted("--set msg_handler=Reverse");
    assert!(lost == 0 && answered > 0, "{lost} {answered}");
    // A tenth is freed; what is given up while a busy machine does other things is lost too.
    let [lost, answered] = counted("--set pkt_handler=Thin --set msg_timeout_ms=500");
    assert!(lost > 0 && answered > 0, "{lost} {answered}");
}

/// Messages of a client that were lost, and packets that came back.
fn counted(words: &str) -> [u64; 2] {
    let text = stdout(&format!(
        "target/debug/weir axio --example scan --set duration=0.3 --set iteration=1 \
         --set stall_timeout=30 --set msg_timeout_ms=20000 {words} --format json"
    ));
    let json: Value = serde_json::from_str(&text).unwrap();
    let outcome = &json["groups"][0]["jobs"][0]["outcome"];
    assert_eq!(outcome["buffers_in_use"], 0);
    let threads = outcome["iterations"][0]["threads"].as_array().unwrap();
    let client = threads.iter().find(|one| one["side"] == "client").unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    [
        number(&client["lost"]),
        number(&client["application_rx"]["packets"]),
    ]
}
