//! `weir tune --metric NAME -- COMMAND`, `weir tune -c FILE`: the search for better settings of any command of
//! weir, or of a packet path.
//!
//! In: the arguments after `tune`. Out: a [`Tune`]: the command with its placeholders, the keys of a
//! configuration that vary, what ends the search. Not here: the search, running commands, which keys of a
//! packet path vary (`path`).

mod path;
mod path_figures;
mod path_layout;
mod server;

use clap::{Arg, Command};
use weir_diagnose::tune::{TuneDimension, TuneTemplate};
use weir_units::Nanos;

use crate::DOORS;
use crate::door::Door;
use crate::flags::{Flag, command, nearest};
use crate::given::{FlagNeed, GivenFlags};
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;
use crate::takes::Takes;

pub use path::{LAYOUT, TuneLimit, keys_of_verdict};
pub use path_layout::PathLayout;
pub use server::{ServerConfig, TuneServer};

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "tune",
        "-c FILE | --metric NAME -- COMMAND",
        "search for better settings of a command of weir",
    )
};

/// The end of the help text: placeholders, examples, exit codes.
pub const HELP: &str = include_str!("tune.md");

/// The placeholder of the trial's configuration in the command.
pub const CONFIG: &str = "config";

const SEARCH: &str = "Search";
const SETTINGS: &str = "Settings";
const OUTPUT: &str = "Output";

const WITH_CONFIG: FlagNeed = FlagNeed::new("with `--config`", |given| given.has("config"));

const WITH_SERVER: FlagNeed = FlagNeed::new("with `--server-command`", |given| {
    given.has("server-command")
});

const FLAGS: &[Flag] = &[
    Flag::with_value(
        "metric",
        "NAME",
        SEARCH,
        "The figure to improve: rate, `read p99`, b_eff",
    ),
    Flag::with_value(
        "objective",
        "WORD",
        SEARCH,
        "What a packet path is to be good at; only without COMMAND",
    )
    .choices(path::OBJECTIVE_WORDS)
    .default("mpps"),
    Flag::with_value(
        "slo",
        "LIMITS",
        SEARCH,
        "Figures that have to be kept: p99=50us,loss=0",
    ),
    Flag::with_value(
        "job",
        "NAME",
        SEARCH,
        "The job whose figure it is, where several have it",
    ),
    Flag::with_value("trials", "N", SEARCH, "The most trials of the search")
        .letter('t')
        .range(0, 100_000)
        .default("200"),
    Flag::with_value(
        "budget",
        "SECONDS",
        SEARCH,
        "No trial of the search begins later than this",
    )
    .takes(Takes::Seconds),
    Flag::with_value(
        "seed",
        "N",
        SEARCH,
        "Decides in which order settings are tried",
    )
    .range(0, i64::MAX)
    .default("1"),
    Flag::with_value(
        "rounds",
        "N",
        SEARCH,
        "Runs of the start and of the best settings, in turns, at the end",
    )
    .range(6, 1000)
    .default("6"),
    Flag::with_value(
        "trail",
        "FILE",
        SEARCH,
        "Keep every trial here; the same search continues from it",
    ),
    Flag::with_value(
        "config",
        "FILE",
        SETTINGS,
        "A configuration of lines `key : value` or `key = value`",
    )
    .letter('c'),
    Flag::with_value(
        "vary",
        "KEY=VALUES",
        SETTINGS,
        "A key of the configuration and its values: depth=1..64*2",
    )
    .repeats()
    .needs(WITH_CONFIG),
    Flag::switch(
        "layouts",
        SETTINGS,
        "Try which workspaces dispatch, with --server-command or --vary too",
    )
    .needs(WITH_CONFIG),
    Flag::with_value(
        "server-command",
        "COMMAND",
        SETTINGS,
        "Of a packet path, start the server of each trial: 'ssh host weir axio --server -c -'",
    )
    .needs(WITH_CONFIG),
    Flag::with_value(
        "server-config",
        "FILE",
        SETTINGS,
        "The server's configuration, which the command gets with the settings of the trial",
    )
    .needs(WITH_SERVER),
    Flag::with_value(
        "token-file",
        "FILE",
        SETTINGS,
        "The client's --token-file of weir axio; the server's stands in the command",
    )
    .needs(WITH_SERVER),
    Flag::with_value(
        "server-wait",
        "SECONDS",
        SETTINGS,
        "The time that the command has until its server listens",
    )
    .takes(Takes::Seconds)
    .needs(WITH_SERVER)
    .default("30"),
    Flag::with_value(
        "output",
        "FILE",
        OUTPUT,
        "The settings that won; with --config the configuration with them (FILE.out)",
    )
    .letter('o'),
    Flag::with_value(
        "logs",
        "FOLDER",
        OUTPUT,
        "Of a packet path, keep what each trial prints here, and the best settings so far in the --output",
    ),
    Flag::with_value(
        "show",
        "WORD",
        OUTPUT,
        "Of a packet path, print the numbers of each trial before it, or verify its configuration",
    )
    .choices(&["print", "verify"])
    .repeats(),
    Flag::with_value("format", "FORMAT", OUTPUT, "Text, or the search as JSON")
        .choices(&["text", "json"])
        .default("text"),
];

