//! Datagrams that do not come are counted, and nobody waits for them for ever.
#![allow(clippy::unwrap_used, reason = "in tests")]

mod ranks;

use std::time::{Duration, Instant};

use ranks::{engine, exponents, first, run_engine, workload};
use weir_run::execute::Signals;
use weir_schema::{Setting, Validation};

fn number(name: &'static str, value: i64) -> (&'static str, Setting) {
    (name, Setting::Number(value))
}

#[test]
fn lost_datagrams_are_counted_as_messages_of_their_size() {
    // 16 datagrams a message: of 3 runs of 25 on two channels, one datagram in 100 is dropped, in
    // 12 messages of each channel of each rank.
    let mut plan = workload(exponents([3, 10], 25));
    plan.validation = Validation::None;
    let settings = [
        number("payload_exponent", 0),
        number("drop_every", 100),
        number("loss_ms", 400),
    ];
    let engine = engine("udp", &settings);
    let result = first(run_engine(engine, 2, &plan, &Signals::default())).unwrap();
    for rank in &result.sizes[1].ranks {
        assert_eq!(rank.lost, Some(24));
    }
    for rank in &result.sizes[0].ranks {
        assert_eq!(rank.lost, Some(0), "75 datagrams");
    }
    assert_eq!(result.lost(), 48);
}

#[test]
fn when_nothing_comes_at_all_the_run_ends() {
    let mut plan = workload(exponents([8], 1_000_000));
    plan.timeout_ns = weir_units::Nanos::from_millis(400);
    let settings = [number("drop_every", 1), number("loss_ms", 50)];
    let begun = Instant::now();
    let answers = run_engine(engine("udp", &settings), 2, &plan, &Signals::default());
    for answer in answers {
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("messages of 256 B"), "{error}");
        assert!(
            error.contains("no progress") || error.contains("has left"),
            "{error}"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}
