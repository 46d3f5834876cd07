//! The history as text: the list of runs, a trend, a change.
//!
//! In: rows and trends. Out: lines no wider than asked for, as far as names allow it. Not here: what is
//! listed, where it is printed.

use weir_stats::change_points::FEWEST_RUNS;
use weir_units::{BytesPerSec, Date, Iops, Nanos};

use crate::entry::MetricRow;
use crate::list::{ListRow, Listed};
use crate::rows::{RunRow, spoiled_by};
use crate::trend::{Change, SeriesRun, Trend};
use crate::ulid::SHOWN_CHARACTERS;

/// Cells of the course of a figure.
const CELLS: usize = 20;
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_LEVELS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
/// A course of less than this is drawn as one that does not change.
const LEAST_SPREAD: f64 = 0.02;

/// Format of text.
#[derive(Clone, Copy, Debug)]
pub struct HistoryText {
    /// Only ASCII characters.
    pub ascii: bool,
}

impl HistoryText {
    /// The runs, those of one plan on one machine together, the newest first.
    pub fn list(self, listed: &Listed) -> String {
        let mut out = String::new();
        let mut done = Vec::new();
        for row in &listed.rows {
            let of = (row.run.plan_id, row.run.machine_id);
            if done.contains(&of) {
                continue;
            }
            done.push(of);
            let same = |other: &&ListRow| (other.run.plan_id, other.run.machine_id) == of;
            let runs: Vec<&ListRow> = listed.rows.iter().filter(same).collect();
            if !out.is_empty() {
                out.push('\n');
            }
            let course = listed.courses.get(&of).map_or(&[][..], Vec::as_slice);
            out += &self.head(row, course);
            for row in runs {
                out += &self.line(row);
            }
        }
        out
    }

    fn head(self, row: &ListRow, course: &[f64]) -> String {
        let RunRow {
            plan_name,
            plan_fingerprint,
            machine_name,
            ..
        } = &row.run;
        let plan: String = plan_fingerprint.chars().take(8).collect();
        let figure = row.main.as_ref().map_or_else(String::new, |main| {
            format!("  {}: {}", main.job, main.full_name())
        });
        let course = self.course(course);
        let gap = if course.is_empty() { "" } else { "  " };
        format!("{plan_name}  on {machine_name}, plan {plan}{figure}{gap}{course}\n")
    }

    fn line(self, row: &ListRow) -> String {
        let run = &row.run;
        let short: String = run.id.chars().take(SHOWN_CHARACTERS).collect();
        let mut cells = vec![format!("  {short}  {}", minute(run.started_ns))];
        cells.push(
            row.main
                .as_ref()
                .map_or_else(|| "-".to_owned(), |main| self.figure(main)),
        );
        cells.extend(
            spoiled_by(run.complete, run.exit_code, &run.warnings).map(|why| format!("({why})")),
        );
        cells.extend(run.label.as_ref().map(|label| format!("label:{label}")));
        cells.extend(run.source.as_ref().map(|source| format!("from {source}")));
        let tags = run.tags.iter().map(|(key, value)| match value.as_str() {
            "" => key.clone(),
            value => format!("{key}={value}"),
        });
        cells.extend(tags);
        cells.extend(run.note.as_ref().map(|note| format!("\"{note}\"")));
        let line = cells.join("  ");
        clean(line.trim_end()) + "\n"
    }

    fn figure(self, row: &MetricRow) -> String {
        let plus_minus = if self.ascii { "+-" } else { "±" };
        let value = self.value(row.value, &row.unit);
        match row.interval.filter(|_| row.value > 0.0) {
            None => value,
            Some((low, high)) => {
                let percent = (high - low) / 2.0 / row.value * 100.0;
                format!("{value} {plus_minus} {} %", digits(percent))
            }
        }
    }

    /// A figure in its unit, with three digits.
    fn value(self, value: f64, unit: &str) -> String {
        let text = match unit {
            "B/s" => BytesPerSec(value).to_string(),
            "ops/s" => Iops(value).to_string(),
            "s" => Nanos::from_secs_f64(value).map_or(format!("{value} s"), |t| t.to_string()),
            unit => format!("{} {unit}", digits(value)).trim_end().to_owned(),
        };
        if self.ascii {
            text.replace('µ', "u")
        } else {
            text
        }
    }

    /// The last values, from the least to the greatest of them.
    fn course(self, values: &[f64]) -> String {
        let last = &values[values.len().saturating_sub(CELLS)..];
        if last.len() < 2 {
            return String::new();
        }
        let most = last.iter().copied().fold(f64::MIN, f64::max);
        let least = last.iter().copied().fold(f64::MAX, f64::min);
        let spread = (most - least).max(LEAST_SPREAD * most.abs());
        let levels = if self.ascii { ASCII_LEVELS } else { LEVELS };
        let level = |value: &f64| {
            let share = 1.0 - (most - value) / spread;
            let above = (1..8_u8).take_while(|step| share > f64::from(*step) / 8.0);
            levels[above.count()]
        };
        last.iter().map(level).collect()
    }

