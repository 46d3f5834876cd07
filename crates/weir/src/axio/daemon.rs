//! `weir axio --server --daemon`: the server's side of trials, for one search after the other.
//!
//! In: the configuration of the side, the token. Out: for each trial a run of `weir axio --server` in a process of
//! its own, with what the search may set; the exit code, once a signal has ended the daemon. A search that is gone
//! ends its trial. Not here: the connection (`weir-datapath`), what may be set (`weir-doors`).

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Pid;
use weir_datapath::remote::{
    PathFacts, TrialEnd, TrialEvent, TrialListener, TrialReply, TrialRequest, TrialSettings,
    trial_port,
};
use weir_doors::Refusal;
use weir_doors::axio::AxioDaemon;
use weir_doors::tune::RemoteBounds;
use weir_run::execute::Signals;
use weir_schema::{Failure, RunResult};
use weir_sys::token::Token;

use crate::scratch::Scratch;
use crate::stopping::StoppedProcess;
use crate::tune::{path_verdict, shown_of};
use crate::turns::STARTED_BY;
use crate::{Outcome, output, printed, signals};

/// Between looks.
const LOOK: Duration = Duration::from_millis(5);
/// Signals that end a trial whatever it does.
const MOST_SIGNALS: u32 = 2;

/// Serves searches until a signal comes.
pub(super) fn run(asked: &AxioDaemon) -> Outcome {
    signals::claim()?;
    let caught = signals::catch(None, None)?;
    let token = Token::read(Path::new(&asked.token_file));
    let token = token.map_err(|why| Refusal::usage(format!("--token-file: {why}")))?;
    let bounds = RemoteBounds::of(&asked.text);
    let bounds = bounds.map_err(|why| Refusal::usage(format!("{}:{why}", asked.config)))?;
    let facts = PathFacts {
        port: trial_port(asked.port).unwrap_or_default(),
        workspaces: bounds.workspaces(),
    };
    let scratch = Scratch::new("daemon");
    let scratch = scratch.map_err(|why| Refusal::lacks(format!("--daemon: no room: {why}")))?;
    let port = facts.port;
    let at = SocketAddr::from((asked.address, asked.port));
    let listener = TrialListener::open(at, token, facts).map_err(|why| lacks(&why))?;
    if printed(&format!("READY {at}\n")) != 0 {
        return Ok(1);
    }
    let daemon = Daemon {
        asked,
        bounds,
        port,
        scratch,
        listener,
        caught: &caught,
        trial: None,
    };
    daemon.serve()
}

struct Daemon<'a> {
    asked: &'a AxioDaemon,
    bounds: RemoteBounds,
    /// Where the sides of a trial meet.
    port: u16,
    scratch: Scratch,
    listener: TrialListener,
    caught: &'a Signals,
    trial: Option<Trial>,
}

/// A server that runs.
struct Trial {
    child: Child,
    /// Its search has ended it, or is gone.
    stopped: Option<StoppedProcess>,
}

