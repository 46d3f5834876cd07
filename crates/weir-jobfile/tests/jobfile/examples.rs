//! Every example job file compiles, or is refused by the name of the option that is missing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use crate::setting::{Memory, catalogue, compile_in, jobs, request};
use weir_jobfile::JobSource;

/// Files that this version refuses, and the options that their refusal names.
const REFUSED: &[(&str, &[&str])] = &[];

fn examples() -> Memory {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fio");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    Memory(std::fs::read_dir(directory).unwrap().map(read).collect())
}

#[test]
fn every_example_compiles_or_names_what_is_missing() {
    let files = examples();
    let names: Vec<_> = files
        .0
        .keys()
        .filter(|n| *n != "common.inc")
        .cloned()
        .collect();
    assert!(names.len() >= 18, "{names:?}");
    for name in names {
        let result = compile_in(&request(vec![JobSource::File(name.clone())]), &files);
        let refused = REFUSED.iter().find(|(n, _)| *n == name);
        match (result, refused) {
            (Ok(compiled), None) => {
                assert!(!jobs(&compiled).is_empty(), "{name}");
                let text = compiled.plan.to_json().unwrap();
                assert_eq!(
                    weir_schema::Plan::from_json(&text).unwrap(),
                    compiled.plan,
                    "{name}"
                );
            }
            (Err(errors), Some((_, options))) => {
                let text: String = errors
                    .iter()
                    .map(weir_jobfile::Diagnostic::render)
                    .collect();
                for option in *options {
                    assert!(
                        text.contains(option),
                        "{name} does not name {option}:\n{text}"
                    );
                }
                println!("refused: {name}: {}", options.join(", "));
            }
            (Ok(_), Some(_)) => panic!("{name} compiles now: take it off the list"),
            (Err(errors), None) => {
                let text: String = errors
                    .iter()
                    .map(weir_jobfile::Diagnostic::render)
                    .collect();
                panic!("{name}:\n{text}");
            }
        }
    }
}

#[test]
fn the_catalogue_of_these_tests_has_the_engines_of_the_examples() {
    for name in ["psync", "io_uring", "libaio", "mmap", "null"] {
        assert!(catalogue().find(name).is_some(), "{name}");
    }
}

#[test]
fn the_size_sweep_has_eight_groups_of_four_jobs_with_one_name() {
    let files = examples();
    for name in ["xdma_4-ch_4-X_write.fio", "xdma_4-ch_4-X_read.fio"] {
        let compiled = compile_in(&request(vec![JobSource::File(name.into())]), &files).unwrap();
        let groups: Vec<_> = compiled
            .plan
            .groups
            .iter()
            .map(|g| (g.jobs.len(), g.jobs[0].name.as_str()))
            .collect();
        let names = ["4KB", "8KB", "16KB", "32KB", "64KB", "256KB", "1MB", "2MB"];
        assert_eq!(groups, names.map(|n| (4, n)), "{name}");
        assert!(compiled.plan.jobs().all(|(_, j)| j.report.merge));
        assert!(compiled.plan.groups.iter().all(|g| g.jobs[0].start.barrier));
        assert!(
            compiled
                .plan
                .groups
                .iter()
                .all(|g| !g.jobs[1].start.barrier)
        );
    }
}

#[test]
fn show_command_prints_what_fio_prints() {
    let files = examples();
    let source = JobSource::File("xdma_4-ch_4-1M_write.fio".into());
    let compiled = compile_in(&request(vec![source]), &files).unwrap();
    let start = "fio --allow_file_create=0 --ioengine=psync --mem=mmap --filesize=64m --bs=1m \
                 --rate_min=1m --name=w1 --size=16m --offset=0 --rw=write \
                 --filename=/tmp/weir/ch_h2c_0 --name=w2 ";
    assert!(
        compiled.show_command.starts_with(start),
        "{}",
        compiled.show_command
    );
    assert_eq!(compiled.show_command.matches("--name=").count(), 4);
    assert!(compiled.show_command.ends_with(' '));
    assert_eq!(compiled.plan.name, "xdma_4-ch_4-1M_write.fio");
    assert_eq!(compiled.plan.global_words[2].key, "mem");
}
