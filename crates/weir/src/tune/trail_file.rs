//! The trail of a search in its file: a line for each trial as soon as it is over.
//!
//! In: the file, if one is named; what the search is for. Out: the trials so far; each new one is appended,
//! so that a search that was ended continues from there. A trail of another search is refused. Not here:
//! the form of the lines (`weir-diagnose`).

use std::fs::{File, TryLockError};
use std::io::Write;

use weir_diagnose::tune::{
    TRAIL_SCHEMA, Trail, TrailHead, TrailTrial, TuneGoal, TuneSpace, TuneStep, next_step,
};
use weir_doors::Refusal;
use weir_doors::tune::{Tune, TuneLimit};
use weir_schema::{Better, Metric};

use super::LONGEST;
use crate::output;

/// Limits on other figures, a line each.
fn limits(asked: &Tune) -> Vec<String> {
    let line = |limit: &TuneLimit| format!("{}={}", limit.figure, limit.text);
    asked.slo.iter().map(line).collect()
}

/// The trials of a search, with their file.
pub(super) struct TrailFile {
    file: Option<(String, File)>,
    /// The first line, complete once the first trial has named the figure.
    head: TrailHead,
    trials: Vec<TrailTrial>,
    /// The file has its first line.
    has_head: bool,
}

impl TrailFile {
    /// Opens the trail that is named, with the trials in it.
    pub(super) fn open(asked: &Tune, space: &TuneSpace) -> Result<Self, Refusal> {
        let mut trail = Self {
            file: None,
            head: TrailHead {
                schema: TRAIL_SCHEMA.to_owned(),
                command: asked.command.clone(),
                metric: asked.metric.clone(),
                job: asked.job.clone(),
                limits: limits(asked),
                unit: String::new(),
                is_higher_better: true,
                seed: asked.seed,
                space: space.clone(),
            },
            trials: Vec::new(),
            has_head: false,
        };
        let Some(path) = &asked.trail else {
            return Ok(trail);
        };
        let refused = |why: String| Refusal::usage(format!("--trail {path}: {why}"));
        let open = File::options().append(true).create(true).open(path);
        let file = open.map_err(|e| refused(e.to_string()))?;
        // Held as long as the file; some file systems have no locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let help = "wait for it, or name another file";
            return Err(refused(format!("another search writes it\n  help: {help}")));
        }
        let text = output::read_text(path, LONGEST).map_err(refused)?;
        let known =
            Trail::read(&text).map_err(|why| Refusal::usage(format!("--trail {path}:{why}")))?;
        if let Some(known) = known {
            trail.continues(known).map_err(refused)?;
        }
        // A line that was cut is written again.
        let whole = text.rfind('\n').map_or(0, |end| end as u64 + 1);
        file.set_len(whole).map_err(|e| refused(e.to_string()))?;
        trail.file = Some((path.clone(), file));
        Ok(trail)
    }

    /// Takes the trials of an earlier search over, if it was the same one.
    fn continues(&mut self, known: Trail) -> Result<(), String> {
        self.head.is_higher_better = known.head.is_higher_better;
        self.head.unit.clone_from(&known.head.unit);
        if let Some(what) = known.head.difference(&self.head) {
            return Err(format!(
                "it is the trail of another search: {what}\n  help: name another file"
            ));
        }
        let goal = TuneGoal {
            is_higher: known.head.is_higher_better,
            seed: known.head.seed,
        };
        for (at, trial) in known.trials.iter().enumerate() {
            let next = next_step(&known.head.space, goal, &known.trials[..at]);
            if next != TuneStep::Trial(trial.point.clone()) {
                return Err(format!(
                    "line {}: this search would not have tried these settings here\n  help: name another \
                     file",
                    at + 2
                ));
            }
        }
        self.trials = known.trials;
        self.has_head = true;
        Ok(())
    }

    /// Direction in which a figure is better: higher until a trial states otherwise.
    pub(super) fn better(&self) -> Better {
        if self.head.is_higher_better {
            Better::Higher
        } else {
            Better::Lower
        }
    }

    /// Goal of the search.
    pub(super) fn head(&self) -> &TrailHead {
        &self.head
    }

    pub(super) fn trials(&self) -> &[TrailTrial] {
        &self.trials
    }

    /// A trial has measured this figure.
    pub(super) fn name_figure(&mut self, metric: &Metric) {
        self.head.unit.clone_from(&metric.unit);
        self.head.is_higher_better = metric.better == Better::Higher;
    }

    /// Adds a trial.
    pub(super) fn add(&mut self, trial: TrailTrial) -> Result<(), Refusal> {
        let head = if self.has_head {
            Ok(String::new())
        } else {
            self.head.line()
        };
        let lines = head.and_then(|head| Ok(head + &trial.line()?));
        self.trials.push(trial);
        self.has_head = true;
        let Some((path, file)) = &mut self.file else {
            return Ok(());
        };
        let lacks = |why: String| Refusal::lacks(format!("--trail {path}: {why}"));
        let lines = lines.map_err(|e| lacks(e.to_string()))?;
        file.write_all(lines.as_bytes())
            .map_err(|e| lacks(e.to_string()))
    }
}
