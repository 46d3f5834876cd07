//! The options that random job files are made of, and how their values are written.

mod files;
mod general;
mod logs;
mod verify;

use crate::random::Random;

/// Values of an option, within bounds that keep a run short.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// Nothing.
    Flag,
    /// 0 or 1.
    Bool,
    /// A number of bytes in any notation, a multiple of 512.
    Size(u64, u64),
    /// The same, up to three of them.
    Sizes(u64, u64),
    /// A plain number.
    Count(u64, u64),
    /// One of these texts.
    Word(&'static [&'static str]),
    /// One of these texts, or nothing.
    Prefix(&'static [&'static str]),
}

/// An option of the language.
pub(crate) struct Known {
    /// Its name and its aliases.
    pub(crate) names: &'static [&'static str],
    /// Values that keep a run short and both tools on the same path.
    pub(crate) takes: Takes,
    /// Other values, right and wrong ones, for files that are only parsed.
    pub(crate) odd: &'static [&'static str],
}

const fn known(
    names: &'static [&'static str],
    takes: Takes,
    odd: &'static [&'static str],
) -> Known {
    Known { names, takes, odd }
}

use Takes::{Bool, Count, Flag, Prefix, Size, Sizes, Word};

const SWITCH: &[&str] = &["0", "1", "2", "-1", "x"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "0x10",
    "1k",
    "-1",
    "x",
    "4g",
    "99999999999999999999",
];

/// Topic of a job: the options that are chosen from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    General,
    Files,
    Logs,
    Verify,
}

impl About {
    /// Every option of it.
    pub(crate) const fn options(self) -> &'static [Known] {
        match self {
            Self::General => general::OPTIONS,
            Self::Files => files::OPTIONS,
            Self::Logs => logs::OPTIONS,
            Self::Verify => verify::OPTIONS,
        }
    }
}

/// The option with this name.
pub(crate) fn option(name: &str) -> &'static Known {
    [About::General, About::Files, About::Logs, About::Verify]
        .iter()
        .flat_map(|about| about.options())
        .find(|o| o.names[0] == name)
        .unwrap()
}

/// A line for an option.
pub(crate) fn line(option: &Known, random: &mut Random) -> String {
    let name = random.pick(option.names);
    match value(option.takes, random) {
        None => (*name).to_owned(),
        Some(value) => format!("{name}={value}"),
    }
}

/// A line that may be wrong.
pub(crate) fn odd_line(option: &Known, random: &mut Random) -> String {
    if option.odd.is_empty() || random.percent(50) {
        return line(option, random);
    }
    format!("{}={}", random.pick(option.names), random.pick(option.odd))
}

fn value(takes: Takes, random: &mut Random) -> Option<String> {
    Some(match takes {
        Flag if random.percent(80) => return None,
        Flag | Bool => random.between(0, 1).to_string(),
        Size(low, high) => size(low, high, random),
        Sizes(low, high) => {
            let all = random.between(1, 3);
            let sizes: Vec<String> = (0..all).map(|_| size(low, high, random)).collect();
            sizes.join(",")
        }
        Count(low, high) => random.between(low, high).to_string(),
        Prefix(_) if random.percent(50) => return None,
        Word(words) | Prefix(words) => (*random.pick(words)).to_owned(),
    })
}

/// A size in one of the notations; whole KiB where the notation needs it.
fn size(low: u64, high: u64, random: &mut Random) -> String {
    let bytes = random.between(low / 512, high / 512) * 512;
    let kib = bytes / 1024;
    if kib == 0 {
        return bytes.to_string();
    }
    match random.between(0, 8) {
        0 => bytes.to_string(),
        1 => format!("0x{bytes:x}"),
        2 => format!("{kib}K"),
        3 => format!("{kib}kb"),
        4 => format!("{kib}ki"),
        5 => format!("{kib}kib"),
        6 => format!("{bytes}b"),
        7 if low >= 4096 => "${SOME}".to_owned(),
        _ => format!("{kib}k"),
    }
}
