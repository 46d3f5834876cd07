//! `weir tune --server-command`: the other side of a packet path, which a command of the user starts for each trial.
//!
//! In: the arguments, the server's configuration, settings of a trial. Out: a [`TuneServer`]; the
//! configuration with the settings. Not here: starting the command.

use std::collections::BTreeMap;

use weir_diagnose::ConfigText;
use weir_units::Nanos;

use super::path::LAYOUT;
use super::path_layout::{PathLayout, layouts, workspaces_of};

/// Command that starts the server of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneServer {
    /// Command for the shell: `ssh host weir axio --server -c -`.
    pub command: String,
    /// File of the server's configuration, on this machine.
    pub config: String,
    /// Time that the command has until its server listens.
    pub wait: Nanos,
    /// File of the secret that both sides must know.
    pub token_file: Option<String>,
}

/// Configuration of a server, with the layouts of its workspaces.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    text: ConfigText,
    layouts: Vec<PathLayout>,
}

impl ServerConfig {
    /// A server's configuration, which has to allow the layouts of its client.
    ///
    /// # Errors
    /// It cannot be read; it has other workspaces than its client where layouts vary.
    pub fn of(text: &str, client: &ConfigText, has_layouts: bool) -> Result<Self, String> {
        let text = ConfigText::read(text).map_err(|why| why.to_string())?;
        let (here, there) = (workspaces_of(client), workspaces_of(&text));
        if has_layouts && here != there {
            return Err(differing_workspaces(&here, &there));
        }
        Ok(Self {
            // Workloads that share a workspace have the layout that is given alone.
            layouts: layouts(&text, true).unwrap_or_default(),
            text,
        })
    }

    /// The configuration with the settings of a trial.
    ///
    /// # Errors
    /// It has a key twice, or not the layout.
    pub fn with(&self, settings: &[(&str, &str)]) -> Result<String, String> {
        let mut text = self.text.clone();
        for (key, value) in settings {
            if *key == LAYOUT {
                let layout = self.layouts.iter().find(|one| one.name == *value);
                let layout = layout.ok_or_else(|| format!("it has no layout {value}"))?;
                layout.apply(&mut text)?;
            } else if !text.set(key, value).map_err(|why| why.to_string())? {
                text.add(key, value);
            }
        }
        Ok(text.text())
    }
}

fn differing_workspaces(here: &BTreeMap<u32, Vec<u32>>, there: &BTreeMap<u32, Vec<u32>>) -> String {
    format!(
        "--layouts: the workspaces of its workloads are {there:?}, those of the client {here:?}\n  help: list the \
         same on both sides, or leave --layouts out"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "backend : udp # fast\nring : 64\nkAppCoreNum : 1\nkDispQueueNum : 1\n\
        workload : 1 : RXDispatcher : 0 : 0 : 1\n";

    fn server() -> ServerConfig {
        let client = ConfigText::read(SERVER).unwrap();
        ServerConfig::of(SERVER, &client, true).unwrap()
    }

    #[test]
    fn settings_replace_the_servers_own_alone() {
        let text = server().with(&[("ring", "128"), ("inflight", "64")]);
        let expected = SERVER.replace("ring : 64", "ring : 128") + "inflight : 64\n";
        assert_eq!(text.unwrap(), expected);
        let text = server().with(&[("layout", "combined")]).unwrap();
        assert!(text.contains(" : 0,1 : 0|1 : 0|1\n"), "{text}");
        assert!(text.contains("kAppCoreNum : 2\n"), "{text}");
        let why = server().with(&[("layout", "split-9")]).unwrap_err();
        assert!(why.contains("split-9"), "{why}");
    }

    #[test]
    fn layouts_need_the_same_workspaces_on_both_sides() {
        let client = ConfigText::read(&SERVER.replace(": 0 : 1\n", ": 0 : 2\n")).unwrap();
        let why = ServerConfig::of(SERVER, &client, true).unwrap_err();
        assert!(
            why.contains("{1: [0, 1]}, those of the client {1: [0, 2]}"),
            "{why}"
        );
        assert!(ServerConfig::of(SERVER, &client, false).is_ok());
    }
}
