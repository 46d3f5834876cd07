//! Command lines: the verb, then the reader of its door.
//!
//! The input is the arguments, one on each line, the program's name first. What a door accepts
//! is compiled with no file at hand; words and refusals must be fit to be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments};
use weir_doors::house::Input;
use weir_doors::request::Action;
use weir_doors::top::{Call, call};
use weir_doors::{DoorCall, LACKS, Machine, Refusal, USAGE, compare, fio};
use weir_fuzz::{Memory, catalogue, check, compile_in};
use weir_jobfile::{CompileRequest, Compiled, Diagnostic};
use weir_schema::catalogue::{Catalogue, TransportCatalogue};
use weir_schema::sample;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let arguments: Vec<String> = text.split('\n').map(str::to_owned).collect();
    match call(&arguments) {
        Ok(Call::Print(page)) => assert!(page.ends_with('\n')),
        Ok(Call::Door(call)) => match call.door.verb {
            "compare" => compare_door(&call.args),
            // `beff` is a target of its own; the others read an argument or two.
            _ => measuring_door(&call),
        },
        Err(refusal) => refused(&refusal, USAGE),
    }
});

fn refused(refusal: &Refusal, code: u8) {
    assert_eq!(refusal.code, code, "{refusal:?}");
    assert!(refusal.message.trim().len() > 1, "{refusal:?}");
    assert!(refusal.message.ends_with('\n'), "{refusal:?}");
}

/// A machine without transports, launcher and files.
struct NoMachine;

impl Machine for NoMachine {
    fn transports(&self) -> TransportCatalogue {
        sample::transports()
    }

    fn engines(&self) -> Catalogue {
        catalogue()
    }

    fn compile(&self, jobs: &CompileRequest) -> Result<Compiled, Vec<Diagnostic>> {
        compile_in(jobs, &Memory::default())
    }
}

fn measuring_door(call: &DoorCall) {
    let Some(measures) = call.door.measures else {
        return;
    };
    let given = match args::read(call) {
        Err(refusal) => return refused(&refusal, USAGE),
        Ok(Arguments::Print(page)) => return assert!(page.ends_with('\n')),
        Ok(Arguments::Given(given)) => given,
    };
    if call.door.verb == "fio" && !(given.operands.is_empty() && given.options.is_empty()) {
        compiled(&fio::jobs(&given));
    }
    match (measures.read)(&given, &NoMachine).map(|request| request.action) {
        Err(refusal) => assert!([LACKS, USAGE].contains(&refusal.code), "{refusal:?}"),
        Ok(Action::Measure(Input::Jobs(request))) => compiled(&request),
        Ok(Action::Measure(Input::Made(plan))) => assert_eq!(plan.door, call.door.verb),
        Ok(_) => {}
    }
}

fn compare_door(words: &[String]) {
    match compare::read(words) {
        Err(refusal) => refused(&refusal, USAGE),
        Ok(compare::Action::Print(page)) => assert!(page.ends_with('\n')),
        Ok(compare::Action::Compare(asked)) => {
            let known = weir_compare::is_of_loops;
            for condition in &asked.fail_if {
                // What a condition is about is known or refused; nothing is left out.
                let _ = condition.metrics(known, &["a".to_owned()]);
            }
        }
    }
}

fn compiled(request: &CompileRequest) {
    let files = Memory::default();
    let outcome = compile_in(request, &files);
    check(&outcome, &files);
    if let Err(errors) = &outcome {
        assert!(fio::complaint(errors).ends_with('\n'));
    }
}
