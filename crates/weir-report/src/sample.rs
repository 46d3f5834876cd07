//! Results for tests: the cases that a report must show well.

mod build;

use weir_schema::sample::{confidence_of, exchange_result, failure};
use weir_schema::{
    EndedBy, EngineChoice, ExchangeResult, ExchangeWorkload, HostFacts, Instrument, Interval, Job,
    Kind, Metric, RunResult, Stage, State, Warning,
};
use weir_stats::{Estimate, NoInterval};

pub(crate) use build::{Shape, run};

/// One job, one worker, a warning.
pub(crate) fn single() -> RunResult {
    let mut result = run(&[Shape::default()]);
    result.warnings.push(Warning::new(
        "cpu-shared",
        Some("rand-read"),
        "Worker 0 was switched out 14 times per second.",
    ));
    result
}

/// Reads and writes mixed.
pub(crate) fn two_kinds() -> RunResult {
    run(&[Shape {
        name: "mixed".into(),
        kinds: vec![(Kind::Read, 70_000), (Kind::Write, 30_000)],
        ..Shape::default()
    }])
}

/// Intended starts, so that there is a response latency; a stall of three seconds.
pub(crate) fn open_loop() -> RunResult {
    let mut result = run(&[Shape {
        name: "service".into(),
        kinds: vec![(Kind::Read, 50_000)],
        open_loop: true,
        stall: (120, 150),
        ..Shape::default()
    }]);
    let confidence = &mut confidence_of(&mut result.groups[0].jobs[0])[0];
    confidence.ops_per_s = Estimate::within(50_000.0, 30_000.0, 70_000.0);
    confidence.slow = true;
    confidence.latency_stage = Some(Stage::Rlat);
    confidence.mean_latency_ns = Some(Estimate::within(236_000.0, 231_000.0, 241_000.0));
    result.warnings.push(Warning::new(
        "slow",
        None,
        "The read rate changes slowly: its ± holds for this run only.",
    ));
    result
}

/// Sixteen workers, one of which started late and was slow.
pub(crate) fn workers() -> RunResult {
    run(&[Shape {
        name: "ckpt".into(),
        kinds: vec![(Kind::Write, 9_380)],
        workers: 16,
        depth: 8,
        block: 1 << 20,
        p50_ns: 11_400_000,
        tenths: 140,
        slowest: 90,
        ..Shape::default()
    }])
}

/// Two jobs of one group at the same time.
pub(crate) fn together() -> RunResult {
    let reader = Shape {
        name: "reader".into(),
        ..Shape::default()
    };
    let writer = Shape {
        name: "writer".into(),
        kinds: vec![(Kind::Write, 9_000), (Kind::Sync, 90)],
        block: 65_536,
        p50_ns: 2_400_000,
        tenths: 280,
        ..Shape::default()
    };
    run(&[reader, writer])
}

/// Nine queue depths, one after the other.
pub(crate) fn sweep() -> RunResult {
    let rates: [u64; 9] = [
        52_100, 101_000, 190_000, 351_000, 560_000, 710_000, 839_000, 843_000, 846_000,
    ];
    let shapes: Vec<Shape> = (0..9_u32)
        .map(|i| Shape {
            name: format!("depth-{}", 1 << i),
            kinds: vec![(Kind::Read, rates[i as usize])],
            workers: 4,
            depth: 1 << i,
            p50_ns: 4_000_000_000 * (1 << i) / rates[i as usize],
            start_s: u64::from(i) * 10,
            tenths: 100,
            ..Shape::default()
        })
        .collect();
    run(&shapes)
}

/// Six jobs that have little in common.
pub(crate) fn many() -> RunResult {
    let shapes: Vec<Shape> = (1..=6_u32)
        .map(|i| Shape {
            name: if i == 3 {
                "the-job-with-a-rather-long-name".into()
            } else {
                format!("job{i}")
            },
            kinds: if i == 2 {
                vec![(Kind::Read, 7_000), (Kind::Write, 3_000)]
            } else {
                vec![(Kind::Read, 10_000 * u64::from(i))]
            },
            depth: i,
            block: 4096 << i,
            tenths: 50,
            ..Shape::default()
        })
        .collect();
    let mut result = run(&shapes);
    let job = &mut result.groups[0].jobs[4];
    job.state = State::Failed;
    job.failure = Some(failure());
    job.workers_mut()[0].kinds[0].errors.insert(5.into(), 1);
    result
}

