//! A configuration of keys and values as text, in which single values can be replaced.
//!
//! In: lines `key : value` or `key = value`, comments with `#` or `;`, heads `[section]`. Out: the value of a key and its line; the
//! same text with another value, every other character kept. Not here: what keys mean.

use crate::inputs::InputError;

/// A configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    lines: Vec<ConfigLine>,
    ends_with_newline: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ConfigLine {
    text: String,
    /// The key, and where its value stands in the text.
    entry: Option<ConfigEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ConfigEntry {
    key: String,
    begin: usize,
    end: usize,
}

impl ConfigLine {
    fn replace(&mut self, value: &str) {
        if let Some(entry) = &mut self.entry {
            self.text.replace_range(entry.begin..entry.end, value);
            entry.end = entry.begin + value.len();
        }
    }
}

const HELP: &str = "a line is `key : value`, `key = value`, `[section]`, or a comment after `#`";

impl ConfigText {
    /// Reads a configuration.
    ///
    /// # Errors
    /// A line that has no key.
    pub fn read(text: &str) -> Result<Self, InputError> {
        let mut lines = Vec::new();
        for (at, line) in text.split_terminator('\n').enumerate() {
            lines.push(ConfigLine {
                entry: entry(line, at + 1)?,
                text: line.to_owned(),
            });
        }
        Ok(Self {
            lines,
            ends_with_newline: text.ends_with('\n'),
        })
    }

    /// The value of a key with its line, from 1; nothing where the key does not stand there.
    ///
    /// # Errors
    /// The key stands there twice.
    pub fn value(&self, key: &str) -> Result<Option<(&str, usize)>, InputError> {
        Ok(self.place(key)?.map(|at| {
            let line = &self.lines[at];
            let value = line.entry.as_ref().map(|e| &line.text[e.begin..e.end]);
            (value.unwrap_or_default(), at + 1)
        }))
    }

    /// Gives a key that stands there another value; whether it stands there.
    ///
    /// # Errors
    /// The key stands there twice.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, InputError> {
        let Some(at) = self.place(key)? else {
            return Ok(false);
        };
        self.lines[at].replace(value);
        Ok(true)
    }

    /// It has heads of sections, so that a line at its end belongs to the last of them.
    pub fn has_sections(&self) -> bool {
        let mut plain = self.lines.iter().filter(|line| line.entry.is_none());
        plain.any(|line| line.text.trim_start().starts_with('['))
    }

    /// All values of a key, in order.
    pub fn all(&self, key: &str) -> Vec<&str> {
        let values = self.lines.iter().filter_map(|line| {
            let entry = line.entry.as_ref().filter(|entry| entry.key == key)?;
            Some(&line.text[entry.begin..entry.end])
        });
        values.collect()
    }

    /// Gives the lines of a key other values, in order; lines without one keep theirs.
    pub fn set_all(&mut self, key: &str, values: &[String]) {
        let lines = self.lines.iter_mut().filter(|line| {
            let entry = line.entry.as_ref();
            entry.is_some_and(|entry| entry.key == key)
        });
        for (line, value) in lines.zip(values) {
            line.replace(value);
        }
    }

    /// Adds a line with a key and its value at the end.
    pub fn add(&mut self, key: &str, value: &str) {
        let text = format!("{key} : {value}");
        let begin = text.len() - value.len();
        let entry = ConfigEntry {
            key: key.to_owned(),
            begin,
            end: text.len(),
        };
        let entry = Some(entry);
        self.lines.push(ConfigLine { text, entry });
    }

    /// Every key, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = self.lines.iter().filter_map(|line| line.entry.as_ref());
        entries.map(|entry| entry.key.as_str())
    }

    /// The whole text.
    pub fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|line| line.text.as_str()).collect();
        let end = if self.ends_with_newline { "\n" } else { "" };
        lines.join("\n") + end
    }

    fn place(&self, key: &str) -> Result<Option<usize>, InputError> {
        let is_it = |line: &ConfigLine| line.entry.as_ref().is_some_and(|e| e.key == key);
        let mut places = (0..self.lines.len()).filter(|at| is_it(&self.lines[*at]));
        match (places.next(), places.next()) {
            (Some(first), Some(second)) => Err(InputError::new(
                second + 1,
                format!("`{key}` stands in line {} already", first + 1),
                "leave one of them out",
            )),
            (first, _) => Ok(first),
        }
    }
}

