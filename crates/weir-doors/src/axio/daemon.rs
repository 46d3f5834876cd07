//! `weir axio --server --daemon`: what a daemon needs to know before it listens.
//!
//! In: the words, the configuration with its plan. Out: an [`AxioDaemon`]. Not here: sessions, trials.

use std::net::Ipv4Addr;

use weir_schema::{PacketPathWorkload, PathSide};

use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// A daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxioDaemon {
    /// The configuration of its side.
    pub config: String,
    /// Its text.
    pub text: String,
    /// The file of the token.
    pub token_file: String,
    /// Where it listens.
    pub address: Ipv4Addr,
    /// The same; trials use the port after it.
    pub port: u16,
}

/// What else may be said beside `--daemon`.
const TAKEN: [&str; 5] = ["config", "server", "daemon", "token-file", "lenient"];

/// Refuses words that a daemon has no use for.
///
/// # Errors
/// The word.
pub(super) fn check(verb: &str, given: &GivenFlags) -> Result<(), Refusal> {
    if !given.has("daemon") {
        return Ok(());
    }
    if verb != "run" {
        let why = format!("--daemon acts only without `{verb}`: a search says what is run");
        return Err(Refusal::usage(why));
    }
    if let Some((flag, _)) = given.iter().find(|(flag, _)| !TAKEN.contains(&flag.name)) {
        return Err(Refusal::usage(format!(
            "--{}: a daemon takes its side from the configuration alone\n  help: write it there, or leave it out",
            flag.name
        )));
    }
    let missing = |what: &str| Err(Refusal::usage(format!("--daemon: {what} is missing")));
    if !given.has("config") {
        return missing("-c FILE");
    }
    if !given.has("token-file") {
        return missing("--token-file FILE, of mode 600 with a secret that searches know,");
    }
    Ok(())
}

/// The daemon that the words ask for, where they do.
///
/// # Errors
/// A configuration whose side cannot be that of a daemon.
pub(super) fn of(
    given: &GivenFlags,
    (config, text): (&str, &str),
    work: &PacketPathWorkload,
) -> Result<Option<AxioDaemon>, Refusal> {
    let Some(token_file) = given.text("token-file") else {
        return Ok(None);
    };
    if work.side != Some(PathSide::Server) {
        return Err(Refusal::usage(
            "--daemon acts only with --server, or `role : server`",
        ));
    }
    if !(1..65535).contains(&work.management_port) {
        return Err(Refusal::usage(format!(
            "{config}: mgmt_port: with --daemon it is 1 to 65534: trials use the port after it"
        )));
    }
    Ok(Some(AxioDaemon {
        config: config.to_owned(),
        text: text.to_owned(),
        token_file: token_file.to_owned(),
        address: Ipv4Addr::from(work.addresses[1]),
        port: work.management_port,
    }))
}
