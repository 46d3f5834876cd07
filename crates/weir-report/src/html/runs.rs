//! Section about several runs of a plan: each headline figure with what differs between the runs.

use weir_schema::{Better, Metric, RunSeries, Runs};

use super::{PageSection, SectionPart};
use crate::number_format::{NumberFormat, brief};

/// The section; its title names the plans and says how many runs of each came to their end.
pub fn runs_section(runs: &Runs) -> PageSection {
    let whole = |series: &RunSeries| {
        let count = series.whole().count();
        let of = match u32::try_from(count) {
            Ok(count) if count == runs.asked => String::new(),
            _ => format!(" of {}", runs.asked),
        };
        let plural = if runs.asked == 1 { "" } else { "s" };
        format!("{}: {count}{of} run{plural}", series.name)
    };
    let names: Vec<String> = runs.series.iter().map(whole).collect();
    PageSection {
        id: "runs",
        title: names.join(", "),
        parts: vec![table(runs)],
    }
}

fn table(runs: &Runs) -> SectionPart {
    let several = runs.series.len() > 1;
    let jobs = runs.series.iter().flat_map(|series| {
        let owner = several.then_some(series.name.as_str());
        series.jobs.iter().map(move |job| (owner, job))
    });
    let figures = jobs.flat_map(|(owner, job)| job.figures.iter().map(move |f| (owner, job, f)));
    let rows = figures.map(|(owner, job, figure)| {
        let between = &figure.between;
        let print = |value| {
            let metric = match figure.better {
                Better::Higher => Metric::high("", &figure.unit, value),
                Better::Lower => Metric::low("", &figure.unit, value),
            };
            NumberFormat { raw: false }.metric(&metric)
        };
        let share = |half: Option<f64>| {
            half.map_or_else(String::new, |half| format!("± {} %", brief(100.0 * half)))
        };
        vec![
            owner.map_or_else(|| job.name.clone(), |plan| format!("{plan} · {}", job.name)),
            figure.name.clone(),
            print(between.mean),
            share(between.half_width),
            print(between.least),
            print(between.most),
            share(between.within),
        ]
    });
    let head = "job/figure/mean/between runs/least/most/within a run".split('/');
    SectionPart::Table {
        head: head.map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}
