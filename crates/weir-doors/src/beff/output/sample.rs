//! A result with the numbers of the peer's published example.

use weir_schema::{
    ClockFacts, ExchangeResult, GroupResult, HostFacts, Instrument, JobResult, Method, Pairing,
    ProgramFacts, RESULT_SCHEMA, RankFacts, RankTimes, RunResult, SizeResult, State, Workload,
};
use weir_units::Nanos;

use crate::beff::{Action, Around, Offer, Options, read};

#[expect(clippy::too_many_lines, reason = "one literal")]
/// The result of a run with these words, in which every rank of the size at place i took
/// `times_ns[i]`.
pub(super) fn result(text: &str, times_ns: &[&[u64]]) -> (RunResult, Options) {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let around = Around {
        offer: |_| Some(Offer::default()),
        ..Around::default()
    };
    let Ok(Action::Run(run)) = read(&words, &around) else {
        panic!("{text}")
    };
    let Workload::Exchange(work) = &run.plan.groups[0].jobs[0].workload else {
        panic!("{text}")
    };
    let ranks = run.plan.ranks.map_or(1, |r| r.count);
    let times = |rank: u32, of: &[u64]| RankTimes {
        rank,
        times_ns: of.iter().copied().map(Nanos).collect(),
        ..RankTimes::default()
    };
    let sizes = work
        .sizes
        .iter()
        .zip(times_ns)
        .map(|(size, of)| SizeResult {
            exponent: size.exponent,
            loop_length: size.loop_length,
            warmup: work.warmup.into(),
            method: Method::Sendrecv,
            transfer: None,
            ranks: (0..ranks).map(|rank| times(rank, of)).collect(),
        });
    let exchange = ExchangeResult {
        transport: run.plan.groups[0].jobs[0].engine.name.clone(),
        ranks: (0..ranks)
            .map(|rank| RankFacts {
                rank,
                hostname: Some("host7".to_owned()),
                cpu: Some(rank),
                ..RankFacts::default()
            })
            .collect(),
        pairing: Pairing::Pairs,
        loopback: ranks == 1,
        sizes: sizes.collect(),
        barrier_ns: Some(Nanos(100)),
        generation_ns: Nanos(1_500),
        execution_ns: Nanos(11_000_000),
        validation_ns: Nanos(2_500),
        ..ExchangeResult::default()
    };
    let job = JobResult {
        name: "b_eff".to_owned(),
        state: State::Done,
        span: None,
        failure: None,
        workers: Vec::new(),
        confidence: Vec::new(),
        logs: Vec::new(),
        exchange: Some(exchange),
        latency_bandwidth: None,
    };
    let result = RunResult {
        schema: RESULT_SCHEMA.to_owned(),
        weir_version: "0.1.0".to_owned(),
        started_unix_ns: 1_671_007_182_000_000_000,
        run_id: 1,
        duration_ns: Nanos(12_000_000),
        complete: true,
        ended_by: None,
        groups: vec![GroupResult {
            jobs: vec![job],
            ..GroupResult::default()
        }],
        ranks: Vec::new(),
        warnings: Vec::new(),
        disks: Vec::new(),
        clock: ClockFacts {
            frequency_hz: 2.5e9,
            read_ns: 10.0,
            ..ClockFacts::default()
        },
        instrument: Instrument::default(),
        host: HostFacts {
            cpu_model: Some("CPU of the example".to_owned()),
            ..HostFacts::default()
        },
        program: Some(ProgramFacts {
            built_unix_s: Some(1_671_007_182),
            commit: Some("abcdef0".to_owned()),
            library_path: None,
        }),
        plan: run.plan,
    };
    (result, run.options)
}

/// Three sizes of one rank: the times behind the published table.
pub(super) const TABLE: &[&[u64]] = &[&[43_831, 50_000], &[70_701, 70_800], &[77_341, 77_400]];
