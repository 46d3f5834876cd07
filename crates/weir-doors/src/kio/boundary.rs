//! Several runs: `--compare`, which shows what the boundary between kernel and user space costs, and
//! `--repeat`.
//!
//! In: a plan, of each side. Out: a comparison in rounds, as `weir compare --run` makes one, or what `weir
//! run --repeat` carries out. Not here: carrying it out, the statistics.

use weir_compare::Rule;
use weir_schema::Plan;
use weir_units::Nanos;

use super::Action;
use crate::compare::{Compare, CompareFormat, CompareInput, CompareShow, Rounds, RoundsOf};
use crate::flags::refuse_result_files;
use crate::given::GivenFlags;
use crate::house::{ProgressStyle, Repeat, Run, RunFormat};
use crate::refusal::Refusal;

/// What is compared: rates, latencies, CPU time of an operation.
const FIGURES: [&str; 4] = ["rate", "p50", "p99", "cpu_per_op"];

/// The comparison that the words ask for.
pub(super) fn compare(
    given: &GivenFlags,
    count: Option<u32>,
    sides: Vec<(String, Plan)>,
    words: &[String],
) -> Result<Compare, Refusal> {
    let store = given.text("store-result").map(str::to_owned);
    let format = match given.text("format") {
        Some("json") => CompareFormat::Json,
        Some("csv") => CompareFormat::Csv,
        Some("yaml") => {
            return Err(Refusal::usage(
                "--format yaml: a comparison is printed as table, json or csv\n  help: take --format json",
            ));
        }
        _ => CompareFormat::Text,
    };
    let sides = sides
        .into_iter()
        .map(|(name, plan)| Ok((name, Box::new(Run::of_plan(plan)))));
    let sides: Vec<_> = sides.collect::<Result<_, Refusal>>()?;
    refuse_result_files(None, given.text("history"))?;
    let command = ["weir", "kio"].into_iter().map(str::to_owned);
    Ok(Compare {
        input: CompareInput::Rounds {
            rounds: Rounds {
                count,
                until_sure: false,
                warmup: 0,
                settle: Nanos(0),
                prepare: None,
                drop_caches: false,
            },
            of: RoundsOf::Plans(sides),
            command: command.chain(words.iter().cloned()).collect(),
            store,
            save: None,
            progress: ProgressStyle::Auto,
        },
        rule: Rule {
            metrics: FIGURES.map(str::to_owned).to_vec(),
            allow_different: true,
            ..Rule::default()
        },
        is_alpha_given: false,
        fail_if: Vec::new(),
        confirm: false,
        single_run_ok: false,
        show: CompareShow {
            format: Some(format),
            ..CompareShow::default()
        },
    })
}

/// Words that say what becomes of one run.
const OF_ONE: [&str; 7] = [
    "output-csv",
    "output-yaml",
    "output",
    "trace-offsets",
    "legacy-summary",
    "dry-run",
    "show-plan",
];

/// The runs that the words ask for.
pub(super) fn repeat(
    given: &GivenFlags,
    plan: Plan,
    runs: u32,
    notes: Vec<String>,
) -> Result<Action, Refusal> {
    if let Some(flag) = OF_ONE.into_iter().find(|flag| given.has(flag)) {
        return Err(Refusal::usage(format!(
            "--repeat: --{flag} is about one run, and here are several; leave one of them out"
        )));
    }
    let mut run = Run::of_plan(plan);
    run.options.format = match given.text("format") {
        Some("json") => RunFormat::Json,
        Some("table") | None => RunFormat::Text,
        Some(format) => {
            return Err(Refusal::usage(format!(
                "--format {format}: several runs are printed as table or json\n  help: take --format json"
            )));
        }
    };
    let text = |name| given.text(name).map(str::to_owned);
    (run.store, run.history) = (text("store-result"), text("history"));
    let repeat = Repeat {
        runs,
        pause: Nanos(0),
    };
    run.repeat = Some(repeat);
    Ok(Action::Repeat {
        run: Box::new(run),
        repeat,
        notes,
    })
}
