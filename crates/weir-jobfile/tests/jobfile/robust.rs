//! Hostile and oversized input: a message, never a panic, and quickly.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::time::Instant;

use crate::setting::{Memory, compile_in, file, jobs, request};
use proptest::prelude::*;
use weir_jobfile::{Diagnostic, JobSource, option_records};

fn bytes(bytes: Vec<u8>) -> Result<weir_jobfile::Compiled, Vec<Diagnostic>> {
    compile_in(
        &request(vec![JobSource::File("f".into())]),
        &Memory([("f".into(), bytes)].into()),
    )
}

#[test]
fn a_line_of_ten_megabytes_is_one_short_message() {
    let mut text = b"[a]\nsize=".to_vec();
    text.resize(10 << 20, b'k');
    let errors = bytes(text).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].render().len() < 1000);
}

#[test]
fn ten_thousand_sections_compile_quickly() {
    let mut text = "[global]\nioengine=null\nsize=1m\n".to_owned();
    for i in 0..10_000 {
        let _ = writeln!(text, "[job{i}]\nrw=randread\nbs=4k\niodepth=4\nba=8k");
    }
    let start = Instant::now();
    assert_eq!(jobs(&file(&text).unwrap()).len(), 10_000);
    println!("10,000 sections: {:?}", start.elapsed());
}

#[test]
fn thousands_of_errors_are_counted_not_listed() {
    let mut text = "[a]\n".to_owned();
    for i in 0..20_000 {
        let _ = writeln!(text, "nonsense{i}=1");
    }
    let errors = file(&text).unwrap_err();
    assert!(errors.len() < 1000);
    assert!(
        errors.last().unwrap().message.contains("19500 more"),
        "{:?}",
        errors.last()
    );
}

#[test]
fn garbage_before_the_first_section_is_one_message() {
    let errors = file("this is\nnot\na job file\n").unwrap_err();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        errors[0].peer,
        ["fio: option <this is> outside of [] job section"]
    );
}

#[test]
fn includes_cannot_multiply_without_end() {
    let mut files = Memory::default();
    files.0.insert("f".into(), b"[a]\ninclude i0\n".to_vec());
    for i in 0..20 {
        let line = format!("include i{}\n", i + 1).repeat(50);
        files.0.insert(format!("i{i}"), line.into_bytes());
    }
    assert!(compile_in(&request(vec![JobSource::File("f".into())]), &files).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_compiler_panic(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Err(errors) = bytes(data) {
            for error in errors {
                error.render();
            }
        }
    }

    #[test]
    fn no_value_of_any_option_makes_the_compiler_panic(
        pick in any::<prop::sample::Index>(),
        value in "[-0-9a-z.,:/%()*+^x \"'$\\\\]{0,24}|\\PC{0,12}",
    ) {
        let records: Vec<_> = option_records().collect();
        let name = pick.get(&records).name;
        let text = format!("[a]\nioengine=io_uring\nsize=1m\n{name}={value}\n{name}\n");
        if let Err(errors) = file(&text) {
            for error in errors {
                error.render();
            }
        }
    }

    #[test]
    fn showing_a_command_and_compiling_it_gives_the_same_jobs(
        bs in 1_u32..100, depth in 1_u32..64, mix in 0_u32..=100, clones in 1_u32..9,
        rw in prop::sample::select(vec!["read", "randwrite", "randrw", "trimwrite"]),
    ) {
        let text = format!(
            "[global]\nioengine=null\nsize=1g\nbs={bs}k\n[a b]\nrw={rw}\niodepth={depth}\n[global]\nnumjobs={clones}\n[c]\nrwmixread={mix}\ngroup_reporting\n"
        );
        let first = file(&text).unwrap();
        let arguments: Vec<String> = first
            .show_command
            .replace("'a b'", "a\u{1}b")
            .split_whitespace()
            .skip(1)
            .map(|w| w.replace('\u{1}', " "))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let source = crate::setting::words(&arguments);
        let mut second = compile_in(&request(vec![source]), &Memory::default()).unwrap();
        // On a command line the name is a word of the job too, as in fio.
        for job in second.plan.groups.iter_mut().flat_map(|g| &mut g.jobs) {
            job.words.retain(|word| word.key != "name");
        }
        prop_assert_eq!(&first.plan.groups, &second.plan.groups);
        prop_assert_eq!(&first.show_command, &second.show_command);
    }
}
