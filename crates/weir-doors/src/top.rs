//! The first word: which verb, and with which words.
//!
//! In: all arguments, the program's name first. Out: a [`Verb`]. A link named like a peer is
//! that peer's door.

use crate::flags::nearest;
use crate::mpi;
use crate::refusal::Refusal;

/// What `weir` was told to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// `weir run`, with the words after it.
    Run(Vec<String>),
    /// `weir fio` or a link named `fio`, with the words after it.
    Fio(Vec<String>),
    /// `weir beff` or a link with a peer's name, with the words after it.
    Beff(Vec<String>),
    /// `weir net`, with the words after it.
    Net(Vec<String>),
    /// `weir new`, with the words after it.
    New(Vec<String>),
    /// `weir engines`: which engines this build has and this machine can run.
    Engines,
    /// `weir mpi info`: which MPI library would be used.
    MpiInfo,
    /// Print this on standard output and exit with 0.
    Print(String),
}

/// Name, arguments and purpose of each verb.
pub const VERBS: &[(&str, &str, &str)] = &[
    (
        "run",
        "FILE…",
        "run job files or a stored plan, report what was measured",
    ),
    (
        "fio",
        "…",
        "the same job files with fio's command line and fio's output",
    ),
    (
        "beff",
        "…",
        "effective bandwidth between ranks, as HPCC_FPGA b_eff measures it",
    ),
    (
        "net",
        "TEST",
        "latency and bandwidth of messages between ranks: lat-bw, as HPCC",
    ),
    ("new", "KIND", "write job files for a card's DMA channels"),
    (
        "engines",
        "",
        "list the engines and whether this machine can run them",
    ),
    (
        "mpi",
        "info",
        "tell which MPI library and launcher weir works with here",
    ),
    ("help", "[VERB]", "this page, or the page of a verb"),
];

const EXAMPLES: &str = "\
Examples:
    weir run examples/first.fio
    weir run --help
    weir fio --name=first --filename=/tmp/weir-first --size=64m --rw=randread --runtime=5
    weir beff --ranks 2 -u 64 -l 8 -m 16
    weir engines
";

/// The peer of a program's name; names of the effective bandwidth benchmark come with the device
/// they were built for, and with their functional test.
fn peer(program: &str, words: &[String]) -> Option<Verb> {
    let words = words.to_vec();
    match program.rsplit('/').next()? {
        "fio" => Some(Verb::Fio(words)),
        "Network_intel" | "Network_xilinx" | "fnet" => Some(Verb::Beff(words)),
        "Network_test_intel" => {
            let first = ["--selftest".to_owned()];
            Some(Verb::Beff(first.into_iter().chain(words).collect()))
        }
        _ => None,
    }
}

/// The verb of the arguments.
///
/// # Errors
/// An unknown verb, or none: exit code 2.
pub fn verb(arguments: &[String]) -> Result<Verb, Refusal> {
    let (program, words) = arguments
        .split_first()
        .map_or(("weir", arguments), |(p, w)| (p.as_str(), w));
    if let Some(verb) = peer(program, words) {
        return Ok(verb);
    }
    let Some((first, rest)) = words.split_first() else {
        return Err(Refusal::new(
            2,
            format!("error: no verb given\n\n{}", page()),
        ));
    };
    match first.as_str() {
        "run" => Ok(Verb::Run(rest.to_vec())),
        "fio" => Ok(Verb::Fio(rest.to_vec())),
        "beff" => Ok(Verb::Beff(rest.to_vec())),
        "net" => Ok(Verb::Net(rest.to_vec())),
        "new" => Ok(Verb::New(rest.to_vec())),
        "engines" if rest.is_empty() => Ok(Verb::Engines),
        "engines" => Err(Refusal::new(2, "error: `weir engines` takes no arguments")),
        "mpi" => mpi_verb(rest),
        "-V" | "--version" => Ok(Verb::Print(format!("weir {}\n", env!("CARGO_PKG_VERSION")))),
        "-h" | "--help" => Ok(Verb::Print(page())),
        "help" => help_of(rest),
        other => Err(unknown(other)),
    }
}

fn mpi_verb(rest: &[String]) -> Result<Verb, Refusal> {
    match rest {
        [word] if word == "info" => Ok(Verb::MpiInfo),
        _ if rest.iter().any(|word| word == "--help" || word == "-h") => {
            Ok(Verb::Print(mpi::HELP.to_owned()))
        }
        _ => Err(Refusal::new(2, "error: `weir mpi` takes one word: `info`")),
    }
}

