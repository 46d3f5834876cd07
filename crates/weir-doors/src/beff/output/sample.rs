//! A result with the numbers of the peer's published example.

use weir_schema::{
    ClockFacts, ExchangeResult, HostFacts, Method, Pairing, Plan, ProgramFacts, RankFacts,
    RankTimes, RunResult, SizeResult, Workload, sample,
};
use weir_units::Nanos;

use crate::args::read_given;
use crate::beff::{BeffOptions, DOOR, request};
use crate::house::Input;
use crate::machine::SampleMachine;
use crate::request::Action;

/// Result of a run with these arguments, in which every rank took `times_ns[i]` for the size at place i.
pub(super) fn result(text: &str, times_ns: &[&[u64]]) -> (RunResult, BeffOptions) {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let given = read_given(&DOOR, &words).unwrap();
    let machine = SampleMachine(None);
    let plan = match request::read(&given, &machine).map(|request| request.action) {
        Ok(Action::Measure(Input::Made(plan))) => *plan,
        Ok(Action::Show(result)) => result.plan,
        other => panic!("{text}: {other:?}"),
    };
    let options = request::options(&given, &machine).unwrap();
    let exchange = exchange(&plan, times_ns);
    let mut result = RunResult {
        weir_version: "0.1.0".to_owned(),
        history: None,
        started_unix_ns: 1_671_007_182_000_000_000,
        duration_ns: Nanos(12_000_000),
        clock: ClockFacts {
            frequency_hz: 2.5e9,
            read_ns: 10.0,
            ..ClockFacts::default()
        },
        host: HostFacts {
            cpu_model: Some("CPU of the example".to_owned()),
            ..HostFacts::default()
        },
        program: Some(ProgramFacts {
            built_unix_s: Some(1_671_007_182),
            commit: Some("abcdef0".to_owned()),
            library_path: None,
        }),
        ..sample::result(plan)
    };
    result.groups[0].jobs[0] = sample::exchange_result("b_eff", exchange);
    (result, options)
}

/// The sizes of the plan; every rank of the one at place i took `times_ns[i]`.
fn exchange(plan: &Plan, times_ns: &[&[u64]]) -> ExchangeResult {
    let Workload::Exchange(work) = &plan.groups[0].jobs[0].workload else {
        panic!("no exchanges: {plan:?}")
    };
    let ranks = plan.ranks.map_or(1, |r| r.count);
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
    ExchangeResult {
        transport: plan.groups[0].jobs[0].engine.name.clone(),
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
    }
}

/// Three sizes of one rank: the times behind the published table.
pub(super) const TABLE: &[&[u64]] = &[&[43_831, 50_000], &[70_701, 70_800], &[77_341, 77_400]];
