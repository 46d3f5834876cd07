//! A result with something in each of its places, for what reads or changes any part of one.

use weir_stats::{Batch, BatchStore, Estimate, Histogram};
use weir_units::{Bytes, Nanos, Percent, QueueDepth};

use super::{
    BLOCK, clock, confidence, failure, host, job_result, kind, latency_over_time, rates, series,
    span, sure, worker,
};
use crate::confidence::KindBatches;
use crate::facts::{DiskCounters, Instrument};
use crate::kind::Kind;
use crate::latency_over_time::LatencyOverTime;
use crate::outcome::Outcome;
use crate::phase::{PartSpan, PhaseResult, RankSpan};
use crate::plan::Plan;
use crate::result::{
    ClassResult, Confidence, CpuUse, DepthUse, Failure, Finding, JobResult, KindResult,
    LatencyPercentile, RunResult, SampleStatistics, Span, Stage, StageHistogram, State,
    WorkerResult,
};
use crate::rpc_endpoints::RpcEndpoint;
use crate::rpc_result::{
    RpcEndpointResult, RpcFirst, RpcInterface, RpcMaster, RpcOutcome, RpcServerUse, RpcTrouble,
};
use crate::rpc_samples::RpcSample;
use crate::steady::{DepthFound, Steadiness, SteadySample};
use crate::verify::{BadByte, Damage, FailedCheck, Mismatch, VerifyMethod};
use crate::warning::Warning;
use crate::workload::Workload;

/// A result of this plan with something in each of its places.
pub fn everything(plan: Plan) -> RunResult {
    let first = plan.jobs().next().map(|(_, job)| job.name.clone());
    let mut result = RunResult {
        warnings: vec![Warning::new(
            "cpu-steal",
            first.as_deref(),
            "The hypervisor took 5 % of the time.",
        )],
        disks: vec![disk(vec![disk(Vec::new())])],
        clock: clock(),
        instrument: Instrument {
            ns_per_op: Some(25.0),
            absent: None,
            timer_slack_ns: Some(Nanos(50_000)),
            live_cpu_percent: Some(0.4),
            peak_memory_bytes: Some(Bytes::MIB),
        },
        host: host(),
        ..super::result(plan)
    };
    let time = span(Nanos(1000), Nanos::from_millis(1100));
    let mut numbers = 0..;
    for (group, planned) in result.groups.iter_mut().zip(&result.plan.groups) {
        let two = Nanos::from_secs(2);
        group.rates = vec![rates(Kind::Read, 2000, Bytes(2000 * BLOCK), two)];
        group.together = Some(time);
        group.latency_over_time = vec![one_interval()];
        for (job, planned) in group.jobs.iter_mut().zip(&planned.jobs) {
            let clones = (0..planned.clones).zip(&mut numbers);
            let workers = clones.map(|(clone, number)| busy_worker(clone, number, time));
            *job = broken_job(&planned.name, workers.collect(), time);
            if let (Workload::Rpc(_), Outcome::Loop(done)) = (&planned.workload, &job.outcome) {
                job.outcome = Outcome::Rpc(Box::new(RpcOutcome {
                    workers: done.clone(),
                    masters: vec![broken_master(time)],
                }));
                job.conclude();
            }
        }
    }
    result
}

fn broken_job(name: &str, workers: Vec<WorkerResult>, time: Span) -> JobResult {
    let percentile = LatencyPercentile {
        stage: Stage::Clat,
        percent: Percent(99.0),
        value_ns: about(120_000.0),
        few_samples: false,
    };
    let confidence = Confidence {
        bytes_per_s: Some(about(4_096_000.0)),
        latency_stage: Some(Stage::Clat),
        percentiles: vec![percentile],
        ..confidence(Kind::Read, about(1000.0), about(80_000.0))
    };
    let rank = RankSpan {
        rank: 0,
        span: time,
        parts: vec![PartSpan {
            name: "open".to_owned(),
            span: time,
        }],
    };
    let mut job = JobResult {
        state: State::Failed,
        span: Some(time),
        failure: Some(spoiled()),
        logs: vec!["a_bw.1.log".to_owned()],
        phases: vec![PhaseResult {
            name: "write".to_owned(),
            repetition: 0,
            ranks: vec![rank],
            measured: Some(Box::new(job_result("write", workers.clone()))),
        }],
        ..sure(job_result(name, workers), vec![confidence])
    };
    if let Outcome::Loop(done) = &mut job.outcome {
        done.latency_over_time = vec![one_interval()];
        done.batches = vec![KindBatches {
            kind: Kind::Read.into(),
            stage: Stage::Clat,
            batches: one_batch(),
        }];
    }
    job.conclude();
    job
}

