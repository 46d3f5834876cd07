//! The catalogue of engines, as data: parsers and help texts read it, nobody reaches into an
//! engine for it.

use std::collections::BTreeMap;

use crate::plan::{EngineChoice, Setting};

/// What an engine is and can be told.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// Name in plans and job files.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Settings in house words.
    pub settings: &'static [SettingInfo],
    /// One operation at a time, whatever the queue depth says.
    pub synchronous: bool,
    /// Works without files or devices.
    pub no_target: bool,
}

/// One setting of an engine.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// House word.
    pub name: &'static str,
    /// What it takes.
    pub value: SettingKind,
    /// What holds when it is not given, as text.
    pub default: &'static str,
    /// One line.
    pub help: &'static str,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum SettingKind {
    /// A switch.
    Bool,
    /// A whole number within bounds.
    Number {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A text.
    Text,
    /// A text with a grammar: what is wrong with one, in words.
    Checked(fn(&str) -> Result<(), String>),
}

/// All engines of a build.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// In the order of help texts.
    pub engines: Vec<EngineInfo>,
}

impl Catalogue {
    /// The engine of this name.
    pub fn find(&self, name: &str) -> Option<&EngineInfo> {
        self.engines.iter().find(|e| e.name == name)
    }
}

/// What a parser may know of its surroundings.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Online CPUs.
    pub cpus: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Environment variables.
    pub environment: BTreeMap<String, String>,
}

impl EngineChoice {
    /// A switch, or its default.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        match self.settings.get(name) {
            Some(Setting::Bool(b)) => *b,
            Some(Setting::Number(n)) => *n != 0,
            _ => default,
        }
    }

    /// A number, if given.
    pub fn number(&self, name: &str) -> Option<i64> {
        match self.settings.get(name) {
            Some(Setting::Number(n)) => Some(*n),
            _ => None,
        }
    }

    /// A text, if given.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.settings.get(name) {
            Some(Setting::Text(t)) => Some(t),
            _ => None,
        }
    }
}
