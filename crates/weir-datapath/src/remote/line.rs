//! What a search and a daemon say to each other, a line of JSON each.
//!
//! In: bytes of the network. Out: a line within its bounds, or why it is none. Not here: in which order they are
//! said.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::peer::LineStream;

/// Settings of a trial at most.
const MOST_SETTINGS: usize = 64;
/// Bytes of a key, or of its value.
const LONGEST_WORD: usize = 64;
/// Bytes of a reason or a name.
const LONGEST_TEXT: usize = 4096;
/// Workloads, and workspaces of each.
const MOST_WORKSPACES: usize = 256;

/// What the server of a single run says to a search.
pub(super) const SINGLE_SERVER: &str = "it is the server of a single run";

/// What the server of a single run says of a search that has called it.
pub(crate) const SEARCH_CALLED: &str =
    "it is a search of `weir tune --daemon`, which asks for a server with `--daemon`";

/// Keys of the server's configuration and their values.
pub type TrialSettings = BTreeMap<String, String>;

/// What a search says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialRequest {
    /// It is a search.
    Search {
        /// The form of these lines.
        form: u32,
        /// The form of packets.
        packets: u32,
        /// For the daemon's proof.
        nonce: [u8; 16],
    },
    /// It knows the token.
    Proof([u8; 32]),
    /// Carry out the server's side of a trial with these settings.
    Trial(TrialSettings),
    /// End the trial.
    Stop,
    /// Write the configuration with these settings beside the one that there is.
    Keep(TrialSettings),
}

/// What a daemon says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialReply {
    /// It is a daemon.
    Daemon {
        /// The form of these lines.
        form: u32,
        /// The form of packets.
        packets: u32,
        /// For the search's proof.
        nonce: [u8; 16],
    },
    /// It knows the token too, and is free.
    Accepted {
        /// That it knows it.
        proof: [u8; 32],
        /// What the search has to know.
        facts: PathFacts,
    },
    /// It does not serve this search: why.
    Refused(String),
    /// The trial is over.
    Ended(TrialEnd),
    /// The configuration was written, to this file of its machine.
    Kept(String),
    /// It could not be written: why.
    NotKept(String),
}

/// What a search has to know of the server's side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFacts {
    /// Where the two sides of a trial meet.
    pub port: u16,
    /// The workspaces of each workload, by its id.
    pub workspaces: BTreeMap<u32, Vec<u32>>,
}

/// How the server's side of a trial ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialEnd {
    /// Its exit code.
    pub code: u8,
    /// What was wrong, where something was.
    pub why: String,
    /// The rule that is the verdict of its diagnosis.
    pub verdict: Option<String>,
    /// Its critical stage.
    pub critical: Option<String>,
}

/// A search's line.
///
/// # Errors
/// It is none, or beyond what one may have.
pub fn read_request(line: &[u8]) -> Result<TrialRequest, String> {
    let request = serde_json::from_slice(line).map_err(|why| why.to_string())?;
    match &request {
        TrialRequest::Trial(settings) | TrialRequest::Keep(settings) => check_settings(settings)?,
        TrialRequest::Search { .. } | TrialRequest::Proof(_) | TrialRequest::Stop => {}
    }
    Ok(request)
}

/// Says to a search that has called the server of a single run that it is none of its daemon; whether it is a search,
/// be it of another version.
pub(crate) fn refuse_search(caller: &mut LineStream, said: &[u8]) -> bool {
    let is_search = begins_with(said, "search");
    if is_search {
        // One that is gone needs no answer.
        let _ = caller.say(&TrialReply::Refused(SINGLE_SERVER.to_owned()));
    }
    is_search
}

/// Whether a line is an object whose only key is this.
pub(super) fn begins_with(said: &[u8], key: &str) -> bool {
    let said: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_slice(said);
    said.is_ok_and(|said| said.len() == 1 && said.contains_key(key))
}

/// A daemon's line.
///
/// # Errors
/// As [`read_request`].
pub fn read_reply(line: &[u8]) -> Result<TrialReply, String> {
    let reply = serde_json::from_slice(line).map_err(|why| why.to_string())?;
    match &reply {
        TrialReply::Daemon { .. } => {}
        TrialReply::Accepted { facts, .. } => check_facts(facts)?,
        TrialReply::Refused(text) | TrialReply::Kept(text) | TrialReply::NotKept(text) => {
            check_text("a reason", text, LONGEST_TEXT)?;
        }
        TrialReply::Ended(end) => {
            check_text("a reason", &end.why, LONGEST_TEXT)?;
            for word in [&end.verdict, &end.critical].into_iter().flatten() {
                check_text("a verdict", word, LONGEST_WORD)?;
            }
        }
    }
    Ok(reply)
}

fn check_settings(settings: &TrialSettings) -> Result<(), String> {
    if settings.len() > MOST_SETTINGS {
        let count = settings.len();
        return Err(format!("{count} settings, of at most {MOST_SETTINGS}"));
    }
    for (key, value) in settings {
        check_text("a key", key, LONGEST_WORD)?;
        check_text("a value", value, LONGEST_WORD)?;
    }
    Ok(())
}

fn check_facts(facts: &PathFacts) -> Result<(), String> {
    let most = facts.workspaces.values().map(Vec::len).max().unwrap_or(0);
    if facts.port == 0 || most.max(facts.workspaces.len()) > MOST_WORKSPACES {
        return Err("no port, or too many workspaces".to_owned());
    }
    Ok(())
}

fn check_text(what: &str, text: &str, most: usize) -> Result<(), String> {
    if text.len() > most {
        return Err(format!("{what} of {} bytes, of at most {most}", text.len()));
    }
    Ok(())
}

/// The beginning of a reason that is not longer than a line may have it.
pub(super) fn cut(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        let end = (0..=LONGEST_TEXT).rev();
        let end = end.into_iter().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
    }
    text
}
