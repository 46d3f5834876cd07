//! One trial: the command with the settings of a point, in a process of its own.
//!
//! In: the command's template, a configuration of which single keys vary, a point. Out: the figure with the
//! whole result, or why there is none. The configuration that the user named is never changed: the command
//! gets a copy. Not here: which point.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Pid;
use weir_compare::{FigureError, one_figure};
use weir_diagnose::ConfigText;
use weir_diagnose::tune::TuneSpace;
use weir_doors::Refusal;
use weir_doors::flags::nearest;
use weir_doors::tune::{CONFIG, LAYOUT, ServerConfig, Tune, TuneLimit};
use weir_report::clean;
use weir_schema::{Better, Metric, RunResult};

use super::server::ServerProcess;
use crate::printed;
use crate::progress::TurnProgress;
use crate::stopping::StoppedProcess;
use crate::turns::{STARTED_BY, Turns, wait};

/// Most characters shown of the end of a failed command's output.
const MOST_SHOWN: usize = 300;
const SLO: &str = "--slo";
/// Begin of the reason for which a command could not print, as on a full disk.
const UNWRITTEN: &str = "standard output: ";

/// Outcome of a trial.
pub(super) enum Measured {
    /// The figure, and the result that it is from.
    Figure {
        metric: Metric,
        result: Box<RunResult>,
    },
    /// The settings do not work.
    Failed { why: String, code: u8 },
}

