//! `weir tune`: searches for better settings of a command of weir.
//!
//! In: the arguments after `tune`. Out: the report on standard output, the settings that won in a file, every
//! trial in the trail. Not here: which trial comes next (`weir-diagnose`), one trial (`trial`), the trail's
//! file (`trail_file`), the text of the report (`report`).

mod path_verdict;
mod report;
mod server;
mod trail_file;
mod trial;

use std::time::Instant;

use weir_compare::{Comparison, Rule, Side, Sides, Verdict, compare};
use weir_diagnose::ConfigText;
use weir_diagnose::tune::{
    TrailTrial, TuneEnd, TuneGoal, TunePoint, TuneSpace, TuneStep, best_so_far, next_step,
};
use weir_doors::flags::nearest;
use weir_doors::tune::{Action, LAYOUT, ServerConfig, Tune, read};
use weir_doors::{Refusal, USAGE};
use weir_run::execute::Signals;
use weir_schema::Better;
use weir_units::Nanos;

use crate::progress::{ProgressMode, TurnProgress};
use crate::turns::{Turns, code_of_signal, order, refuse_launcher};
use crate::{Outcome, output, printed, signals};

use report::{SearchEnd, TuneReport};
use trail_file::TrailFile;
use trial::{Measured, Trials};

const VERB: &str = "tune";
/// The longest configuration or trail that is read.
const LONGEST: u64 = 1 << 28;

/// Carries out the arguments after `tune`.
pub(crate) fn run(words: &[String]) -> Outcome {
    match read(words)? {
        Action::Print(text) => Ok(printed(&text)),
        Action::Tune(asked) => tune(&asked, words),
    }
}

fn tune(asked: &Tune, words: &[String]) -> Outcome {
    refuse_launcher(VERB)?;
    let mut config = asked.config.as_deref().map(read_config).transpose()?;
    let role = std::env::var("AXIO_NODE").ok();
    let of_path = config
        .as_mut()
        .map(|config| asked.clone().of_path(config, role.as_deref()));
    let asked = &of_path.transpose()?.unwrap_or_else(|| asked.clone());
    let mut space = TuneSpace {
        dimensions: asked.template.dimensions.clone(),
    };
    space
        .dimensions
        .extend(varied_keys(asked, config.as_ref())?);
    check_files(asked)?;
    let trail = TrailFile::open(asked, &space)?;
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let command = [&["weir", VERB].map(str::to_owned)[..], words].concat();
    let turns = Turns::new(VERB, &command, &caught)?;
    let server = server_config(asked, config.as_ref())?;
    let mut search = Search {
        asked,
        space: &space,
        trials: Trials::new(asked, &space, config.as_ref(), &turns, server),
        caught: &caught,
        trail,
        progress: TurnProgress::new(ProgressMode::detect(), asked.trials),
    };
    let (end, found) = search.until_settled()?;
    let comparison = search.beside_start(end, &found)?;
    search.progress.erase();
    signals::release();
    let is_better = comparison
        .as_ref()
        .is_some_and(|c| has_gained(c, asked.job.as_deref()));
    let point = if is_better {
        found.best.clone()
    } else {
        space.start()
    };
    let written = search.is_written(&point, end);
    let report = TuneReport {
        asked,
        space: &space,
        trail: &search.trail,
        end,
        found: &found,
        is_better,
        is_written: written,
        comparison: comparison.as_ref(),
    };
    let shown = if asked.as_json {
        report.json().map_err(|e| turns.lacks(e))?
    } else {
        report.text()
    };
    let code = printed(&shown).max(u8::from(!written));
    Ok(code_of_signal(&caught).unwrap_or(code))
}

/// A search with its context.
struct Search<'a> {
    asked: &'a Tune,
    space: &'a TuneSpace,
    trials: Trials<'a>,
    caught: &'a Signals,
    trail: TrailFile,
    progress: TurnProgress,
}

