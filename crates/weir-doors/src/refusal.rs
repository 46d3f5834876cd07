//! Words that a door does not accept.

use std::fmt::Display;

use thiserror::Error;

use crate::args::at_door;
use crate::door::Door;

/// Exit code where arguments, a plan or a file cannot be used and nothing was touched.
pub const USAGE: u8 = 2;
/// Exit code where the machine lacks what is needed.
pub const LACKS: u8 = 3;

/// Refusal of a command, with its exit code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// Lines for standard error, the last one with its newline.
    pub message: String,
    /// The same in the peer's words, where the peer has words of its own.
    pub peer: Option<String>,
    /// Exit code.
    pub code: u8,
    /// Data would be lost that nobody has given up, or that is in use.
    pub is_guard: bool,
}

impl Refusal {
    /// A refusal. A message without a newline at its end gets one; an empty one is not printed.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self {
            message: whole(message.into()),
            peer: None,
            code,
            is_guard: false,
        }
    }

    /// The same refusal, for which the peer has these words.
    #[must_use]
    pub fn by_peer(self, words: impl Display) -> Self {
        Self {
            peer: Some(whole(printable(&words.to_string()))),
            ..self
        }
    }

    /// The refusal as the peer has it, with this exit code.
    #[must_use]
    pub fn of_peer(self, code: u8) -> Self {
        Self::new(code, self.peer.unwrap_or(self.message))
    }

    /// Words, a plan or a file that cannot be used, and why.
    pub fn usage(why: impl Display) -> Self {
        Self::new(USAGE, printable(&format!("error: {why}")))
    }

    /// The same about flags of the house, with the names that they have at a door.
    #[must_use]
    pub fn at_door(self, door: &Door) -> Self {
        let message = at_door(door, &self.message);
        Self { message, ..self }
    }

    /// Refusal with the exit code for something that the machine lacks.
    pub fn lacks(what: impl Display) -> Self {
        Self::new(LACKS, printable(&format!("error: {what}")))
    }
}

/// Lines of which the last one has its newline.
fn whole(mut lines: String) -> String {
    if !lines.is_empty() && !lines.ends_with('\n') {
        lines.push('\n');
    }
    lines
}

/// Longest line that is printed whole, in characters.
const LONGEST_LINE: usize = 4096;
/// Characters kept of the beginning and of the end of a longer line.
const LEFT: usize = 1024;

/// Text with foreign parts in it, made safe for a terminal: control characters are spelt out, and long lines
/// are cut.
fn printable(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable_line).collect();
    lines.join("\n")
}

fn printable_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() && c != '\t' {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    let length = out.chars().count();
    if length <= LONGEST_LINE {
        return out;
    }
    let begin: String = out.chars().take(LEFT).collect();
    let end: String = out.chars().skip(length - LEFT).collect();
    format!("{begin} … {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_neither_steer_a_terminal_nor_fill_it() {
        let said = Refusal::usage("a\u{1b}[31mb\u{0}\tc\n  help: d");
        assert_eq!(said.message, "error: a\\u{1b}[31mb\\u{0}\tc\n  help: d\n");
        let long = Refusal::lacks(format!("begin{}end", "é".repeat(1 << 20))).message;
        assert_eq!(long.chars().count(), 2 * LEFT + 4);
        assert!(long.starts_with("error: beginé") && long.ends_with("éend\n"));
    }
}
