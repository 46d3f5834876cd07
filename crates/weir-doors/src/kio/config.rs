//! The configuration file: `global` and `threads` in YAML.
//!
//! In: a text, or settings. Out: settings by thread, or the text in the form of the program that the
//! door stands for: four spaces, sorted keys. Not here: where the file is, and defaults.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::settings::{Field, Given, Settings};
use weir_units::parse::scaled;

/// Threads that a file may have.
const MOST_THREADS: u32 = 1024;

/// Settings in a configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// Threads, where it is given and not 0.
    pub(super) num_threads: Option<u32>,
    /// Seconds, where they are given and not 0.
    pub(super) runtime_seconds: Option<u32>,
    /// The target of all threads that have none of their own.
    pub(super) block_device: Option<String>,
    /// Threads by number.
    pub(super) threads: BTreeMap<u32, ThreadConfig>,
}

/// Settings of a thread in a configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadConfig {
    /// Settings of the thread.
    pub(super) given: Given,
    /// Target of the thread.
    pub(super) block_device: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    global: Option<Global>,
    #[serde(default)]
    threads: Option<BTreeMap<u32, ThreadConfig>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Global {
    num_threads: Option<u32>,
    runtime_seconds: Option<u32>,
    block_device: Option<String>,
}

impl Config {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The error and its place, after the file's name and a colon.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let file: File = serde_saphyr::from_str(text).map_err(|error| brief(&error.to_string()))?;
        let global = file.global.unwrap_or(Global {
            num_threads: None,
            runtime_seconds: None,
            block_device: None,
        });
        let within = |name: &str, value: Option<u32>, most: u32| match value {
            Some(value) if value > most => {
                Err(format!(" `{name}` is {value}: it takes 0 to {most}"))
            }
            value => Ok(value.filter(|value| *value != 0)),
        };
        Ok(Self {
            num_threads: within("num_threads", global.num_threads, MOST_THREADS)?,
            runtime_seconds: within("runtime_seconds", global.runtime_seconds, 3600)?,
            block_device: global.block_device,
            threads: file.threads.unwrap_or_default(),
        })
    }

    /// Settings that are 0 for "as without them", which a fresh module has written.
    pub(super) fn notes(&self) -> Vec<String> {
        let zero = |field: Field, meaning: &str| {
            let is_zero = |thread: &ThreadConfig| thread.given.get(field) == Some(0);
            let name = field.setting().name;
            self.threads
                .values()
                .any(is_zero)
                .then(|| format!("{name} 0 means {meaning}"))
        };
        let notes = [
            zero(Field::OffsetHigh, "the end of the device"),
            zero(Field::OffsetStride, "the block size"),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// First line of the parser's message, with a place before it, without its advice to programmers.
fn brief(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line
        .split(", set DuplicateKeyPolicy")
        .next()
        .unwrap_or(line);
    let line = line.trim_start_matches("error: ");
    format!(" {line}")
}

impl<'de> Deserialize<'de> for ThreadConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ThreadVisitor)
    }
}

/// Reads the settings of a thread by their names.
struct ThreadVisitor;

impl<'de> Visitor<'de> for ThreadVisitor {
    type Value = ThreadConfig;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("settings of a thread")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ThreadConfig, A::Error> {
        let mut thread = ThreadConfig::default();
        while let Some(key) = map.next_key::<String>()? {
            if key == "block_device" {
                thread.block_device = Some(map.next_value()?);
                continue;
            }
            let field = Field::named(&key).ok_or_else(|| unknown(&key))?;
            let Whole(value) = map.next_value()?;
            let value = field.setting().check(value).map_err(de::Error::custom)?;
            thread.given.set(field, value);
        }
        Ok(thread)
    }
}

/// A whole number, also one that is written as on the command line: `4k`, `0x10`.
struct Whole(i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = scaled(&text, (i64::MIN, i64::MAX)).ok();
        let wrong = || de::Error::custom(format!("`{text}` is not a whole number (8, 4k, 1M)"));
        number.map(Self).ok_or_else(wrong)
    }
}

fn unknown<E: de::Error>(key: &str) -> E {
    let names = Field::ALL.map(|field| field.setting().name);
    let near = crate::flags::nearest(key, names.into_iter());
    let hint = near.map_or_else(String::new, |near| format!(" (did you mean `{near}`?)"));
    E::custom(format!("a thread has no setting `{key}`{hint}"))
}

