//! Command lines of `weir vos-perf`, `weir daos-perf` and `weir obj`.
//!
//! The input is the words, one on each line. What a door accepts is a plan that reads back from JSON and of
//! which a result can be printed; what is refused is refused in words that can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::house::Input;
use weir_doors::obj;
use weir_doors::object::{DAOS_PERF, VOS_PERF};
use weir_doors::request::Action;
use weir_doors::{Door, LACKS, Machine, Refusal, USAGE};
use weir_schema::{ObjectOutcome, ObjectRank, ObjectRun, Outcome, Plan, RunResult, Workload};

/// A machine that has nothing.
struct Bare;

impl Machine for Bare {}

fn carry_out(call: &DoorCall) -> Result<(), Refusal> {
    let measures = call.door.measures.expect("it measures");
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
    result.groups[0].jobs[0].outcome =
        Outcome::ObjectStore(Box::new(ObjectOutcome { ranks: vec![rank] }));
    measures.print.expect("it prints")(&result, &given, &Bare).map(|_| ())
}

fn read(data: &[u8]) -> Result<(), Refusal> {
    let text = String::from_utf8_lossy(data);
    let args: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let door: &'static Door = match data.len() % 3 {
        0 => return obj::read(&args, &|_| None).map(drop),
        1 => &VOS_PERF,
        _ => &DAOS_PERF,
    };
    carry_out(&DoorCall {
        door,
        link: door.links.first().filter(|_| data.len() % 2 == 0),
        args,
    })
}

fuzz_target!(|data: &[u8]| {
    if let Err(refusal) = read(data) {
        assert!([USAGE, LACKS].contains(&refusal.code), "{refusal:?}");
        assert!(refusal.message.ends_with('\n'), "{refusal:?}");
    }
});
