//! The arguments of a door, read: its own flags, those of the house, operands.
//!
//! In: flags with their values, from any reader. Out: the value that counts; the flags that
//! have no effect, and when they would. Not here: whether such a flag is refused, as weir's own doors do,
//! or noted, as those of peers do.

use std::ops::Deref;

use clap::ArgMatches;
use clap::parser::ValueSource;
use weir_jobfile::CommandWord;

use crate::args::house_spelling;
use crate::door::Door;
use crate::flags::{Flag, find};
use crate::refusal::Refusal;

/// Condition on other flags, without which a flag has no effect.
#[derive(Clone, Copy, Debug)]
pub struct FlagNeed {
    /// Description of the condition, which follows "acts only".
    pub when: &'static str,
    is_met: fn(&GivenFlags) -> bool,
}

impl FlagNeed {
    pub(crate) const fn new(when: &'static str, is_met: fn(&GivenFlags) -> bool) -> Self {
        Self { when, is_met }
    }
}

/// Flags with their values, in order.
#[derive(Clone, Debug)]
pub struct GivenFlags {
    table: &'static [Flag],
    given: Vec<(&'static Flag, String)>,
}

impl GivenFlags {
    /// None of these so far.
    pub(crate) fn new(table: &'static [Flag]) -> Self {
        Self {
            table,
            given: Vec::new(),
        }
    }

    /// Flags of the table that clap has parsed.
    ///
    /// # Errors
    /// A value that its flag does not take.
    pub(crate) fn of_matches(
        table: &'static [Flag],
        matches: &ArgMatches,
    ) -> Result<Self, Refusal> {
        let mut all = Self::new(table);
        for id in matches.ids() {
            let is_given = matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
            if let Some(flag) = find(table, id.as_str()).filter(|_| is_given) {
                let values = matches.get_raw(id.as_str()).into_iter().flatten();
                for value in values {
                    all.add(flag, &value.to_string_lossy());
                }
            }
        }
        all.check(Flag::spelling)?;
        Ok(all)
    }

    /// Finds out whether every flag takes its value.
    ///
    /// # Errors
    /// The first that does not, what it takes, and the nearest word.
    pub(crate) fn check(&self, spelling: impl Fn(&Flag) -> String) -> Result<(), Refusal> {
        let mut all = self.iter();
        let wrong = all.find_map(|(flag, value)| flag.wrong_value(&spelling(flag), value));
        wrong.map_or(Ok(()), |why| Err(Refusal::usage(why)))
    }

    /// True if `--output` names a file with this suffix.
    pub(crate) fn writes(&self, suffix: &str) -> bool {
        self.all("output").any(|file| file.ends_with(suffix))
    }

    pub(crate) fn add(&mut self, flag: &'static Flag, value: &str) {
        self.given.push((flag, value.to_owned()));
    }

    /// True if the flag is given.
    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(flag, _)| flag.name == name)
    }

    /// The value that counts, which is the last one; the default of the table where there is
    /// none.
    pub fn text(&self, name: &str) -> Option<&str> {
        let last = self.given.iter().rev().find(|(flag, _)| flag.name == name);
        last.map(|(_, value)| value.as_str())
            .or_else(|| find(self.table, name).and_then(|flag| flag.default))
    }

    /// True if the value that counts is this one.
    pub(crate) fn is(&self, name: &str, value: &str) -> bool {
        self.text(name) == Some(value)
    }

    /// Number of a flag that states its range and default.
    pub(crate) fn number<N: TryFrom<i64> + Default>(&self, name: &str) -> N {
        self.whole(name).unwrap_or_default()
    }

    /// All values of a flag.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let mine = self.given.iter().filter(move |(flag, _)| flag.name == name);
        mine.map(|(_, value)| value.as_str())
    }

    /// Every flag that is given, with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static Flag, &str)> {
        self.given
            .iter()
            .map(|(flag, value)| (*flag, value.as_str()))
    }

    /// Every flag without effect, with the condition on which it would have one. A flag whose value is the
    /// default needs none.
    pub(crate) fn idle(&self) -> impl Iterator<Item = (&'static Flag, &'static str)> {
        let asks = self.iter().filter(|(f, value)| f.default != Some(value));
        asks.filter_map(|(flag, _)| {
            let need = flag.needs.filter(|need| !(need.is_met)(self))?;
            Some((flag, need.when))
        })
    }

    /// Message about the first flag without effect; the caller adds what goes before it.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (flag, when) = self.idle().next()?;
        let name = flag.spelling();
        Some(format!("{name} acts only {when}; leave it out"))
    }
}

/// Arguments of a door, read. It derefs to the values of the door's own flags.
#[derive(Clone, Debug)]
pub struct Given {
    /// The door.
    pub door: &'static Door,
    /// The name of the link that the program was called by, where it was one of the door's.
    pub link: Option<&'static str>,
    /// True if they print a stored result again.
    pub is_again: bool,
    /// Arguments verbatim, those of the link first.
    pub args: Vec<String>,
    /// Values of the door's own flags.
    pub own: GivenFlags,
    /// Values of the flags of the house.
    pub house: GivenFlags,
    /// Options of jobs, of a door that takes them among its flags.
    pub options: Vec<CommandWord>,
    /// Arguments that are no flags.
    pub operands: Vec<String>,
}

impl Given {
    /// `weir VERB` and the arguments, as plans and results have them.
    pub fn command(&self) -> Vec<String> {
        let verb = self.door.verb;
        let program = ["weir", verb].map(str::to_owned);
        program
            .into_iter()
            .chain(self.args.iter().cloned())
            .collect()
    }
}

