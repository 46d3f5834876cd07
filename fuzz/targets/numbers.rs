//! Values of options, and of flags that are written like them.
//!
//! The input is `ENGINE NAME=VALUE`. The value is given to that option (to some option, where
//! the name is unknown) in a job file and on a command line; it is read as a flag's too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_fuzz::{Memory, catalogue, check, compile_in};
use weir_jobfile::{
    CommandWord, CompileRequest, Compiled, Diagnostic, Dialect, JobSource, OptionRecord,
    find_option, option_records,
};

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
    // Flags read these two by themselves.
    let _ = (weir_jobfile::count(value), weir_jobfile::duration(value));
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
