//! Command lines of `weir beff`, and the stored results they are set beside.
//!
//! The input is a letter for the environment, the arguments, one on each line, and after an empty
//! line the text of a stored result. What the door accepts is a plan that reads back from JSON; its
//! configuration can be shown in every form, the JSON being JSON.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::beff::output::{dump, stdout};
use weir_doors::beff::{self, Baseline, BeffFormat, BeffOptions, DOOR};
use weir_doors::house::Input;
use weir_doors::request::Action;
use weir_doors::{LACKS, Machine, Refusal, USAGE};
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
    let args: Vec<String> = words.split('\n').map(str::to_owned).collect();
    let machine = Described {
        launcher: place.to_digit(10).filter(|ranks| *ranks > 0),
        memory_bytes: place.is_ascii_lowercase().then_some(1 << 32),
        stored,
    };
    if let Err(refusal) = carry_out(args, &machine) {
        refused(&refusal);
    }
});

/// Machine of an input, where every file has this text.
struct Described<'a> {
    launcher: Option<u32>,
    memory_bytes: Option<u64>,
    stored: &'a str,
}

impl Machine for Described<'_> {
    fn launcher(&self) -> Option<u32> {
        self.launcher
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.memory_bytes
    }

    fn transports(&self) -> TransportCatalogue {
        TransportCatalogue {
            lacks: |name| (name == "mpi").then(|| "an MPI library".to_owned()),
            ..sample::transports()
        }
    }

    fn file(&self, _: &str, _: u64) -> Result<String, String> {
        Ok(self.stored.to_owned())
    }
}

fn carry_out(args: Vec<String>, machine: &Described<'_>) -> Result<(), Refusal> {
    let measures = DOOR.measures.expect("it measures");
    let call = DoorCall {
        door: &DOOR,
        link: None,
        args,
    };
    let Arguments::Given(given) = args::read(&call)? else {
        return Ok(());
    };
    let plan = match (measures.read)(&given, machine)?.action {
        Action::Measure(Input::Made(plan)) => *plan,
        Action::Show(result) => result.plan,
        _ => return Ok(()),
    };
    good(&plan);
    shown(&plan, Baseline::read("stored.json", machine.stored).ok());
    // Whatever the plan is only shown for, its file to compare with may be none.
    if let Ok(text) = measures.print.expect("it prints")(&RunResult::of(plan), &given, machine) {
        assert!(text.err.is_empty() || text.err.ends_with('\n'));
    }
    Ok(())
}

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
fn shown(plan: &Plan, baseline: Option<Baseline>) {
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
                baseline: baseline.clone(),
                ..BeffOptions::of(format)
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
