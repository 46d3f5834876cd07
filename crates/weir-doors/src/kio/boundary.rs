//! `--compare`: what the boundary between kernel and user space costs.
//!
//! In: a plan for each side. Out: a comparison in rounds, as `weir compare --run` makes one. Not here:
//! carrying it out, the statistics.

use weir_compare::Rule;
use weir_schema::Plan;
use weir_units::Nanos;

use crate::compare::{Compare, CompareFormat, CompareInput, CompareShow, Rounds, RoundsOf};
use crate::flags::refuse_result_files;
use crate::given::GivenFlags;
use crate::refusal::Refusal;
use crate::run::{Input, ProgressStyle, Run, read_options};

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
        .map(|(name, plan)| Ok((name, Box::new(run_of(plan)?))));
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
            progress: ProgressStyle::None,
        },
        rule: Rule {
            metrics: FIGURES.map(str::to_owned).to_vec(),
            allow_different: true,
            ..Rule::default()
        },
        fail_if: Vec::new(),
        confirm: false,
        single_run_ok: false,
        show: CompareShow {
            format: Some(format),
            ..CompareShow::default()
        },
    })
}

/// A plan as `weir run` carries it out, in silence.
fn run_of(plan: Plan) -> Result<Run, Refusal> {
    let mut options = read_options(&[])?;
    options.progress = ProgressStyle::None;
    Ok(Run {
        input: Input::Made(Box::new(plan)),
        show_plan: false,
        ranks: None,
        targets: weir_schema::TargetsPerRank::default(),
        timeout: None,
        repeat: None,
        store: None,
        history: None,
        options,
    })
}
