//! Flags as records: one place for name, value, default and help, from which parsers and help
//! texts are made.
//!
//! In: tables of [`Flag`] written by the doors. Out: the flag of a name, the nearest name, a
//! clap command. Not here: what a flag does.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};

pub use weir_jobfile::nearest;

use crate::given::FlagNeed;
use crate::takes::Takes;

/// A flag of a door.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Flag {
    /// Long name without dashes; of one letter where it has no long name.
    pub name: &'static str,
    /// One-letter name.
    pub letter: Option<char>,
    /// Kind of the value, besides the words of `choices`.
    pub takes: Takes,
    /// Name of its value; none for a switch.
    pub value: Option<&'static str>,
    /// Words that it takes; any where it is empty.
    pub choices: &'static [&'static str],
    /// The value may be left out.
    pub optional: bool,
    /// The value may be the empty text.
    pub takes_empty: bool,
    /// The flag may be given several times.
    pub repeats: bool,
    /// The flag chooses the display of a result, so that `weir show` takes it.
    pub prints: bool,
    /// Default value, as text.
    pub default: Option<&'static str>,
    /// Help text of one line.
    pub short: &'static str,
    /// Further sentences.
    pub long: &'static str,
    /// Heading in help texts.
    pub category: &'static str,
    /// Condition on other flags, without which this one has no effect.
    pub needs: Option<FlagNeed>,
    /// Status of the flag: it works, has no effect or is refused.
    pub standing: Standing,
}