/// Trials of a search, with all they need.
pub(super) struct Trials<'a> {
    asked: &'a Tune,
    space: &'a TuneSpace,
    config: Option<&'a ConfigText>,
    turns: &'a Turns<'a>,
    /// The server's configuration, where that is a program of its own.
    server: Option<ServerConfig>,
    /// Standard output of the next trial, where it is kept.
    pub(super) log: Option<File>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(
        asked: &'a Tune,
        space: &'a TuneSpace,
        config: Option<&'a ConfigText>,
        turns: &'a Turns<'a>,
        server: Option<ServerConfig>,
    ) -> Self {
        Self {
            asked,
            space,
            config,
            turns,
            server,
            log: None,
        }
    }

    /// Says that a trial of a packet path begins, with what the user wants to see of its configuration, and opens
    /// its log in this folder, which the older tool's name for it leads to too.
    pub(super) fn begin_log(
        &mut self,
        point: &[usize],
        (folder, number): (&str, usize),
    ) -> Result<(), Refusal> {
        let lacks = |why: std::io::Error| self.turns.lacks(format!("{folder}: {why}"));
        let mut shown = format!("==========Current iteration: {number}==========\n");
        let config = self.write_config(point)?;
        if !self.asked.looks.is_empty() {
            let mut look = Command::new(std::env::current_exe().map_err(lacks)?);
            look.args(["axio", "tools", "-c"]).arg(&config);
            let said = look.args(&self.asked.looks).output().map_err(lacks)?;
            let text = [said.stdout, said.stderr].concat();
            shown += &self.named(&String::from_utf8_lossy(&text), &config);
        }
        if !self.asked.as_json {
            printed(&shown);
        }
        let name = format!("axio_iter_{number}.log");
        fs::create_dir_all(folder).map_err(lacks)?;
        let link = Path::new(folder).join(format!("axio-emulator_iter_{number}.log"));
        // That of a search before.
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&name, link).map_err(lacks)?;
        self.log = Some(File::create(Path::new(folder).join(name)).map_err(lacks)?);
        Ok(())
    }

    /// Writes the configuration of a point, where one varies: its file.
    fn write_config(&self, point: &[usize]) -> Result<PathBuf, Refusal> {
        let config = self.turns.scratch_file("config");
        if self.config.is_some() {
            let text = self.config_text(point);
            let text = text.map_err(|why| self.turns.lacks(why))?;
            fs::write(&config, text).map_err(|e| self.turns.lacks(e))?;
        }
        Ok(config)
    }

    /// Makes a trial of a point.
    ///
    /// # Errors
    /// This machine lacks something, or the command does not have the figure.
    pub(super) fn measured(
        &self,
        point: &[usize],
        label: &str,
        progress: &mut TurnProgress,
    ) -> Result<Measured, Refusal> {
        let config = self.write_config(point)?;
        let (stored, errors) = (
            self.turns.scratch_file("result.json"),
            self.turns.scratch_file("stderr"),
        );
        // That of the trial before.
        let _ = fs::remove_file(&stored);
        let mut command = self.command(&self.words(point, &config), &stored)?;
        let file = File::create(&errors).map_err(|e| self.turns.lacks(e))?;
        let server = self.start_server(point, label, progress)?;
        let mut server = match server.transpose() {
            Ok(server) => server,
            Err(why) => return Ok(failed_server(&why)),
        };
        let child = command
            .stderr(file)
            .spawn()
            .map_err(|e| self.turns.lacks(e))?;
        let process = Pid::from_child(&child);
        let mut stopped: Option<StoppedProcess> = None;
        let look = || {
            progress.look(label);
            let is_lost = server.as_mut().is_some_and(ServerProcess::has_failed);
            match &mut stopped {
                Some(stopped) => stopped.look(),
                None if is_lost => stopped = Some(StoppedProcess::ask(process)),
                None => {}
            }
        };
        let status = wait(child, self.turns.caught, look).map_err(|e| self.turns.lacks(e))?;
        let server_failure = server.and_then(|mut server| {
            if status.success() {
                // It writes its own tables.
                server.await_end();
            }
            server.end()
        });
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        let text = fs::read_to_string(&stored).ok();
        let result = text.and_then(|text| RunResult::from_json(&text).ok());
        match result {
            Some(result) if status.success() && result.complete => self.figure(result),
            _ if self.log.is_some() && shown_of(&errors).contains(UNWRITTEN) => Err(self
                .turns
                .lacks(format!("the trial's log{}", shown_of(&errors)))),
            _ => Ok(match server_failure {
                Some(why) => failed_server(&why),
                None => Measured::Failed {
                    why: format!("{status}{}", self.named(&shown_of(&errors), &config)),
                    code: code.unwrap_or(1),
                },
            }),
        }
    }

    /// Starts the server of a trial, where a command does, and waits until it listens; why it does not.
    fn start_server(
        &self,
        point: &[usize],
        label: &str,
        progress: &mut TurnProgress,
    ) -> Result<Option<Result<ServerProcess, String>>, Refusal> {
        let (Some(asked), Some(config)) = (&self.asked.server, &self.server) else {
            return Ok(None);
        };
        let text = config.with(&self.space.values(point));
        let text = text.map_err(|why| Refusal::usage(format!("{}: {why}", asked.config)))?;
        let errors = self.turns.scratch_file("server-stderr");
        let started = ServerProcess::start(asked, text, errors);
        let (mut server, ready) = started.map_err(|e| self.turns.lacks(e))?;
        let waited = server.await_ready(&ready, (asked, self.turns.caught), || {
            progress.look(label);
        });
        Ok(Some(waited.map(|()| server)))
    }

    /// The program with the arguments of a trial, which stores its result.
    fn command(&self, words: &[String], stored: &Path) -> Result<Command, Refusal> {
        let program = std::env::current_exe().map_err(|e| self.turns.lacks(e))?;
        let (verb, others) = words.split_at(1);
        let mut command = Command::new(program);
        command
            .args(verb)
            .arg(format!("--store-result={}", stored.display()))
            .args(others)
            .env("WEIR_HISTORY", "off")
            .env(STARTED_BY, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(match &self.log {
                Some(log) => log.try_clone().map_err(|e| self.turns.lacks(e))?.into(),
                None => Stdio::null(),
            });
        if self.log.is_some() {
            command.arg("--voice=peer");
        }
        Ok(command)
    }

    fn figure(&self, result: RunResult) -> Result<Measured, Refusal> {
        match one_figure(&result, self.asked.job.as_deref(), &self.asked.metric) {
            Ok(metric) if metric.value.is_finite() => match self.missed(&result)? {
                Some(why) => Ok(Measured::Failed { why, code: 1 }),
                None => Ok(Measured::Figure {
                    metric,
                    result: Box::new(result),
                }),
            },
            Ok(metric) => Ok(Measured::Failed {
                why: format!("{} is {}", metric.name, metric.value),
                code: 1,
            }),
            Err(why) => Err(refused_figure("--metric", &why)),
        }
    }

    /// The first limit that a result does not keep, with the figure.
    fn missed(&self, result: &RunResult) -> Result<Option<String>, Refusal> {
        for limit in &self.asked.slo {
            let found = one_figure(result, self.asked.job.as_deref(), &limit.figure);
            let found = found.map_err(|why| refused_figure(SLO, &why))?;
            let (value, unit) = (found.value, format!(" {}", found.unit));
            let unit = unit.trim_end();
            let (keeps, side) = match found.better {
                Better::Lower => (value <= limit.value, "above"),
                Better::Higher => (value >= limit.value, "below"),
            };
            if !keeps {
                let TuneLimit { figure, text, .. } = limit;
                return Ok(Some(format!(
                    "--slo {figure}={text}: {value}{unit} is {side} it"
                )));
            }
        }
        Ok(None)
    }

    /// Output of a command, with the user's name for the configuration.
    fn named(&self, shown: &str, config: &Path) -> String {
        let copy = config.display().to_string();
        match &self.asked.config {
            Some(own) => shown.replace(&copy, own),
            None => shown.to_owned(),
        }
    }

    /// Arguments of a point; `config` is the file of a configuration that varies.
    fn words(&self, point: &[usize], config: &Path) -> Vec<String> {
        let values = self.space.values(point);
        self.asked.template.words(|name| {
            let value = values.iter().find(|(of, _)| *of == name);
            match value {
                Some((_, value)) => (*value).to_owned(),
                None if name == CONFIG => config.display().to_string(),
                None => String::new(),
            }
        })
    }

    /// The configuration with the values of a point.
    fn config_text(&self, point: &[usize]) -> Result<String, String> {
        let Some(config) = self.config else {
            return Ok(String::new());
        };
        let mut config = config.clone();
        let values = self.space.values(point);
        for layout in &self.asked.layouts {
            if values.contains(&(LAYOUT, layout.name.as_str())) {
                layout.apply(&mut config)?;
            }
        }
        for dimension in &self.asked.vary {
            if self.asked.has_layouts && dimension.name == LAYOUT {
                continue;
            }
            let value = values.iter().find(|(name, _)| *name == dimension.name);
            if let Some((name, value)) = value {
                config.set(name, value).map_err(|e| e.to_string())?;
            }
        }
        Ok(config.text())
    }

    /// The server's configuration with the settings of a point.
    ///
    /// # Errors
    /// It has a key twice.
    pub(super) fn server_text(&self, point: &[usize]) -> Result<String, String> {
        let server = self.server.as_ref();
        server.map_or_else(
            || Ok(String::new()),
            |server| server.with(&self.space.values(point)),
        )
    }

    /// Text of the settings of a point: the configuration with them, else the command.
    ///
    /// # Errors
    /// The configuration has a key twice.
    pub(super) fn settings_text(&self, point: &[usize]) -> Result<String, String> {
        if self.config.is_some() {
            return self.config_text(point);
        }
        Ok(format!(
            "weir {}\n",
            self.command_line(point, Path::new(""))
        ))
    }

    fn command_line(&self, point: &[usize], config: &Path) -> String {
        let words = self.words(point, config);
        let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        quoted.join(" ")
    }
}