impl Given {
    /// # Errors
    /// A flag other than these, beside arguments that leave it nothing to do.
    pub(crate) fn refuse_beside(&self, mode: &str, taken: &[&str]) -> Result<(), Refusal> {
        let own = self
            .own
            .iter()
            .find(|(flag, _)| !taken.contains(&flag.name));
        let own = own.map(|(flag, _)| flag.spelling());
        let option = self.options.first().map(|option| option.text.clone());
        let house = || self.refuse_house(mode, taken);
        own.or(option)
            .map_or_else(house, |other| Err(idle_beside(&other, mode)))
    }

    /// # Errors
    /// The same of flags of the house alone.
    pub(crate) fn refuse_house(&self, mode: &str, taken: &[&str]) -> Result<(), Refusal> {
        let mut house = self.house.iter().map(|(flag, _)| flag);
        house
            .find(|flag| !taken.contains(&flag.name))
            .map_or(Ok(()), |flag| {
                Err(idle_beside(&house_spelling(self.door, flag), mode))
            })
    }
}

/// Refusal of an argument that other arguments leave nothing to do.
pub(crate) fn idle_beside(other: &str, mode: &str) -> Refusal {
    Refusal::usage(format!("{other} has no effect with {mode}; leave it out"))
}

impl Deref for Given {
    type Target = GivenFlags;

    fn deref(&self) -> &GivenFlags {
        &self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{beff, fio, run};

    /// Flags, with their values, that meet the needs of a table's flags.
    type Partners = &'static [(&'static str, &'static [(&'static str, &'static str)])];

    const OF_FIO: Partners = &[
        (
            "with `--output-format=terse`, `--minimal` or `--append-terse`",
            &[("output-format", "normal, terse")],
        ),
        ("without `--eta=never`", &[("eta", "always")]),
        (
            "with `--trigger-file` or `--trigger-timeout`",
            &[("trigger-file", "f")],
        ),
        ("with `--status-interval`", &[("status-interval", "1")]),
    ];
    const OF_RUN: Partners = &[
        (
            "with `--format text` or `--output FILE.txt`",
            &[("format", "json"), ("output", "r.txt")],
        ),
        ("with `--format text`", &[("format", "text")]),
        (
            "with `--format json` or `--output FILE.json`",
            &[("output", "r.json")],
        ),
        ("without `--no-latency`", &[("format", "text")]),
        ("with `--web`", &[("web", "")]),
        ("with `--output FILE.csv`", &[("output", "r.csv")]),
        ("with `--live`", &[("live", "")]),
    ];
    const OF_BEFF: Partners = &[
        ("with `--channel-dir`", &[("channel-dir", "d")]),
        ("with `--validate full`", &[("validate", "full")]),
        ("with `--model`", &[("model", "fit")]),
        (
            "where something is measured, not with `--test`",
            &[("simulate", "8"), ("model", "fit")],
        ),
        ("with `--test`", &[("test", "")]),
        ("with `--device -1`", &[("device", "-1")]),
        (
            "with `--dump-json` or `--format json`",
            &[("format", "json")],
        ),
        (
            "with `--pcie-read`, `--pcie-write`, `--pcie-reverse` or `--kernel-latency`",
            &[("kernel-latency", "")],
        ),
        ("with `--format text`", &[("dump-json", "r.json")]),
    ];
    /// Flags that break needs which are met by default.
    const OBSTACLES: &[(&str, (&str, &str))] = &[
        ("without `--eta=never`", ("eta", "never")),
        (
            "with `--format text` or `--output FILE.txt`",
            ("format", "json"),
        ),
        ("with `--format text`", ("format", "json")),
        (
            "where something is measured, not with `--test`",
            ("test", ""),
        ),
        ("with `--device -1`", ("device", "0")),
        ("without `--no-latency`", ("no-latency", "")),
    ];

    fn given(table: &'static [Flag], flag: &'static Flag, others: &[(&str, &str)]) -> GivenFlags {
        let mut given = GivenFlags::new(table);
        for (name, value) in others {
            given.add(find(table, name).unwrap(), value);
        }
        given.add(flag, "other");
        given
    }

    #[test]
    fn a_flag_without_its_partner_is_idle_and_with_it_is_not() {
        for (table, partners) in [
            (fio::FLAGS, OF_FIO),
            (run::FLAGS, OF_RUN),
            (beff::FLAGS, OF_BEFF),
        ] {
            let needing = table.iter().filter_map(|f| f.needs.map(|need| (f, need)));
            for (flag, need) in needing {
                let obstacle = OBSTACLES.iter().find(|(when, _)| *when == need.when);
                let obstacle = obstacle.map(|(_, flag)| *flag);
                let alone = given(table, flag, obstacle.as_slice());
                assert_eq!(alone.idle().count(), 1, "{}", flag.name);
                let refusal = alone.refusal().unwrap();
                let start = format!("{} acts only {}", flag.spelling(), need.when);
                assert!(refusal.starts_with(&start), "{refusal}");
                let partner = partners.iter().find(|(when, _)| *when == need.when);
                let (_, partner) =
                    partner.unwrap_or_else(|| panic!("{}: {}", flag.name, need.when));
                let both = given(table, flag, partner);
                assert_eq!(both.refusal(), None, "{} with {partner:?}", flag.name);
            }
        }
    }

    #[test]
    fn what_holds_anyway_may_be_asked_for() {
        let mut given = GivenFlags::new(fio::FLAGS);
        given.add(find(fio::FLAGS, "terse-version").unwrap(), "3");
        assert_eq!(given.refusal(), None);
        given.add(find(fio::FLAGS, "terse-version").unwrap(), "4");
        assert!(given.refusal().is_some());
    }
}