/// Action that the arguments of `weir tune` ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Search.
    Tune(Box<Tune>),
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Tune {
    /// The command, its verb first, with placeholders.
    pub template: TuneTemplate,
    /// The command as typed.
    pub command: Vec<String>,
    /// Tunes the packet path of the configuration, from which the command and the varied keys follow.
    pub is_path: bool,
    /// The layouts vary too.
    pub has_layouts: bool,
    /// The keys that vary were named.
    pub has_own_keys: bool,
    /// Command that starts the server of each trial, where that is a program of its own.
    pub server: Option<TuneServer>,
    /// The layouts, which the configuration allows.
    pub layouts: Vec<PathLayout>,
    /// Limits on other figures.
    pub slo: Vec<TuneLimit>,
    /// The figure.
    pub metric: String,
    /// Job whose figure it is, where it is stated.
    pub job: Option<String>,
    /// The configuration.
    pub config: Option<String>,
    /// Keys that vary. The search begins with their values in the configuration.
    pub vary: Vec<TuneDimension>,
    /// The most trials.
    pub trials: usize,
    /// No trial of the search begins later.
    pub budget: Option<Nanos>,
    /// Decides in which order settings are tried.
    pub seed: u64,
    /// Runs of the start and of the best at the end.
    pub rounds: usize,
    /// The file of every trial.
    pub trail: Option<String>,
    /// The file of the settings that won.
    pub output: Option<String>,
    /// The folder of what each trial of a packet path prints.
    pub logs: Option<String>,
    /// Flags of `weir axio tools` that look at each configuration before its trial.
    pub looks: Vec<String>,
    /// JSON instead of text.
    pub as_json: bool,
}

fn builder() -> Command {
    command("weir tune", FLAGS)
        .about("Search for better settings of a command of weir")
        .after_help(HELP)
        .override_usage(
            "weir tune -c FILE [OPTIONS]\n       weir tune --metric NAME [OPTIONS] -- COMMAND",
        )
        .no_binary_name(true)
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .num_args(1..)
                .last(true)
                .help("A command of weir that measures, with settings in braces; without it FILE is of weir axio"),
        )
}

/// Reads the arguments after `tune`.
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
    let command: Vec<String> = matches
        .get_many::<String>("command")
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    let config = given.text("config").map(str::to_owned);
    let is_path = config.is_some() && (command.is_empty() || command.starts_with(&path::command()));
    check_path_words(&given, &command, is_path)?;
    let command = if command.is_empty() {
        Vec::new()
    } else {
        command_of_weir(command)?
    };
    let known = config.as_ref().map(|_| CONFIG);
    let template = TuneTemplate::read(&command, known.as_slice())
        .map_err(|why| Refusal::usage(format!("COMMAND: {why}")))?;
    let vary = varied(&given, &template)?;
    check_varies(&template, config.is_some(), is_path, &vary)?;
    let slo = given.text("slo").map_or(Ok(Vec::new()), path::limits)?;
    if is_path {
        path_figures::check(&slo)?;
    }
    path_figures::check_percentiles(&slo)?;
    let text = |name: &str| given.text(name).map(str::to_owned);
    let metric = metric(&given, is_path)?;
    let output = text("output").or_else(|| config.as_ref().map(|file| format!("{file}.out")));
    Ok(Action::Tune(Box::new(Tune {
        template,
        command,
        is_path,
        has_layouts: given.has("layouts"),
        has_own_keys: !vary.is_empty(),
        server: server_of(&given)?,
        layouts: Vec::new(),
        slo,
        metric,
        job: text("job"),
        vary,
        trials: given.number("trials"),
        budget: given.seconds("budget"),
        seed: given.number("seed"),
        rounds: given.number("rounds"),
        trail: text("trail"),
        output,
        config,
        logs: text("logs"),
        looks: given.all("show").map(|word| format!("--{word}")).collect(),
        as_json: given.is("format", "json"),
    })))
}