/// Status of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The flag works.
    Works,
    /// Accepted; it has nothing to act on, for this reason.
    WithoutEffect(&'static str),
    /// Refused, for this reason.
    Refused(&'static str),
}

/// The flag `--store-result` of every door that measures.
pub(crate) const fn store_result(category: &'static str) -> Flag {
    Flag::with_value(
        "store-result",
        "FILE",
        category,
        "Store the whole result, for weir show",
    )
    .takes(Takes::Grammar(|file| {
        let is_file = (file != "-").then_some(());
        is_file.ok_or_else(|| "a result is stored in a file".to_owned())
    }))
}

/// The flag `--history` of every door of weir's own that measures.
pub(crate) const fn history(category: &'static str) -> Flag {
    Flag::with_value(
        "history",
        "FILE|off",
        category,
        "Keep the result in this history, or in none",
    )
    .long("Without it WEIR_HISTORY says so; else it is kept in the user's own.")
}

/// The flag `--set` of doors that read jobs.
pub(crate) const fn set(category: &'static str) -> Flag {
    Flag::with_value(
        "set",
        "[SECTION:]KEY=VALUE",
        category,
        "Override a job option; wins over the file",
    )
    .takes(Takes::Grammar(|text| {
        let wrong = || "it takes [SECTION:]KEY=VALUE".to_owned();
        text.contains('=').then_some(()).ok_or_else(wrong)
    }))
    .repeats()
    .long("Without SECTION it holds for every job.")
}

impl Flag {
    /// A switch that works.
    pub(crate) const fn switch(
        name: &'static str,
        category: &'static str,
        short: &'static str,
    ) -> Self {
        Self {
            name,
            letter: None,
            takes: Takes::Text,
            value: None,
            choices: &[],
            optional: false,
            takes_empty: false,
            repeats: false,
            prints: false,
            default: None,
            short,
            long: "",
            category,
            needs: None,
            standing: Standing::Works,
        }
    }

    /// A flag with a value.
    pub(crate) const fn with_value(
        name: &'static str,
        value: &'static str,
        category: &'static str,
        short: &'static str,
    ) -> Self {
        Self {
            value: Some(value),
            ..Self::switch(name, category, short)
        }
    }

    pub(crate) const fn choices(self, choices: &'static [&'static str]) -> Self {
        Self { choices, ..self }
    }

    pub(crate) const fn letter(self, letter: char) -> Self {
        Self {
            letter: Some(letter),
            ..self
        }
    }

    pub(crate) const fn takes(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }

    pub(crate) const fn range(self, min: i64, max: i64) -> Self {
        self.takes(Takes::Whole(min, max))
    }

    pub(crate) const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    /// The empty text is a value.
    pub(crate) const fn takes_empty(self) -> Self {
        Self {
            takes_empty: true,
            ..self
        }
    }

    pub(crate) const fn repeats(self) -> Self {
        Self {
            repeats: true,
            ..self
        }
    }

    pub(crate) const fn prints(self) -> Self {
        Self {
            prints: true,
            ..self
        }
    }

    pub(crate) const fn default(self, default: &'static str) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// Adds a condition on other flags.
    pub(crate) const fn needs(self, need: FlagNeed) -> Self {
        Self {
            needs: Some(need),
            ..self
        }
    }

    pub(crate) const fn long(self, long: &'static str) -> Self {
        Self { long, ..self }
    }

    pub(crate) const fn without_effect(self, reason: &'static str) -> Self {
        Self {
            standing: Standing::WithoutEffect(reason),
            ..self
        }
    }

    pub(crate) const fn refused(self, reason: &'static str) -> Self {
        Self {
            standing: Standing::Refused(reason),
            ..self
        }
    }

    /// `--name=VALUE` as help texts show it.
    pub fn usage(&self) -> String {
        let name = match self.letter {
            Some(letter) => format!("-{letter}, --{}", self.name),
            None => self.spelling(),
        };
        match self.value {
            Some(value) if self.name.len() == 1 => format!("{name} {value}"),
            Some(value) if self.optional => format!("{name}[={value}]"),
            Some(value) => format!("{name}={value}"),
            None => name,
        }
    }

    /// The name with its dashes.
    pub(crate) fn spelling(&self) -> String {
        Self::spelling_of(self.name)
    }

    /// The name that it has at a door, with its dashes.
    pub(crate) fn spelling_of(name: &str) -> String {
        let dashes = if name.len() == 1 { "-" } else { "--" };
        format!("{dashes}{name}")
    }

    /// The name of a flag of the house among those of clap, where a door's own may have the same.
    pub(crate) fn house_id(&self) -> String {
        format!("house:{}", self.name)
    }

    /// A flag of the house, by the name that it has at a door.
    pub(crate) fn to_house_arg(self, name: &str) -> Arg {
        self.to_arg().id(self.house_id()).long(name.to_owned())
    }

    fn to_arg(self) -> Arg {
        let arg = Arg::new(self.name)
            .help(self.short)
            .help_heading(self.category)
            .hide(matches!(self.standing, Standing::Refused(_)));
        let mut letters = self.name.chars();
        let arg = match (letters.next(), letters.next()) {
            // With two dashes as well, which nothing else can mean.
            (Some(letter), None) => arg.short(letter).alias(self.name),
            _ => arg.long(self.name).short(self.letter),
        };
        let mut long = self.long.to_owned();
        let kind = self.remark().filter(|_| !matches!(self.takes, Takes::Text));
        let kind = kind.map(|kind| format!("Takes {kind}."));
        let need = self.needs.map(|need| format!("Acts only {}.", need.when));
        for sentence in kind.into_iter().chain(need) {
            let gap = if long.is_empty() { "" } else { " " };
            push!(long, "{gap}{sentence}");
        }
        let arg = if long.is_empty() {
            arg
        } else {
            arg.long_help(format!("{}\n{long}", self.short))
        };
        let Some(value) = self.value else {
            return arg.action(ArgAction::SetTrue);
        };
        let action = if self.repeats {
            ArgAction::Append
        } else {
            ArgAction::Set
        };
        let hint = match value {
            "FILE" => ValueHint::FilePath,
            "DIR" => ValueHint::DirPath,
            _ => ValueHint::Unknown,
        };
        let mut arg = arg.value_name(value).value_hint(hint).action(action);
        // The reader of the value reports errors in a negative number.
        arg = arg.allow_negative_numbers(true);
        if !self.choices.is_empty() && matches!(self.takes, Takes::Text) {
            arg = arg.value_parser(PossibleValuesParser::new(self.choices));
        }
        if let Some(default) = self.default {
            arg = arg.default_value(default);
        }
        if self.optional {
            arg = arg
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("");
        }
        arg
    }
}

/// A clap command with these flags. A flag that is called help is the door's own.
pub(crate) fn command(name: &str, flags: &[Flag]) -> Command {
    Command::new(name.to_owned())
        .args(flags.iter().map(|f| f.to_arg()))
        .disable_help_flag(flags.iter().any(|f| f.name == "help"))
        .term_width(80)
}

/// Several tables as one.
pub(crate) const fn tables<const N: usize>(tables: &[&[Flag]]) -> [Flag; N] {
    let mut out = [tables[0][0]; N];
    let (mut table, mut at) = (0, 0);
    while table < tables.len() {
        let mut row = 0;
        while row < tables[table].len() {
            out[at] = tables[table][row];
            (row, at) = (row + 1, at + 1);
        }
        table += 1;
    }
    assert!(at == N);
    out
}

/// The flag of a name.
pub(crate) fn find(flags: &'static [Flag], name: &str) -> Option<&'static Flag> {
    flags.iter().find(|f| f.name == name)
}
