//! The daemon's end: who calls, who knows the token, which one search is served.
//!
//! In: connections. Out: a [`TrialEvent`] at a time. A caller that is no search, that has another token or that comes
//! while another search is served hears why and is let go; none of them keeps another waiting. Nothing here
//! waits. Not here: what is done for the search.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use weir_schema::Failure;
use weir_sys::token::{Token, nonce, same};

use super::line::{PathFacts, TrialReply, TrialRequest, begins_with, cut, read_request};
use super::{FORM, ProofEnd, proof};
use crate::peer::{LineStream, PeerLine, VERSION, listen_at, next_caller};

/// How long a caller may take to show that it knows the token.
const GREETING: Duration = Duration::from_secs(5);
/// Bytes of a line until then: a client of a single run, which is told what this is, says all that it is to do.
const LONGEST_GREETING: usize = 1 << 16;
/// Bytes of a line of a search.
const LONGEST: usize = 1 << 16;
/// What a client of a single run hears.
const IS_DAEMON: &str = "it is a daemon of weir axio, for searches of `weir tune --daemon`; start `weir axio --server` there \
                         without `--daemon`";
/// Callers that may be about to greet.
const MOST_CALLERS: usize = 64;

/// What has happened.
#[derive(Debug)]
pub enum TrialEvent {
    /// A caller was let go.
    LetGo {
        /// Its address.
        name: String,
        /// Why.
        why: String,
    },
    /// A search is served from now on.
    Begun {
        /// Its address.
        name: String,
    },
    /// It asks for something.
    Asked(TrialRequest),
    /// It is served no longer.
    Over {
        /// Its address.
        name: String,
        /// Why, where it did not just end.
        why: Option<String>,
    },
}

/// Waits for searches.
#[derive(Debug)]
pub struct TrialListener {
    listener: TcpListener,
    token: Token,
    facts: PathFacts,
    callers: Vec<Caller>,
    session: Option<LineStream>,
    events: VecDeque<TrialEvent>,
}

/// Somebody of whom it is not known yet whether it knows the token.
#[derive(Debug)]
struct Caller {
    lines: LineStream,
    since: Instant,
    /// Its nonce and the daemon's, once it has greeted.
    nonces: Option<[[u8; 16]; 2]>,
}

impl TrialListener {
    /// Listens at an address.
    ///
    /// # Errors
    /// The machine has no such address, or somebody else has the port: `missing`.
    pub fn open(at: SocketAddr, token: Token, facts: PathFacts) -> Result<Self, Failure> {
        Ok(Self {
            listener: listen_at(at)?,
            token,
            facts,
            callers: Vec::new(),
            session: None,
            events: VecDeque::new(),
        })
    }

    /// Looks who has called or said something; what has happened, if anything.
    ///
    /// # Errors
    /// Nobody can call any more.
    pub fn next_event(&mut self) -> Result<Option<TrialEvent>, Failure> {
        if self.events.is_empty() {
            self.take_callers()?;
            self.hear_callers();
            self.hear_session();
        }
        Ok(self.events.pop_front())
    }

    /// Answers the search that is served.
    pub fn reply(&mut self, reply: TrialReply) {
        let reply = match reply {
            TrialReply::Refused(why) => TrialReply::Refused(cut(why)),
            TrialReply::NotKept(why) => TrialReply::NotKept(cut(why)),
            TrialReply::Ended(mut end) => {
                end.why = cut(end.why);
                TrialReply::Ended(end)
            }
            other => other,
        };
        if let Some(session) = &mut self.session
            && let Err(why) = session.say(&reply)
        {
            self.end(Some(why.message));
        }
    }

    /// Lets the search go that is served.
    pub fn end(&mut self, why: Option<String>) {
        if let Some(session) = self.session.take() {
            let name = session.name().to_owned();
            self.events.push_back(TrialEvent::Over { name, why });
        }
    }

    fn take_callers(&mut self) -> Result<(), Failure> {
        while self.callers.len() < MOST_CALLERS {
            let Some(stream) = next_caller(&self.listener)? else {
                break;
            };
            // One that is gone already is nobody.
            if let Ok(lines) = LineStream::of(stream, LONGEST_GREETING) {
                self.callers.push(Caller {
                    lines,
                    since: Instant::now(),
                    nonces: None,
                });
            }
        }
        Ok(())
    }

