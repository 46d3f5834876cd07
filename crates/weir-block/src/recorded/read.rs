//! Reading a pattern: a parser of what others wrote.
//!
//! In: bytes. Out: operations within bounds, or the number of the line that is wrong and why.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use thiserror::Error;
use weir_schema::{Kind, Replay};

use super::{Recorded, RecordedPattern, VERSION_2, VERSION_3};
use crate::op::Verb;

/// Files that a pattern may name.
const MOST_FILES: usize = 1 << 20;
/// Longest name of a file.
const LONGEST_NAME: usize = 4095;
/// Longest line, in bytes: a name, three numbers and an action.
const LONGEST_LINE: u64 = 8192;
/// The end of what a file can hold.
const FARTHEST: u64 = i64::MAX as u64;

/// Reason that a pattern cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct Unreadable {
    /// Counted from 1.
    pub line: usize,
    /// Reason of the failure.
    pub reason: String,
}

pub(super) fn wrong(line: usize, reason: impl Into<String>) -> Unreadable {
    Unreadable {
        line,
        reason: reason.into(),
    }
}

/// Reads a pattern for being carried out again.
///
/// # Errors
/// [`Unreadable`] at the first line that is wrong.
pub fn read(bytes: &[u8], rule: &Replay) -> Result<RecordedPattern, Unreadable> {
    let mut operations = Vec::new();
    let pattern = walk(bytes, rule, |op| operations.push(op))?;
    Ok(RecordedPattern {
        operations,
        ..pattern
    })
}

/// Looks at a pattern that will be read in pieces: its operations stay in the file.
///
/// # Errors
/// [`Unreadable`] at the first line that is wrong.
pub fn survey(path: &Path, rule: &Replay) -> Result<RecordedPattern, Unreadable> {
    let file = File::open(path).map_err(|error| wrong(1, error.to_string()))?;
    let pattern = walk(BufReader::new(file), rule, |_| ())?;
    Ok(RecordedPattern {
        pieces: Some((path.to_owned(), rule.clone())),
        ..pattern
    })
}

/// Goes through a whole pattern.
fn walk(
    input: impl BufRead,
    rule: &Replay,
    mut keep: impl FnMut(Recorded),
) -> Result<RecordedPattern, Unreadable> {
    let mut reader = Reader::new(input, rule)?;
    let mut pattern = RecordedPattern::default();
    while let Some(op) = reader.next()? {
        pattern.note(&op);
        keep(op);
    }
    if pattern.count == 0 {
        let reason = "no operation is left to carry out";
        return Err(wrong(reader.line_number().max(1), reason));
    }
    pattern.files = reader.state.files;
    pattern.ends.resize(pattern.files.len(), 0);
    Ok(pattern)
}

/// Reads the operations of a pattern one after the other.
#[derive(Debug)]
pub(super) struct Reader<R> {
    lines: Lines<R>,
    state: State,
}

/// Lines of a bounded length.
#[derive(Debug)]
struct Lines<R> {
    input: R,
    /// Of the line in `text`, from 1.
    number: usize,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line; false at the end.
    fn advance(&mut self) -> Result<bool, Unreadable> {
        self.text.clear();
        let mut bounded = (&mut self.input).take(LONGEST_LINE + 1);
        let read = bounded.read_until(b'\n', &mut self.text);
        let read = read.map_err(|error| wrong(self.number.max(1), error.to_string()))?;
        self.number += usize::from(read > 0);
        if read as u64 > LONGEST_LINE {
            return Err(wrong(
                self.number,
                format!("more than {LONGEST_LINE} bytes"),
            ));
        }
        Ok(read > 0)
    }

    fn text(&self) -> Result<&str, Unreadable> {
        let text = std::str::from_utf8(&self.text);
        let text = text.map_err(|_| wrong(self.number, "it is no text"))?;
        Ok(text.trim())
    }
}

impl<R: BufRead> Reader<R> {
    /// Reads the first line.
    pub(super) fn new(input: R, rule: &Replay) -> Result<Self, Unreadable> {
        let mut lines = Lines {
            input,
            number: 0,
            text: Vec::new(),
        };
        let begun = lines.advance();
        let is_trace = |magic: &[u8]| magic == [0x74, 0x61, 0x65] || magic == [0x65, 0x61, 0x74];
        if lines.text.get(1..4).is_some_and(is_trace) || lines.text.get(..3).is_some_and(is_trace) {
            let reason = "a binary block trace (blktrace) is not read; record the pattern as text";
            return Err(wrong(1, reason));
        }
        begun?;
        let timed = match lines.text()? {
            VERSION_3 => true,
            VERSION_2 => false,
            first if first.starts_with("fio version 1 ") => {
                return Err(wrong(1, "patterns of version 1 are not read any more"));
            }
            _ => {
                return Err(wrong(
                    1,
                    format!("`{VERSION_3}` or `{VERSION_2}` is missing"),
                ));
            }
        };
        let state = State {
            rule: rule.clone(),
            timed,
            files: Vec::new(),
            numbers: HashMap::new(),
            first_us: None,
            at_ns: 0,
        };
        Ok(Self { lines, state })
    }

