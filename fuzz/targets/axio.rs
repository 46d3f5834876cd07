//! Command lines of `weir axio` and its configuration files.
//!
//! The input is the words, one on each line, and after an empty line the text of a configuration,
//! which `-c c` names. What the door accepts is a plan that reads back from JSON and whose lines can be
//! printed; what it refuses it refuses with a code of its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::axio::{Action, AxioEnvironment, AxioOptions, MachineFacts, output, read, work_of};
use weir_doors::{LACKS, USAGE};
use weir_schema::{PacketPathOutcome, PathIteration, PathThread, Plan};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (words, config) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
    let environment = AxioEnvironment {
        file: &|_| Ok(config.to_owned()),
        variable: &|_| None,
        machine: &MachineFacts::default,
    };
    match read(&words, &environment) {
        Ok(Action::Run(run)) => {
            let stored = run.plan.to_json().expect("a plan has a form");
            assert_eq!(Plan::from_json(&stored).expect("it reads back"), run.plan);
            assert!(!output::head(&run.plan).is_empty());
            let work = work_of(&run.plan).expect("it is a packet path");
            let iteration = PathIteration {
                threads: vec![PathThread::default()],
            };
            let options = AxioOptions {
                has_server: true,
                ..AxioOptions::default()
            };
            let table = output::table(&iteration, work, options);
            assert_eq!(table.matches("End-to-end").count(), 2);
            output::ending(&PacketPathOutcome::default(), work);
        }
        Ok(Action::Print { code, .. }) => assert!(code < 2),
        Ok(Action::Backends | Action::SelfTest) => {}
        Ok(Action::Elsewhere { words, .. }) => assert!(!words.is_empty()),
        Err(refusal) => assert!([LACKS, USAGE].contains(&refusal.code), "{refusal}"),
    }
});
