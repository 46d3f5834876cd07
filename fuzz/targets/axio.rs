//! Command lines of `weir axio` and its configuration files.
//!
//! The input is the words, one on each line, and after an empty line the text of a configuration,
//! which `-c c` names. What the door accepts is a plan that reads back from JSON and whose lines can be
//! printed; what it refuses it refuses with a code of its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::axio::DOOR;
use weir_doors::house::Input;
use weir_doors::request::Action;
use weir_doors::{LACKS, Machine, Refusal, USAGE};
use weir_schema::{Plan, RunResult};

/// A machine whose every file has this text.
struct Made<'a>(&'a str);

impl Machine for Made<'_> {
    fn file(&self, _: &str, _: u64) -> Result<String, String> {
        Ok(self.0.to_owned())
    }
}

fn carry_out(args: Vec<String>, machine: &Made<'_>) -> Result<(), Refusal> {
    let measures = DOOR.measures.expect("it measures");
    let call = DoorCall {
        door: &DOOR,
        link: None,
        args,
    };
    let Arguments::Given(given) = args::read(&call)? else {
        return Ok(());
    };
    let request = (measures.read)(&given, machine)?;
    if let Action::Measure(Input::Made(plan)) = request.action {
        let stored = plan.to_json().expect("a plan has a form");
        assert_eq!(Plan::from_json(&stored).expect("it reads back"), *plan);
        measures.print.expect("it prints")(&RunResult::of(*plan), &given, machine)?;
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (words, config) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
    if let Err(refusal) = carry_out(words, &Made(config)) {
        assert!([LACKS, USAGE].contains(&refusal.code), "{refusal}");
    }
});
