//! Command lines of `weir nvme-perf`.
//!
//! The input is the arguments, one on each line. What the door accepts is a plan that reads back from JSON
//! and whose result can be printed; what it refuses it refuses with a code of its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_doors::args::{self, Arguments, DoorCall};
use weir_doors::house::Input;
use weir_doors::kio::TargetFacts;
use weir_doors::nvme::{DOOR, NvmeNamespace};
use weir_doors::request::Action;
use weir_doors::{LACKS, Machine, Refusal, USAGE};
use weir_schema::{Plan, RunResult};

/// Eight CPUs and two drives, one of them behind VMD.
struct Made;

impl Machine for Made {
    fn cpus(&self) -> Vec<u32> {
        (0..8).collect()
    }

    fn memory_node(&self, cpu: u32) -> Option<u32> {
        Some(cpu % 2)
    }

    fn nvme_namespaces(&self) -> Vec<NvmeNamespace> {
        let one = |node: &str, address: &str| NvmeNamespace {
            node: node.to_owned(),
            address: address.to_owned(),
            number: 1,
            ..NvmeNamespace::default()
        };
        vec![
            one("/dev/nvme0n1", "0000:01:00.0"),
            one("/dev/nvme1n1", "10000:01:00.0"),
        ]
    }

    fn target(&self, path: &str) -> Result<TargetFacts, String> {
        if path == "none" {
            return Err("there is nothing".to_owned());
        }
        Ok(TargetFacts {
            is_device: path.starts_with('/'),
            bytes: if path.ends_with('0') { 0 } else { 64 << 20 },
            logical_block: if path.ends_with('k') { 4096 } else { 512 },
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
}

fn carry_out(args: Vec<String>) -> Result<(), Refusal> {
    let measures = DOOR.measures.expect("it measures");
    let call = DoorCall {
        door: &DOOR,
        link: DOOR.links.first().filter(|_| args.len() % 2 == 0),
        args,
    };
    let Arguments::Given(given) = args::read(&call)? else {
        return Ok(());
    };
    let request = (measures.read)(&given, &Made)?;
    if let Action::Measure(Input::Made(plan)) = request.action {
        let stored = plan.to_json().expect("a plan has a form");
        assert_eq!(Plan::from_json(&stored).expect("it reads back"), *plan);
        measures.print.expect("it prints")(&RunResult::of(*plan), &given, &Made)?;
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Err(refusal) = carry_out(text.split('\n').map(str::to_owned).collect()) {
        assert!([LACKS, USAGE].contains(&refusal.code), "{refusal}");
    }
});
