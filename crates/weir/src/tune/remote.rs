//! The server's side of trials, which a daemon on another machine runs.
//!
//! In: the settings of a trial. Out: how the server's side ended; this side is ended with it where it cannot go on
//! alone. Not here: the connection (`weir-datapath`), this side's process (`trial`).

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Pid;
use weir_datapath::remote::{TrialEnd, TrialServer, TrialSettings};
use weir_diagnose::ConfigText;
use weir_doors::Refusal;
use weir_doors::tune::{RemoteBounds, Tune, daemon_of};
use weir_run::execute::Signals;
use weir_schema::Failure;
use weir_sys::token::Token;

use super::VERB;
use crate::stopping::StoppedProcess;

/// The key of the port at which the two sides meet.
const PORT: &str = "mgmt_port";

/// A daemon and its present trial.
pub(super) struct RemoteTrials {
    server: TrialServer,
    /// How the server's side ended before this one did.
    ended: Option<Result<TrialEnd, Failure>>,
    /// This side, once it was asked to end for that.
    stopped: Option<StoppedProcess>,
}

/// Whether the server's side is why a trial failed. What a search has ended itself is not.
pub(super) fn fails(end: &TrialEnd) -> bool {
    end.code != 0 && !end.why.is_empty()
}

impl RemoteTrials {
    /// The daemon that a search asks for, where it does.
    ///
    /// # Errors
    /// It cannot be called, does not serve this search, or its workspaces do not allow what is searched.
    pub(super) fn of(
        asked: &Tune,
        config: Option<&ConfigText>,
        caught: &Signals,
    ) -> Result<Option<Self>, Refusal> {
        let (Some(file), Some(config)) = (&asked.daemon, config) else {
            return Ok(None);
        };
        let path = asked.config.as_deref().unwrap_or_default();
        let usage = |why: String| Refusal::usage(format!("{path}: {why}"));
        let token = Token::read(Path::new(file));
        let token = token.map_err(|why| Refusal::usage(format!("--token-file: {why}")))?;
        let at = SocketAddr::from(daemon_of(config).map_err(usage)?);
        let server = TrialServer::call(at, &token, &|| caught.interrupted());
        let server = server.map_err(|why| refusal(&why))?;
        if asked.has_layouts {
            let own = RemoteBounds::of(&config.text())
                .map_err(usage)?
                .workspaces();
            let there = &server.facts().workspaces;
            if own != *there {
                return Err(Refusal::usage(format!(
                    "--layouts: the workspaces of workloads are {own:?} here and {there:?} at the server\n  help: list \
                     the same on both sides, or leave --layouts out"
                )));
            }
        }
        Ok(Some(Self {
            server,
            ended: None,
            stopped: None,
        }))
    }

    /// Begins the server's side of a trial.
    pub(super) fn begin(&mut self, values: &[(&str, &str)]) -> Result<(), Refusal> {
        self.ended = None;
        self.stopped = None;
        self.server
            .begin(settings(values))
            .map_err(|why| refusal(&why))
    }

    /// Looks how the server's side is; ends this one where that has failed.
    pub(super) fn look(&mut self, client: Pid) {
        if let Some(stopped) = &mut self.stopped {
            stopped.look();
        }
        if self.ended.is_some() {
            return;
        }
        self.ended = self.server.ended().transpose();
        let is_lost = match &self.ended {
            Some(Ok(end)) => fails(end),
            Some(Err(_)) => true,
            None => false,
        };
        if is_lost {
            self.stopped = Some(StoppedProcess::ask(client));
        }
    }

    /// How the server's side of the trial ended, now that this side has.
    pub(super) fn end(&mut self, has_succeeded: bool) -> Result<TrialEnd, Refusal> {
        let ended = self.ended.take().unwrap_or_else(|| {
            if !has_succeeded {
                self.server.stop()?;
            }
            self.server.wait_for_end(&|| false)
        });
        ended.map_err(|why| refusal(&why))
    }

    /// A configuration in which the sides of a trial meet where the daemon says it.
    pub(super) fn with_port(&self, text: &str) -> Result<String, String> {
        let mut config = ConfigText::read(text).map_err(|why| why.to_string())?;
        let port = self.server.facts().port.to_string();
        if !config.set(PORT, &port).map_err(|why| why.to_string())? {
            config.add(PORT, &port);
        }
        Ok(config.text())
    }

    /// Has the daemon write its configuration with these settings; the file.
    pub(super) fn keep(&mut self, values: &[(&str, &str)]) -> Result<String, String> {
        let kept = self.server.keep(settings(values), &|| false);
        kept.map_err(|why| format!("error: {VERB}: {}\n", why.message))
    }
}

fn settings(values: &[(&str, &str)]) -> TrialSettings {
    let owned = values.iter();
    owned
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn refusal(why: &Failure) -> Refusal {
    let message = weir_report::clean(&why.message, false);
    if why.cause == "missing" {
        return Refusal::lacks(format!("--daemon: {message}"));
    }
    let help = "with --trail the same command continues the search once the daemon is there";
    Refusal::new(
        1,
        format!("error: {VERB}: --daemon: {message}\n  help: {help}\n"),
    )
}
