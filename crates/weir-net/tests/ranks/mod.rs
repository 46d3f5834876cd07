//! Running a plan of exchanges with ranks on threads.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "in tests")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_net::{NetError, exchange};
use weir_run::execute::Signals;
use weir_schema::{
    EngineChoice, ExchangeResult, ExchangeWorkload, FaultKind, InjectedFault, Job, MessageSize,
    Setting,
};
use weir_sys::clock::Clock;
use weir_units::Nanos;
use weir_world::on_threads;

pub(crate) type Answer = Result<Option<ExchangeResult>, NetError>;

/// Sizes with the same loop.
pub(crate) fn exponents(list: impl IntoIterator<Item = u8>, loop_length: u64) -> Vec<MessageSize> {
    let size = |exponent| MessageSize {
        exponent,
        loop_length,
    };
    list.into_iter().map(size).collect()
}

/// Three runs each, on two channels, checked, with patience for a busy machine.
pub(crate) fn workload(sizes: Vec<MessageSize>) -> ExchangeWorkload {
    ExchangeWorkload {
        sizes,
        repetitions: 3,
        timeout_ns: Nanos::from_secs(30),
        ..ExchangeWorkload::default()
    }
}

pub(crate) fn fault(kind: FaultKind, rank: u32, exponent: u8, at: u64) -> InjectedFault {
    InjectedFault {
        kind,
        rank,
        exponent,
        at,
    }
}

pub(crate) fn engine(name: &str, settings: &[(&str, Setting)]) -> EngineChoice {
    EngineChoice::with(name, settings)
}

/// Every rank's answer, in order.
pub(crate) fn run_engine(
    engine: EngineChoice,
    ranks: u32,
    plan: &ExchangeWorkload,
    signals: &Signals,
) -> Vec<Answer> {
    let (clock, _) = Clock::detect();
    let job = Job::of_exchanges("test", engine, plan.clone());
    on_threads(ranks, |world| {
        exchange::run(&job, plan, &world, &clock, signals, None).whole()
    })
    .unwrap()
}

pub(crate) fn run_with(
    name: &str,
    ranks: u32,
    plan: &ExchangeWorkload,
    signals: &Signals,
) -> Vec<Answer> {
    run_engine(engine(name, &[]), ranks, plan, signals)
}

pub(crate) fn run_all(name: &str, ranks: u32, plan: &ExchangeWorkload) -> Vec<Answer> {
    run_with(name, ranks, plan, &Signals::default())
}

/// Rank 0's result.
pub(crate) fn run(
    name: &str,
    ranks: u32,
    plan: &ExchangeWorkload,
) -> Result<ExchangeResult, NetError> {
    first(run_all(name, ranks, plan))
}

/// Of rank 0, where no other rank failed without it.
pub(crate) fn first(answers: Vec<Answer>) -> Result<ExchangeResult, NetError> {
    let mut answers = answers.into_iter();
    let first = answers.next().unwrap()?;
    for other in answers {
        assert!(other.unwrap().is_none(), "only rank 0 has a result");
    }
    Ok(first.unwrap())
}

/// Signals of a run that is interrupted after a while.
pub(crate) fn interrupted_after(pause: Duration) -> Arc<Signals> {
    let signals = Arc::new(Signals::default());
    let caught = Arc::clone(&signals);
    std::thread::spawn(move || {
        std::thread::sleep(pause);
        caught.interruptions.fetch_add(1, Ordering::Relaxed);
    });
    signals
}
