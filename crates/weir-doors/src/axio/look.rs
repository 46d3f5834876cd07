//! Checks of a configuration without a run: `verify`, `-v`, `-p`, `--peer`.

use super::config::{AxioConfig, Unknown};
use super::keys::{KEYS, KeyState};
use super::peer_file::{self, PeerDifferences};
use super::role::AxioRole;
use super::source::{LONGEST_CONFIG, all_right};
use super::verify::{self, MachineFacts};
use super::{plan, window};
use crate::door::Printed;
use crate::given::Given;
use crate::machine::Machine;
use crate::refusal::Refusal;

/// A configuration to check, with its context.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) given: &'a Given,
    pub(super) machine: &'a dyn Machine,
    pub(super) config: &'a AxioConfig,
    /// The tunable numbers are printed.
    pub(super) prints: bool,
    /// Verifies the configuration, whether a flag asks for it or not.
    pub(super) verifies: bool,
}

/// `-v` and `-p`.
///
/// # Errors
/// A configuration of the other side that cannot be read.
pub(super) fn look(asked: &Look<'_>) -> Result<Printed, Refusal> {
    let numbers = plan::tunable(asked.config);
    let mut out = String::new();
    if asked.prints {
        out += &plan::tunable_lines(&numbers);
    }
    let (mut err, mut code) = (String::new(), 0);
    for note in notes_of(asked) {
        push!(err, "note: {note}\n");
    }
    if asked.verifies || asked.given.has("verify") {
        let found = verify::verify(asked.config, &numbers);
        let machine = asked.machine.path_facts();
        let more = further_warnings(asked.config, &machine);
        let file = asked.given.text("peer");
        let with_peer = file.map(|file| peer(asked, file)).transpose()?;
        let with_peer = with_peer.unwrap_or_default();
        let warnings = found.warnings.iter().chain(&more);
        for warning in warnings.chain(&with_peer.warnings) {
            push!(err, "warning: {warning}\n");
            code = code.max(u8::from(asked.given.house.has("strict")));
        }
        let refused = [absent_remotes(asked), with_peer.refused].concat();
        for why in &refused {
            push!(err, "error: {why}\n");
            code = 1;
        }
        if let Some(why) = found.broken {
            push!(err, "{why}\n");
            code = 1;
        } else if refused.is_empty() {
            push!(out, "{}\n", verify::PASSED);
        }
    }
    Ok(Printed {
        out,
        err,
        code,
        ..Printed::default()
    })
}

/// Dispatchers that are addressed and missing, where the other side is known to be in this configuration.
fn absent_remotes(asked: &Look<'_>) -> Vec<String> {
    match AxioRole::of(asked.config, asked.given, asked.machine) {
        Ok(AxioRole::Loopback) => verify::absent_remotes(asked.config),
        _ => Vec::new(),
    }
}

/// Warnings beyond the rules of the older verifier.
fn further_warnings(config: &AxioConfig, machine: &MachineFacts) -> Vec<String> {
    let role = match config.text("role") {
        Some("server") => AxioRole::Alone(weir_schema::PathSide::Server),
        Some("client") => AxioRole::Alone(weir_schema::PathSide::Client),
        _ => AxioRole::Loopback,
    };
    let Ok(asked) = plan::workload(config, role) else {
        return Vec::new();
    };
    let mut all: Vec<String> = window::window_too_small(&asked.work).into_iter().collect();
    all.extend(verify::missing_phases(config, asked.work.side));
    all.extend(verify::beyond_machine(config, &asked, machine));
    all
}

/// Differences that keep the configuration from working with that of the other side.
fn peer(asked: &Look<'_>, file: &str) -> Result<PeerDifferences, Refusal> {
    let text = asked.machine.file(file, LONGEST_CONFIG);
    let text = text.map_err(|why| Refusal::usage(format!("--peer {file}: {why}")))?;
    let (other, wrong) = AxioConfig::read_all(file, &text, Unknown::Refused);
    let found = peer_file::differences(asked.config, &other, file);
    let place = format!("{file}:");
    let placed = |why: String| {
        if why.starts_with(&place) {
            why
        } else {
            format!("{place} {why}")
        }
    };
    let found = found.map_err(|all| all.into_iter().map(placed).collect());
    all_right(file, wrong, found)
}

/// Notes on keys without effect, and on values in an accepted variant of spelling.
pub(super) fn notes_of(asked: &Look<'_>) -> Vec<String> {
    const BOTH_HERE: &str = "both sides are in one process";
    let config = asked.config;
    let says = |key: &str, value: &str| config.text(key) == Some(value);
    let is_one_side = asked.given.has("server") || asked.given.has("client");
    let is_loopback = asked.given.has("loopback") || says("role", "loopback") && !is_one_side;
    let has_echo = says("pkt_handler", "Echo");
    let idle = KEYS.iter().filter_map(|key| {
        let value = config.values.get(key.name)?;
        let why = match (key.state, key.name) {
            (KeyState::WithoutEffect(why), _) => why,
            (KeyState::WithoutBackend, _) if config.text("backend").is_some() => {
                "`backend` says what carries packets"
            }
            (KeyState::WithoutBackend, _) | (_, "mgmt_port") if is_loopback => BOTH_HERE,
            (_, "work_ns") if has_echo => "pkt_handler Echo leaves no message to a workspace",
            (_, "msg_handler") if has_echo && value.text == "Empty" => {
                "pkt_handler Echo answers all the same"
            }
            _ => return None,
        };
        Some(format!(
            "{}: {}: without effect: {why}",
            value.place, key.name
        ))
    });
    config.notes.iter().cloned().chain(idle).collect()
}