fn help_of(rest: &[String]) -> Result<Verb, Refusal> {
    let asked = || vec!["--help".to_owned()];
    match rest.first().map(String::as_str) {
        None | Some("help" | "engines") => Ok(Verb::Print(page())),
        Some("mpi") => Ok(Verb::Print(mpi::HELP.to_owned())),
        Some("run") => Ok(Verb::Run(asked())),
        Some("fio") => Ok(Verb::Fio(asked())),
        Some("beff") => Ok(Verb::Beff(asked())),
        Some("net") => Ok(Verb::Net(asked())),
        Some("new") => Ok(Verb::New(asked())),
        Some(other) => Err(unknown(other)),
    }
}

fn unknown(word: &str) -> Refusal {
    let hint = nearest(word, VERBS.iter().map(|v| v.0)).map_or_else(
        || "`weir --help` lists the verbs".to_owned(),
        |near| format!("did you mean `weir {near}`?"),
    );
    Refusal::new(2, format!("error: no verb `{word}`\n  help: {hint}"))
}

fn page() -> String {
    let mut out = String::from(
        "weir measures how fast data really moves: files, devices, queues, networks.\n\nUsage: weir VERB …\n\n",
    );
    for (name, arguments, purpose) in VERBS {
        push!(out, "  {:18}{purpose}\n", format!("{name} {arguments}"));
    }
    push!(out, "\n{EXAMPLES}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Verb, Refusal> {
        verb(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn list(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_first_word_picks_the_door() {
        assert_eq!(of("weir run a.fio").unwrap(), Verb::Run(list(&["a.fio"])));
        assert_eq!(
            of("weir fio --bs=4k").unwrap(),
            Verb::Fio(list(&["--bs=4k"]))
        );
        assert_eq!(of("weir net lat-bw").unwrap(), Verb::Net(list(&["lat-bw"])));
        assert_eq!(of("weir engines").unwrap(), Verb::Engines);
        assert_eq!(of("weir mpi info").unwrap(), Verb::MpiInfo);
        assert_eq!(of("weir mpi infos").unwrap_err().code, 2);
        assert_eq!(of("weir help run").unwrap(), Verb::Run(list(&["--help"])));
    }

    #[test]
    fn a_link_named_fio_is_the_fio_door() {
        assert_eq!(of("/usr/bin/fio run").unwrap(), Verb::Fio(list(&["run"])));
        assert!(of("/usr/bin/fiox runn").is_err());
    }

    #[test]
    fn links_with_names_of_b_eff_are_the_beff_door() {
        for name in ["Network_intel", "/opt/Network_xilinx", "fnet"] {
            let wanted = Verb::Beff(list(&["-n3"]));
            assert_eq!(of(&format!("{name} -n3")).unwrap(), wanted);
        }
        let test = Verb::Beff(list(&["--selftest", "-n3"]));
        assert_eq!(of("Network_test_intel -n3").unwrap(), test);
        assert_eq!(of("weir help beff").unwrap(), Verb::Beff(list(&["--help"])));
    }

    #[test]
    fn an_unknown_verb_gets_the_nearest_one() {
        let refusal = of("weir rnu a.fio").unwrap_err();
        assert_eq!(refusal.code, 2);
        assert_eq!(
            refusal.message,
            "error: no verb `rnu`\n  help: did you mean `weir run`?\n"
        );
        assert!(
            of("weir qqqqqqq")
                .unwrap_err()
                .message
                .contains("lists the verbs")
        );
    }

    #[test]
    fn the_page_names_every_verb_and_its_examples_are_good() {
        let Verb::Print(page) = of("weir --help").unwrap() else {
            panic!("a page")
        };
        for (name, ..) in VERBS {
            assert!(page.contains(&format!("\n  {name}")), "{page}");
        }
        let examples: Vec<_> = page
            .lines()
            .filter(|l| l.starts_with("    weir "))
            .collect();
        assert!((3..=5).contains(&examples.len()));
        assert!(examples.iter().all(|e| of(e.trim()).is_ok()));
        assert!(matches!(of("weir --version").unwrap(), Verb::Print(v) if v.starts_with("weir ")));
    }

    #[test]
    fn the_page_of_mpi_is_its_own_and_its_examples_are_good() {
        for asked in ["mpi --help", "mpi -h", "mpi info --help", "help mpi"] {
            let verb = of(&format!("weir {asked}")).unwrap();
            assert_eq!(verb, Verb::Print(mpi::HELP.to_owned()), "{asked}");
        }
        let examples: Vec<_> = mpi::HELP
            .lines()
            .filter(|l| l.starts_with("    "))
            .collect();
        assert!((3..=5).contains(&examples.len()));
        for example in examples {
            let at = example.find("weir mpi").unwrap();
            assert_eq!(of(&example[at..]).unwrap(), Verb::MpiInfo, "{example}");
        }
    }

    #[test]
    fn no_verb_prints_the_page_as_an_error() {
        assert_eq!(verb(&list(&["weir"])).unwrap_err().code, 2);
        assert_eq!(verb(&[]).unwrap_err().code, 2);
    }
}