    /// The next operation; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Recorded>, Unreadable> {
        while self.lines.advance()? {
            let line = self.lines.text()?;
            if line.is_empty() {
                continue;
            }
            let found = self.state.line(line);
            if let Some(op) = found.map_err(|reason| wrong(self.lines.number, reason))? {
                return Ok(Some(op));
            }
        }
        Ok(None)
    }

    /// Of the line that was read last, from 1; 0 before the first.
    pub(super) fn line_number(&self) -> usize {
        self.lines.number
    }
}

/// State of the reader from earlier lines.
#[derive(Debug)]
struct State {
    rule: Replay,
    /// Each line begins with a time.
    timed: bool,
    files: Vec<String>,
    numbers: HashMap<String, u32>,
    /// The recorded time of the first operation.
    first_us: Option<u64>,
    at_ns: u64,
}

impl State {
    /// Takes a line; the operation, if it is one that is carried out.
    fn line(&mut self, line: &str) -> Result<Option<Recorded>, String> {
        let mut words = line.split_ascii_whitespace();
        let at_us = match self.timed.then(|| words.next()).flatten() {
            Some(word) => Some(number("time", word)?),
            None => None,
        };
        let (Some(name), Some(action)) = (words.next(), words.next()) else {
            return Err("a file and an action are missing".to_owned());
        };
        match (action, words.next(), words.next(), words.next()) {
            ("add", None, ..) => self.add(name).map(|()| None),
            ("open" | "close", None, ..) => self.known(name).map(|_| None),
            (_, Some(offset), Some(length), None) => {
                let offset = number("offset", offset)?;
                let length = number("length", length)?;
                self.operation(name, action, at_us, (offset, length))
            }
            ("add" | "open" | "close", ..) => Err(format!("`{action}` takes no numbers")),
            _ => Err(format!("`{action}` needs an offset and a length")),
        }
    }

    fn add(&mut self, name: &str) -> Result<(), String> {
        if name.len() > LONGEST_NAME {
            return Err(format!("a name of {} bytes", name.len()));
        }
        if self.numbers.len() == MOST_FILES {
            return Err(format!("more than {MOST_FILES} files"));
        }
        if self.numbers.contains_key(name) {
            return Ok(());
        }
        let files = &mut self.files;
        match &self.rule.onto {
            None => files.push(name.to_owned()),
            Some(onto) if files.is_empty() => files.push(onto.clone()),
            Some(_) => {}
        }
        let index = u32::try_from(files.len() - 1).map_err(|_| "too many files".to_owned())?;
        self.numbers.insert(name.to_owned(), index);
        Ok(())
    }

    fn known(&self, name: &str) -> Result<u32, String> {
        let known = self.numbers.get(name).copied();
        known.ok_or_else(|| format!("the file `{name}` was not added before"))
    }

    fn operation(
        &mut self,
        name: &str,
        action: &str,
        at_us: Option<u64>,
        (offset, length): (u64, u64),
    ) -> Result<Option<Recorded>, String> {
        let file = self.known(name)?;
        let verb = match action {
            // Until so many milliseconds after the start.
            "wait" => {
                let until = offset.saturating_mul(1_000_000);
                self.at_ns = self.at_ns.max(self.paused(until));
                return Ok(None);
            }
            "read" => Verb::Read,
            "write" => Verb::Write,
            "trim" => Verb::Trim,
            "sync" => Verb::Sync,
            "datasync" => Verb::DataSync,
            other => return Err(format!("the action `{other}` is unknown")),
        };
        if let Some(at) = at_us {
            let first = *self.first_us.get_or_insert(at);
            let since = at.saturating_sub(first).saturating_mul(1000);
            self.at_ns = self.at_ns.max(self.paused(since));
        }
        if self.rule.leave_out.contains(&verb.kind()) {
            return Ok(None);
        }
        let flush = verb.kind() == Kind::Sync;
        if !flush && length == 0 {
            return Err("an operation of 0 bytes".to_owned());
        }
        let length = if flush { 0 } else { length };
        let length =
            u32::try_from(length).map_err(|_| format!("an operation of {length} bytes"))?;
        let offset = self.placed(if flush { 0 } else { offset });
        if offset.saturating_add(u64::from(length)) > FARTHEST {
            return Err(format!("no file reaches to offset {offset}"));
        }
        Ok(Some(Recorded {
            at_ns: self.at_ns,
            offset,
            length,
            file,
            verb,
        }))
    }

