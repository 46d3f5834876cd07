//! Slow tests: they take long.

use super::*;

#[test]
fn network_tests_have_a_row_for_each_size_and_say_that_they_are_short() {
    let stage = Stage::new();
    let words = [
        "--frames",
        "64,1518",
        "--tests",
        "throughput,frame-loss",
        "--search",
        "mlr",
        "--precision",
        "2",
        "--store-result",
        "r.json",
    ];
    let said = search(&stage, "rfc2544", &words).code(0);
    let mark = "not RFC duration: trials of 200 ms, RFC 2544 asks for 60.0 s";
    assert!(said.out.contains(mark), "{said}");
    for frame in ["64", "1518"] {
        let is_row = |line: &&str| line.split_whitespace().next() == Some(frame);
        let row = said
            .out
            .lines()
            .find(is_row)
            .unwrap_or_else(|| panic!("{said}"));
        let cells: Vec<&str> = row.split_whitespace().collect();
        let throughput: f64 = cells[2].parse().unwrap();
        assert!((29_700.0..=30_330.0).contains(&throughput), "{row}");
        // Neither latency nor bursts were asked for.
        assert_eq!((cells[4], cells[5], cells[7]), ("-", "-", "-"), "{row}");
        assert!(cells[6].parse::<f64>().unwrap() > 0.0, "{row}");
        let name = format!("throughput of frames of {frame}");
        assert!((metric(&stage, &name) - throughput).abs() < 1.0, "{row}");
    }
    let again = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(again.out, said.out);
}

#[test]
fn the_rates_without_loss_and_with_little_are_those_of_the_sink() {
    let stage = Stage::new();
    let words = ["--search", "mlr", "--store-result", "r.json"];
    let said = search(&stage, "ndr", &words).code(0);
    let (none, some) = (metric(&stage, "NDR"), metric(&stage, "PDR"));
    // In 0.2 s a bucket of 64 is 320 per second more.
    assert!((30_160.0..=30_330.0).contains(&none), "{none}: {said}");
    assert!((30_310.0..=30_490.0).contains(&some), "{some}: {said}");
    assert!(some >= none, "{said}");
    for line in [
        "Highest rates by mlr search, to 0.5 %, trials of 200 ms\n",
        &format!("\nNDR (no loss): {none:.0} messages/s, kept twice\n"),
        &format!("\nPDR (loss up to 0.5 %): {some:.0} messages/s, kept twice\n"),
        "\nlatency at 10 % of PDR, open-loop (",
        "\nlatency at 90 % of PDR, open-loop (",
        "(measured maximum, no rate of the line is known)\n",
        " short",
    ] {
        assert!(said.out.contains(line), "{line}: {said}");
    }
    let again = stage.say(&["show", "r.json"]).code(0);
    assert_eq!(again.out, said.out);
    let json = stage.say(&["show", "r.json", "--format", "json"]).code(0);
    assert!(json.out.contains("\"NDR\""), "{json}");
}

#[test]
fn a_burst_is_as_long_as_the_bucket_and_latency_is_that_of_the_throughput() {
    let stage = Stage::new();
    let words = [
        "--frames",
        "64",
        "--tests",
        "latency,back-to-back",
        "--repeats",
        "1",
        "--search",
        "mlr",
        "--precision",
        "5",
        "--set",
        "line_rate=1G",
    ];
    let said = search(&stage, "rfc2544", &words).code(0);
    assert!(
        said.out.contains("\nmaximum: the rate of the line\n"),
        "{said}"
    );
    let row = said
        .out
        .lines()
        .find(|line| line.starts_with("    64"))
        .unwrap();
    let cells: Vec<f64> = row
        .split_whitespace()
        .map(|cell| cell.parse().unwrap_or(-1.0))
        .collect();
    // 1 Gbit/s carries 1488095 frames of 64 bytes per second: 64 / (1 - 30000 / 1488095).
    assert!((cells[1] - 1_488_095.0).abs() < 1.0, "{row}");
    assert!((62.0..=66.0).contains(&cells[7]), "{row}");
    assert!(cells[4] > 0.0 && cells[5] >= cells[4], "{row}");
    let mark = "not RFC repetitions: 1, RFC 2544 asks for 20 of latency and 50";
    assert!(said.out.contains(mark), "{said}");
}

#[test]
fn two_searches_are_compared_and_followed_by_what_they_found() {
    let stage = Stage::new();
    for (file, precision) in [("a", "5"), ("b", "20")] {
        // Another precision takes another number of trials.
        let words = ["--precision", precision, "--store-result", file];
        search(
            &stage,
            "ndr",
            &[&words[..], &["--history", "h.db"]].concat(),
        )
        .code(0);
    }
    let groups = |file: &str| {
        let result: Json = serde_json::from_str(&stage.read(file)).unwrap();
        result["groups"].as_array().unwrap().len()
    };
    assert_ne!(groups("a"), groups("b"));
    for words in [&["--metrics", "NDR,PDR"][..], &[]] {
        let said = stage.say(&[&["compare", "a", "b"], words].concat());
        assert!(!said.out.contains("not comparable"), "{said}");
        assert!(words.is_empty() || said.out.contains("NDR"), "{said}");
    }
    let mut trend = stage.weir(&["history", "trend", "NDR", "--json"]);
    trend.env("WEIR_HISTORY", stage.path("h.db"));
    let trend: Json = serde_json::from_str(&crate::stage::said(trend).code(0).out).unwrap();
    assert_eq!(trend[0]["runs"].as_array().unwrap().len(), 2, "{trend}");
}