/// A trial whose server did not start, or failed.
fn failed_server(why: &str) -> Measured {
    Measured::Failed {
        why: format!("at the server: {}", clean(why, false)),
        code: 1,
    }
}

/// An argument quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn refused_figure(figure_flag: &'static str, why: &FigureError) -> Refusal {
    let near = |name: &str, known: &[String]| {
        let near = nearest(name, known.iter().map(String::as_str));
        near.map_or_else(
            || format!("there are {}", known.join(", ")),
            |near| format!("did you mean `{near}`?"),
        )
    };
    let (flag, help) = match why {
        FigureError::Unknown { name, known } => (figure_flag, near(name, known)),
        FigureError::UnknownJob { name, known } => ("--job", near(name, known)),
        FigureError::Kinds { .. } => (figure_flag, "name one of them".to_owned()),
        FigureError::Jobs { jobs, .. } => {
            let first = jobs.first().map_or("", String::as_str);
            (figure_flag, format!("name one job, as --job={first}"))
        }
    };
    Refusal::usage(format!("{flag}: {why}\n  help: {help}"))
}

/// The end of a command's standard error.
pub(super) fn shown_of(file: &Path) -> String {
    let bytes = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    // The first line of an error says what is wrong.
    let error = lines.iter().position(|line| line.starts_with("error"));
    let from = error.unwrap_or(lines.len().saturating_sub(1));
    let shown = lines.get(from..).unwrap_or_default().join("; ");
    let shown: String = shown.chars().take(MOST_SHOWN).collect();
    if shown.is_empty() {
        shown
    } else {
        format!(": {shown}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("--set=bs=4k"), "--set=bs=4k");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
