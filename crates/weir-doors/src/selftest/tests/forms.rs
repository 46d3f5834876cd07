//! Results in other forms than text.

use super::*;

#[test]
fn json_of_the_older_program_has_its_fields() {
    let (_, text) = replayed(GOLDEN, &["--output", "json-cart"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&document["status"], &document["error"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let result = &document["response"]["results"][0];
    assert_eq!(result["master_endpoint"], "1:0");
    assert_eq!(
        result["target_endpoints"],
        serde_json::json!(["0:2", "1:2"])
    );
    assert_eq!(result["duration"], 4_000_000);
    let rate = result["rpc_count_per_second"].as_f64().unwrap();
    assert!((rate * 4e-3 - 8.0).abs() < 1e-9);
    let latency = &result["master_latency"];
    assert_eq!(
        (&latency["min"], &latency["max"]),
        (&10_500.into(), &84_000.into())
    );
    assert!((latency["avg"].as_f64().unwrap() - 47_250.0).abs() < 1e-9);
    let deviation = latency["std_dev"].as_f64().unwrap();
    assert!((deviation - 25_719.642_3).abs() < 1e-3, "{deviation}");
    let points = latency["percentiles"].as_array().unwrap();
    let labels: Vec<&str> = points
        .iter()
        .map(|point| point["label"].as_str().unwrap())
        .collect();
    assert_eq!(labels, ["50", "75", "90", "95", "99"]);
    let bounds: Vec<u64> = points
        .iter()
        .map(|p| p["upper_bound"].as_u64().unwrap())
        .collect();
    assert!(bounds.is_sorted(), "{bounds:?}");
    let configuration = &document["response"]["configuration"];
    assert_eq!(configuration["buffer_alignment"], -1);
    assert!(configuration.get("master_endpoints").is_none());
    let words = ["-u", "-m", "0:0-1", "-s", "0", "--output", "json-cart"];
    let run = run_of(&words);
    let text = output::text(&RunResult::of(run.plan), &run.options);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let masters = &document["response"]["configuration"]["master_endpoints"];
    assert_eq!(
        *masters,
        serde_json::json!([{"Rank": 0, "Tag": 0}, {"Rank": 0, "Tag": 1}])
    );
}

#[test]
fn rows_have_as_many_fields_as_columns() {
    let (_, text) = replayed(GOLDEN, &["--output", "csv"]);
    let counts: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert_eq!(counts, [20; 4]);
    let own = "0,EMPTY,1048578,BULK_PUT,16,1:0,all,8,0,0,4000000,2000,";
    assert!(text.contains(own), "{text}");
    assert!(text.contains(",1:0,0:2,4,0,,,,,"), "{text}");
    let (_, text) = replayed(GOLDEN, &["--output", "prom"]);
    let line = "weir_selftest_rpcs_per_second{send=\"0:EMPTY\",reply=\"1048578:BULK_PUT\",\
                in_flight=\"16\",master=\"1:0\"} 2000\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn where_nothing_succeeded_the_json_has_no_figures_and_says_why() {
    let failed = GOLDEN
        .replace(",1,2,0", ",1,2,-1006")
        .replace(",0,2,0", ",0,2,-1011");
    let failed = failed.replace("84000,1,2,-1006", "84000,1,2,-1011");
    let json = |text: &str| -> serde_json::Value {
        serde_json::from_str(&replayed(text, &["--output", "json-cart"]).1).unwrap()
    };
    let document = json(&failed);
    assert_eq!(document["status"], -1011, "{document}");
    assert_eq!(
        document["error"],
        "all RPCs failed, most with -DER_TIMEDOUT (-1011)"
    );
    let result = &document["response"]["results"][0];
    for latency in [
        &result["master_latency"],
        &result["target_latencies"]["0:2"],
    ] {
        for figure in ["avg", "min", "max", "std_dev"] {
            assert!(latency[figure].is_null(), "{figure}: {latency}");
        }
        assert_eq!(latency["percentiles"], serde_json::json!([]));
    }
    // One endpoint without success spoils nothing of the other.
    let some = json(&GOLDEN.replace(",1,2,0", ",1,2,-1006"));
    assert_eq!(
        (&some["status"], &some["error"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let targets = &some["response"]["results"][0]["target_latencies"];
    assert!(targets["1:2"]["min"].is_null(), "{targets}");
    assert_eq!(targets["0:2"]["min"], 10_500);
    // Masters that nobody reached.
    let mut result = RunResult::of(run_of(&["-u", "-s", "0"]).plan);
    let mut master = RpcMaster::new(RpcEndpoint { rank: 3, tag: 1 }, "tcp");
    master.failure = Some(weir_schema::Failure::new("missing", "no such rank"));
    result.groups[0].jobs = vec![JobResult::of_masters("a", vec![master], Bytes(0))];
    let options = options(&["--output", "json-cart"]);
    let text = output::text(&result, &options);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["error"], "no RPC was sent: no such rank");
    assert_eq!(document["status"], -1006);
}

#[test]
fn json_of_stored_samples_has_the_counts_of_the_samples() {
    let (_, text) = replayed(GOLDEN, &["--output", "json-cart"]);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let configuration = &document["response"]["configuration"];
    // Of each of two endpoints.
    assert_eq!(configuration["repetitions"], 4);
    assert_eq!(configuration["endpoint_ranks"], serde_json::json!([0, 1]));
    assert_eq!(configuration["endpoint_tags"], serde_json::json!([2]));
    assert!(configuration.get("master_endpoints").is_none());
    let latency = &document["response"]["results"][0]["master_latency"];
    let points = latency["percentiles"].as_array().unwrap();
    let counts = points
        .iter()
        .map(|point| point["cumulative_count"].as_u64().unwrap());
    // So many are not above 52.5, 73.5 and 84 µs.
    assert_eq!(counts.collect::<Vec<_>>(), [5, 7, 8, 8, 8]);
    let one = &document["response"]["results"][0]["target_latencies"]["0:2"];
    assert_eq!(one["percentiles"][0]["cumulative_count"], 3, "{one}");
}
