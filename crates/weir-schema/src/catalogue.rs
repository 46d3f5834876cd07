//! The catalogues of engines and transports, as data: parsers and help texts read them, nobody
//! reaches into an engine or a transport for it.

use std::collections::BTreeMap;

use crate::exchange::{Method, Transfer};
use crate::plan::{EngineChoice, Setting};

/// Properties and settings of an engine.
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
    /// The object of its operations.
    pub acts_on: ActsOn,
}

impl EngineInfo {
    /// Data is neither read nor written, so that there is none to verify.
    pub const fn moves_no_data(&self) -> bool {
        !matches!(self.acts_on, ActsOn::Data | ActsOn::Memory)
    }

    /// Works without files or devices.
    pub const fn no_target(&self) -> bool {
        matches!(
            self.acts_on,
            ActsOn::Size | ActsOn::Memory | ActsOn::Nothing
        )
    }
}

/// Object of an engine's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ActsOn {
    /// The data of files and devices, which are open.
    #[default]
    Data,
    /// The blocks and the length of open files, without their data.
    Space,
    /// Files as a whole, by their names; they are not opened for the run.
    Names(NameUse),
    /// A size alone: no file or device is needed.
    Size,
    /// The data of a memory of its own: no file or device is needed.
    Memory,
    /// Nothing that has a size: time, or a bound of operations, ends the job.
    Nothing,
}

/// Use of a file that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameUse {
    /// It is made.
    Makes,
    /// It is looked at.
    LooksAt,
    /// It is removed.
    Removes,
}

/// One setting of an engine.
#[derive(Clone, Copy, Debug)]
pub struct SettingInfo {
    /// House word.
    pub name: &'static str,
    /// Values that it takes.
    pub value: SettingKind,
    /// Default value, as text.
    pub default: &'static str,
    /// One line.
    pub help: &'static str,
}

/// Values that a setting takes.
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
    /// One of these words.
    Word(&'static [&'static str]),
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

/// Properties and settings of a transport between ranks.
#[derive(Clone, Copy, Debug)]
pub struct TransportRecord {
    /// Name in plans.
    pub name: &'static str,
    /// Name in `HPCC_FPGA`, where it has one. Transports that share the word differ in whether they
    /// need a launcher.
    pub peer: Option<&'static str>,
    /// The path that the data takes, in one line.
    pub summary: &'static str,
    /// Settings in house words.
    pub settings: &'static [SettingInfo],
    /// Ways there and back that it knows, the first by default.
    pub methods: &'static [Method],
    /// Transfers that can be measured in place of exchanges.
    pub transfers: &'static [Transfer],
    /// Received data is what was sent: it can be checked.
    pub moves_data: bool,
    /// Any two ranks can send each other messages, not neighbours alone.
    pub connects_any_two: bool,
    /// Its ranks are the processes of an MPI launcher.
    pub needs_launcher: bool,
}

impl TransportRecord {
    /// True if it has a setting of this name.
    pub fn has_setting(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.name == name)
    }
}

/// All transports of a build.
#[derive(Clone, Debug)]
pub struct TransportCatalogue {
    /// In the order of help texts.
    pub records: Vec<TransportRecord>,
    /// Finds what this machine lacks for the transport of a name, and the remedy; nothing where it
    /// is ready. The answer takes time, since libraries are opened for it.
    pub lacks: fn(&str) -> Option<String>,
}

impl TransportCatalogue {
    /// The transport of this name.
    pub fn find(&self, name: &str) -> Option<&TransportRecord> {
        self.records.iter().find(|record| record.name == name)
    }
}

impl Default for TransportCatalogue {
    /// No transport.
    fn default() -> Self {
        Self {
            records: Vec::new(),
            lacks: |_| None,
        }
    }
}

/// Facts about the machine that a parser may use.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Online CPUs.
    pub cpus: u32,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
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
