//! Counters as `perf stat` prints them, as text or with a separator.
//!
//! In: the recorded output; what the program itself printed in between is passed over. Out: a count an
//! event. Counts with less than nine tenths of the time are noted as scaled. Not here: which counts
//! matter.

use std::collections::BTreeMap;

use crate::inputs::InputError;
use crate::reading::Reading;

const HELP: &str =
    "record it with `perf stat -e LLC-loads,LLC-load-misses -p PID` or `perf stat -x,`";
/// Below this share of the time a count is an estimate.
const WHOLE: f64 = 90.0;

/// Counts of perf's events.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfCounts {
    events: BTreeMap<String, Reading>,
    /// Events that were counted during a part of the time.
    pub notes: Vec<String>,
}

impl PerfCounts {
    /// Reads a recorded output.
    ///
    /// # Errors
    /// No counter is in it.
    pub fn read(text: &str) -> Result<Self, InputError> {
        let mut counts = Self {
            events: BTreeMap::new(),
            notes: Vec::new(),
        };
        let mut last = 1;
        for (at, line) in text.lines().enumerate() {
            last = at + 1;
            if let Some(event) = separated(line).or_else(|| spaced(line)) {
                counts.add(event);
            }
        }
        if counts.events.is_empty() {
            let message = "no counter of perf stat in it";
            return Err(InputError::new(last, message, HELP));
        }
        Ok(counts)
    }

    fn add(&mut self, event: CountedEvent<'_>) {
        let name = event.name.split(':').next().unwrap_or(event.name);
        if let Some(percent) = event.percent.filter(|percent| *percent < WHOLE) {
            self.notes.push(format!(
                "{name} was counted during {percent} % of the time and scaled"
            ));
        }
        let sum = match self.events.remove(name) {
            // Of several CPUs or kinds of core.
            Some(known) => known.with(&event.count, |a, b| a + b),
            None => event.count,
        };
        self.events.insert(name.to_owned(), sum);
    }

    /// Count of an event.
    pub fn count(&self, event: &str) -> Reading {
        let known = self.events.get(event).cloned();
        match known {
            None => Reading::missing(format!("perf did not count {event}")),
            Some(Reading {
                unavailable: Some(reason),
                ..
            }) => Reading::missing(format!("{event}: {reason}")),
            Some(known) => known,
        }
    }

    /// One count over another; nothing where the other is 0.
    pub fn ratio(&self, event: &str, of: &str) -> Reading {
        let (count, of_count) = (self.count(event), self.count(of));
        if of_count.value == Some(0.0) {
            return Reading::missing(format!("{of} is 0"));
        }
        count.with(&of_count, |count, of| count / of)
    }
}

struct CountedEvent<'a> {
    name: &'a str,
    count: Reading,
    percent: Option<f64>,
}

/// `1234,,LLC-loads,3000123,100.00,,`: value, unit, event, time, per cent of the time.
fn separated(line: &str) -> Option<CountedEvent<'_>> {
    let separator = [',', ';', '\t'].into_iter().find(|s| {
        let mut fields = line.trim().split(*s);
        let unit = fields
            .nth(1)
            .map(|unit| unit.chars().all(char::is_alphabetic));
        unit == Some(true) && fields.next().is_some_and(is_event)
    })?;
    let fields: Vec<&str> = line.trim().split(separator).collect();
    let [value, _, name, rest @ ..] = &fields[..] else {
        return None;
    };
    let percent = rest.get(1).and_then(|percent| percent.trim().parse().ok());
    Some(CountedEvent {
        name: name.trim(),
        count: Reading::of_text(value)?,
        percent,
    })
}

/// `1,234,567   LLC-loads   # 1.2 M/sec   (50.02%)`, `2.34 msec task-clock`, `<not supported> LLC-stores`.
fn spaced(line: &str) -> Option<CountedEvent<'_>> {
    let line = line.trim();
    let (count, rest) = if let Some(rest) = line.strip_prefix("<not ") {
        let (why, rest) = rest.split_once('>')?;
        (Reading::missing(format!("perf says `not {why}`")), rest)
    } else {
        let (number, rest) = line.split_once(' ')?;
        let number: f64 = number.replace(',', "").parse().ok()?;
        (Reading::known(number), rest)
    };
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let name = if ["msec", "Joules", "MiB"].contains(&first) {
        words.next()?
    } else {
        first
    };
    let percent = line.rsplit_once('(').and_then(|(_, percent)| {
        let percent = percent.strip_suffix("%)")?;
        percent.trim().parse().ok()
    });
    is_event(name).then_some(CountedEvent {
        name,
        count,
        percent,
    })
}

/// True if a word may be the name of an event: none of the lines of times.
fn is_event(word: &str) -> bool {
    let word = word.trim();
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && !word.contains(char::is_whitespace)
        && word != "seconds"
        && word.len() > 2
}
