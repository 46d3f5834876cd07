//! Any CSV whose rows are intervals or repetitions: the columns that are asked for become figures.
//!
//! In: the text, with names of columns in its first line, and which columns are which figures. Out:
//! a job with a sample a row in each figure. This is no format of `crate::FORMATS`: nothing in the
//! text says what a column is.

use weir_schema::{Better, Metric, RunResult};

use crate::error::ImportError;
use crate::fields::fields;
use crate::foreign::{ForeignJob, ForeignRun, checked, of_samples};
use crate::lines::{ended_lines, ends_early};

/// A column that becomes a figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the figure.
    pub metric: String,
    /// Name in the first line.
    pub name: String,
    /// Its unit: of a time, a rate or a bandwidth, or one that stays as it is.
    pub unit: String,
}

/// Units that become those of weir, by which factor; all others stay.
const UNITS: [(&str, &str, f64); 10] = [
    ("ns", Metric::SECONDS, 1e-9),
    ("us", Metric::SECONDS, 1e-6),
    ("ms", Metric::SECONDS, 1e-3),
    ("kB/s", Metric::BYTES_PER_S, 1e3),
    ("MB/s", Metric::BYTES_PER_S, 1e6),
    ("GB/s", Metric::BYTES_PER_S, 1e9),
    ("KiB/s", Metric::BYTES_PER_S, 1024.0),
    ("MiB/s", Metric::BYTES_PER_S, 1_048_576.0),
    ("GiB/s", Metric::BYTES_PER_S, 1_073_741_824.0),
    ("kops/s", Metric::OPS_PER_S, 1e3),
];

impl Column {
    /// `METRIC=NAME:UNIT`, as command lines have it; the unit may be left out.
    ///
    /// # Errors
    /// Another form, and what is missing.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not METRIC=NAME or METRIC=NAME:UNIT");
        let (metric, rest) = text.split_once('=').ok_or_else(wrong)?;
        let (name, unit) = rest.rsplit_once(':').unwrap_or((rest, ""));
        if metric.is_empty() || name.is_empty() {
            return Err(wrong());
        }
        Ok(Self {
            metric: metric.to_owned(),
            name: name.to_owned(),
            unit: unit.to_owned(),
        })
    }

    /// The figure without a value. Times are better when they are short, all else when it is much.
    fn figure(&self) -> (Metric, f64) {
        let known = UNITS.iter().find(|(unit, ..)| *unit == self.unit);
        let (unit, factor) = known.map_or((&*self.unit, 1.0), |(_, unit, factor)| (unit, *factor));
        let metric = Metric::high(&*self.metric, unit, 0.0);
        let better = if unit == Metric::SECONDS {
            Better::Lower
        } else {
            Better::Higher
        };
        (Metric { better, ..metric }, factor)
    }
}

/// The result that the columns of a text make. `file` is what it is named after.
///
/// # Errors
/// A column that the first line does not name, a row that lacks it, what is no number.
pub fn import_csv(text: &str, columns: &[Column], file: &str) -> Result<RunResult, ImportError> {
    let lines = ended_lines(text)?;
    let Some((first, rows)) = lines.split_first() else {
        return Err(ends_early(text, "there is no line of names"));
    };
    let names = fields(first.text);
    let rows: Vec<_> = rows.iter().filter(|row| !row.text.is_empty()).collect();
    let mut metrics = Vec::new();
    for column in columns {
        let at = names.iter().position(|name| name.trim() == column.name);
        let at = at.ok_or_else(|| {
            let list = names.join(", ");
            first.error(format!(
                "no column is called `{}` (there are: {list})",
                column.name
            ))
        })?;
        let (metric, factor) = column.figure();
        let mut samples = Vec::new();
        for row in &rows {
            let fields = fields(row.text);
            let field = fields.get(at).filter(|_| fields.len() == names.len());
            let field = field.ok_or_else(|| {
                row.error(format!(
                    "{} columns, where the first line has {}",
                    fields.len(),
                    names.len()
                ))
            })?;
            // An empty field is a figure that this row does not have.
            if !field.trim().is_empty() {
                samples.push(row.number(field)? * factor);
            }
        }
        if samples.is_empty() {
            return Err(ends_early(text, &format!("no row has `{}`", column.name)));
        }
        metrics.push(of_samples(metric, samples));
    }
    let run = ForeignRun {
        jobs: vec![ForeignJob {
            name: "rows".to_owned(),
            title: format!("{} rows", rows.len()),
            metrics,
            ..ForeignJob::default()
        }],
        ..ForeignRun::default()
    };
    checked(&run.into_result("csv", file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "t,iops,\"lat, mean\"\r\n1,100,2.5\r\n2,300,\r\n";

    fn columns(words: &[&str]) -> Vec<Column> {
        words
            .iter()
            .map(|word| Column::read(word).unwrap())
            .collect()
    }

    #[test]
    fn rows_are_samples_in_weirs_units() {
        let columns = columns(&["rate=iops:ops/s", "mean=lat, mean:us"]);
        let result = import_csv(TEXT, &columns, "a/b.csv").unwrap();
        let job = result.jobs().next().unwrap();
        let [rate, mean] = job.metrics.as_slice() else {
            panic!("{job:?}");
        };
        assert_eq!(
            (rate.samples.as_slice(), rate.better),
            (&[100.0, 300.0][..], Better::Higher)
        );
        assert_eq!((mean.unit.as_str(), mean.better), ("s", Better::Lower));
        assert!((mean.value - 2.5e-6).abs() < 1e-18);
        assert_eq!(
            (&*result.plan.name, &*result.source.unwrap().format),
            ("b.csv", "csv")
        );
    }

    #[test]
    fn what_is_not_there_is_refused_with_its_line() {
        let refused = |text: &str, column: &str| {
            import_csv(text, &columns(&[column]), "f")
                .unwrap_err()
                .to_string()
        };
        assert!(refused(TEXT, "a=none").starts_with("1: no column is called `none`"));
        assert!(refused("a,b\n1\n", "x=a").starts_with("2: 1 columns"));
        assert!(refused("a\nx\n", "x=a").starts_with("2: `x` is no number"));
        assert!(refused("a\n", "x=a").contains("no row has `a`"));
        assert!(refused("a\n1", "x=a").contains("the last line has no end"));
        for wrong in ["", "a", "=b", "a=", "a=:s"] {
            assert!(Column::read(wrong).is_err(), "{wrong}");
        }
    }
}
