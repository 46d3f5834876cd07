//! The search's end: a server on another machine, trial after trial.
//!
//! In: where its daemon is called, the token. Out: a [`TrialServer`], which carries out one trial at a time.
//! What comes is looked at before it is believed. Not here: the search, the client's side of a trial.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weir_run::failure;
use weir_schema::Failure;
use weir_sys::token::{Token, nonce, same};

use super::line::{
    PathFacts, SINGLE_SERVER, TrialEnd, TrialReply, TrialRequest, TrialSettings, read_reply,
};
use super::{FORM, ProofEnd, proof};
use crate::peer::{LineStream, VERSION};

/// How long a call may take.
const CALL: Duration = Duration::from_secs(5);
/// How long the daemon may take for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// Between looks whether it has come.
const PAUSE: Duration = Duration::from_millis(2);
/// Bytes of a line.
const LONGEST: usize = 1 << 16;

/// A daemon that serves this search.
#[derive(Debug)]
pub struct TrialServer {
    lines: LineStream,
    facts: PathFacts,
    /// A trial was asked for whose end has not come.
    has_trial: bool,
}

impl TrialServer {
    /// Calls a daemon, once.
    ///
    /// # Errors
    /// Nobody is there (`missing`); it has another token, or serves another search (`peer`).
    pub fn call(
        at: SocketAddr,
        token: &Token,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Self, Failure> {
        let stream = TcpStream::connect_timeout(&at, CALL);
        let lines = stream.and_then(|stream| LineStream::of(stream, LONGEST));
        let lines = lines.map_err(|why| {
            let text = format!(
                "no daemon at {at}: {why}; start `weir axio --server --daemon` there, with `local_ip` and \
                 `mgmt_port` that are `remote_ip` and `mgmt_port` here"
            );
            failure("missing", why.raw_os_error(), text)
        })?;
        let mut server = Self {
            lines,
            facts: PathFacts::default(),
            has_trial: false,
        };
        let mine = nonce();
        server.lines.say(&TrialRequest::Search {
            form: FORM,
            packets: VERSION,
            nonce: mine,
        })?;
        let theirs = match server.wait(is_over)? {
            TrialReply::Daemon {
                form: FORM,
                packets: VERSION,
                nonce,
            } => nonce,
            TrialReply::Daemon { form, packets, .. } => {
                return Err(server.wrong(&format!(
                    "its lines and packets have forms {form} and {packets}, those here {FORM} and {VERSION}: run \
                     the same version on both machines"
                )));
            }
            _ => return Err(server.wrong("is no daemon of weir axio")),
        };
        let own = proof(token, &mine, &theirs, ProofEnd::Search);
        server.lines.say(&TrialRequest::Proof(own))?;
        let TrialReply::Accepted { proof: said, facts } = server.wait(is_over)? else {
            return Err(server.wrong("speaks otherwise"));
        };
        if !same(&proof(token, &mine, &theirs, ProofEnd::Daemon), &said) {
            return Err(server.wrong("it does not know the token"));
        }
        server.facts = facts;
        Ok(server)
    }

    /// What is to be known of the server's side.
    pub fn facts(&self) -> &PathFacts {
        &self.facts
    }

    /// Begins a trial.
    ///
    /// # Errors
    /// The daemon is lost.
    pub fn begin(&mut self, settings: TrialSettings) -> Result<(), Failure> {
        self.lines.say(&TrialRequest::Trial(settings))?;
        self.has_trial = true;
        Ok(())
    }

    /// How the trial ended, once it has.
    ///
    /// # Errors
    /// The daemon is lost, or ends.
    pub fn ended(&mut self) -> Result<Option<TrialEnd>, Failure> {
        match self.hear()? {
            None => Ok(None),
            Some(TrialReply::Ended(end)) if self.has_trial => {
                self.has_trial = false;
                Ok(Some(end))
            }
            Some(_) => Err(self.wrong("speaks otherwise")),
        }
    }

    /// Waits until the trial has ended, for as long as an answer may take.
    ///
    /// # Errors
    /// As [`TrialServer::ended`], or it does not end.
    pub fn wait_for_end(&mut self, is_over: &dyn Fn() -> bool) -> Result<TrialEnd, Failure> {
        let start = Instant::now();
        loop {
            if let Some(end) = self.ended()? {
                return Ok(end);
            }
            if start.elapsed() > ANSWER || is_over() {
                return Err(self.wrong("does not end the trial"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends a trial whose other side has ended.
    ///
    /// # Errors
    /// The daemon is lost.
    pub fn stop(&mut self) -> Result<(), Failure> {
        self.lines.say(&TrialRequest::Stop)
    }

    /// Has the daemon write its configuration with these settings; the file, on its machine.
    ///
    /// # Errors
    /// It could not be written, or the daemon is lost.
    pub fn keep(
        &mut self,
        settings: TrialSettings,
        is_over: &dyn Fn() -> bool,
    ) -> Result<String, Failure> {
        self.lines.say(&TrialRequest::Keep(settings))?;
        match self.wait(is_over)? {
            TrialReply::Kept(file) => Ok(file),
            TrialReply::NotKept(why) => Err(self.wrong(&why)),
            _ => Err(self.wrong("speaks otherwise")),
        }
    }

    fn wrong(&self, why: &str) -> Failure {
        failure("peer", None, format!("{}: {why}", self.lines.name()))
    }

    fn hear(&mut self) -> Result<Option<TrialReply>, Failure> {
        let Some(said) = self.lines.hear_bytes()? else {
            return Ok(None);
        };
        match read_reply(&said) {
            Ok(TrialReply::Refused(why)) if why == SINGLE_SERVER => {
                let text = format!(
                    "no daemon at {}: {why}; start it with `--daemon`",
                    self.lines.name()
                );
                Err(failure("missing", None, text))
            }
            Ok(TrialReply::Refused(why)) => Err(self.wrong(&format!("it does not serve: {why}"))),
            Ok(reply) => Ok(Some(reply)),
            Err(why) => Err(self.wrong(&format!("speaks otherwise: {why}"))),
        }
    }

    fn wait(&mut self, is_over: &dyn Fn() -> bool) -> Result<TrialReply, Failure> {
        let start = Instant::now();
        loop {
            if let Some(reply) = self.hear()? {
                return Ok(reply);
            }
            if start.elapsed() > ANSWER || is_over() {
                return Err(self.wrong("says nothing"));
            }
            std::thread::sleep(PAUSE);
        }
    }
}