/// A master with a failed RPC, one that was not sent, and everything that may be known.
fn broken_master(time: Span) -> RpcMaster {
    let mut one = RpcEndpointResult::new(RpcEndpoint { rank: 0, tag: 2 });
    one.latency.record_n(52_000, 10);
    one.succeeded = 10;
    one.failed.insert("DER_UNREACH".into(), 1);
    one.turn_ns = Some(time.length());
    one.first = Some(RpcFirst {
        connect_ns: Some(Nanos(80_000)),
        rpc_ns: Some(Nanos(60_000)),
    });
    let own = RpcEndpoint { rank: 1, tag: 0 };
    let mut master = RpcMaster {
        failure: Some(spoiled()),
        duration_ns: time.length(),
        span: Some(time),
        requested: 12,
        latency: one.latency.clone(),
        service: Some(one.latency.clone()),
        endpoints: vec![one],
        bulk_path: Some("emulated-rendezvous".to_owned()),
        effective_in_flight: Some(15.9),
        overload: true,
        late_replies: 2,
        buffer_waits: 3,
        credit_waits: 6,
        credit_wait_ns: Nanos::from_micros(9),
        retransmits: Some(4),
        bytes_on_wire: Some(Bytes::MIB),
        servers: vec![RpcServerUse {
            endpoint: own,
            cpu: CpuUse::default(),
        }],
        interface: Some(RpcInterface {
            name: "eth0".to_owned(),
            node: Some(0),
            client_cpus: "0-3".to_owned(),
            client_node: Some(1),
        }),
        connections: Some(1),
        troubles: vec![RpcTrouble {
            endpoint: own,
            after_ns: Some(Nanos::from_millis(1)),
            code: "DER_UNREACH".into(),
            cause: "the other side closed the connection".to_owned(),
            count: 1,
        }],
        samples: vec![RpcSample {
            latency_ns: Nanos(52_000),
            endpoint: RpcEndpoint { rank: 0, tag: 2 },
            code: -1006,
        }],
        ..RpcMaster::new(own, "tcp")
    };
    master.conclude();
    master.mismatches = 1;
    master
}

fn one_interval() -> LatencyOverTime {
    let mut histogram = Histogram::new();
    histogram.record_n(100_000, 10);
    latency_over_time(Kind::Read, &[(Nanos::from_millis(10), histogram)])
}

#[expect(clippy::expect_used, reason = "the first batch fits")]
fn one_batch() -> BatchStore {
    let mut batches = BatchStore::new(Nanos::from_millis(10), 1);
    let mut histogram = Histogram::new();
    histogram.record_n(100_000, 10);
    let batch = Batch {
        stretches: 1,
        length_ns: Nanos::from_millis(10),
        operations: 10,
        bytes: Bytes(10 * BLOCK),
        histogram,
    };
    batches.push(batch).expect("invariant: of one precision");
    batches
}