/// A job that counted errors, went on, and failed.
pub(crate) fn failed() -> RunResult {
    let mut result = run(&[Shape::default()]);
    let job = &mut result.groups[0].jobs[0];
    job.state = State::Failed;
    job.failure = Some(failure());
    job.workers_mut()[0].failure = Some(failure());
    job.workers_mut()[0].kinds[0].errors = [(5.into(), 12), (110.into(), 1)].into();
    job.workers_mut()[0].kinds[0].short = 3;
    result
}

/// Ended by Ctrl-C; a second job was never reached.
pub(crate) fn interrupted() -> RunResult {
    let later = Shape {
        name: "later".into(),
        workers: 0,
        kinds: Vec::new(),
        ..Shape::default()
    };
    let mut result = run(&[
        Shape {
            tenths: 124,
            ..Shape::default()
        },
        later,
    ]);
    result.complete = false;
    result.ended_by = Some(EndedBy { signal: 2 });
    let jobs = &mut result.groups[0].jobs;
    jobs[0].state = State::Stopped;
    jobs[1].state = State::NotStarted;
    jobs[1].span = None;
    result
}

/// Jobs with workers, and before them one of ranks together.
pub(crate) fn beside_ranks(with_workers: usize) -> RunResult {
    let shapes = vec![Shape::default(); with_workers];
    let mut result = run(&shapes);
    let exchange = ExchangeWorkload::default();
    let plan = Job::of_exchanges("exchanges", EngineChoice::new("null"), exchange);
    let mut job = exchange_result("exchanges", ExchangeResult::default());
    let metric = |name: &str, unit: &str, value| Metric::high(name, unit, value);
    job.metrics = vec![
        metric("b_eff", Metric::BYTES_PER_S, 1.5e9),
        Metric {
            interval: Some(Interval {
                low: 19e6,
                high: 21e6,
            }),
            ..metric("bandwidth at 8 B", Metric::BYTES_PER_S, 20e6)
        },
        Metric::low("ping-pong latency", Metric::SECONDS, 250e-9),
        metric("score", "GiB", 12.5),
    ];
    result.plan.groups[0].jobs.insert(0, plan);
    result.groups[0].jobs.insert(0, job);
    result
}

/// Too short for an interval and for its percentiles; nothing else is known either.
pub(crate) fn short() -> RunResult {
    let mut result = run(&[Shape {
        tenths: 4,
        kinds: vec![(Kind::Read, 500)],
        ..Shape::default()
    }]);
    let job = &mut result.groups[0].jobs[0];
    let confidence = &mut confidence_of(job)[0];
    confidence.ops_per_s = Estimate::without(500.0, NoInterval::ShortRun);
    confidence.mean_latency_ns = None;
    job.workers_mut()[0].depth.mean_in_flight = None;
    result.host = HostFacts::default();
    result.instrument = Instrument {
        absent: Some("the run was too short".into()),
        ..Instrument::default()
    };
    result
}

/// Ranks that exchanged messages of several sizes, and a few figures beside.
pub(crate) fn message_sizes() -> RunResult {
    let mut result = beside_ranks(0);
    let metrics = &mut result.groups[0].jobs[0].metrics;
    metrics.retain(|metric| metric.unit != "GiB" && !metric.name.contains(" at "));
    metrics.push(Metric::low("ring latency", Metric::SECONDS, 310e-9));
    for (bytes, rate) in [
        (1, 2e6),
        (8, 16e6),
        (64, 1.2e8),
        (4096, 2e9),
        (1 << 20, 9e9),
    ] {
        metrics.push(Metric {
            samples: vec![rate * 0.9, rate],
            ..Metric::high(format!("bandwidth at {bytes} B"), Metric::BYTES_PER_S, rate)
        });
    }
    result
}
