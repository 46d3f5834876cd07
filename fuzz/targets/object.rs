//! Command lines of `weir vos-perf`.
//!
//! The input is the words, one on each line. What the door accepts is a plan that reads back from JSON and of
//! which a result can be printed; what is refused is refused in words that can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::house::Input;
use weir_doors::object::VOS_PERF;
use weir_doors::request::Action;
use weir_doors::{LACKS, Machine, Refusal, USAGE};
use weir_schema::{ObjectOutcome, ObjectRank, ObjectRun, Outcome, Plan, RunResult, Workload};

/// A machine that has nothing.
struct Bare;

impl Machine for Bare {}

fn carry_out(call: &DoorCall) -> Result<(), Refusal> {
    let measures = VOS_PERF.measures.expect("it measures");
    let Arguments::Given(given) = args::read(call)? else {
        return Ok(());
    };
    let Action::Measure(Input::Made(plan)) = (measures.read)(&given, &Bare)?.action else {
        return Ok(());
    };
    let stored = plan.to_json().expect("a plan has a form");
    assert_eq!(Plan::from_json(&stored).expect("it reads back"), *plan);
    let mut result = RunResult::of(*plan);
    let (_, job) = result.plan.jobs().next().expect("it has a job");
    let Workload::ObjectStore(work) = &job.workload else {
        panic!("it is a store");
    };
    let runs = (0..).zip(&work.tests).map(|(test, planned)| ObjectRun {
        test,
        name: planned.action.name().to_owned(),
        ..ObjectRun::default()
    });
    let rank = ObjectRank {
        runs: runs.collect(),
        ..ObjectRank::default()
    };
    result.groups[0].jobs[0].outcome = Outcome::ObjectStore(Box::new(ObjectOutcome {
        ranks: vec![rank],
    }));
    measures.print.expect("it prints")(&result, &given, &Bare).map(|_| ())
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let call = DoorCall {
        door: &VOS_PERF,
        link: VOS_PERF.links.first().filter(|_| data.len() % 2 == 0),
        args: text.split('\n').map(str::to_owned).collect(),
    };
    if let Err(refusal) = carry_out(&call) {
        assert!([USAGE, LACKS].contains(&refusal.code), "{refusal:?}");
        assert!(refusal.message.ends_with('\n'), "{refusal:?}");
    }
});