impl Daemon<'_> {
    fn serve(mut self) -> Outcome {
        loop {
            self.look_at_trial();
            if self.caught.interrupted() {
                let signals = self
                    .caught
                    .interruptions
                    .load(std::sync::atomic::Ordering::Relaxed);
                if signals >= MOST_SIGNALS {
                    self.stop_trial();
                }
                if self.trial.is_none() {
                    self.listener
                        .reply(TrialReply::Refused("the daemon was ended".to_owned()));
                    return Ok(0);
                }
            }
            match self.listener.next_event().map_err(|why| lacks(&why))? {
                Some(event) => self.handle(event),
                None => thread::sleep(LOOK),
            }
        }
    }

    fn handle(&mut self, event: TrialEvent) {
        match event {
            TrialEvent::LetGo { name, why } => note(&format!("{name} was let go: {why}")),
            TrialEvent::Begun { name } => note(&format!("the search from {name} begins")),
            TrialEvent::Over { name, why } => {
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                note(&format!("the search from {name} is over{why}"));
                self.stop_trial();
            }
            TrialEvent::Asked(TrialRequest::Stop) => self.stop_trial(),
            TrialEvent::Asked(TrialRequest::Trial(settings)) => {
                if let Err(why) = self.begin(&settings) {
                    let code = 1;
                    self.listener.reply(TrialReply::Ended(TrialEnd {
                        code,
                        why,
                        ..TrialEnd::default()
                    }));
                }
            }
            TrialEvent::Asked(TrialRequest::Keep(settings)) => {
                let reply = match self.keep(&settings) {
                    Ok(file) => TrialReply::Kept(file),
                    Err(why) => TrialReply::NotKept(why),
                };
                self.listener.reply(reply);
            }
            TrialEvent::Asked(TrialRequest::Search { .. } | TrialRequest::Proof(_)) => {
                self.listener.end(Some("it greets twice".to_owned()));
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Starts the server of a trial.
    fn begin(&mut self, settings: &TrialSettings) -> Result<(), String> {
        if self.trial.is_some() {
            return Err("the trial before has not ended".to_owned());
        }
        let config = self.bounds.with(settings)?;
        let (copy, stored) = (self.file("config"), self.file("result.json"));
        fs::write(&copy, config.text()).map_err(|why| why.to_string())?;
        // That of the trial before.
        let _ = fs::remove_file(&stored);
        let errors = File::create(self.file("stderr")).map_err(|why| why.to_string())?;
        let program = std::env::current_exe().map_err(|why| why.to_string())?;
        let child = Command::new(program)
            .args(["axio", "--server", "-c"])
            .arg(&copy)
            .arg(format!("--set=mgmt_port={}", self.port))
            .arg(format!("--store-result={}", stored.display()))
            .env("WEIR_HISTORY", "off")
            .env(STARTED_BY, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|why| why.to_string())?;
        self.trial = Some(Trial {
            child,
            stopped: None,
        });
        Ok(())
    }

    /// Says how the trial ended, once it has.
    fn look_at_trial(&mut self) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        let status = match trial.child.try_wait() {
            Ok(None) => {
                if let Some(stopped) = &mut trial.stopped {
                    stopped.look();
                }
                return;
            }
            Ok(Some(status)) => Ok(status),
            Err(why) => Err(why.to_string()),
        };
        let stopped = trial.stopped.take();
        self.trial = None;
        let (code, how) = match status {
            Ok(status) if status.success() => (0, None),
            Ok(status) => {
                let code = status.code().and_then(|code| u8::try_from(code).ok());
                (code.unwrap_or(1), Some(status.to_string()))
            }
            Err(why) => (1, Some(why)),
        };
        let text = fs::read_to_string(self.file("result.json")).ok();
        let result = text.and_then(|text| RunResult::from_json(&text).ok());
        let found = result.and_then(|result| path_verdict::diagnosis(&result));
        let (verdict, critical) = found.map_or((None, None), |of| (of.verdict, of.critical));
        let copy = self.file("config").display().to_string();
        let why = match (&stopped, how) {
            (Some(stopped), _) => stopped.reason().unwrap_or_default(),
            (None, None) => String::new(),
            (None, Some(how)) => {
                let shown = shown_of(&self.file("stderr"));
                format!("{how}{}", shown.replace(&copy, &self.asked.config))
            }
        };
        self.listener.reply(TrialReply::Ended(TrialEnd {
            code,
            why,
            verdict,
            critical,
        }));
    }

    /// Ends the trial, where there is one.
    fn stop_trial(&mut self) {
        if let Some(trial) = self.trial.as_mut().filter(|one| one.stopped.is_none()) {
            trial.stopped = Some(StoppedProcess::ask(Pid::from_child(&trial.child)));
        }
    }

    /// Writes the configuration with these settings beside the one that there is.
    fn keep(&self, settings: &TrialSettings) -> Result<String, String> {
        let config = self.bounds.with(settings)?;
        let file = format!("{}.out", self.asked.config);
        output::write_file(&file, config.text())?;
        Ok(file)
    }
}

fn note(text: &str) {
    let text = weir_report::clean(text, false);
    output::error(&format!("note: {text}\n"));
}

fn lacks(why: &Failure) -> Refusal {
    Refusal::lacks(why.message.clone())
}
