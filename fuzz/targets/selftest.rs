//! Command lines of `weir selftest` and `weir rpc serve`, and files of samples.
//!
//! The input is the words, one on each line, and after an empty line the text of a file of samples. What
//! the door accepts is a plan that reads back from JSON and whose lines can be printed; samples that are
//! read are a result that reads back and can be shown in every form; what is refused is refused in words
//! that can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::house::{Input, Strict};
use weir_doors::request::Action;
use weir_doors::selftest::{DOOR, SelfTestFormat, SelfTestOptions, exit_code, output, samples};
use weir_doors::{LACKS, Machine, NamedPath, Refusal, USAGE, rpc};
use weir_schema::{Plan, RankTags, RpcWorkload, RunResult};

/// A machine whose every file has this text.
struct Made<'a>(&'a str);

impl Machine for Made<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "CRT_TIMEOUT").then(|| "5".to_owned())
    }

    fn file(&self, _: &str, _: u64) -> Result<String, String> {
        Ok(self.0.to_owned())
    }

    fn named_path(&self, path: &str) -> NamedPath {
        match path {
            _ if path.contains('x') => NamedPath::Missing,
            _ if path.contains('y') => NamedPath::Directory,
            _ if path.contains('z') => NamedPath::Other,
            _ => NamedPath::of_file(b""),
        }
    }

    fn group_members(&self, _: &RpcWorkload) -> Result<Vec<RankTags>, String> {
        Ok(vec![
            RankTags { rank: 0, tags: 3 },
            RankTags { rank: 7, tags: 1 },
        ])
    }
}

fn carry_out(call: &DoorCall, machine: &Made<'_>) -> Result<(), Refusal> {
    let measures = DOOR.measures.expect("it measures");
    let Arguments::Given(given) = args::read(call)? else {
        return Ok(());
    };
    let result = match (measures.read)(&given, machine)?.action {
        Action::Measure(Input::Made(plan)) | Action::Search(Input::Made(plan), _) => {
            let stored = plan.to_json().expect("a plan has a form");
            assert_eq!(Plan::from_json(&stored).expect("it reads back"), *plan);
            RunResult::of(*plan)
        }
        Action::Show(result) => *result,
        _ => return Ok(()),
    };
    measures.print.expect("it prints")(&result, &given, machine).map(|_| ())
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (words, stored) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
    let machine = Made(stored);
    if let Err(refusal) = rpc::read(&words, &|name| machine.variable(name)) {
        refused(&refusal);
    }
    let call = DoorCall {
        door: &DOOR,
        link: DOOR.links.first().filter(|_| data.len() % 2 == 0),
        args: words,
    };
    if let Err(refusal) = carry_out(&call, &machine) {
        refused(&refusal);
    }
    let Ok((result, code)) = samples::read(stored) else {
        return;
    };
    let stored = result.to_json().expect("a result has a form");
    assert_eq!(
        RunResult::from_json(&stored).expect("it reads back"),
        result
    );
    let printed = samples::print(&result, code);
    assert_eq!(
        samples::read(&printed).as_ref(),
        Ok(&(result.clone(), code))
    );
    let given = args::read_given(&DOOR, &[]).expect("no words are good");
    let mut options = SelfTestOptions::read(&given);
    for format in [
        SelfTestFormat::Text,
        SelfTestFormat::CartJson,
        SelfTestFormat::Csv,
        SelfTestFormat::Prometheus,
    ] {
        options.format = format;
        assert!(!output::text(&result, &options).is_empty());
    }
    assert!(exit_code(&result, None, &Strict::No) <= 1);
});

fn refused(refusal: &Refusal) {
    assert!([USAGE, LACKS].contains(&refusal.code), "{refusal:?}");
    assert!(refusal.message.ends_with('\n'), "{refusal:?}");
}
