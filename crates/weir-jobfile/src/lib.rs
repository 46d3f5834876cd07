//! The fio job language: text to syntax tree with spans to [`weir_schema::Plan`].
//!
//! In: a [`CompileRequest`] (words of a command line and names of job files, in their order), and a
//! [`Context`] (facts of the machine, the engines of the build, access to files). Out: a plan
//! with notes, or every [`Diagnostic`] of every section at once. The options are records
//! ([`option_records`]): parser, checks and help are made from them. Not here: running a plan,
//! opening targets, fio's command line beside job options.
//!
//! The way through: `syntax` splits lines, `load` follows files and includes, `substitute`
//! replaces variables, `value` reads what an option takes, `options` says what it does to a
//! `draft`, `finish` makes the plan's job of it, `compile` the plan.
#![forbid(unsafe_code)]

mod apply;
mod compile;
mod conflict;
mod cpu_load;
mod diagnostic;
mod draft;
mod extension;
mod feedback;
mod finish;
mod idle_options;
mod load;
mod logs;
mod nearest;
mod options;
mod path_map;
mod report;
mod resolve_verify;
mod show;
mod substitute;
mod syntax;
mod value;

use weir_schema::Plan;
use weir_schema::catalogue::{Catalogue, Environment};
use weir_units::Nanos;

pub use compile::compile;
pub use diagnostic::{COMMAND_LINE, Diagnostic, MAX_LINE};
pub use extension::{FioJob, FioPlan, WordReach, check_extensions};
pub use nearest::nearest;
pub use options::{
    Category, Need, OptionRecord, Scope, Support, ValueKind, find_option, option_records,
};

/// A whole number as the job language writes it.
pub fn count(text: &str) -> Option<u64> {
    value::number::number(text, value::number::NumberScale::Count { kb_base: 1024 }).ok()
}

/// A time as the job language writes it; a bare number counts seconds.
pub fn duration(text: &str) -> Option<Nanos> {
    let bare_ns = value::number::SECONDS;
    let scale = value::number::NumberScale::Time { bare_ns };
    value::number::number(text, scale).ok().map(Nanos)
}

/// Access to files, passed in: job files, included files, pattern files.
pub trait Files {
    /// The whole content of a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>>;
}

/// Parts of the machine that compiling may look at.
pub struct Context<'a> {
    /// Facts of the machine and the environment.
    pub environment: &'a Environment,
    /// The engines that can be named, and their settings.
    pub catalogue: &'a Catalogue,
    /// Access to files.
    pub files: &'a dyn Files,
}

/// Words or a file, in the order of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobSource {
    /// Options of the command line.
    Words(Vec<CommandWord>),
    /// A job file.
    File(String),
    /// A job file that ships inside the program.
    Text {
        /// Its name.
        name: &'static str,
        /// Its lines.
        text: &'static str,
    },
}

/// A job option of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWord {
    /// The option's name without dashes.
    pub key: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// Index of the argument.
    pub argument: usize,
    /// As typed.
    pub text: String,
}

/// Dialect of the door that asks: the default recording depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `weir run`
    Run,
    /// `weir fio`
    Fio,
}

/// Request to compile jobs.
#[derive(Clone, Debug)]
pub struct CompileRequest {
    /// Dialect of the door that asks.
    pub dialect: Dialect,
    /// The command line, verbatim.
    pub command: Vec<String>,
    /// Options and files. All options count before the first file, as in fio.
    pub sources: Vec<JobSource>,
    /// `[section:]key=value`, which win over the files.
    pub sets: Vec<String>,
    /// `OLD=NEW`, other beginnings for paths.
    pub maps: Vec<String>,
    /// Only these job sections; all when empty.
    pub sections: Vec<String>,
    /// Refuse every job that writes or trims.
    pub read_only: bool,
}

impl CompileRequest {
    /// The job files that it names.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().filter_map(|source| match source {
            JobSource::File(path) => Some(path.as_str()),
            JobSource::Words(_) | JobSource::Text { .. } => None,
        })
    }
}

/// A plan and what there is to say about it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The plan.
    pub plan: Plan,
    /// Remarks for the user, each once.
    pub notes: Vec<String>,
    /// The command line that says the same, as fio's `--showcmd` prints it.
    pub show_command: String,
}