fn entry(line: &str, number: usize) -> Result<Option<ConfigEntry>, InputError> {
    let content = line.split('#').next().unwrap_or_default();
    let is_head = content.trim().starts_with('[') && content.trim().ends_with(']');
    if content.trim().is_empty() || is_head || content.trim_start().starts_with(';') {
        return Ok(None);
    }
    let separator = content.find([':', '=']);
    let key = separator.map_or("", |at| content[..at].trim());
    let Some(separator) = separator.filter(|_| !key.is_empty()) else {
        let shown: String = content.trim().chars().take(60).collect();
        return Err(InputError::new(
            number,
            format!("`{shown}` has no key"),
            HELP,
        ));
    };
    let after = &content[separator + 1..];
    let blanks = after.len() - after.trim_start().len();
    let begin = separator + 1 + if after.trim().is_empty() { 0 } else { blanks };
    Ok(Some(ConfigEntry {
        key: key.to_owned(),
        begin,
        end: begin + after.trim().len(),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "# head\nkA : 32 # packets\r\n\nworkload : 0 : TxNIC : 0 : 0,1 : 0\n\
                        workload : 1 : RXNIC : 1 : 2 : 1\nmac = 02:00:00:00:00:01\nnuma :\n";

    #[test]
    fn a_value_is_replaced_and_all_else_is_kept() {
        let mut config = ConfigText::read(TEXT).unwrap();
        assert_eq!(config.value("kA"), Ok(Some(("32", 2))));
        assert_eq!(config.value("mac"), Ok(Some(("02:00:00:00:00:01", 6))));
        assert_eq!(config.value("numa"), Ok(Some(("", 7))));
        assert_eq!(config.text(), TEXT);
        assert_eq!(config.set("kA", "128"), Ok(true));
        assert_eq!(config.set("kA", "4"), Ok(true));
        assert_eq!(config.text(), TEXT.replace("32", "4"));
        assert_eq!(config.set("kB", "1"), Ok(false));
        let twice = config.value("workload").unwrap_err();
        assert_eq!(
            (twice.line, twice.message.as_str()),
            (5, "`workload` stands in line 4 already")
        );
    }

    #[test]
    fn a_key_that_is_added_can_be_set() {
        for text in ["", "a : 1", "a : 1\n"] {
            let mut config = ConfigText::read(text).unwrap();
            config.add("b", "32");
            config.set("b", "7").unwrap();
            assert!(config.text().trim_end().ends_with("b : 7"));
            let again = ConfigText::read(&config.text()).unwrap();
            assert_eq!(again.value("b").unwrap().unwrap().0, "7");
        }
    }

    #[test]
    fn heads_of_sections_and_their_comments_are_kept() {
        let text = "; rate = 1\n[a]\nrate=2\n [[workload]] # one\n";
        let mut config = ConfigText::read(text).unwrap();
        assert_eq!(config.keys().collect::<Vec<_>>(), ["rate"]);
        assert!(config.has_sections() && !ConfigText::read(TEXT).unwrap().has_sections());
        config.set("rate", "7").unwrap();
        assert_eq!(config.text(), text.replace('2', "7"));
    }

    #[test]
    fn a_line_without_a_key_is_refused_with_its_number() {
        for text in ["a : 1\nnothing\n", "a : 1\n: 2\n", "a : 1\n = 2"] {
            assert_eq!(ConfigText::read(text).unwrap_err().line, 2, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_prints_as_it_stood(text in "([ -~\t]{0,30}\r?\n){0,6}[ -~]{0,20}") {
            if let Ok(config) = ConfigText::read(&text) {
                prop_assert_eq!(config.text(), text);
            }
        }
    }
}
