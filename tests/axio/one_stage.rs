//! A stage alone: its row, its rate, its result, and what means nothing beside it.

use super::stage::Stage;
use super::{Json, stored};

const STAGES: [(&str, &str); 6] = [
    ("app_tx", "application_tx"),
    ("app_rx", "application_rx"),
    ("disp_tx", "dispatch_tx"),
    ("disp_rx", "dispatch_rx"),
    ("nic_tx", "link_tx"),
    ("nic_rx", "link_rx"),
];

/// The stage alone, of a configuration without a role.
fn alone(stage: &Stage, name: &str, more: &[&str]) -> super::Said {
    let config = "msg_handler : L_APP\nkAppCoreNum : 1\nkDispQueueNum : 1\niteration : 2\nduration : 0.1\n\
                  workload : 1 : TxApplication,TxDispatcher,RXDispatcher,RxApplication : 0 : 0 : 0\n";
    stage.file("c.conf", config);
    let words = ["axio", "-c", "c.conf", "--stage", name];
    stage.peer_says(&[&words[..], more].concat())
}

#[test]
fn each_stage_runs_alone_and_its_rate_is_what_its_own_time_allows() {
    for (name, field) in STAGES {
        let stage = Stage::new();
        let said = alone(&stage, name, &["--store-result", "r.json"]).code(0);
        assert_eq!(said.out.matches("Perf Statistics").count(), 2, "{said}");
        for (other, _) in STAGES {
            let rows = said
                .out
                .lines()
                .filter(|line| line.starts_with(&format!("{other} ")));
            assert_eq!(rows.count(), if other == name { 2 } else { 0 }, "{said}");
        }
        let outcome = stored(&stage);
        assert_eq!(outcome["only_stage"], field, "{said}");
        assert_eq!(outcome["buffers_in_use"], 0, "{said}");
        // Nobody asked for the messages that go round: they have no rate.
        let worker = &outcome["workers"]["workers"][0];
        assert_eq!(worker["kinds"], Json::Array(Vec::new()), "{said}");
        let mut rates = Vec::new();
        for iteration in outcome["iterations"].as_array().unwrap() {
            let threads = iteration["threads"].as_array().unwrap();
            assert_eq!(threads.len(), 1, "{said}");
            let figure = |of: &str, what: &str| threads[0][of][what].as_u64().unwrap();
            let packets = figure(field, "packets");
            assert!(packets >= 256, "{said}");
            assert_eq!(packets, figure(field, "timed_packets"), "{said}");
            let busy = figure(field, "busy_ns");
            assert!(
                busy > 0 && busy <= threads[0]["span_ns"].as_u64().unwrap(),
                "{said}"
            );
            for (_, other) in STAGES.iter().filter(|(_, other)| *other != field) {
                assert_eq!(figure(other, "packets"), 0, "{other}: {said}");
            }
            rates.push(format!("{:.3}", mpps(packets, busy)));
        }
        let cells = said
            .out
            .lines()
            .filter(|line| line.starts_with(&format!("{name} ")));
        let cells: Vec<&str> = cells.map(|line| line[20..40].trim()).collect();
        assert_eq!(cells, rates, "{said}");
        let again = stage.say(&["show", "r.json"]).code(0);
        assert!(
            again.out.contains(&format!("Stage {name} alone")),
            "{again}"
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures far below 2^53")]
fn mpps(packets: u64, busy_ns: u64) -> f64 {
    packets as f64 / busy_ns as f64 * 1e3
}

#[test]
fn a_stage_of_messages_of_many_packets_takes_whole_ones() {
    for (handler, name, field) in [
        ("FS_WRITE", "app_rx", "application_rx"),
        ("FileDecompress", "app_rx", "application_rx"),
        ("FS_WRITE", "app_tx", "application_tx"),
    ] {
        let stage = Stage::new();
        let sets = [
            format!("msg_handler={handler}"),
            "kAppTxMsgBatchSize=1".to_owned(),
        ];
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let words: Vec<&str> = sets.chain(["--store-result", "r.json"]).collect();
        let said = alone(&stage, name, &words).code(0);
        let outcome = stored(&stage);
        let thread: &Json = &outcome["iterations"][0]["threads"][0];
        let packets = thread[field]["packets"].as_u64().unwrap();
        let whole = if handler == "FS_WRITE" { 9 } else { 1039 };
        assert!(
            packets > 0 && packets.is_multiple_of(whole),
            "{packets}: {said}"
        );
        assert_eq!(thread["wrong"], 0, "{said}");
        assert_eq!(outcome["buffers_in_use"], 0, "{said}");
    }
}

#[test]
fn what_means_nothing_beside_a_stage_is_refused_by_name() {
    for (words, why) in [
        (
            &["--server"][..],
            "--server: it means nothing with --stage app_rx, which is a run without link and other side",
        ),
        (&["--client"], "--client: it means"),
        (&["--set", "role=server"], "--set: role: it means"),
        (&["--backend", "udp"], "backend: it means"),
        (&["--set", "rate=100k"], "rate: it means"),
        (&["--inject-loss", "1%"], "--inject-loss: it means"),
        (&["--sink-rate", "100k"], "--sink-rate: it means"),
        (&["--both"], "--both: it means"),
        (&["--stage-timing", "off"], "--stage-timing: it means"),
        (&["--set", "stage_timing=1/8"], "stage_timing: it means"),
        (&["--peer", "x.conf"], "--peer acts only with"),
    ] {
        alone(&Stage::new(), "app_rx", words).code(2).err(why);
    }
    let stage = Stage::new();
    stage
        .peer_says(&["axio", "ndr", "--example", "echo", "--stage", "app_rx"])
        .code(2)
        .err("`ndr`: it means");
    stage
        .peer_says(&["axio", "--example", "echo", "--stage", "app"])
        .code(2)
        .err("app_tx");
}

#[test]
fn a_plan_of_a_stage_alone_runs_as_any_other_and_is_no_matter_of_diagnosis() {
    let stage = Stage::new();
    let plan = alone(&stage, "disp_tx", &["--show-plan"]).code(0);
    stage.file("p.json", &plan.out);
    stage
        .say(&["run", "p.json", "--store-result", "r.json"])
        .code(0);
    assert_eq!(stored(&stage)["only_stage"], "dispatch_tx");
    stage
        .say(&["diagnose", "r.json"])
        .code(2)
        .err("it is of one stage alone");
    let text = plan.out.replace("\"timed_pass\": 1", "\"timed_pass\": 8");
    stage.file("wrong.json", &text);
    stage
        .say(&["run", "wrong.json"])
        .code(2)
        .err("`timed_pass` means nothing with `only_stage`");
}
