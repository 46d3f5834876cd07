//! What is said of a configuration without a run: `verify`, `show`, `-v`, `-p`, `--peer`.

use super::config::AxioConfig;
use super::keys::{KEYS, KeyState};
use super::role::AxioRole;
use super::toml_form::{ConfigForm, write};
use super::verify::{self, MachineFacts};
use super::{Action, AxioEnvironment, peer_file, plan, print};
use crate::given::GivenFlags;
use crate::refusal::Refusal;

/// What is looked at, and for whom.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub(super) given: &'a GivenFlags,
    pub(super) environment: &'a AxioEnvironment<'a>,
    pub(super) config: &'a AxioConfig,
    /// The tunable numbers are printed.
    pub(super) prints: bool,
    /// It is verified, asked or not.
    pub(super) verifies: bool,
}

/// `-v` and `-p`.
///
/// # Errors
/// A configuration of the other side that cannot be read.
pub(super) fn look(asked: &Look<'_>) -> Result<Action, Refusal> {
    let numbers = plan::tunable(asked.config);
    let mut out = String::new();
    if asked.prints {
        out += &plan::tunable_lines(&numbers);
    }
    let (mut err, mut code) = (String::new(), 0);
    for note in notes_of(asked.config) {
        push!(err, "note: {note}\n");
    }
    if asked.verifies || asked.given.has("verify") {
        let found = verify::verify(asked.config, &numbers);
        let machine = (asked.environment.machine)();
        let more = further_warnings(asked.config, &machine);
        let file = asked.given.text("peer");
        let with_peer = file.map(|file| peer(asked, file)).transpose()?;
        let with_peer = with_peer.unwrap_or_default();
        for warning in found.warnings.iter().chain(&more).chain(&with_peer) {
            push!(err, "warning: {warning}\n");
            code = code.max(u8::from(asked.given.has("strict")));
        }
        if let Some(why) = found.broken {
            push!(err, "{why}\n");
            code = 1;
        } else {
            push!(out, "{}\n", verify::PASSED);
        }
    }
    Ok(Action::Print { out, err, code })
}

/// What the older verifier does not look at.
fn further_warnings(config: &AxioConfig, machine: &MachineFacts) -> Vec<String> {
    let role = match config.text("role") {
        Some("server") => AxioRole::Alone(weir_schema::PathSide::Server),
        Some("client") => AxioRole::Alone(weir_schema::PathSide::Client),
        _ => AxioRole::Loopback,
    };
    let Ok(asked) = plan::workload(config, role) else {
        return Vec::new();
    };
    let mut all: Vec<String> = plan::window_too_small(&asked.work).into_iter().collect();
    all.extend(verify::missing_phases(config, asked.work.side));
    all.extend(verify::beyond_machine(config, &asked, machine));
    all
}

/// What does not go together with the configuration of the other side.
fn peer(asked: &Look<'_>, file: &str) -> Result<Vec<String>, Refusal> {
    let text = (asked.environment.file)(file);
    let text = text.map_err(|why| Refusal::usage(format!("{file}: {why}")))?;
    let other = AxioConfig::read(file, &text);
    let other = other.map_err(|wrong| Refusal::usage(wrong.join("; ")))?;
    Ok(peer_file::differences(asked.config, &other, file))
}

/// The configuration in one of its forms.
pub(super) fn show(config: &AxioConfig, form: Option<&str>) -> Action {
    let form = match form {
        Some("toml") => ConfigForm::Toml,
        _ => ConfigForm::Axio,
    };
    print(write(config, form))
}

/// What the configuration says that has nothing to act on, and what was read otherwise than written.
pub(super) fn notes_of(config: &AxioConfig) -> Vec<String> {
    let idle = KEYS.iter().filter_map(|key| {
        let why = match key.state {
            KeyState::WithoutEffect(why) => why,
            KeyState::WithoutBackend if config.text("backend").is_some() => {
                "`backend` says what carries packets"
            }
            KeyState::WithoutBackend if config.text("role") == Some("loopback") => {
                "both sides are in one process"
            }
            _ => return None,
        };
        let value = config.values.get(key.name)?;
        Some(format!(
            "{}: {}: without effect: {why}",
            value.place, key.name
        ))
    });
    config.notes.iter().cloned().chain(idle).collect()
}
