//! Command lines of `weir beff` and `weir net`, and the stored results they are set beside.
//!
//! The input is a letter for the environment, the words, one on each line, and after an empty
//! line the text of a stored result. What a door accepts is a plan that reads back from JSON; its
//! configuration can be shown in every form, the JSON being JSON.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weir_doors::beff::output::{dump, stdout};
use weir_doors::beff::{self, Action, Baseline, BeffEnvironment, BeffFormat, BeffOptions};
use weir_doors::{LACKS, Refusal, USAGE};
use weir_schema::catalogue::TransportCatalogue;
use weir_schema::{
    ExchangeResult, MessageSize, Outcome, Plan, RankTimes, RunResult, SizeResult, State, Workload,
    sample,
};
use weir_units::Nanos;

static SAMPLE: LazyLock<RunResult> = LazyLock::new(weir_fuzz::result);

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut rest = text.chars();
    let place = rest.next().unwrap_or('a');
    let (words, stored) = rest
        .as_str()
        .split_once("\n\n")
        .unwrap_or((rest.as_str(), ""));
    let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
    let launcher = place.to_digit(10).filter(|ranks| *ranks > 0);
    let stored = Baseline::read("stored.json", stored).ok();
    let transports = TransportCatalogue {
        lacks: |name| (name == "mpi").then(|| "an MPI library".to_owned()),
        ..sample::transports()
    };
    let environment = BeffEnvironment {
        launcher,
        memory_bytes: place.is_ascii_lowercase().then_some(1 << 32),
        transports: transports.clone(),
    };
    match beff::read(&words, &environment) {
        Ok(Action::Run(run)) => {
            good(&run.plan);
            shown(&run.plan, &run.options, stored);
        }
        Ok(Action::Print(page)) => assert!(page.ends_with('\n')),
        Ok(Action::SelfTest(_)) => {}
        Err(refusal) => refused(&refusal),
    }
});

fn refused(refusal: &Refusal) {
    assert!([USAGE, LACKS].contains(&refusal.code), "{refusal:?}");
    assert!(refusal.message.starts_with("error: "), "{refusal:?}");
    assert!(refusal.message.ends_with('\n'), "{refusal:?}");
}

fn good(plan: &Plan) {
    let text = plan.to_json().unwrap();
    assert_eq!(&Plan::from_json(&text).unwrap(), plan);
    assert!(plan.ranks.is_some_and(|r| r.count > 0), "{text}");
}

/// A result of this plan, in every form: with nothing done, with all, and cut off.
fn shown(plan: &Plan, options: &BeffOptions, baseline: Option<Baseline>) {
    let Some(measured) = measured(plan) else {
        return;
    };
    for state in [State::NotStarted, State::Done, State::Stopped] {
        let mut result = SAMPLE.clone();
        result.plan = plan.clone();
        result.complete = state != State::Stopped;
        result.groups.truncate(1);
        for group in &mut result.groups {
            group.jobs.truncate(1);
            for job in &mut group.jobs {
                job.state = state;
                job.outcome = match state {
                    State::NotStarted => Outcome::None,
                    _ => Outcome::Exchange(Box::new(measured.clone())),
                };
            }
        }
        for format in [
            BeffFormat::Text,
            BeffFormat::Table,
            BeffFormat::Csv,
            BeffFormat::Markdown,
            BeffFormat::Json,
        ] {
            let options = BeffOptions {
                format,
                baseline: baseline.clone(),
                ..options.clone()
            };
            assert!(stdout(&result, &options).is_some());
            let json = dump(&result, &options).unwrap();
            serde_json::from_str::<serde_json::Value>(&json).unwrap();
        }
        let complaints = beff::complaints(&result);
        assert!(
            complaints.is_empty() || complaints.ends_with('\n'),
            "{complaints}"
        );
    }
}

/// Every size of a plan, on a few ranks, in a time that depends on both.
fn measured(plan: &Plan) -> Option<ExchangeResult> {
    let (_, job) = plan.jobs().next()?;
    let Workload::Exchange(work) = &job.workload else {
        return None;
    };
    let ranks = plan.ranks?.count.min(3);
    let size = |size: &MessageSize| SizeResult {
        exponent: size.exponent,
        loop_length: size.loop_length,
        warmup: u64::from(work.warmup),
        method: work.method,
        transfer: work.transfers.first().copied(),
        ranks: (0..ranks).map(|rank| times(rank, size.exponent)).collect(),
    };
    Some(ExchangeResult {
        transport: job.engine.name.clone(),
        sizes: work.sizes.iter().map(size).collect(),
        ..ExchangeResult::default()
    })
}

fn times(rank: u32, exponent: u8) -> RankTimes {
    let time = |n: u64| Nanos(n + (1 << exponent) + u64::from(rank));
    RankTimes {
        rank,
        times_ns: vec![time(1), time(1000)],
        lost: (rank == 1).then_some(0),
        ..RankTimes::default()
    }
}
