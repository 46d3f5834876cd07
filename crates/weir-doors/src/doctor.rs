//! `weir doctor [TARGET…]`: properties of this machine that would spoil a measurement.
//!
//! In: the arguments after `doctor`. Out: an [`Action`]. Not here: looking at the machine.

use clap::{Arg, Command, ValueHint};

use weir_jobfile::{CommandWord, CompileRequest, Dialect, JobSource};
use weir_schema::Plan;

use crate::compare::Compare;
use crate::door::Door;
use crate::flags::{Flag, command};
use crate::given::{FlagNeed, GivenFlags};
use crate::house::{Input, Run};
use crate::house_words;
use crate::house_words::{Parsed, parse};
use crate::refusal::Refusal;
use crate::run::read_run;

/// The door.
pub const DOOR: Door = Door {
    words: Some(builder),
    ..Door::new(
        "doctor",
        "",
        "look for what would spoil a measurement on this machine",
    )
};

/// The end of the help text: the output, examples, exit codes.
pub const HELP: &str = include_str!("doctor.md");

const CI: FlagNeed = FlagNeed::new("with `--ci`", |g| g.has("ci"));
const CHECKS: FlagNeed = FlagNeed::new("without `--ci`", |g| !g.has("ci"));

const FLAGS: &[Flag] = &[
    Flag::switch(
        "ci",
        "What is looked at",
        "Measure the smallest change that comparisons establish here",
    )
    .long(
        "A job of one second on no device is run beside itself in ten rounds, which takes some 25 s. \
         Nothing of it is kept.",
    ),
    Flag::with_value(
        "target",
        "JOBFILE",
        "What is looked at",
        "Measure it of this job file as well",
    )
    .repeats()
    .needs(CI)
    .long("It is run 22 times."),
    Flag::switch("json", "Output", "Print one JSON document"),
    Flag::switch("strict", "Output", "A FAIL makes the exit code 1").needs(CHECKS),
];

/// The job that every machine can run: on no device, for a second.
const STANDARD_JOB: &[(&str, &str)] = &[
    ("name", "null engine"),
    ("ioengine", "null"),
    ("rw", "randread"),
    ("bs", "4k"),
    ("size", "1g"),
    ("runtime", "1"),
    ("time_based", "1"),
];

/// Action that the arguments of `weir doctor` ask for.
#[derive(Clone, Debug)]
pub enum Action {
    /// Print this on standard output and exit with 0.
    Print(String),
    /// Look at the machine.
    Look(Look),
    /// Measure the smallest change that can be established here.
    Ci(CiCheck),
}

/// Jobs that are run beside themselves.
#[derive(Clone, Debug)]
pub struct CiCheck {
    /// Each as a comparison of one plan with itself.
    pub jobs: Vec<Compare>,
    /// Prints JSON.
    pub json: bool,
}

/// Targets to check, and the form of the report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Files, directories and devices.
    pub targets: Vec<String>,
    /// Prints JSON.
    pub json: bool,
    /// A failure makes the exit code 1.
    pub strict: bool,
}

fn builder() -> Command {
    command("weir doctor", FLAGS)
        .about("Look for what would spoil a measurement on this machine")
        .after_help(HELP)
        .override_usage("weir doctor [OPTIONS] [TARGET]...")
        .no_binary_name(true)
        .arg(
            Arg::new("path")
                .value_name("TARGET")
                .value_hint(ValueHint::AnyPath)
                .num_args(0..)
                .help("Files, directories and devices that shall be measured"),
        )
}

/// Reads the arguments after `doctor`.
///
/// # Errors
/// Words that are not understood: exit 2.
pub fn read(words: &[String]) -> Result<Action, Refusal> {
    let matches = match parse(builder(), words)? {
        Parsed::Given(matches) => matches,
        Parsed::Print(page) => return Ok(Action::Print(page)),
    };
    if let Some(why) = GivenFlags::of_matches(FLAGS, &matches)?.refusal() {
        return Err(Refusal::usage(why));
    }
    let targets = house_words::all(&matches, "path");
    if matches.get_flag("ci") {
        if let Some(stray) = targets.first() {
            return Err(Refusal::usage(format!(
                "`{stray}`: --ci looks at no target\n  help: `--target {stray}` if it is a job file"
            )));
        }
        return Ok(Action::Ci(CiCheck {
            jobs: ci_jobs(&house_words::all(&matches, "target"), words)?,
            json: matches.get_flag("json"),
        }));
    }
    Ok(Action::Look(Look {
        targets,
        json: matches.get_flag("json"),
        strict: matches.get_flag("strict"),
    }))
}

/// The standard job, and each of these job files.
fn ci_jobs(files: &[String], words: &[String]) -> Result<Vec<Compare>, Refusal> {
    let given = ["weir", "doctor"].into_iter().map(str::to_owned);
    let command: Vec<String> = given.chain(words.iter().cloned()).collect();
    let (name, standard) = standard_job(&command);
    let mut jobs = vec![Compare::with_itself(name, &standard)];
    for file in files {
        let run = read_run(std::slice::from_ref(file))?;
        jobs.push(Compare::with_itself(file, &run));
    }
    Ok(jobs)
}

fn standard_job(command: &[String]) -> (&'static str, Run) {
    let word = |(key, value): &(&str, &str)| CommandWord {
        key: (*key).to_owned(),
        value: Some((*value).to_owned()),
        argument: 0,
        text: format!("--{key}={value}"),
    };
    let input = Input::Jobs(CompileRequest {
        dialect: Dialect::Run,
        command: command.to_vec(),
        sources: vec![JobSource::Words(STANDARD_JOB.iter().map(word).collect())],
        sets: Vec::new(),
        maps: Vec::new(),
        sections: Vec::new(),
        read_only: true,
    });
    let run = Run {
        input,
        ..Run::of_plan(Plan::default())
    };
    (STANDARD_JOB[0].1, run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Action, Refusal> {
        read(
            &text
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn words_name_targets_and_how_it_is_said() {
        let look = |text: &str| match of(text) {
            Ok(Action::Look(look)) => look,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(look(""), Look::default());
        let all = Look {
            targets: vec!["/a".to_owned(), "b".to_owned()],
            json: true,
            strict: true,
        };
        assert_eq!(look("--strict /a --json b"), all);
        let refused = of("--jsn").unwrap_err().message;
        assert!(refused.contains("did you mean `--json`?"), "{refused}");
    }

    #[test]
    fn ci_runs_the_standard_job_and_job_files_beside_themselves() {
        let jobs = |text: &str| match of(text) {
            Ok(Action::Ci(check)) => check.jobs.len(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(jobs("--ci"), 1);
        assert_eq!(jobs("--ci --json --target a.fio --target b.fio"), 3);
        for (words, says) in [
            ("--target a.fio", "--target acts only with `--ci`"),
            ("--ci --strict", "--strict acts only without `--ci`"),
            ("--ci /dev/sda", "`--target /dev/sda` if it is a job file"),
        ] {
            let refused = of(words).unwrap_err().message;
            assert!(refused.contains(says), "{words}: {refused}");
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
            .filter_map(|l| l.strip_prefix("    weir doctor"));
        for example in examples {
            assert!(of(example).is_ok(), "{example}");
        }
    }
}
