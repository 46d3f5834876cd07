//! Job files, their includes, and the words that come with them.
//!
//! The input is text like that of `tail`: `==> NAME <==` alone on a line begins a file. The
//! lines before the first file are words of the command line; `run` and `readonly` among them
//! choose the house door and `--readonly`, `--set=` and `--section=` mean what they do there.
//! The first file is compiled, and every other one whose name contains `.fio`.
//!
//! Inputs with many unknown options are turned down: finding the nearest names of garbage would
//! take most of the time.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use weir_doors::{args, fio};
use weir_fuzz::{Memory, check, compile_in};
use weir_jobfile::{CommandWord, CompileRequest, Compiled, Dialect, JobSource, find_option};
use weir_schema::{Group, Plan};

/// Unknown options of an input that is worth the time.
const MOST_UNKNOWN: usize = 4;

fuzz_target!(|data: &[u8]| -> Corpus {
    let (words, files) = split(data);
    if files.iter().map(|(_, text)| unknown(text)).sum::<usize>() > MOST_UNKNOWN {
        return Corpus::Reject;
    }
    let paths: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let memory = Memory(files.into_iter().collect());
    let request = request(&words, &paths);
    let outcome = compile_in(&request, &memory);
    check(&outcome, &memory);
    if let Ok(compiled) = &outcome {
        show_and_compile_again(&request, compiled, &memory);
    }
    Corpus::Keep
});

/// Number of lines of a file that look like options but are none.
fn unknown(text: &[u8]) -> usize {
    let text = String::from_utf8_lossy(text);
    let keys = text
        .lines()
        .map(|l| l.split('=').next().unwrap_or(l).trim());
    keys.filter(|key| !key.is_empty() && !key.starts_with(['[', '#', ';']))
        .filter(|key| !key.starts_with("include ") && find_option(key).is_none())
        .count()
}

fn split(data: &[u8]) -> (Vec<String>, Vec<(String, Vec<u8>)>) {
    let mut words = Vec::new();
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for line in data.split_inclusive(|b| *b == b'\n') {
        let text = String::from_utf8_lossy(line);
        let name = text
            .trim_end()
            .strip_prefix("==> ")
            .and_then(|t| t.strip_suffix(" <=="));
        if let Some(name) = name {
            files.push((name.to_owned(), Vec::new()));
        } else if let Some((_, bytes)) = files.last_mut() {
            bytes.extend_from_slice(line);
        } else {
            words.push(text.trim_end_matches('\n').to_owned());
        }
    }
    (words, files)
}

fn request(lines: &[String], paths: &[String]) -> CompileRequest {
    let mut request = CompileRequest {
        dialect: Dialect::Fio,
        command: vec!["fio".to_owned()],
        sources: Vec::new(),
        sets: Vec::new(),
        maps: Vec::new(),
        sections: Vec::new(),
        read_only: false,
    };
    let mut words = Vec::new();
    for line in lines {
        request.command.push(line.clone());
        if line == "run" {
            request.dialect = Dialect::Run;
        } else if line == "readonly" {
            request.read_only = true;
        } else if let Some(set) = line.strip_prefix("--set=") {
            request.sets.push(set.to_owned());
        } else if let Some(section) = line.strip_prefix("--section=") {
            request.sections.push(section.to_owned());
        } else {
            words.push(word(line, request.command.len() - 1));
        }
    }
    if !words.is_empty() {
        request.sources.push(JobSource::Words(words));
    }
    let compiled = |(i, path): &(usize, &String)| *i == 0 || path.contains(".fio");
    let paths = paths.iter().enumerate().filter(compiled);
    let sources = paths.map(|(_, path)| JobSource::File(path.clone()));
    request.sources.extend(sources);
    request
}

fn word(text: &str, argument: usize) -> CommandWord {
    let body = text.trim_start_matches('-');
    let (key, value) = body
        .split_once('=')
        .map_or((body, None), |(key, value)| (key, Some(value.to_owned())));
    CommandWord {
        key: key.to_owned(),
        value,
        argument,
        text: text.to_owned(),
    }
}

/// The command line that a plan is shown as gives the same jobs.
fn show_and_compile_again(request: &CompileRequest, compiled: &Compiled, memory: &Memory) {
    let shown = &compiled.show_command;
    let plan = &compiled.plan;
    // What a command line cannot say: several files; text with a meaning of its own there; a job
    // whose generated files are called by its section and not by its name.
    let jobs = || plan.jobs().map(|(_, job)| job);
    let words = || {
        plan.global_words
            .iter()
            .chain(jobs().flat_map(|j| &j.words))
    };
    let sayable = request.dialect == Dialect::Fio
        && request.sets.is_empty()
        && !shown.contains('\n')
        && !words().any(|w| w.value.as_ref().is_some_and(|v| v.contains('$')))
        && !words().any(|w| w.key == "name")
        && !jobs().any(|j| j.name.starts_with("global") || j.name.contains('$'));
    if !sayable {
        return;
    }
    let mut words = unquote(shown);
    words.remove(0);
    if request.read_only {
        words.push("--readonly".to_owned());
    }
    let Ok(given) = args::read_given(&fio::DOOR, &words) else {
        panic!("not a command line: {shown}");
    };
    let again = compile_in(&fio::jobs(&given), memory).unwrap_or_else(|errors| {
        panic!("{shown}\n{}", errors[0].render());
    });
    assert!(without_words(&again.plan) == without_words(plan), "{shown}");
    assert_eq!(&again.show_command, shown);
}

/// The groups without the words they came from: a command line names a job in another way.
fn without_words(plan: &Plan) -> Vec<Group> {
    let mut groups = plan.groups.clone();
    let jobs = groups.iter_mut().flat_map(|g| &mut g.jobs);
    jobs.for_each(|job| job.words.clear());
    groups
}

/// A line's words as a shell reads them.
fn unquote(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|other| *other != c));
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