/// Refuses a command in which nothing varies, or without a place for its configuration.
fn check_varies(
    template: &TuneTemplate,
    has_config: bool,
    is_path: bool,
    vary: &[TuneDimension],
) -> Result<(), Refusal> {
    if has_config && !is_path && !template.has(CONFIG) {
        return Err(Refusal::usage(
            "--config acts only where {config} stands in the command",
        ));
    }
    if !is_path && template.dimensions.is_empty() && vary.is_empty() {
        return Err(Refusal::usage(
            "COMMAND: nothing in it varies\n  help: put values in braces: --set=iodepth={d=1..64*2}",
        ));
    }
    Ok(())
}

/// The figure to improve.
fn metric(given: &GivenFlags, is_path: bool) -> Result<String, Refusal> {
    if let Some(metric) = given.text("metric") {
        return Ok(metric.to_owned());
    }
    if is_path {
        let objective = given.text("objective").unwrap_or_default();
        return Ok(path::figure(objective).to_owned());
    }
    Err(Refusal::usage(
        "--metric is missing\n  help: --metric rate; `weir compare --help` lists figures",
    ))
}

/// Words that are for a packet path alone, or missing without one.
fn check_path_words(given: &GivenFlags, command: &[String], is_path: bool) -> Result<(), Refusal> {
    if command.is_empty() && !is_path {
        return Err(Refusal::usage(
            "COMMAND is missing\n  help: `-- run a.fio` behind the flags, or --config FILE of a packet path",
        ));
    }
    let of_paths = ["layouts", "server-command", "logs", "show"];
    if let Some(flag) = of_paths.iter().find(|flag| !is_path && given.has(flag)) {
        return Err(Refusal::usage(format!(
            "--{flag} acts only without COMMAND"
        )));
    }
    if given.has("objective") && (!is_path || given.has("metric")) {
        return Err(Refusal::usage(
            "--objective acts only without COMMAND and --metric",
        ));
    }
    Ok(())
}

/// The keys of the configuration that vary; none has the name of a placeholder of the command.
fn varied(given: &GivenFlags, template: &TuneTemplate) -> Result<Vec<TuneDimension>, Refusal> {
    let mut vary: Vec<TuneDimension> = Vec::new();
    for text in given.all("vary") {
        let Some((key, values)) = text
            .split_once('=')
            .filter(|(key, _)| !key.trim().is_empty())
        else {
            return Err(Refusal::usage(format!(
                "--vary {text}: expected KEY=VALUES, as depth=1..64*2"
            )));
        };
        let key = key.trim();
        if vary
            .iter()
            .chain(&template.dimensions)
            .any(|d| d.name == key)
        {
            return Err(Refusal::usage(format!("--vary {key}: it varies already")));
        }
        let dimension = TuneDimension::read(key, values);
        vary.push(dimension.map_err(|why| Refusal::usage(format!("--vary {why}")))?);
    }
    Ok(vary)
}

