//! Records of options, and the form in which one is written down.

use weir_schema::catalogue::Environment;
use weir_schema::{PerKind, Size};
use weir_units::Nanos;

use crate::Files;
use crate::diagnostic::Fault;
use crate::draft::Draft;
use crate::options::needs::Need;

/// One option of the job language: the only place where its facts stand. Parser, checks, help
/// and tables are made from it.
#[derive(Clone, Copy, Debug)]
pub struct OptionRecord {
    /// Canonical name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Topic.
    pub category: Category,
    /// Values that it takes.
    pub value: ValueKind,
    /// Default value, as text; empty when there is none.
    pub default: &'static str,
    /// A few words.
    pub short: &'static str,
    /// The whole story, where there is more to say than `short`.
    pub long: &'static str,
    /// Scope of the option.
    pub scope: Scope,
    /// Support of the option here.
    pub support: Support,
    /// Values of a refused option that ask for nothing, and so are accepted.
    pub neutral: &'static [&'static str],
    /// Values that other options must have for it to act.
    pub needs: Option<Need>,
    pub(crate) apply: Apply,
}

/// The topics of options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Files, devices and the region used.
    Target,
    /// Order, kinds and sizes of operations.
    Pattern,
    /// Content of buffers.
    Content,
    /// Engine, depth, memory, flushes.
    Engine,
    /// Time, rates and pauses.
    Time,
    /// Groups, order, statistics, errors.
    Report,
    /// Data verification.
    Verify,
    /// Logs and traces.
    Log,
    /// Processes, CPUs, priorities.
    Process,
}

/// Values that an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    /// A switch that may stand without a value.
    Flag,
    /// 0 or 1.
    Bool,
    /// A whole number, with size suffixes.
    Integer {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A whole number that may be negative.
    Signed {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// Up to three numbers, for reads, writes and trims.
    Triple {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// Bytes, or a share of the file's size.
    Size {
        /// Smallest number of bytes.
        min: u64,
    },
    /// A time.
    Duration {
        /// Nanoseconds that a number without suffix counts.
        bare_ns: u64,
    },
    /// One of these words, with their meanings.
    Words {
        /// Word and meaning.
        words: &'static [(&'static str, &'static str)],
        /// `:` and more may follow.
        tail: bool,
    },
    /// Numbers separated by `:`.
    Numbers {
        /// All are above this.
        min: f64,
        /// Largest.
        max: f64,
        /// Largest number of values.
        most: usize,
    },
    /// Text, or a grammar of its own.
    Text,
    /// Text that may be left out.
    OptionalText,
}

/// Scope of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In every job.
    Job,
    /// In jobs that use one of these engines.
    Engines(&'static [&'static str]),
}

/// Support of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It acts.
    Supported,
    /// It is accepted and has no meaning here, for this reason.
    Meaningless(&'static str),
    /// It is an error to give it.
    Refused {
        /// Replacement, or the reason that there is none.
        nearest: &'static str,
    },
}

/// Environment of an option besides its value.
pub(crate) struct Env<'a> {
    pub environment: &'a Environment,
    pub files: &'a dyn Files,
    pub read_only: bool,
}

pub(crate) type Applied = Result<(), Fault>;

/// Words and their meanings.
type Meanings = &'static [(&'static str, &'static str)];
type WordFn = for<'a> fn(&mut Draft, &'static str, Option<&'a str>, &Env<'_>) -> Applied;

