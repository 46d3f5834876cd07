//! A result with something in each of its places, from which hostile ones are made.

use std::collections::BTreeMap;

use weir_jobfile::{Door, Request, Source};
use weir_schema::{
    BadByte, ClockFacts, Confidence, CpuUse, Damage, DepthFound, DepthUse, DeviceFacts,
    DiskCounters, FailedCheck, Failure, Finding, GroupResult, HostFacts, Instrument, Job,
    JobResult, Kind, KindResult, LatencyPercentile, Mismatch, Moments, Plan, RESULT_SCHEMA, Rates,
    RunResult, Span, Stage, StageHistogram, State, Steadiness, SteadySample, VerifyMethod, Warning,
    WorkerResult,
};
use weir_stats::{Estimate, Histogram, Series};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, Percent, QueueDepth};

use crate::machine::{Memory, compile_in};

const JOBS: &str = "\
[global]
ioengine=io_uring
filename=/dev/weir0
size=1g
group_reporting
percentile_list=50:99.9
[mix]
rw=randrw
iodepth=16
bssplit=4k/60:64k/40
random_distribution=zoned:60/10:40/90
rate_iops=1000,500
rate_process=poisson
thinktime=1ms
numjobs=2
runtime=10s
[alone]
stonewall
rw=write
bs=1m
wait_for=mix
significant_figures=6
unit_base=1
kb_base=1000
verify=xxhash
latency_target=5ms
latency_window=10ms
";

/// The plan of the sample.
pub fn plan() -> Plan {
    let files = Memory([("sample.fio".to_owned(), JOBS.into())].into());
    let request = Request {
        door: Door::Fio,
        command: ["fio", "sample.fio"].map(str::to_owned).into(),
        sources: vec![Source::File("sample.fio".to_owned())],
        sets: Vec::new(),
        maps: Vec::new(),
        sections: Vec::new(),
        read_only: false,
    };
    match compile_in(&request, &files) {
        Ok(compiled) => compiled.plan,
        Err(errors) => panic!("{}", errors[0].render()),
    }
}

/// A result of that plan.
pub fn result() -> RunResult {
    let plan = plan();
    let mut number = 0;
    let group = |jobs: &Vec<Job>| GroupResult {
        jobs: jobs.iter().map(|j| job(j, &mut number)).collect(),
        rates: vec![rates()],
        together: Some(span()),
    };
    RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        weir_version: "1.2.3".to_owned(),
        started_unix_ns: 1_795_242_338_250_000_000,
        run_id: 7,
        duration_ns: Nanos::from_millis(2000),
        complete: true,
        ended_by: None,
        groups: plan.groups.iter().map(|g| &g.jobs).map(group).collect(),
        program: None,
        ranks: Vec::new(),
        warnings: vec![Warning {
            id: "cpu-steal".to_owned(),
            job: Some("mix".to_owned()),
            cause: "The hypervisor took 5 % of the time.".to_owned(),
            remedy: "Run on an idle machine.".to_owned(),
        }],
        disks: vec![disk(vec![disk(Vec::new())])],
        clock: ClockFacts {
            reason: "constant".to_owned(),
            frequency_hz: 2.1e9,
            read_ns: 9.5,
            residual_ns: Some(12.0),
            residual_ppm: Some(0.01),
            ..ClockFacts::default()
        },
        instrument: Instrument {
            ns_per_op: Some(25.0),
            peak_memory_bytes: Some(Bytes::MIB),
            timer_slack_ns: Some(Nanos(50_000)),
            absent: None,
        },
        host: host(),
        plan,
    }
}

fn job(job: &Job, number: &mut u32) -> JobResult {
    let workers = (0..job.clones).map(|clone| {
        *number += 1;
        worker(clone, *number - 1)
    });
    JobResult {
        name: job.name.clone(),
        state: State::Failed,
        span: Some(span()),
        failure: Some(failure()),
        workers: workers.collect(),
        confidence: vec![Confidence {
            kind: Kind::Read,
            ops_per_s: estimate(1000.0),
            mean_latency_ns: Some(estimate(80_000.0)),
            percentiles: vec![LatencyPercentile {
                stage: Stage::Clat,
                percent: Percent(99.0),
                value_ns: estimate(120_000.0),
                few_samples: false,
            }],
        }],
        exchange: None,
        latency_bandwidth: None,
        logs: vec!["a_bw.1.log".to_owned()],
    }
}

