//! `--compare`: shows the cost of the boundary between kernel and user space.
//!
//! In: a plan of each side. Out: a comparison in rounds, as `weir compare --run` makes one. Not here:
//! carrying it out, the statistics.

use weir_compare::Rule;
use weir_schema::Plan;
use weir_units::Nanos;

use crate::compare::{Compare, CompareFormat, CompareInput, CompareShow, Rounds, RoundsOf};
use crate::given::Given;
use crate::house::{Run, progress};
use crate::refusal::Refusal;

/// Figures to compare: rates, latencies, CPU time of an operation.
const FIGURES: [&str; 4] = ["rate", "p50", "p99", "cpu_per_op"];

/// The comparison that these arguments ask for.
pub(super) fn compare(
    given: &Given,
    count: Option<u32>,
    sides: Vec<(String, Plan)>,
) -> Result<Compare, Refusal> {
    let store = given.house.text("store-result").map(str::to_owned);
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
        .map(|(name, plan)| (name, Box::new(Run::of_plan(plan))))
        .collect();
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
            command: given.command(),
            store,
            save: None,
            progress: progress(&given.house),
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