impl Search<'_> {
    fn goal(&self) -> TuneGoal {
        TuneGoal {
            is_higher: self.trail.better() == Better::Higher,
            seed: self.asked.seed,
        }
    }

    /// Makes the trials of the search until it ends, or trials or time are used up, or a signal arrives.
    fn until_settled(&mut self) -> Result<(SearchEnd, TuneEnd), Refusal> {
        let begin = Instant::now();
        let is_over = |budget: Nanos| begin.elapsed().as_nanos() >= u128::from(budget.0);
        let end = loop {
            let next = match next_step(self.space, self.goal(), self.trail.trials()) {
                TuneStep::End(found) => return Ok((SearchEnd::Settled, found)),
                TuneStep::Trial(point) => point,
            };
            if self.caught.interrupted() {
                break SearchEnd::Interrupted;
            }
            let done = self.trail.trials().len();
            if done >= self.asked.trials {
                break SearchEnd::Trials;
            }
            if self.asked.budget.is_some_and(is_over) {
                break SearchEnd::Budget;
            }
            let label = format!("trial {} of at most {}", done + 1, self.asked.trials);
            if let Some(folder) = &self.asked.logs {
                self.progress.erase();
                self.trials.begin_log(&next, (folder, done))?;
            }
            let measured = self.trials.measured(&next, &label, &mut self.progress)?;
            self.trials.log = None;
            self.progress.next();
            // A trial that a signal has cut says nothing of its settings.
            if self.caught.interrupted() {
                break SearchEnd::Interrupted;
            }
            if done == 0
                && let Measured::Failed { why, code } = &measured
            {
                return Err(Refusal::new(
                    (*code).max(1),
                    format!("error: {VERB}: the settings that it starts with fail: {why}\n"),
                ));
            }
            self.keep(next, measured)?;
        };
        let best = best_so_far(self.space, self.goal(), self.trail.trials());
        Ok((end, best))
    }

    /// Adds a trial to the trail.
    fn keep(&mut self, point: TunePoint, measured: Measured) -> Result<(), Refusal> {
        let trial = match measured {
            Measured::Figure { metric, result } => {
                self.trail.name_figure(&metric);
                TrailTrial {
                    point,
                    value: Some(metric.value),
                    dimension: path_verdict::dimension(&result, self.space),
                    failure: None,
                }
            }
            Measured::Failed { why, .. } => TrailTrial {
                point,
                value: None,
                dimension: None,
                failure: Some(why),
            },
        };
        self.trail.add(trial)?;
        let best = best_so_far(self.space, self.goal(), self.trail.trials()).best;
        if self.asked.logs.is_some() {
            self.is_written(&best, SearchEnd::Trials);
        }
        Ok(())
    }

    /// Compares the best settings with the start in turns, where they differ and the search has ended.
    fn beside_start(
        &mut self,
        end: SearchEnd,
        found: &TuneEnd,
    ) -> Result<Option<Comparison>, Refusal> {
        let start = self.space.start();
        if found.best == start || end == SearchEnd::Interrupted {
            return Ok(None);
        }
        let points = [("start", start), ("best", found.best.clone())];
        let mut sides = points.clone().map(|(name, _)| Side {
            name: name.to_owned(),
            runs: Vec::new(),
            spreads: Vec::new(),
        });
        self.progress.erase();
        self.progress = TurnProgress::new(ProgressMode::detect(), 2 * self.asked.rounds);
        for round in 0..self.asked.rounds {
            for which in order(2, round) {
                let label = format!(
                    "{}, round {} of {}",
                    points[which].0,
                    round + 1,
                    self.asked.rounds
                );
                let measured =
                    self.trials
                        .measured(&points[which].1, &label, &mut self.progress)?;
                self.progress.next();
                if self.caught.interrupted() {
                    return Ok(None);
                }
                match measured {
                    Measured::Figure { result, .. } => sides[which].runs.push(*result),
                    Measured::Failed { why, .. } => {
                        output::error(&format!("warning: {VERB}: {label}: {why}\n"));
                        return Ok(None);
                    }
                }
            }
        }
        let rule = Rule {
            metrics: vec![self.asked.metric.clone()],
            ..Rule::default()
        };
        let sides = Sides {
            sides: sides.to_vec(),
            in_turns: true,
            is_varied: true,
        };
        let comparison = compare(&sides, &rule);
        comparison
            .map(Some)
            .map_err(|e| Refusal::usage(e.to_string()))
    }

    /// Writes the settings of a point on request; true if that is done. A search ended by a signal writes
    /// none.
    fn is_written(&self, point: &TunePoint, end: SearchEnd) -> bool {
        if end == SearchEnd::Interrupted {
            return true;
        }
        let own = self.asked.output.iter().cloned();
        let own = own.map(|file| (file, self.trials.settings_text(point)));
        let server = server_output(self.asked).map(|file| (file, self.trials.server_text(point)));
        let mut is_written = true;
        for (file, text) in own.chain(server) {
            let written = text.and_then(|text| output::write_file(&file, text));
            is_written &= written.map_err(|message| output::error(&message)).is_ok();
        }
        is_written
    }
}