fn busy_worker(clone: u32, number: u32, time: Span) -> WorkerResult {
    let kinds = [Kind::Read, Kind::Sync].map(|kind| busy_kind(kind, time.length()));
    WorkerResult {
        clone,
        span: Some(time),
        failure: Some(spoiled()),
        cpu: CpuUse {
            user_ns: Nanos(375_000_000),
            system_ns: Nanos(125_000_000),
            voluntary_switches: 7,
            stolen_ns: Some(Nanos(11_000_000)),
            ..CpuUse::default()
        },
        depth: DepthUse {
            in_flight: [1, 2, 4, 8, 16, 32, 64],
            submitted: [0, 100, 0, 0, 0, 0, 0],
            completed: [0, 100, 0, 0, 0, 0, 0],
            mean_in_flight: Some(12.5),
        },
        prepare_ns: Some(Nanos(1000)),
        late_issues: Some(3),
        mismatches: vec![mismatch()],
        reported_errors: vec![spoiled()],
        steadiness: Some(Steadiness {
            attained: true,
            criterion: 0.5,
            deviation: 1.5,
            slope: -0.25,
            samples: vec![SteadySample {
                ops_per_s: 1000,
                bytes_per_s: Bytes(4_096_000),
            }],
        }),
        depth_found: Some(DepthFound {
            queue_depth: QueueDepth(8),
            settled: true,
        }),
        ..worker(number, time.length(), kinds.into())
    }
}

#[expect(clippy::expect_used, reason = "the series is finished once")]
fn busy_kind(of: Kind, time: Nanos) -> KindResult {
    let stage = |(stage, from): (Stage, u64)| {
        let mut histogram = Histogram::new().with_squares();
        (0..4).for_each(|i| histogram.record(from << i));
        (stage, histogram)
    };
    let stages = [(Stage::Slat, 9), (Stage::Clat, 70), (Stage::Lat, 79)].map(stage);
    let moments = SampleStatistics {
        count: 3,
        min: 100.0,
        max: 130.9,
        mean: 120.25,
        deviation: 12.5,
    };
    // Two whole intervals and a partial one.
    let mut course = series(Nanos::from_millis(500), &[40, 50], BLOCK);
    let rest = course.finish(Nanos::from_millis(100), 10, Bytes(10 * BLOCK));
    rest.expect("invariant: shorter than an interval");
    KindResult {
        issued: 103,
        short: 1,
        dropped: 1,
        lost: 1,
        errors: [(5.into(), 1)].into(),
        classes: vec![ClassResult {
            class: 0x4003,
            stages: vec![StageHistogram {
                stage: Stage::Clat,
                histogram: stage((Stage::Clat, 70)).1,
            }],
        }],
        series: course,
        bandwidth_samples: Some(moments),
        iops_samples: Some(moments),
        ..kind(of, 100, time, &stages)
    }
}

fn about(value: f64) -> Estimate {
    Estimate::within(value, value * 0.9, value * 1.1)
}

fn spoiled() -> Failure {
    Failure {
        finding: Some(Finding::Mismatch(Box::new(mismatch()))),
        ..failure()
    }
}

fn mismatch() -> Mismatch {
    Mismatch {
        method: VerifyMethod::Xxhash,
        check: FailedCheck::Data,
        wanted: "0badcafe".to_owned(),
        found: "12345678".to_owned(),
        damage: Damage::BitFlip {
            at_bytes: Bytes(100),
            bits: 1,
        },
        target: "/dev/nvme0n1".to_owned(),
        offset_bytes: Bytes(8192),
        length_bytes: Bytes(4096),
        request_offset_bytes: Bytes(8192),
        request_length_bytes: Bytes(4096),
        kind: Kind::Read,
        media_method: Some(2),
        bad_byte: Some(BadByte {
            at_bytes: Bytes(5),
            bits: 3,
        }),
        dumps: vec!["nvme0n1.8192.received".to_owned()],
    }
}

fn disk(members: Vec<DiskCounters>) -> DiskCounters {
    DiskCounters {
        device: "nvme0n1".to_owned(),
        read_operations: 100,
        write_operations: 50,
        read_bytes: Bytes(409_600),
        read_ns: Nanos(1_000_000),
        in_queue_ns: Nanos(1_000_000),
        busy_ns: Nanos(900_000_000),
        elapsed_ns: Nanos(1_000_000_000),
        members,
        ..DiskCounters::default()
    }
}
