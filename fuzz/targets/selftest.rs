//! Command lines of `weir selftest` and `weir rpc serve`, and files of samples.
//!
//! The input is the words, one on each line, and after an empty line the text of a file of samples. What
//! the door accepts is a plan that reads back from JSON and whose lines can be printed; samples that are
//! read are a result that reads back and can be shown in every form; what is refused is refused in words
//! that can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::selftest::{
    Action, SelfTestEnvironment, SelfTestFormat, exit_code, output, read, read_options, samples,
};
use weir_doors::{LACKS, USAGE, rpc};
use weir_schema::{Plan, RankTags, RunResult};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (words, stored) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
    let environment = SelfTestEnvironment {
        variable: &|name| (name == "CRT_TIMEOUT").then(|| "5".to_owned()),
        is_directory: &|path| !path.contains('x'),
        has_file: &|path| !path.contains('y'),
        is_taken: &|path| !path.contains('z'),
        members: &|_| {
            Ok(vec![
                RankTags { rank: 0, tags: 3 },
                RankTags { rank: 7, tags: 1 },
            ])
        },
        seed: 1,
        most_files: Some(1024),
        is_linked: data.len() % 2 == 0,
    };
    match read(&words, &environment) {
        Ok(Action::Run(run)) => {
            let plan = run.plan.to_json().expect("a plan has a form");
            assert_eq!(Plan::from_json(&plan).expect("it reads back"), run.plan);
            let _ = output::head(&run.plan, &run.options);
            let _ = output::text(&RunResult::of(run.plan.clone()), &run.options);
        }
        Ok(_) => {}
        Err(refusal) => refused(&refusal),
    }
    if let Err(refusal) = rpc::read(&words, environment.variable) {
        refused(&refusal);
    }
    let Ok(sampled) = samples::read(stored) else {
        return;
    };
    let result = samples::result(&sampled.masters);
    let stored = result.to_json().expect("a result has a form");
    assert_eq!(
        RunResult::from_json(&stored).expect("it reads back"),
        result
    );
    assert_eq!(
        samples::read(&samples::print(&sampled)).as_ref(),
        Ok(&sampled)
    );
    let mut options = read_options(&[]).expect("no words are good");
    for format in [
        SelfTestFormat::Text,
        SelfTestFormat::CartJson,
        SelfTestFormat::Csv,
        SelfTestFormat::Prometheus,
    ] {
        options.format = format;
        assert!(output::text(&result, &options).is_some());
    }
    assert!(exit_code(&result, &options) <= 1);
});

fn refused(refusal: &weir_doors::Refusal) {
    assert!([USAGE, LACKS].contains(&refusal.code), "{refusal:?}");
    assert!(refusal.message.ends_with('\n'), "{refusal:?}");
}
