//! The options of the job language as records, one file per topic.
//!
//! Each option of fio 3.33 has a record here: it acts, or it is accepted without meaning, or it
//! is refused by name with what comes nearest. To add an option, add a record.

mod content;
mod engine;
mod engine_settings;
mod files;
mod ignored;
mod log;
mod needs;
mod other_engines;
mod pattern;
mod process;
mod record;
mod refused;
mod replay;
mod report;
mod steady;
mod target;
mod time;
pub(crate) mod verify;
mod zones;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use needs::Need;
pub(crate) use record::{Apply, Env};
pub use record::{Category, OptionRecord, Scope, Support, ValueKind};

static TABLES: &[&[OptionRecord]] = &[
    target::RECORDS,
    files::RECORDS,
    pattern::RECORDS,
    zones::RECORDS,
    content::RECORDS,
    engine::RECORDS,
    engine_settings::RECORDS,
    process::RECORDS,
    other_engines::RECORDS,
    time::RECORDS,
    verify::RECORDS,
    steady::RECORDS,
    replay::RECORDS,
    report::RECORDS,
    log::RECORDS,
    ignored::RECORDS,
    refused::RECORDS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static OptionRecord>> = LazyLock::new(|| {
    option_records()
        .flat_map(|r| {
            std::iter::once(r.name)
                .chain(r.aliases.iter().copied())
                .map(move |n| (n, r))
        })
        .collect()
});

/// Every option, by topic.
pub fn option_records() -> impl Iterator<Item = &'static OptionRecord> {
    TABLES.iter().flat_map(|t| t.iter())
}

/// The option of this name or alias.
pub fn find_option(name: &str) -> Option<&'static OptionRecord> {
    BY_NAME.get(name).copied()
}

/// Every name and alias of an option.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    option_records().flat_map(|r| std::iter::once(r.name).chain(r.aliases.iter().copied()))
}

/// A number that a bound keeps below 2^32.
pub(crate) fn small(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The largest value of options that weir keeps in 32 bits.
pub(crate) const MAX_32: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} stands twice");
        }
    }

    #[test]
    fn every_supported_option_is_applied_with_the_type_it_takes() {
        for r in option_records() {
            let fits = matches!(
                (&r.value, &r.apply),
                (ValueKind::Flag | ValueKind::Bool, Apply::Switch(_))
                    | (ValueKind::Integer { .. }, Apply::Integer(_))
                    | (ValueKind::Signed { .. }, Apply::Signed(_))
                    | (ValueKind::Triple { .. }, Apply::Triple(_))
                    | (ValueKind::Size { .. }, Apply::Size(_))
                    | (ValueKind::Duration { .. }, Apply::Duration(_))
                    | (ValueKind::Words { .. }, Apply::Word(_) | Apply::Choice(_))
                    | (ValueKind::Numbers { .. }, Apply::Numbers(_))
                    | (ValueKind::Text, Apply::Text(_))
                    | (ValueKind::Text | ValueKind::Flag, Apply::Setting(_))
                    | (ValueKind::OptionalText, Apply::OptionalText(_))
                    | (_, Apply::Nothing)
            );
            assert!(fits, "{}", r.name);
            assert!(!r.short.is_empty(), "{}", r.name);
            if matches!(r.apply, Apply::Nothing) && r.support == Support::Supported {
                assert!(r.long.contains("output"), "{} acts on nothing", r.name);
            }
        }
    }
}
