//! The text of mdtest: rates of operations on files and directories.
//!
//! In: the text. Out: a job a run. What the table calls milliseconds per operation are seconds per
//! phase. A phase that did not run, which prints zeros, is absent.

use weir_schema::Metric;

use crate::Format;
use crate::error::ImportError;
use crate::foreign::{ForeignJob, ForeignRun};
use crate::lines::{Line, ended_lines, ends_early};

pub(crate) const FORMAT: Format = Format {
    name: "mdtest",
    meaning: "mdtest, as text",
    is_in: |text| text.contains("mdtest-") && text.contains(" was launched with "),
    read,
};

/// Table that the rows belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    None,
    Rates,
    Times,
}

fn read(text: &str) -> Result<ForeignRun, ImportError> {
    let lines = ended_lines(text)?;
    let mut run = ForeignRun::default();
    let mut table = Table::None;
    let mut is_open = false;
    for line in lines {
        let words = line.text.trim();
        if let Some((program, tasks)) = words.split_once(" was launched with ") {
            run.program = Some(program.to_owned());
            run.jobs.push(ForeignJob {
                name: format!("mdtest {}", run.jobs.len() + 1),
                title: tasks.to_owned(),
                ..ForeignJob::default()
            });
            is_open = true;
        } else if let Some(command) = line.value_of("Command line used") {
            let words = command.split_whitespace();
            run.command = words
                .map(|word| word.trim_matches('\'').to_owned())
                .collect();
        } else if let Some(warning) = words.strip_prefix("WARNING: ") {
            run.warnings.push(warning.to_owned());
        } else if words.starts_with("SUMMARY rate") {
            table = Table::Rates;
        } else if words.starts_with("SUMMARY time") {
            table = Table::Times;
        } else if words.starts_with("-- finished at") && words.ends_with("--") {
            is_open = false;
            table = Table::None;
        } else if let Some(job) = run.jobs.last_mut().filter(|_| table != Table::None) {
            job.metrics.extend(row(line, table)?);
        }
    }
    if is_open || run.jobs.is_empty() {
        return Err(ends_early(text, "there is no line `-- finished at`"));
    }
    Ok(run)
}

/// The operations that have rows begin with these words.
const OPERATIONS: [&str; 3] = ["Directory ", "File ", "Tree "];

/// Mean, highest and lowest over the iterations; what stands before them is of ranks.
fn row(line: Line<'_>, table: Table) -> Result<Vec<Metric>, ImportError> {
    let text = line.text.trim();
    if !OPERATIONS.iter().any(|name| text.starts_with(name)) {
        return Ok(Vec::new());
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let named = words.len().min(2);
    let name = words[..named].join(" ").to_lowercase();
    let mut figures = Vec::new();
    for word in &words[named..] {
        figures.push(line.number(word)?);
    }
    let (4 | 7, [.., max, min, mean, _]) = (figures.len(), figures.as_slice()) else {
        return Err(line.error("a row has four figures, or seven with those of ranks"));
    };
    if *max <= 0.0 {
        return Ok(Vec::new());
    }
    let (what, metric): (_, fn(String, f64) -> Metric) = match table {
        Table::Times => ("time", |name, v| Metric::low(name, Metric::SECONDS, v)),
        _ => ("rate", |name, v| Metric::high(name, Metric::OPS_PER_S, v)),
    };
    let mut all = vec![metric(format!("{name} {what}"), *mean)];
    if max > min {
        all.push(metric(format!("{name} {what} min"), *min));
        all.push(metric(format!("{name} {what} max"), *max));
    }
    Ok(all)
}