/// True if a figure of the other side is surely better, and none is worse.
fn has_gained(comparison: &Comparison, job: Option<&str>) -> bool {
    let jobs = comparison.pairs.iter().flat_map(|pair| &pair.jobs);
    let verdicts: Vec<&Verdict> = jobs
        .filter(|of| job.is_none_or(|job| of.name == job))
        .flat_map(|job| &job.metrics)
        .map(|metric| &metric.verdict)
        .collect();
    verdicts.contains(&&Verdict::Better) && !verdicts.contains(&&Verdict::Worse)
}

/// The file that gets the server's configuration.
fn server_output(asked: &Tune) -> Option<String> {
    let server = asked.server.as_ref()?;
    Some(format!("{}.out", server.config))
}

/// The server's configuration, where a command starts the server of each trial.
fn server_config(
    asked: &Tune,
    config: Option<&ConfigText>,
) -> Result<Option<ServerConfig>, Refusal> {
    let (Some(server), Some(config)) = (&asked.server, config) else {
        return Ok(None);
    };
    let path = &server.config;
    let usage = |why: String| Refusal::usage(format!("{path}: {why}"));
    let text = output::read_text(path, LONGEST).map_err(usage)?;
    let read = ServerConfig::of(&text, config, asked.has_layouts);
    read.map(Some).map_err(usage)
}

fn read_config(path: &str) -> Result<ConfigText, Refusal> {
    let text = output::read_text(path, LONGEST);
    let text = text.map_err(|why| Refusal::usage(format!("{path}: {why}")))?;
    if text.trim().is_empty() {
        return Err(Refusal::usage(format!("{path}: it is empty")));
    }
    ConfigText::read(&text).map_err(|why| Refusal::usage(format!("{path}:{why}")))
}

/// The keys of the configuration that vary, each beginning with its value there.
fn varied_keys(
    asked: &Tune,
    config: Option<&ConfigText>,
) -> Result<Vec<weir_diagnose::tune::TuneDimension>, Refusal> {
    let (Some(config), Some(path)) = (config, &asked.config) else {
        return Ok(Vec::new());
    };
    let mut dimensions = asked.vary.clone();
    for dimension in &mut dimensions {
        let key = &dimension.name;
        if asked.has_layouts && key == LAYOUT {
            continue;
        }
        let value = config
            .value(key)
            .map_err(|why| Refusal::usage(format!("{path}:{why}")))?;
        let Some((value, _)) = value else {
            let near = nearest(key, config.keys());
            let help = near.map_or_else(
                || "add it with the value that the search begins with".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Refusal::usage(format!(
                "--vary {key}: {path} has no such key\n  help: {help}"
            )));
        };
        let value = value.to_owned();
        dimension.begin_with(&value);
    }
    Ok(dimensions)
}

/// Files that are written replace nothing that is read.
fn check_files(asked: &Tune) -> Result<(), Refusal> {
    let server_output = server_output(asked);
    let written = [
        ("--output", &asked.output),
        ("--server-config", &server_output),
        ("--trail", &asked.trail),
    ];
    let mut known: Vec<(&str, &String)> = asked.config.iter().map(|c| ("--config", c)).collect();
    let server = asked.server.as_ref();
    known.extend(server.map(|server| ("--server-config", &server.config)));
    for (flag, file) in written {
        let Some(file) = file else {
            continue;
        };
        if let Some((other, _)) = known.iter().find(|(_, path)| output::are_same(path, file)) {
            return Err(Refusal::usage(format!(
                "{flag} {file}: that is the file of {other}\n  help: name another file"
            )));
        }
        if flag != "--trail" {
            output::check_writable(file).map_err(|message| Refusal::new(USAGE, message))?;
        }
        known.push((flag, file));
    }
    Ok(())
}
