//! Trials of a packet path of which the server runs on another machine, by a daemon that carries out one after the
//! other for whoever knows its token.
//!
//! In: a token that both know. Out: [`TrialListener`], the daemon's end of the connection, and [`TrialServer`],
//! that of the search. A search has one connection for all its trials, on the management port; the two
//! sides of a trial meet as ever, on the port after it. Not here: what a trial's settings may be, how one is
//! carried out.

mod line;
mod listener;
mod server;

pub use line::{
    PathFacts, TrialEnd, TrialReply, TrialRequest, TrialSettings, read_reply, read_request,
};
pub use listener::{TrialEvent, TrialListener};
pub use server::TrialServer;

pub(crate) use line::{SEARCH_CALLED, refuse_search};

use weir_sys::token::Token;

/// The form of these lines.
const FORM: u32 = 1;

/// The port at which the two sides of a trial meet, where there is one.
pub fn trial_port(management_port: u16) -> Option<u16> {
    management_port.checked_add(1)
}

/// Which end of the connection proves that it knows the token.
#[derive(Clone, Copy, Debug)]
enum ProofEnd {
    Search,
    Daemon,
}

fn proof(token: &Token, search: &[u8; 16], daemon: &[u8; 16], end: ProofEnd) -> [u8; 32] {
    let end: &[u8] = match end {
        ProofEnd::Search => b"search",
        ProofEnd::Daemon => b"daemon",
    };
    token.proof(&[b"weir-axio-daemon", search, daemon, end])
}

#[cfg(test)]
mod tests;