fn worker(clone: u32, number: u32) -> WorkerResult {
    WorkerResult {
        clone,
        number,
        thread_id: Some(4000),
        span: Some(span()),
        setup_ns: Some(Nanos(1_000_000)),
        state: State::Done,
        failure: Some(failure()),
        kinds: [Kind::Read, Kind::Sync].map(kind).into(),
        cpu: CpuUse {
            user_ns: Nanos(375_000_000),
            system_ns: Nanos(125_000_000),
            voluntary_switches: 7,
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
        told: vec![failure()],
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
    }
}

fn kind(kind: Kind) -> KindResult {
    let stage = |(stage, from): (Stage, u64)| {
        let mut histogram = Histogram::new().with_squares();
        (0..4).for_each(|i| histogram.record(from << i));
        StageHistogram { stage, histogram }
    };
    let stages = [(Stage::Slat, 9), (Stage::Clat, 70), (Stage::Lat, 79)];
    let moments = Moments {
        count: 3,
        min: 100.0,
        max: 130.9,
        mean: 120.25,
        deviation: 12.5,
    };
    KindResult {
        kind,
        issued: 101,
        operations: 100,
        bytes: Bytes(409_600),
        short: 1,
        dropped: 1,
        lost: 1,
        errors: BTreeMap::from([(5, 1)]),
        runtime_ns: span().length(),
        stages: stages.map(stage).into(),
        series: series(),
        bandwidth_samples: Some(moments),
        iops_samples: Some(moments),
    }
}

/// Two whole intervals and a partial one.
fn series() -> Series {
    let mut series = Series::new(Nanos::from_millis(500));
    for operations in [40, 50] {
        series
            .push(operations, Bytes(operations * 4096))
            .expect("whole");
    }
    let length = Nanos::from_millis(100);
    series.finish(length, 10, Bytes(40_960)).expect("partial");
    series
}

fn span() -> Span {
    Span {
        start_ns: Nanos(1000),
        end_ns: Nanos::from_millis(1100),
    }
}

fn failure() -> Failure {
    Failure {
        errno: Some(5),
        cause: "io".to_owned(),
        message: "reading failed".to_owned(),
        target: Some("/dev/weir0".to_owned()),
        kind: Some(Kind::Read),
        offset_bytes: Some(Bytes(8192)),
        length_bytes: Some(Bytes(4096)),
        finding: Some(Finding::Mismatch(Box::new(mismatch()))),
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
        target: "/dev/weir0".to_owned(),
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
        dumps: vec!["weir0.8192.received".to_owned()],
    }
}

fn estimate(value: f64) -> Estimate {
    Estimate {
        value,
        low: Some(value * 0.9),
        high: Some(value * 1.1),
        absent: None,
    }
}

fn rates() -> Rates {
    Rates {
        kind: Kind::Read,
        operations: 2000,
        bytes: Bytes(2000 * 4096),
        ops_per_s: Iops(999.5),
        bytes_per_s: BytesPerSec(4_093_953.0),
        overlap_bytes_per_s: Some(BytesPerSec(4_100_000.0)),
        overlap_ops_per_s: Some(Iops(1000.0)),
    }
}

fn disk(members: Vec<DiskCounters>) -> DiskCounters {
    DiskCounters {
        device: "weir0".to_owned(),
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

fn host() -> HostFacts {
    let device = DeviceFacts {
        target: "/dev/weir0".to_owned(),
        kind: "block device".to_owned(),
        size_bytes: Some(Bytes::GIB),
        model: Some("Weir 1".to_owned()),
        ..DeviceFacts::default()
    };
    HostFacts {
        hostname: Some("here".to_owned()),
        kernel: Some("Linux 6.1.0".to_owned()),
        cpu_model: Some("CPU".to_owned()),
        cpus: Some(8),
        memory_bytes: Some(Bytes::GIB),
        devices: vec![device],
        ..HostFacts::default()
    }
}
