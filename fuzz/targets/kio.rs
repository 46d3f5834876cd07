//! Command lines of `weir kio` and its configuration files.
//!
//! The input is the arguments, one on each line, and after an empty line the text of a configuration,
//! which `--config c` names. What the door accepts is a plan that reads back from JSON and can be
//! shown in every form; what it refuses it refuses with a code of its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::house::Input;
use weir_doors::kio::{DOOR, ModuleFacts, TargetFacts};
use weir_doors::request::Action;
use weir_doors::{LACKS, Machine, Refusal, USAGE};
use weir_schema::{Plan, RunResult};

struct Made<'a> {
    config: &'a str,
    has_node: bool,
}

impl Machine for Made<'_> {
    fn variable(&self, _: &str) -> Option<String> {
        Some("/dev/v".to_owned())
    }

    fn kernel_module(&self) -> ModuleFacts {
        ModuleFacts {
            has_node: self.has_node,
            ..ModuleFacts::default()
        }
    }

    fn target(&self, path: &str) -> Result<TargetFacts, String> {
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
    }

    fn held_data(&self, path: &str) -> Option<&'static str> {
        path.ends_with('h').then_some("a file system")
    }

    fn file(&self, _: &str, _: u64) -> Result<String, String> {
        Ok(self.config.to_owned())
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
        let result = RunResult::of(*plan);
        for format in ["kio", "csv", "yaml", "json", "table"] {
            let form = args::read_given(&DOOR, &["--format".to_owned(), format.to_owned()])?;
            measures.print.expect("it prints")(&result, &form, machine)?;
        }
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (args, config) = text.split_once("\n\n").unwrap_or((&text, ""));
    let args: Vec<String> = args.split('\n').map(str::to_owned).collect();
    let has_node = args.len() % 2 == 0;
    if let Err(refusal) = carry_out(args, &Made { config, has_node }) {
        assert!([LACKS, USAGE].contains(&refusal.code), "{refusal}");
    }
});