    fn placed(&self, offset: u64) -> u64 {
        let offset = offset / u64::from(self.rule.divide_offsets.max(1));
        match self.rule.align_bytes.0 {
            0 => offset,
            align => offset / align * align,
        }
    }

    /// A time as it is to be kept.
    fn paused(&self, nanos: u64) -> u64 {
        if self.rule.no_pauses {
            return 0;
        }
        let scaled = u128::from(nanos) * 100 / u128::from(self.rule.rate_percent.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

fn number(what: &str, word: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("the {what} `{word}` is no number"))
}

#[cfg(test)]
mod tests {
    use weir_units::Bytes;

    use super::*;

    fn rule() -> Replay {
        Replay {
            path: String::new(),
            no_pauses: false,
            onto: None,
            divide_offsets: 1,
            align_bytes: Bytes(0),
            rate_percent: 100,
            leave_out: Vec::new(),
            in_pieces: false,
        }
    }

    const THREE: &str = "fio version 3 iolog\n7 a add\n8 b add\n10 a open\n\
        20 a read 4608 4096\n1020 b write 8192 512\n1500 a sync 0 0\n2020 b trim 0 4096\n3000 a close\n";

    fn ops(rule: &Replay) -> Vec<(u64, u32, u64, u32)> {
        let pattern = read(THREE.as_bytes(), rule).unwrap();
        let op = |o: &Recorded| (o.at_ns / 1000, o.file, o.offset, o.length);
        pattern.operations.iter().map(op).collect()
    }

    #[test]
    fn operations_have_files_places_and_times() {
        let all = [
            (0, 0, 4608, 4096),
            (1000, 1, 8192, 512),
            (1480, 0, 0, 0),
            (2000, 1, 0, 4096),
        ];
        assert_eq!(ops(&rule()), all);
        let pattern = read(THREE.as_bytes(), &rule()).unwrap();
        assert_eq!(pattern.ends(), [8704, 8704]);
        assert!(pattern.is_timed());
    }

    #[test]
    fn places_times_and_files_are_changed_as_asked() {
        let changed = Replay {
            onto: Some("c".into()),
            divide_offsets: 2,
            align_bytes: Bytes(1024),
            rate_percent: 200,
            leave_out: vec![Kind::Trim, Kind::Sync],
            ..rule()
        };
        assert_eq!(ops(&changed), [(0, 0, 2048, 4096), (500, 0, 4096, 512)]);
        let at_once = Replay {
            no_pauses: true,
            ..rule()
        };
        assert!(!read(THREE.as_bytes(), &at_once).unwrap().is_timed());
    }

    #[test]
    fn version_2_waits_until_so_many_milliseconds_after_the_start() {
        let text = "fio version 2 iolog\na add\na open\na read 0 1\na wait 700 0\na read 1 1\n";
        let times: Vec<u64> = read(text.as_bytes(), &rule())
            .unwrap()
            .operations
            .iter()
            .map(|op| op.at_ns)
            .collect();
        assert_eq!(times, [0, 700_000_000]);
    }

    #[test]
    fn no_changed_byte_and_no_missing_end_makes_it_panic() {
        let text = THREE.as_bytes();
        for at in 0..text.len() {
            let _ = read(&text[..at], &rule());
            for byte in [0, b'\n', b' ', b'9', b'-', b'a', 0xff] {
                let mut changed = text.to_vec();
                changed[at] = byte;
                if let Ok(pattern) = read(&changed, &rule()) {
                    assert_eq!(pattern.ends().len(), pattern.files.len());
                }
            }
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let three = |rest: &str| format!("{VERSION_3}\n0 a add\n{rest}");
        for (text, line) in [
            (String::new(), 1),
            ("hello".into(), 1),
            ("fio version 1 iolog".into(), 1),
            (three(""), 2),
            (three("0 b read 0 4096"), 3),
            (three("0 a blah 0 4096"), 3),
            (three("0 a read x 4096"), 3),
            (three("0 a read 0"), 3),
            (three("0 a read 0 4294967296"), 3),
            (three("0 a read 0 0"), 3),
            (three("0 a read 9223372036854775807 4096"), 3),
            (three("0 a read 0 4096 7"), 3),
            (three("a read 0 4096"), 3),
            (three("\n99999999999999999999 a read 0 1"), 4),
        ] {
            let refused = read(text.as_bytes(), &rule()).unwrap_err();
            assert_eq!(refused.line, line, "{text:?}: {refused}");
        }
        let refused = read(b"\x07tae\0\0", &rule()).unwrap_err();
        assert!(refused.reason.contains("blktrace"), "{refused}");
        assert_eq!(
            read(b"fio version 3 iolog\n\xff", &rule())
                .unwrap_err()
                .line,
            2
        );
    }
}