/// Effect of an option on a job.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Apply {
    Nothing,
    Switch(fn(&mut Draft, bool)),
    Integer(fn(&mut Draft, u64)),
    Signed(fn(&mut Draft, i64)),
    Triple(fn(&mut Draft, PerKind<Option<u64>>)),
    Size(fn(&mut Draft, Size)),
    Duration(fn(&mut Draft, Nanos)),
    Choice(fn(&mut Draft, &'static str)),
    Word(WordFn),
    Numbers(fn(&mut Draft, Vec<f64>)),
    Text(for<'a> fn(&mut Draft, &'a str, &Env<'_>) -> Applied),
    OptionalText(fn(&mut Draft, Option<&str>)),
    /// A setting of the engine, by its house word.
    Setting(&'static str),
}

/// A supported option of jobs that takes a text; the methods say what differs.
pub(super) const fn option(name: &'static str, short: &'static str) -> OptionRecord {
    OptionRecord {
        name,
        aliases: &[],
        category: Category::Target,
        value: ValueKind::Text,
        default: "",
        short,
        long: "",
        scope: Scope::Job,
        support: Support::Supported,
        neutral: &[],
        needs: None,
        apply: Apply::Nothing,
    }
}

/// An accepted option without meaning.
pub(super) const fn meaningless(
    name: &'static str,
    value: ValueKind,
    short: &'static str,
    why: &'static str,
) -> OptionRecord {
    let record = option(name, short);
    OptionRecord {
        value,
        support: Support::Meaningless(why),
        ..record
    }
}

/// An option that is refused.
pub(super) const fn refused(
    name: &'static str,
    short: &'static str,
    nearest: &'static str,
) -> OptionRecord {
    let record = option(name, short);
    OptionRecord {
        support: Support::Refused { nearest },
        ..record
    }
}

/// A setting of some engines, and the house word for it.
pub(super) const fn setting(
    name: &'static str,
    house: &'static str,
    engines: &'static [&'static str],
    short: &'static str,
) -> OptionRecord {
    let record = option(name, short);
    let scope = Scope::Engines(engines);
    OptionRecord {
        category: Category::Engine,
        scope,
        apply: Apply::Setting(house),
        ..record
    }
}

impl OptionRecord {
    pub(super) const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) const fn of(self, category: Category) -> Self {
        Self { category, ..self }
    }

    pub(super) const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    pub(super) const fn long(self, long: &'static str) -> Self {
        Self { long, ..self }
    }

    pub(super) const fn neutral(self, neutral: &'static [&'static str]) -> Self {
        Self { neutral, ..self }
    }

    /// It acts only where others say so.
    pub(super) const fn needs(self, need: Need) -> Self {
        Self {
            needs: Some(need),
            ..self
        }
    }

    /// A setting that may stand without a value.
    pub(super) const fn switch(self) -> Self {
        Self {
            value: ValueKind::Flag,
            ..self
        }
    }

    pub(super) const fn flag(self, apply: fn(&mut Draft, bool)) -> Self {
        Self {
            value: ValueKind::Flag,
            default: "0",
            apply: Apply::Switch(apply),
            ..self
        }
    }

    pub(super) const fn bool(self, apply: fn(&mut Draft, bool)) -> Self {
        Self {
            value: ValueKind::Bool,
            default: "0",
            apply: Apply::Switch(apply),
            ..self
        }
    }

    pub(super) const fn integer(self, min: u64, max: u64, apply: fn(&mut Draft, u64)) -> Self {
        Self {
            value: ValueKind::Integer { min, max },
            apply: Apply::Integer(apply),
            ..self
        }
    }

    pub(super) const fn signed(self, min: i64, max: i64, apply: fn(&mut Draft, i64)) -> Self {
        Self {
            value: ValueKind::Signed { min, max },
            apply: Apply::Signed(apply),
            ..self
        }
    }

    pub(super) const fn triple(
        self,
        min: u64,
        max: u64,
        apply: fn(&mut Draft, PerKind<Option<u64>>),
    ) -> Self {
        Self {
            value: ValueKind::Triple { min, max },
            apply: Apply::Triple(apply),
            ..self
        }
    }

    pub(super) const fn size(self, min: u64, apply: fn(&mut Draft, Size)) -> Self {
        Self {
            value: ValueKind::Size { min },
            apply: Apply::Size(apply),
            ..self
        }
    }

    pub(super) const fn duration(self, bare_ns: u64, apply: fn(&mut Draft, Nanos)) -> Self {
        Self {
            value: ValueKind::Duration { bare_ns },
            apply: Apply::Duration(apply),
            ..self
        }
    }

    pub(super) const fn words(self, words: Meanings, apply: fn(&mut Draft, &'static str)) -> Self {
        let value = ValueKind::Words { words, tail: false };
        Self {
            value,
            apply: Apply::Choice(apply),
            ..self
        }
    }

    /// Words of which some are refused.
    pub(super) const fn checked_words(self, words: Meanings, apply: WordFn) -> Self {
        let value = ValueKind::Words { words, tail: false };
        Self {
            value,
            apply: Apply::Word(apply),
            ..self
        }
    }

    pub(super) const fn words_with_tail(self, words: Meanings, apply: WordFn) -> Self {
        let value = ValueKind::Words { words, tail: true };
        Self {
            value,
            apply: Apply::Word(apply),
            ..self
        }
    }

    pub(super) const fn numbers(
        self,
        min: f64,
        max: f64,
        most: usize,
        apply: fn(&mut Draft, Vec<f64>),
    ) -> Self {
        let value = ValueKind::Numbers { min, max, most };
        Self {
            value,
            apply: Apply::Numbers(apply),
            ..self
        }
    }

    pub(super) const fn text(
        self,
        apply: for<'a> fn(&mut Draft, &'a str, &Env<'_>) -> Applied,
    ) -> Self {
        Self {
            value: ValueKind::Text,
            apply: Apply::Text(apply),
            ..self
        }
    }

    /// A text that may be left out.
    pub(super) const fn optional_text(self, apply: fn(&mut Draft, Option<&str>)) -> Self {
        Self {
            value: ValueKind::OptionalText,
            apply: Apply::OptionalText(apply),
            ..self
        }
    }

    /// An option that only a peer's output looks at, in the echo of the job's words.
    pub(super) const fn echoed(self, value: ValueKind) -> Self {
        Self {
            value,
            apply: Apply::Nothing,
            ..self
        }
    }
}
