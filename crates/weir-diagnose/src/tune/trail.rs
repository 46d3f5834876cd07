//! The trail of a search: what it was for and the result of each trial, a line of JSON each.
//!
//! In: the text of a trail; a last line that was cut is left out. Out: a [`Trail`], and its
//! lines. Not here: files.

use serde::{Deserialize, Serialize};

use crate::inputs::InputError;
use crate::tune::space::{TunePoint, TuneSpace};

/// Version word of trails.
pub const TRAIL_SCHEMA: &str = "weir.tuning.v1";

const HELP: &str =
    "a trail is what `weir tune --trail FILE` wrote; name another file to begin anew";

/// Goal and command of a search. A search continues from the trail of an equal one only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrailHead {
    /// Always `weir.tuning.v1`.
    pub schema: String,
    /// The words of the command, with their placeholders.
    pub command: Vec<String>,
    /// The figure.
    pub metric: String,
    /// The job whose figure it is, where one is named.
    pub job: Option<String>,
    /// Limits that other figures have to keep, as they were given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// The figure's unit, without prefix.
    pub unit: String,
    /// A higher figure is better.
    pub is_higher_better: bool,
    /// Decides in which order settings are tried.
    pub seed: u64,
    /// The settings.
    pub space: TuneSpace,
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrailTrial {
    /// Its point of the space.
    pub point: TunePoint,
    /// The figure; nothing where it failed.
    pub value: Option<f64>,
    /// The dimension that holds the point back, by its place in the space, where that was diagnosed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// Reason that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A search so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Trail {
    /// Goal and command of the search.
    pub head: TrailHead,
    /// Its trials, in order.
    pub trials: Vec<TrailTrial>,
}

impl Trail {
    /// Reads a trail; without its first line there is none.
    ///
    /// # Errors
    /// A line that is none of a trail, or a point outside its space.
    pub fn read(text: &str) -> Result<Option<Self>, InputError> {
        // What has no end was being written when the search ended.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().zip(1..);
        let wrong = |line: usize, error: serde_json::Error| {
            InputError::new(line, format!("no line of a trail: {error}"), HELP)
        };
        let Some((first, _)) = lines.next() else {
            return Ok(None);
        };
        let head: TrailHead = serde_json::from_str(first).map_err(|e| wrong(1, e))?;
        if head.schema != TRAIL_SCHEMA {
            let message = format!("`{}` is no version that this weir reads", head.schema);
            return Err(InputError::new(1, message, HELP));
        }
        let mut trials = Vec::new();
        for (line, number) in lines {
            let trial: TrailTrial = serde_json::from_str(line).map_err(|e| wrong(number, e))?;
            let sizes = head.space.dimensions.iter().map(|d| d.values.len());
            let is_named = trial.dimension.is_none_or(|at| at < sizes.len());
            let fits = is_named
                && trial.point.len() == head.space.dimensions.len()
                && trial.point.iter().zip(sizes).all(|(at, size)| *at < size);
            if !fits {
                let message = "values that its first line does not have";
                return Err(InputError::new(number, message, HELP));
            }
            trials.push(trial);
        }
        Ok(Some(Self { head, trials }))
    }

    /// Values that the trials measured.
    pub fn results(&self) -> Vec<Option<f64>> {
        self.trials.iter().map(|trial| trial.value).collect()
    }
}

impl TrailHead {
    /// Its line.
    ///
    /// # Errors
    /// It has no form in JSON.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }

    /// Difference of another search from this one; nothing where it is the same.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let parts = [
            ("its command differs", self.command != other.command),
            ("its figure differs", self.metric != other.metric),
            ("its job differs", self.job != other.job),
            ("what has to be kept differs", self.limits != other.limits),
            (
                "whether a higher figure is better differs",
                self.is_higher_better != other.is_higher_better,
            ),
            ("its seed differs", self.seed != other.seed),
            ("its settings differ", self.space != other.space),
        ];
        parts
            .iter()
            .find(|(_, differs)| *differs)
            .map(|(what, _)| *what)
    }
}

impl TrailTrial {
    /// Its line.
    ///
    /// # Errors
    /// It has no form in JSON.
    pub fn line(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::space::TuneDimension;

    fn trail() -> Trail {
        Trail {
            head: TrailHead {
                schema: TRAIL_SCHEMA.to_owned(),
                command: vec!["run".to_owned(), "{n=1,2,3}".to_owned()],
                metric: "rate".to_owned(),
                job: None,
                limits: Vec::new(),
                unit: "ops/s".to_owned(),
                is_higher_better: true,
                seed: 7,
                space: TuneSpace {
                    dimensions: vec![TuneDimension::read("n", "1,2,3").unwrap()],
                },
            },
            trials: vec![
                TrailTrial {
                    point: vec![0],
                    value: Some(1.5),
                    dimension: Some(0),
                    failure: None,
                },
                TrailTrial {
                    point: vec![2],
                    value: None,
                    dimension: None,
                    failure: Some("exit code 3".to_owned()),
                },
            ],
        }
    }

    fn text(trail: &Trail) -> String {
        let trials = trail.trials.iter().map(|trial| trial.line().unwrap());
        trail.head.line().unwrap() + &trials.collect::<String>()
    }

    #[test]
    fn a_trail_reads_back_and_a_cut_line_is_left_out() {
        let trail = trail();
        let text = text(&trail);
        assert_eq!(Trail::read(&text), Ok(Some(trail.clone())));
        for end in 0..text.len() {
            let read = Trail::read(&text[..end]).unwrap();
            let trials = read.map(|read| read.trials.len());
            let lines = text[..end].matches('\n').count();
            assert_eq!(trials, lines.checked_sub(1), "{end}");
        }
        assert_eq!(trail.results(), [Some(1.5), None]);
    }

    #[test]
    fn what_is_no_trail_is_refused_with_its_line() {
        let text = text(&trail());
        for (text, line) in [
            ("{}\n".to_owned(), 1),
            (text.replace("tuning.v1", "tuning.v9"), 1),
            (text.replace("[2]", "[3]"), 3),
            (text.replace("[2]", "[0,0]"), 3),
            (text.replace("\"dimension\":0", "\"dimension\":1"), 2),
            (text.clone() + "x\n", 4),
        ] {
            assert_eq!(Trail::read(&text).unwrap_err().line, line, "{text}");
        }
        let mut other = trail().head;
        assert_eq!(other.difference(&trail().head), None);
        other.seed = 8;
        assert_eq!(other.difference(&trail().head), Some("its seed differs"));
    }
}
