//! The report of a search: its trials, the best settings, and the file that was written.
//!
//! In: the trail, the end of the search, the comparison of the start with the best. Out: text or JSON. Not
//! here: printing, files.

use serde_json::json;
use weir_compare::Comparison;
use weir_diagnose::tune::{TestedPoint, TuneEnd, TuneGoal, TuneSpace, tested_points};
use weir_doors::tune::Tune;
use weir_report::{Flags, NumberFormat, Style, clean};
use weir_schema::{Better, Metric};

use super::trail_file::TrailFile;
use crate::environment;

/// Version word of reports.
const SCHEMA: &str = "weir.tune-report.v1";
/// More points than these are left to JSON and the trail.
const MOST_POINTS: usize = 20;

/// Reason why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchEnd {
    /// No neighbour is better any more.
    Settled,
    /// The number of trials was reached.
    Trials,
    /// The time was over.
    Budget,
    /// A signal arrived.
    Interrupted,
}

/// Outcome of a search, for the report.
pub(super) struct TuneReport<'a> {
    pub(super) asked: &'a Tune,
    pub(super) space: &'a TuneSpace,
    pub(super) trail: &'a TrailFile,
    pub(super) end: SearchEnd,
    pub(super) found: &'a TuneEnd,
    /// The best settings are surely better than the start.
    pub(super) is_better: bool,
    /// The best settings were written to the named file.
    pub(super) is_written: bool,
    pub(super) comparison: Option<&'a Comparison>,
}

impl SearchEnd {
    /// Word in JSON.
    fn word(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Trials => "trials",
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
        }
    }
}

impl TuneReport<'_> {
    pub(super) fn json(&self) -> Result<String, serde_json::Error> {
        let report = json!({
            "schema": SCHEMA,
            "search": self.trail.head(),
            "end": self.end.word(),
            "trials": self.trail.trials(),
            "noise": self.found.noise,
            "start": self.space.values(&self.space.start()),
            "best": self.space.values(&self.found.best),
            "kept": if self.is_better { "best" } else { "start" },
            "output": self.output(),
            "server_output": self.server_output(),
            "comparison": self.comparison,
        });
        Ok(serde_json::to_string_pretty(&report)? + "\n")
    }

    fn output(&self) -> Option<&str> {
        let output = self.asked.output.as_deref();
        output.filter(|_| self.is_written && self.end != SearchEnd::Interrupted)
    }

    fn server_output(&self) -> Option<String> {
        super::server_output(self.asked).filter(|_| self.output().is_some())
    }

    pub(super) fn text(&self) -> String {
        let goal = TuneGoal {
            is_higher: self.trail.better() == Better::Higher,
            seed: self.asked.seed,
        };
        let points = tested_points(goal, self.trail.trials());
        let mut text = format!(
            "tune  weir {}\n  {}\n\n{}",
            self.asked.command.join(" "),
            self.facts(points.len()),
            self.table(&points)
        );
        if let Some(comparison) = self.comparison {
            text.push('\n');
            text.push_str(&weir_compare::text(comparison, &style()));
        }
        text.push('\n');
        text.push_str(&self.conclusion());
        text
    }

    fn facts(&self, points: usize) -> String {
        let (trials, of) = (self.trail.trials().len(), self.space.points());
        let failed = self.trail.trials().iter().filter(|t| t.value.is_none());
        let failed = match failed.count() {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        let which = match self.trail.better() {
            Better::Higher => "higher",
            Better::Lower => "lower",
        };
        let end = match self.end {
            SearchEnd::Settled => "the search found nothing better any more",
            SearchEnd::Trials => "ended by --trials",
            SearchEnd::Budget => "ended by --budget",
            SearchEnd::Interrupted => "interrupted",
        };
        format!(
            "{}, {which} is better: {trials} trials of {points} of {of} settings{failed}, noise {:.1} %; {end}",
            self.asked.metric,
            self.found.noise * 100.0
        )
    }

    /// The best points, one per line: their values, the median, the number of trials.
    fn table(&self, points: &[TestedPoint]) -> String {
        let names = self.space.dimensions.iter().map(|d| d.name.clone());
        let heads = [
            self.asked.metric.clone(),
            "trials".to_owned(),
            String::new(),
        ];
        let mut rows: Vec<Vec<String>> = vec![names.chain(heads).collect()];
        rows.extend(points.iter().take(MOST_POINTS).map(|point| self.row(point)));
        let start = self.space.start();
        let is_left_out = |point: &&TestedPoint| point.point == start;
        rows.extend(
            points
                .iter()
                .skip(MOST_POINTS)
                .filter(is_left_out)
                .map(|p| self.row(p)),
        );
        let widths: Vec<usize> = (0..rows[0].len())
            .map(|column| {
                rows.iter()
                    .map(|row| row[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut text = String::new();
        for row in rows {
            let cells = row.iter().zip(&widths);
            let cells: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            text.push_str(format!("  {}", cells.join("  ")).trim_end());
            text.push('\n');
        }
        if points.len() > MOST_POINTS {
            let more = points.len() - MOST_POINTS;
            let note = format!("  and {more} more, in --trail and --format json\n");
            text.push_str(&note);
        }
        text
    }

    fn row(&self, tested: &TestedPoint) -> Vec<String> {
        let values = self.space.values(&tested.point).into_iter();
        let mut row: Vec<String> = values.map(|(_, value)| value.to_owned()).collect();
        row.push(
            tested
                .median
                .map_or_else(|| "failed".to_owned(), |v| self.figure(v)),
        );
        row.push(tested.trials.to_string());
        row.push(match &tested.failure {
            _ if tested.point == self.space.start() => "start".to_owned(),
            _ if tested.point == self.found.best => "best".to_owned(),
            Some(why) if tested.median.is_none() => clean(why, false),
            _ => String::new(),
        });
        row
    }

    /// A value of the figure, with its unit.
    fn figure(&self, value: f64) -> String {
        let head = self.trail.head();
        NumberFormat { raw: false }.metric(&Metric::high(&head.metric, &head.unit, value))
    }

    fn conclusion(&self) -> String {
        let best = self.space.values(&self.found.best);
        let best: Vec<String> = best
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let best = best.join(" ");
        let what = if self.end == SearchEnd::Interrupted {
            "  nothing is kept: the search was interrupted".to_owned()
        } else if self.is_better {
            format!("  kept: {best}")
        } else if self.found.best == self.space.start() {
            "  kept: the settings it started with; nothing that was tried is better for sure"
                .to_owned()
        } else {
            format!("  kept: the settings it started with; {best} is not better for sure")
        };
        let own = self.output();
        let own = own.map_or_else(String::new, |file| format!("  written: {file}\n"));
        let server = self.server_output();
        let server = server.map_or_else(String::new, |file| format!("  written: {file}\n"));
        format!("{what}\n{own}{server}")
    }
}

fn style() -> Style {
    let terminal = environment::terminal(&std::io::stdout());
    Style::detect(&Flags::default(), &environment::variables(), terminal)
}
