//! Kinds of values that flags take.
//!
//! In: the kind that a flag's record names, the text of a value. Out: what the text should have
//! been. Not here: the grammars of quantities (`weir_units::parse`), values that only one door reads.

use weir_units::{Bytes, Nanos, parse};

use crate::flags::{Flag, nearest};

/// Kind of value that a flag takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// Any text: its door reads it.
    Text,
    /// Whole number of a range, both ends included.
    Whole(i64, i64),
    /// Whole number of a range, also in base 16, or with k, M, G or T for powers of 1024.
    Scaled(i64, i64),
    /// Number of a range, both ends included.
    Number(f64, f64),
    /// Percent of a range, both ends included, with or without its sign.
    Percent(f64, f64),
    /// Seconds of a range, both ends included.
    SecondsWithin(f64, f64),
    /// Size from 1 byte to this many.
    Size(u64),
    /// Seconds above 0.
    Seconds,
    /// Seconds; 0 is no wait.
    Pause,
    /// Time above 0 with a unit; seconds without one.
    Time,
    /// Operations of this name per second.
    Rate(&'static str),
    /// Bits per second.
    BitsPerSecond,
    /// CPUs.
    Cpus,
    /// Percentages.
    Percentages,
    /// Percentiles above 0 and below 100.
    Percentiles,
    /// Text with a grammar of its own, which this function checks.
    Grammar(fn(&str) -> Result<(), String>),
}

impl Takes {
    /// Finds out whether a text is such a value.
    ///
    /// # Errors
    /// The values that are.
    fn check(self, text: &str) -> Result<(), String> {
        match self {
            Self::Text => Ok(()),
            Self::Whole(least, most) => parse::whole(text, (least, most)).map(drop),
            Self::Scaled(least, most) => parse::scaled(text, (least, most)).map(drop),
            Self::Number(least, most) => within(text, (least, most), "a number"),
            Self::Percent(least, most) => within(
                text.strip_suffix('%').unwrap_or(text),
                (least, most),
                "percent",
            ),
            Self::SecondsWithin(least, most) => within(
                text.strip_suffix('s').unwrap_or(text),
                (least, most),
                "seconds",
            ),
            Self::Size(most) => parse::size(text, most).map(drop),
            Self::Seconds => parse::seconds(text).map(drop),
            Self::Pause => parse::pause(text).map(drop),
            Self::Time => parse::time(text).map(drop),
            Self::Rate(what) => parse::rate(text, what).map(drop),
            Self::BitsPerSecond => parse::bits_per_s(text).map(drop),
            Self::Cpus => parse::cpus(text).map(drop),
            Self::Percentages => parse::percentages(text).map(drop),
            Self::Percentiles => parse::percentiles(text).map(drop),
            Self::Grammar(check) => check(text),
        }
    }

    /// Remark of a help text.
    fn remark(self) -> Option<String> {
        match self {
            Self::Whole(least, i64::MAX) | Self::Scaled(least, i64::MAX) => {
                Some(format!("a whole number from {least}"))
            }
            Self::Whole(least, most) | Self::Scaled(least, most) => {
                Some(format!("a whole number from {least} to {most}"))
            }
            Self::Text => None,
            // What no text is says what it takes.
            other => other
                .check("")
                .err()?
                .strip_prefix("it takes ")
                .map(str::to_owned),
        }
    }
}

fn within(text: &str, (least, most): (f64, f64), what: &str) -> Result<(), String> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.parse::<f64>().ok().filter(|_| is_plain);
    let is_within = number.is_some_and(|n| (least..=most).contains(&n));
    let wrong = || format!("it takes {what} from {least} to {most}");
    is_within.then_some(()).ok_or_else(wrong)
}

/// Reason for which a value is refused, and the nearest that is not.
pub(crate) type WrongValue = (String, Option<String>);

impl Flag {
    /// Finds out whether it takes a value.
    ///
    /// # Errors
    /// The values that the flag takes, and the word that may be meant.
    pub(crate) fn check(&self, value: &str) -> Result<(), WrongValue> {
        if self.choices.contains(&value) || (self.optional && value.is_empty()) {
            return Ok(());
        }
        let list = self.choices.join(", ");
        match (self.takes, list.as_str()) {
            (Takes::Text, "") => Ok(()),
            (Takes::Text, list) => {
                let near = nearest(value, self.choices.iter().copied()).map(str::to_owned);
                Err((format!("it takes one of {list}"), near))
            }
            (kind, "") => kind.check(value).map_err(|why| (why, None)),
            (kind, list) => {
                let with_words =
                    |why: String| why.replacen("takes ", &format!("takes {list}, or "), 1);
                kind.check(value).map_err(|why| (with_words(why), None))
            }
        }
    }

    /// Message about a value that the flag, which has this name at its door, does not take.
    pub(crate) fn wrong_value(&self, name: &str, value: &str) -> Option<String> {
        let what = self.value?;
        if value.is_empty() && !self.optional && !self.takes_empty {
            return Some(format!("{name} needs {what}, which is empty"));
        }
        let (why, near) = self.check(value).err()?;
        let help = near.map_or(String::new(), |n| format!("\n  help: did you mean `{n}`?"));
        // A value may be anything.
        let clean = |c: char| if c.is_control() { ' ' } else { c };
        let shown: String = value.chars().map(clean).take(120).collect();
        Some(format!("{name} {shown}: {why}{help}"))
    }

    /// Values that the flag takes, for help texts, where its line does not name all of them.
    pub(crate) fn remark(&self) -> Option<String> {
        let text = [self.short, self.value.unwrap_or_default()].concat();
        let is_named = self.choices.iter().all(|choice| text.contains(choice));
        match (self.takes.remark(), self.choices.join(", ")) {
            (Some(kind), words) if words.is_empty() => Some(kind),
            (Some(kind), words) => Some(format!("{words}, or {kind}")),
            (None, words) => (!is_named).then(|| format!("one of {words}")),
        }
    }
}

/// Values by kind. The reader of arguments has checked them: one that is not given is `None`.
impl crate::given::GivenFlags {
    /// Value that this function reads, as the check of the flag's kind did.
    pub(crate) fn parsed<T, E>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.text(name).and_then(|text| read(text).ok())
    }

    /// Whole number, plain or scaled.
    pub(crate) fn whole<N: TryFrom<i64>>(&self, name: &str) -> Option<N> {
        let number = self.parsed(name, |text| parse::scaled(text, (i64::MIN, i64::MAX)));
        number.and_then(|n| N::try_from(n).ok())
    }

    /// Seconds above 0, or with 0.
    pub(crate) fn seconds(&self, name: &str) -> Option<Nanos> {
        self.parsed(name, parse::pause)
    }

    /// Time with a unit.
    pub(crate) fn time(&self, name: &str) -> Option<Nanos> {
        self.parsed(name, parse::time)
    }

    /// Size in bytes.
    pub(crate) fn size(&self, name: &str) -> Option<Bytes> {
        self.parsed(name, |text| parse::size(text, u64::MAX))
    }

    /// Share of one that percent are.
    pub(crate) fn share(&self, name: &str) -> Option<f64> {
        let number = self.text(name)?.trim_end_matches('%').parse::<f64>().ok();
        number.map(|percent| percent / 100.0)
    }

    /// CPUs in the order given.
    pub(crate) fn cpus(&self, name: &str) -> Option<Vec<u32>> {
        self.parsed(name, parse::cpus)
    }

    /// Bits per second.
    pub(crate) fn bits_per_second(&self, name: &str) -> Option<f64> {
        self.parsed(name, parse::bits_per_s)
    }
}