    fn hear_callers(&mut self) {
        for caller in std::mem::take(&mut self.callers) {
            let name = caller.lines.name().to_owned();
            match self.hear_caller(caller) {
                Ok(still) => self.callers.extend(still),
                Err(why) => {
                    let why = why.strip_prefix(&name).unwrap_or(&why);
                    let why = why.trim_start_matches([':', ' ']).to_owned();
                    self.events.push_back(TrialEvent::LetGo { name, why });
                }
            }
        }
    }

    /// What a caller says; it, while it is one.
    fn hear_caller(&mut self, mut caller: Caller) -> Result<Option<Caller>, String> {
        let said = caller.lines.hear_bytes().map_err(|why| why.message)?;
        let Some(said) = said else {
            return if caller.since.elapsed() < GREETING {
                Ok(Some(caller))
            } else {
                Err(format!("no greeting within {GREETING:?}"))
            };
        };
        if begins_with(&said, "hello") {
            // One that is gone is let go all the same.
            let _ = caller.lines.say(&PeerLine::Refused(IS_DAEMON.to_owned()));
            return Err("it is a client of a single run, and no search".to_owned());
        }
        let said = read_request(&said).map_err(|why| format!("speaks otherwise: {why}"))?;
        match (said, caller.nonces) {
            (
                TrialRequest::Search {
                    form,
                    packets,
                    nonce: theirs,
                },
                None,
            ) => {
                let mine = nonce();
                caller.say(&TrialReply::Daemon {
                    form: FORM,
                    packets: VERSION,
                    nonce: mine,
                })?;
                if (form, packets) != (FORM, VERSION) {
                    return Err(format!(
                        "its lines and packets have forms {form} and {packets}, those here {FORM} and {VERSION}"
                    ));
                }
                caller.nonces = Some([theirs, mine]);
                Ok(Some(caller))
            }
            (TrialRequest::Proof(theirs), Some([search, daemon])) => {
                let right = proof(&self.token, &search, &daemon, ProofEnd::Search);
                if !same(&right, &theirs) {
                    return Err(caller.refuse("it has another token"));
                }
                self.serve(caller, &search, &daemon).map(|()| None)
            }
            _ => Err("it does not greet first".to_owned()),
        }
    }

    /// Serves a caller that knows the token, unless another is served.
    fn serve(
        &mut self,
        mut caller: Caller,
        search: &[u8; 16],
        daemon: &[u8; 16],
    ) -> Result<(), String> {
        if let Some(session) = &self.session {
            let why = format!("the search from {} is served", session.name());
            return Err(caller.refuse(&why));
        }
        caller.say(&TrialReply::Accepted {
            proof: proof(&self.token, search, daemon, ProofEnd::Daemon),
            facts: self.facts.clone(),
        })?;
        caller.lines.allow(LONGEST);
        let name = caller.lines.name().to_owned();
        self.session = Some(caller.lines);
        self.events.push_back(TrialEvent::Begun { name });
        Ok(())
    }

    fn hear_session(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        match session.hear_bytes() {
            Ok(None) => {}
            Ok(Some(said)) => match read_request(&said) {
                Ok(asked) => self.events.push_back(TrialEvent::Asked(asked)),
                Err(why) => {
                    self.reply(TrialReply::Refused(format!("it speaks otherwise: {why}")));
                    self.end(Some(format!("it speaks otherwise: {why}")));
                }
            },
            Err(why) => {
                let why = (!session.has_ended()).then_some(why.message);
                self.end(why);
            }
        }
    }
}

impl Caller {
    fn say(&mut self, reply: &TrialReply) -> Result<(), String> {
        self.lines.say(reply).map_err(|why| why.message)
    }

    /// Says that it is not served; the same for whoever watches the daemon.
    fn refuse(&mut self, why: &str) -> String {
        // One that is gone is let go all the same.
        let _ = self.say(&TrialReply::Refused(why.to_owned()));
        why.to_owned()
    }
}