/// A configuration as it is written and printed, each line indented by `level` levels.
pub(super) fn text(runtime_seconds: impl Display, threads: &[Settings], level: usize) -> String {
    let mut out = String::new();
    let indent = "    ".repeat(level);
    let count = threads.len();
    push!(out, "{indent}global:\n");
    push!(out, "{indent}    num_threads: {count}\n");
    push!(out, "{indent}    runtime_seconds: {runtime_seconds}\n");
    push!(out, "{indent}threads:\n");
    for (number, thread) in threads.iter().enumerate() {
        push!(out, "{indent}    {number}:\n");
        for field in Field::ALL {
            let (name, value) = (field.setting().name, thread.get(field));
            push!(out, "{indent}        {name}: {value}\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_configuration_that_is_written_reads_back_the_same() {
        let mut settings = Given::default().complete(1 << 30).unwrap();
        settings.set(Field::OffsetStride, -4096);
        let written = text(5, &[settings, settings], 0);
        let read = Config::read(&written).unwrap();
        assert_eq!((read.num_threads, read.runtime_seconds), (Some(2), Some(5)));
        assert_eq!(read.threads.keys().copied().collect::<Vec<_>>(), [0, 1]);
        let again = read.threads[&1].given.complete(0).unwrap();
        assert_eq!(again, settings);
        assert!(read.notes().is_empty());
    }

    #[test]
    fn the_text_is_that_of_the_program_it_stands_for() {
        let settings = Given::default().complete(8192).unwrap();
        let expected = "\
global:
    num_threads: 1
    runtime_seconds: 5
threads:
    0:
        block_size: 4096
        burst_delay: 0
        burst_finish: 0
        offset_high: 8192
        offset_low: 0
        offset_random: 0
        offset_stride: 4096
        queue_depth: 1
        read_burst: 1
        read_mix_percent: 100
        read_sleep_usec: 0
        write_burst: 1
        write_sleep_usec: 0
";
        assert_eq!(text(5, &[settings], 0), expected);
    }

    #[test]
    fn devices_and_zeros_are_understood() {
        let read = Config::read(
            "global: {num_threads: 0, block_device: /dev/a}\nthreads:\n  1:\n    offset_high: 0\n    \
             block_device: /dev/b\n",
        )
        .unwrap();
        assert_eq!(read.num_threads, None);
        let sizes = Config::read("threads: {0: {block_size: 8k, offset_high: 1M}}").unwrap();
        let given = sizes.threads[&0].given;
        assert_eq!(given.get(Field::BlockSize), Some(8192));
        assert_eq!(given.get(Field::OffsetHigh), Some(1 << 20));
        assert_eq!(read.block_device.as_deref(), Some("/dev/a"));
        assert_eq!(read.threads[&1].block_device.as_deref(), Some("/dev/b"));
        assert_eq!(read.notes(), ["offset_high 0 means the end of the device"]);
        assert_eq!(Config::read("global:\n").unwrap(), Config::default());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, named) in [
            (
                "threads: {0: {block_sise: 4096}}",
                "did you mean `block_size`",
            ),
            ("threads: {0: {queue_depth: 0}}", "it takes 1 to 1024"),
            ("threads: {x: {}}", ""),
            ("threads: [1, 2]", ""),
            ("global: {num_threads: 5000}", "it takes 0 to 1024"),
            ("globul: {}", "globul"),
            (
                "threads: {0: {queue_depth: deep}}",
                "`deep` is not a whole number",
            ),
            (
                "threads: {0: {queue_depth: 4.0}}",
                "`4.0` is not a whole number",
            ),
            (
                "threads: {0: {queue_depth: 1, queue_depth: 2}}",
                "duplicate mapping key: queue_depth",
            ),
            ("threads: {0: {queue_depth: 1", ""),
        ] {
            let why = Config::read(text).unwrap_err();
            assert!(why.contains(named) && why.len() > 10, "{text}: {why}");
            assert!(!why.contains("Policy"), "{text}: {why}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(global|threads|[0-9]|: |\n|    |[-{}&*!'\",a-z]){0,60}") {
            let _ = Config::read(&text);
        }
    }
}