/// Command of weir that stores a result.
fn command_of_weir(mut command: Vec<String>) -> Result<Vec<String>, Refusal> {
    if command.first().is_some_and(|word| word == "weir") {
        command.remove(0);
    }
    let verb = command.first().map_or("", String::as_str);
    let measures = Door::printing();
    if !measures.contains(&verb) {
        let near = nearest(verb, measures.iter().copied());
        let help = near.map_or_else(
            || format!("these do: {}", measures.join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        let what = if DOORS.iter().any(|door| door.verb == verb) {
            "measures nothing"
        } else {
            "is no verb of weir"
        };
        return Err(Refusal::usage(format!(
            "COMMAND: `{verb}` {what}\n  help: {help}"
        )));
    }
    let taken = ["--store-result", "--history", "--repeat"];
    let is_taken = |word: &&String| {
        let mut flags = taken.iter();
        flags.any(|flag| word.split('=').next() == Some(flag))
    };
    match command.iter().find(is_taken) {
        Some(word) => Err(Refusal::usage(format!(
            "COMMAND: `{word}`: each trial is one run, whose result tune keeps; leave it out"
        ))),
        None => Ok(command),
    }
}

/// Command that starts the server of a trial, where one was given.
fn server_of(given: &GivenFlags) -> Result<Option<TuneServer>, Refusal> {
    let Some(command) = given.text("server-command") else {
        return Ok(None);
    };
    let Some(config) = given.text("server-config") else {
        return Err(Refusal::usage(
            "--server-command: --server-config is missing\n  help: the server's configuration; the command gets it with \
             the settings of each trial",
        ));
    };
    Ok(Some(TuneServer {
        command: command.to_owned(),
        config: config.to_owned(),
        wait: given.seconds("server-wait").unwrap_or_default(),
        token_file: given.text("token-file").map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        read(&words)
    }

    fn asked(text: &str) -> Tune {
        match of(text) {
            Ok(Action::Tune(asked)) => *asked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn placeholders_and_keys_are_the_settings() {
        let tune = asked("--metric rate -t 9 --budget 1.5 -- weir run --set=bs={bs=4k,8k} a.fio");
        assert_eq!(tune.command, ["run", "--set=bs={bs=4k,8k}", "a.fio"]);
        assert_eq!((tune.trials, tune.seed, tune.rounds), (9, 1, 6));
        assert_eq!(tune.budget, Some(Nanos(1_500_000_000)));
        assert_eq!((tune.output, tune.config), (None, None));
        let tune = asked("--metric x -c a.conf --vary k=1..8*2 --vary m=a,b -- run {config}");
        let names: Vec<&str> = tune.vary.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["k", "m"]);
        assert_eq!(tune.output.as_deref(), Some("a.conf.out"));
    }

    #[test]
    fn words_that_cannot_be_a_search_are_refused_by_name() {
        for (text, says) in [
            ("--metric rate", "COMMAND"),
            ("-- run {a=1,2}", "--metric is missing"),
            ("--metric x -- run a.fio", "nothing in it varies"),
            ("--metric x -- run {a}", "{a} stands for nothing"),
            ("--metric x -- run {a=1}", "two values"),
            ("--metric x -- rnu {a=1,2}", "did you mean `run`?"),
            ("--metric x -- doctor {a=1,2}", "`doctor` measures nothing"),
            ("--metric x -- run {a=1,2} --store-result=r", "leave it out"),
            ("--metric x -- run {a=1,2} --repeat 3", "leave it out"),
            ("--metric x -t -1 -- run {a=1,2}", "from 0 to 100000"),
            ("--metric x --logs l -- run {a=1,2}", "only without COMMAND"),
            ("--metric x --rounds 5 -- run {a=1,2}", "from 6 to 1000"),
            ("--metric x --budget 0 -- run {a=1,2}", "seconds above 0"),
            (
                "--metric x --vary a=1,2 -- run x",
                "--vary acts only with `--config`",
            ),
            (
                "--metric x -c f --vary a=1,2 -- run x",
                "where {config} stands",
            ),
            ("--metric x -c f --vary a -- run {config}", "KEY=VALUES"),
            (
                "--metric x -c f --vary a=1,2 -- run {config} {a=1,2}",
                "varies already",
            ),
            ("--metric x -c f --vary a=1,1 -- run {config}", "twice"),
        ] {
            let refusal = of(text).unwrap_err();
            assert_eq!(refusal.code, crate::USAGE, "{text}");
            assert!(refusal.message.contains(says), "{text}: {refusal}");
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
            .filter_map(|l| l.strip_prefix("    weir tune "));
        let good = examples.filter(|example| of(&example.replace("'read rate'", "rate")).is_ok());
        assert_eq!(good.count(), 6);
    }
}
