//! Command lines of `weir kio` and its configuration files.
//!
//! The input is the words, one on each line, and after an empty line the text of a configuration,
//! which `--config c` names. What the door accepts is a plan that reads back from JSON and can be
//! shown in every form; what it refuses it refuses with a code of its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::kio::{
    Action, KioEnvironment, KioFormat, ModuleFacts, TargetFacts, output, read,
};
use weir_doors::{LACKS, USAGE};
use weir_schema::{Plan, RunResult};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (words, config) = text.split_once("\n\n").unwrap_or((&text, ""));
    let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
    let target = |path: &str| -> Result<TargetFacts, String> {
        if path == "none" {
            return Err("there is nothing".to_owned());
        }
        Ok(TargetFacts {
            is_device: path.starts_with('/'),
            bytes: 64 << 20,
            logical_block: 512,
            has_polling: Some(!path.ends_with('p')),
            is_direct: true,
            is_read_only: path.ends_with('r'),
            is_zoned: path.ends_with('z'),
            node: None,
        })
    };
    let environment = KioEnvironment {
        variable: &Some("/dev/v".to_owned()),
        module: &ModuleFacts {
            has_node: words.len() % 2 == 0,
            ..ModuleFacts::default()
        },
        modprobe: &None,
        target: &target,
        holds: &|path| path.ends_with('h').then_some("a file system"),
        file: &|_| Ok(config.to_owned()),
    };
    match read(&words, &environment) {
        Ok(Action::Run(run)) => {
            let stored = run.plan.to_json().expect("a plan has a form");
            assert_eq!(Plan::from_json(&stored).expect("it reads back"), run.plan);
            let result = RunResult::of(run.plan.clone());
            for format in [KioFormat::Kio, KioFormat::Csv, KioFormat::Yaml] {
                let mut options = run.options.clone();
                options.format = format;
                assert!(output::text(&result, &options).is_some());
            }
        }
        Ok(_) => {}
        Err(refusal) => assert!([LACKS, USAGE].contains(&refusal.code), "{refusal}"),
    }
});
