//! `weir diagnose LOG [REPORT]`: the bottleneck of a packet path.
//!
//! In: the arguments after `diagnose`; the text of a configuration of the path. Out: a
//! [`Diagnose`]; which table and socket the configuration means. Not here: reading files, the rules.

use clap::{Arg, Command, ValueHint};
use weir_diagnose::{ConfigText, InputError};

use crate::door::Door;
use crate::flags::{Flag, command};
use crate::given::{FlagNeed, GivenFlags};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;
use crate::takes::Takes;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "diagnose",
        "LOG [REPORT]",
        "say what holds a packet path back, from its log and the host's report",
    )
};

/// The end of the help text: the files, examples, exit codes.
pub const HELP: &str = include_str!("diagnose.md");

const RECORDS: &str = "Records";
const LIMITS: &str = "What the machine can do";
const OUTPUT: &str = "Output";

const WITH_LINK: FlagNeed = FlagNeed::new("with `--link`", |given| given.has("link"));
const AS_TEXT: FlagNeed = FlagNeed::new("with `--format text`", |given| given.is("format", "text"));

const FLAGS: &[Flag] = &[
    Flag::with_value(
        "config",
        "FILE",
        RECORDS,
        "The path's configuration: its iterations and its memory node",
    )
    .letter('c'),
    Flag::with_value(
        "job",
        "NAME",
        RECORDS,
        "The packet path that is diagnosed, where a result has several",
    ),
    Flag::with_value("table", "N", RECORDS, "The table that counts, from 1").range(1, 1_000_000),
    Flag::with_value("socket", "N", RECORDS, "The socket that the path runs on").range(0, 1023),
    Flag::with_value(
        "perf",
        "FILE",
        RECORDS,
        "Counters of the path's process, as perf stat prints them",
    ),
    Flag::with_value("pcie", "FILE", RECORDS, "What pcm-pcie -e -csv printed"),
    Flag::with_value("memory", "FILE", RECORDS, "What pcm-memory printed"),
    Flag::with_value("link", "RATE", LIMITS, "Bits a second of the link: 100G")
        .takes(Takes::BitsPerSecond),
    Flag::with_value(
        "frame",
        "BYTES",
        LIMITS,
        "Bytes of a frame, without its check sum; a result knows it",
    )
    .range(1, 65_536)
    .needs(WITH_LINK),
    Flag::with_value(
        "triad",
        "MB/S",
        LIMITS,
        "What a memory node can move, in 10^6 bytes a second",
    )
    .takes(Takes::Number(0.001, 1e9)),
    Flag::switch("figures", OUTPUT, "Print the figures that it rests on")
        .letter('p')
        .needs(AS_TEXT),
    Flag::with_value(
        "format",
        "FORMAT",
        OUTPUT,
        "Text, or the whole diagnosis as JSON",
    )
    .choices(&["text", "json"])
    .default("text"),
];

/// Action that the arguments of `weir diagnose` ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Diagnose.
    Diagnose(Box<Diagnose>),
}

/// A diagnosis: the files it reads, and the form in which it is printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnose {
    /// The log.
    pub log: String,
    /// The packet path of the result; all of them where none is named.
    pub job: Option<String>,
    /// The report of the host.
    pub report: Option<String>,
    /// The configuration of the path.
    pub config: Option<String>,
    /// Counters of perf.
    pub perf: Option<String>,
    /// Counts of pcm-pcie.
    pub pcie: Option<String>,
    /// Bandwidths of pcm-memory.
    pub memory: Option<String>,
    /// The table, from 1.
    pub table: Option<u32>,
    /// The socket.
    pub socket: Option<u32>,
    /// Bits a second.
    pub link_bits_per_s: Option<f64>,
    /// Bytes.
    pub frame_bytes: Option<u32>,
    /// Megabytes (10^6) a second.
    pub triad_mb_per_s: Option<f64>,
    /// The figures are printed too.
    pub with_figures: bool,
    /// JSON instead of text.
    pub as_json: bool,
}

/// Settings that the configuration of a path contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSettings {
    /// Iterations.
    pub iterations: Option<u32>,
    /// The memory node; nothing where the path chooses it.
    pub node: Option<u32>,
}

fn builder() -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name(if name == "log" { "LOG" } else { "REPORT" })
            .value_hint(ValueHint::FilePath)
            .required(name == "log")
            .help(help)
    };
    command("weir diagnose", FLAGS)
        .about("Say what holds a packet path back")
        .after_help(HELP)
        .override_usage("weir diagnose [OPTIONS] LOG [REPORT]")
        .no_binary_name(true)
        .arg(file(
            "log",
            "What the path printed, with its tables, or its stored result",
        ))
        .arg(file("report", "What the host monitor wrote"))
}

