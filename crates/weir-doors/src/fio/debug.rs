//! `--debug`: fio's messages about itself, as far as they have something to say here.
//!
//! In: the flag's words, and a plan. Out: what `parse` prints of it, and notes about the words that
//! print nothing. Not here: what options mean (`weir-jobfile`).

use std::fmt::Write as _;

use weir_schema::{Plan, Steady, SteadyRate, Word};

/// fio's words.
const WORDS: [&str; 19] = [
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
];

/// Output that the arguments ask for.
pub(super) enum DebugWords {
    /// The list of them.
    List,
    /// Messages.
    Chosen {
        /// Of how options were read.
        parse: bool,
        /// Those of others, which there are not.
        notes: Vec<String>,
    },
}

pub(super) fn read(list: &str) -> DebugWords {
    let (mut parse, mut notes) = (false, Vec::new());
    for word in list.split(',') {
        let name = word.split(':').next().unwrap_or(word);
        match name {
            "?" | "help" => return DebugWords::List,
            "parse" | "all" => parse = true,
            known if WORDS.contains(&known) => notes.push(format!(
                "--debug={known} has no effect: --show-plan prints what was understood, trace=FILE \
                 each operation, error_dump=1 each error"
            )),
            _ => notes.push(format!("--debug: there is no word `{word}`")),
        }
    }
    DebugWords::Chosen { parse, notes }
}

pub(super) fn list() -> String {
    format!("fio: dumping debug options:{},all\n", WORDS.join(","))
}

/// True if the words ask how options were read.
pub(super) fn shows_parsing(list: &str) -> bool {
    matches!(read(list), DebugWords::Chosen { parse: true, .. })
}

/// Trace of how the options of a plan were read.
pub(super) fn parsing(plan: &Plan) -> String {
    let mut out = String::from("fio: set debug option parse\n");
    let mut word = |Word { key, value }: &Word| {
        let value = value.as_deref().unwrap_or("(null)");
        let _ = writeln!(out, "parse    handle_option={key}, ptr={value}");
    };
    plan.global_words.iter().for_each(&mut word);
    for (_, job) in plan.jobs() {
        job.words.iter().for_each(&mut word);
    }
    let loads = plan.jobs().filter_map(|(_, job)| job.workload.load());
    for steady in loads.filter_map(|load| load.bounds.steady.as_ref()) {
        let _ = writeln!(out, "parse    {}", threshold(steady));
    }
    out
}

fn threshold(steady: &Steady) -> String {
    let limit = steady.limit;
    match steady.rate {
        _ if steady.in_percent => format!("set steady state threshold to {limit:.6}%"),
        SteadyRate::Operations => format!("set steady state IOPS threshold to {limit:.6}"),
        SteadyRate::Bytes => format!("set steady state BW threshold to {limit:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_without_messages_are_noted_and_unknown_ones_named() {
        let DebugWords::Chosen { parse, notes } = read("steadystate,parse,nothing") else {
            panic!("no list was asked for");
        };
        assert!(parse);
        assert!(
            notes[0].starts_with("--debug=steadystate has no effect"),
            "{notes:?}"
        );
        assert_eq!(notes[1], "--debug: there is no word `nothing`");
        assert!(matches!(read("help"), DebugWords::List));
        assert!(list().ends_with("zbd,all\n"));
    }
}