    /// A trend: its course, its changes, the runs that do not count.
    pub fn trend(self, trend: &Trend, plan: &RunRow) -> String {
        let runs = &trend.runs;
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return String::new();
        };
        let dots = if self.ascii { "..." } else { "…" };
        let good: Vec<&SeriesRun> = runs.iter().filter(|r| r.spoiled_by.is_none()).collect();
        let mut out = format!(
            "{}  on {}, {}, {} {dots} {}\n",
            plan.plan_name,
            plan.machine_name,
            counted(runs.len(), "run"),
            minute(first.started_ns),
            minute(last.started_ns),
        );
        let values: Vec<f64> = good.iter().map(|run| run.value).collect();
        let range = values
            .iter()
            .copied()
            .reduce(f64::min)
            .zip(values.iter().copied().reduce(f64::max));
        let range = range.map_or_else(String::new, |(least, most)| {
            format!(
                "{} {dots} {}",
                self.value(least, &trend.unit),
                self.value(most, &trend.unit)
            )
        });
        out += format!("  {}  {}  {range}", trend.title(), self.course(&values)).trim_end();
        out.push('\n');
        for change in &trend.changes {
            out += &self.change(change, trend);
        }
        let verdict = if good.len() < FEWEST_RUNS {
            let runs = good.len();
            format!("    too few to tell a change: {runs} of {FEWEST_RUNS} runs\n")
        } else if trend.changes.is_empty() {
            format!("    no change in {}\n", counted(good.len(), "run"))
        } else {
            String::new()
        };
        out + &verdict + &left_out(runs)
    }

    fn change(self, change: &Change, trend: &Trend) -> String {
        let dots = if self.ascii { "..." } else { "…" };
        let short: String = change.first.chars().take(SHOWN_CHARACTERS).collect();
        let when = trend.runs.get(change.index).map_or(0, |run| run.started_ns);
        let point = &change.point;
        let interval = point.ratio.low.zip(point.ratio.high);
        let interval = interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} {dots} {})", percent(low), percent(high))
        });
        let mut out = format!(
            "    since {short}  {}  {}{interval}  {} -> {}, {}{}{}\n",
            minute(when),
            percent(point.ratio.value),
            self.value(point.before, &trend.unit),
            self.value(point.after, &trend.unit),
            counted(change.runs, "run"),
            verdict(trend.better, point.ratio.value),
            if point.is_tentative {
                ", tentative"
            } else {
                ""
            },
        );
        if !change.with.is_empty() {
            out += &clean(&format!("      with it {}", change.with.join("; ")));
            out.push('\n');
        }
        out
    }
}

impl Trend {
    /// `a: read rate`.
    pub fn title(&self) -> String {
        let key = &self.key;
        let name = format!("{} {}", key.kind, key.name);
        clean(&format!("{}: {}", key.job, name.trim_start()))
    }
}

impl Change {
    /// `a: read rate -5.2 % since run 01J…, 3 runs of it; kernel 6.11 -> 6.12`.
    pub fn sentence(&self, trend: &Trend) -> String {
        let short: String = self.first.chars().take(SHOWN_CHARACTERS).collect();
        let with = self.with.iter().map(|what| format!("; {what}"));
        clean(&format!(
            "{} {} since run {short} ({}{}){}",
            trend.title(),
            percent(self.point.ratio.value),
            counted(self.runs, "run"),
            if self.point.is_tentative {
                ", tentative"
            } else {
                ""
            },
            with.collect::<String>()
        ))
    }
}

/// Runs that are no part of the trend, by why.
fn left_out(runs: &[SeriesRun]) -> String {
    let mut causes: Vec<(&str, usize)> = Vec::new();
    for cause in runs.iter().filter_map(|run| run.spoiled_by.as_deref()) {
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => causes.push((cause, 1)),
        }
    }
    if causes.is_empty() {
        return String::new();
    }
    let list = causes
        .iter()
        .map(|(cause, count)| format!("{count} {cause}"));
    let list: Vec<String> = list.collect();
    format!("    left out: {}\n", list.join(", "))
}

fn verdict(better: i8, ratio: f64) -> &'static str {
    match (better, ratio < 1.0) {
        (0, _) => "",
        (1, true) | (-1, false) => ", worse",
        _ => ", better",
    }
}

fn counted(count: usize, what: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {what}{s}")
}

/// `-5.2 %`.
fn percent(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let sign = if change < 0.0 { "-" } else { "+" };
    format!("{sign}{} %", digits(change.abs()))
}

/// Two digits, or what stands before the point.
fn digits(number: f64) -> String {
    let decimals = if number.abs() >= 9.95 {
        0
    } else if number.abs() >= 0.995 {
        1
    } else {
        2
    };
    format!("{number:.decimals$}")
}

/// `2026-11-21 05:30`.
fn minute(unix_ns: u64) -> String {
    date(unix_ns).chars().take(16).collect()
}

/// `2026-11-21 05:30:12`, in UTC.
pub fn date(unix_ns: u64) -> String {
    let seconds = unix_ns / Nanos::from_secs(1).0;
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let Date { year, month, day } = Date::of_unix_day(days.cast_signed());
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Names of jobs and notes may hold anything; a terminal obeys control characters.
fn clean(text: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(visible).collect()
}