/// Reads the arguments after `diagnose`.
///
/// # Errors
/// Words that are not understood, or that cannot act: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    let given = GivenFlags::of_matches(FLAGS, &matches)?;
    if let Some(refusal) = given.refusal() {
        return Err(Refusal::usage(refusal));
    }
    let text = |name: &str| given.text(name).map(str::to_owned);
    let file = |name: &str| matches.get_one::<String>(name).cloned();
    let diagnose = Diagnose {
        log: file("log").unwrap_or_default(),
        job: text("job"),
        report: file("report"),
        config: text("config"),
        perf: text("perf"),
        pcie: text("pcie"),
        memory: text("memory"),
        table: given.whole("table"),
        socket: given.whole("socket"),
        link_bits_per_s: given.bits_per_second("link"),
        frame_bytes: given.whole("frame"),
        triad_mb_per_s: given.text("triad").and_then(|text| text.parse().ok()),
        with_figures: given.has("figures"),
        as_json: given.is("format", "json"),
    };
    if given.has("triad") && diagnose.report.is_none() && diagnose.memory.is_none() {
        return Err(Refusal::usage(
            "--triad acts only with REPORT or `--memory`; leave it out",
        ));
    }
    Ok(Action::Diagnose(Box::new(diagnose)))
}

/// Reads iterations and memory node from the configuration of a path.
///
/// # Errors
/// A line or a value that cannot be read.
pub fn path_settings(text: &str) -> Result<PathSettings, InputError> {
    let config = ConfigText::read(text)?;
    let number = |key: &str, least: u32, most: u32, valid: &str| {
        let Some((value, line)) = config.value(key)? else {
            return Ok(None);
        };
        let number = value.parse::<u32>().ok();
        let number = number.filter(|n| (least..=most).contains(n));
        number.map(Some).ok_or_else(|| InputError {
            line,
            message: if value.is_empty() {
                format!("{key}: a value is missing")
            } else {
                format!("{key}: `{value}`")
            },
            help: format!("valid: {valid}"),
        })
    };
    let chooses = config
        .value("numa")?
        .is_some_and(|(value, _)| value == "auto");
    Ok(PathSettings {
        iterations: number("iteration", 1, 1_000_000, "1 to 1000000")?,
        node: if chooses {
            None
        } else {
            // The reference's default.
            Some(number("numa", 0, 1023, "a memory node, or auto")?.unwrap_or(0))
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    fn asked(text: &str) -> Diagnose {
        match of(text) {
            Ok(Action::Diagnose(asked)) => *asked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_and_limits_are_taken_by_name() {
        let all =
            asked("a.log r.rpt -c c -p --table 3 --socket 1 --link 100g --frame 64 --triad 9e4");
        assert_eq!(
            (all.log.as_str(), all.report.as_deref()),
            ("a.log", Some("r.rpt"))
        );
        assert_eq!(
            (all.table, all.socket, all.frame_bytes),
            (Some(3), Some(1), Some(64))
        );
        assert_eq!(all.link_bits_per_s, Some(100e9));
        assert_eq!(all.triad_mb_per_s, Some(90_000.0));
        assert!(all.with_figures && !all.as_json);
        assert!(asked("a.log --format json").as_json);
    }

    #[test]
    fn words_that_say_nothing_are_refused_by_name() {
        for (text, says) in [
            ("", "LOG"),
            ("a b c", "stray word `c`"),
            ("a --frame 64", "--frame acts only with `--link`"),
            ("a --frame 0 --link 1G", "from 1 to 65536"),
            ("a --frame 64 --link fast", "it takes bits per second"),
            ("a --table 0", "from 1 to 1000000"),
            ("a --triad 1", "--triad acts only with REPORT"),
            ("a b --triad=-1", "--triad -1: it takes"),
            (
                "a -p --format json",
                "--figures acts only with `--format text`",
            ),
            ("a --formt json", "did you mean `--format`?"),
        ] {
            let refusal = of(text).unwrap_err();
            assert_eq!(refusal.code, crate::USAGE, "{text}");
            assert!(refusal.message.contains(says), "{text}: {refusal}");
        }
    }

    #[test]
    fn a_configuration_says_how_many_iterations_and_which_node() {
        let of = |text: &str| path_settings(text).map(|s| (s.iterations, s.node));
        assert_eq!(of("iteration : 300\nnuma : 1\n"), Ok((Some(300), Some(1))));
        assert_eq!(
            of("iteration = 30 # tables\nnuma = auto"),
            Ok((Some(30), None))
        );
        assert_eq!(of("# nothing\n"), Ok((None, Some(0))));
        for (text, line, says) in [
            ("duration : 1\nnuma :\n", 2, "numa: a value is missing"),
            ("iteration : 0\n", 1, "iteration: `0`"),
            ("iteration : 1\niteration : 2\n", 2, "line 1 already"),
            ("numa : 0\nfoo\n", 2, "`foo` has no key"),
        ] {
            let error = of(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn help_ends_with_examples_that_are_good_words() {
        let Ok(Action::Print(page)) = of("--help") else {
            panic!("help is printed")
        };
        assert!(page.ends_with(HELP), "wrapped: {page}");
        let examples = page
            .lines()
            .filter_map(|l| l.strip_prefix("    weir diagnose "));
        assert_eq!(examples.filter(|example| of(example).is_ok()).count(), 5);
    }
}
