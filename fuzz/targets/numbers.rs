//! Values of options, and quantities with units.
//!
//! The input is `ENGINE NAME=VALUE`. The value is given to that option (to some option, where
//! the name is unknown) in a job file and on a command line; it is read as every quantity too.

#![no_main]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use weir_fuzz::{Memory, catalogue, check, compile_in};
use weir_jobfile::{
    CommandWord, Compiled, Diagnostic, Dialect, OptionRecord, CompileRequest, JobSource, find_option,
    option_records,
};
use weir_units::{Bytes, BytesPerSec, Iops, Nanos, Percent, QueueDepth};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (head, value) = text.split_once('=').unwrap_or(("", text));
    let (engine, name) = head.split_once(' ').unwrap_or(("null", head));
    let engine = catalogue().find(engine).map_or("null", |e| e.name);
    let record = record(name);
    let by_word = from_words(engine, record.name, value);
    if !value.contains(['\n', '\0', ';', '#']) {
        let by_file = from_file(engine, record.name, value);
        if value.trim() == value && !value.contains(char::is_control) {
            assert_eq!(
                by_word.is_ok(),
                by_file.is_ok(),
                "{} {value:?}",
                record.name
            );
        }
    }
    quantities(value);
});

/// The option of this name; of any other name some option that depends on it.
fn record(name: &str) -> &'static OptionRecord {
    find_option(name).unwrap_or_else(|| {
        let sum: usize = name.bytes().map(usize::from).sum();
        let chosen = option_records().nth(sum % option_records().count());
        chosen.expect("within the count")
    })
}

fn from_words(engine: &str, name: &str, value: &str) -> Result<Compiled, Vec<Diagnostic>> {
    let options = [
        ("name", "j"),
        ("ioengine", engine),
        ("size", "1m"),
        (name, value),
    ];
    let words = options
        .into_iter()
        .enumerate()
        .map(|(i, (key, value))| CommandWord {
            key: key.to_owned(),
            value: Some(value.to_owned()),
            argument: i + 1,
            text: format!("--{key}={value}"),
        });
    outcome(JobSource::Words(words.collect()), &Memory::default())
}

fn from_file(engine: &str, name: &str, value: &str) -> Result<Compiled, Vec<Diagnostic>> {
    let text = format!("[j]\nioengine={engine}\nsize=1m\n{name}={value}\n");
    let files = Memory([("f".to_owned(), text.into_bytes())].into());
    outcome(JobSource::File("f".to_owned()), &files)
}

fn outcome(source: JobSource, files: &Memory) -> Result<Compiled, Vec<Diagnostic>> {
    let request = CompileRequest {
        dialect: Dialect::Fio,
        command: Vec::new(),
        sources: vec![source],
        sets: Vec::new(),
        maps: Vec::new(),
        sections: Vec::new(),
        read_only: false,
    };
    let outcome = compile_in(&request, files);
    check(&outcome, files);
    outcome
}

fn quantities(text: &str) {
    quantity(text, |n: Bytes| n.exact());
    quantity(text, |n: Nanos| n.exact());
    quantity(text, |n: Iops| n.exact());
    quantity(text, |n: BytesPerSec| n.exact());
    quantity(text, |n: Percent| n.exact());
    quantity(text, |n: QueueDepth| n.to_string());
}

/// A quantity that can be read is printed exactly, and rounded for people.
fn quantity<T>(text: &str, exact: fn(T) -> String)
where
    T: FromStr<Err: Display> + Display + Debug + PartialEq + Copy,
{
    match text.parse::<T>() {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(value) => {
            let printed = exact(value);
            let read = printed.parse::<T>().ok();
            assert_eq!(read, Some(value), "{text:?} is printed {printed:?}");
            assert!(!value.to_string().is_empty());
        }
    }
}
