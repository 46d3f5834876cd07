//! Diagnostics: what is wrong, where, why, and what to do about it.
//!
//! In: a fault and the place of the words that caused it. Out: plain text in the shape of a
//! compiler's message, and beside it the sentences that fio prints for the same fault. Not here:
//! colours, exit codes.

use std::fmt::Write as _;
use std::sync::Arc;

/// One fault of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable id, such as `job.range`.
    pub code: &'static str,
    /// The error, in one sentence.
    pub message: String,
    /// File name, or `command line`; absent for a fault of the request as a whole.
    pub source: Option<String>,
    /// The line it stands in, at most [`MAX_LINE`] bytes of it.
    pub line_text: Option<String>,
    /// Line number from 1; for the command line the argument's number, 0 for `--set`.
    pub line: usize,
    /// First column from 1, in characters.
    pub column: usize,
    /// Characters to underline.
    pub length: usize,
    /// Meaning of the underlined words, or the words that should be there.
    pub label: String,
    /// Advice for the user.
    pub help: Option<String>,
    /// The sentences that fio prints for this fault, in its order.
    pub peer: Vec<String>,
}

/// The source name of words that were typed as arguments.
pub const COMMAND_LINE: &str = "command line";

/// Longest line of a job file in bytes.
pub const MAX_LINE: usize = 4096;

/// Longest sentence of a message in bytes.
const MAX_TEXT: usize = 600;

/// Characters of a line that a message shows.
const SHOWN: usize = 100;

/// Error of one value or option, before its position is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    pub code: &'static str,
    pub message: String,
    pub label: Box<str>,
    pub help: Option<String>,
    /// Sentences before `fio: failed parsing …`.
    pub peer: Vec<String>,
    /// The piece of the value that is wrong, when it is not the whole.
    pub piece: Option<Box<str>>,
}

impl Fault {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            ..Self::default()
        }
    }

    /// A value that cannot be read.
    pub(crate) fn value(message: impl Into<String>) -> Self {
        Self::new("job.value", message)
    }

    /// A value outside its bounds.
    pub(crate) fn range(message: impl Into<String>) -> Self {
        Self::new("job.range", message)
    }

    pub(crate) fn label(mut self, label: impl Into<Box<str>>) -> Self {
        self.label = label.into();
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn peer(mut self, sentence: impl Into<String>) -> Self {
        self.peer.push(sentence.into());
        self
    }

    pub(crate) fn piece(mut self, piece: &str) -> Self {
        self.piece = Some(piece.into());
        self
    }
}

/// Columns in characters, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnSpan {
    pub column: usize,
    pub length: usize,
}

/// Place of an option, section or line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub source: Arc<str>,
    pub text: Arc<str>,
    pub line: usize,
    pub key: ColumnSpan,
    pub value: Option<ColumnSpan>,
}

impl Place {
    /// The fault at the option's name.
    pub(crate) fn at_key(&self, fault: Fault) -> Diagnostic {
        self.diagnostic(fault, self.key)
    }

    /// The fault at the option's value, or at the piece of it that is wrong.
    pub(crate) fn at_value(&self, fault: Fault) -> Diagnostic {
        let mut span = self.value.filter(|s| s.length > 0).unwrap_or(self.key);
        if let (Some(piece), Some(value)) = (&fault.piece, self.value) {
            let start = value.column.saturating_sub(1);
            let shown: String = self.text.chars().skip(start).take(value.length).collect();
            if let Some(at) = shown.find(&**piece).filter(|_| !piece.is_empty()) {
                let column = value.column + shown[..at].chars().count();
                span = ColumnSpan {
                    column,
                    length: piece.chars().count(),
                };
            }
        }
        self.diagnostic(fault, span)
    }

    fn diagnostic(&self, fault: Fault, span: ColumnSpan) -> Diagnostic {
        Diagnostic {
            code: fault.code,
            message: fault.message,
            source: Some(self.source.to_string()),
            line_text: Some(cut(&self.text, MAX_LINE).to_owned()),
            line: self.line,
            column: span.column,
            length: span.length.max(1),
            label: fault.label.into_string(),
            help: fault.help,
            peer: fault.peer,
        }
    }
}

/// The longest prefix of at most `limit` bytes that ends at a character.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Diagnostic {
    /// A fault of the request as a whole.
    pub(crate) fn general(fault: Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            source: None,
            line_text: None,
            line: 0,
            column: 0,
            length: 0,
            label: fault.label.into_string(),
            help: fault.help,
            peer: fault.peer,
        }
    }

    /// The message as text of several lines, ending in a newline.
    pub fn render(&self) -> String {
        let mut out = format!("error[{}]: {}\n", self.code, printable(&self.message));
        if let Some(source) = &self.source {
            self.render_place(source, &mut out);
        }
        if let Some(help) = &self.help {
            for (i, line) in help.lines().enumerate() {
                let head = if i == 0 { "help: " } else { "      " };
                push(&mut out, format_args!("   {head}{}\n", printable(line)));
            }
        }
        out
    }

    fn render_place(&self, source: &str, out: &mut String) {
        let source = printable(source);
        if source == COMMAND_LINE && self.line == 0 {
            push(out, format_args!("  --> {source}\n"));
        } else if source == COMMAND_LINE {
            push(
                out,
                format_args!("  --> {source}, argument {}\n", self.line),
            );
        } else if self.column > 0 {
            push(
                out,
                format_args!("  --> {source}:{}:{}\n", self.line, self.column),
            );
        } else {
            push(out, format_args!("  --> {source}\n"));
        }
        let Some(text) = &self.line_text else { return };
        let number = if source == COMMAND_LINE {
            String::new()
        } else {
            self.line.to_string()
        };
        let margin = " ".repeat(number.len());
        let (shown, before, width) = window(text, self.column, self.length);
        let pad = " ".repeat(before);
        let carets = "^".repeat(width);
        let label = printable(&self.label);
        push(out, format_args!(" {margin} |\n {number} | {shown}\n"));
        push(
            out,
            format_args!(
                "{}\n",
                format!(" {margin} | {pad}{carets} {label}").trim_end()
            ),
        );
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// Text without control characters, not longer than a screen.
pub(crate) fn printable(text: &str) -> String {
    let shown = cut(text, MAX_TEXT);
    let end = if shown.len() < text.len() { "…" } else { "" };
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    shown.chars().map(plain).chain(end.chars()).collect()
}

/// The part of a line around the span, the columns before the span in it, the carets.
fn window(text: &str, column: usize, length: usize) -> (String, usize, usize) {
    let chars: Vec<char> = text.chars().collect();
    let start = column.saturating_sub(1).min(chars.len());
    let end = start.saturating_add(length).min(chars.len()).max(start);
    let from = if end <= SHOWN {
        0
    } else {
        start.saturating_sub(SHOWN / 4)
    };
    let to = chars.len().min(from + SHOWN);
    let mut shown = String::new();
    if from > 0 {
        shown.push('…');
    }
    let mut before = usize::from(from > 0);
    let mut width = 0;
    for (i, c) in chars.iter().enumerate().take(to).skip(from) {
        let piece = match c {
            '\t' => "    ".to_owned(),
            c if c.is_control() => '\u{fffd}'.to_string(),
            c => c.to_string(),
        };
        let columns = piece.chars().count();
        if i < start {
            before += columns;
        } else if i < end {
            width += columns;
        }
        shown.push_str(&piece);
    }
    if to < chars.len() {
        shown.push('…');
    }
    (shown, before, width.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, column: usize, length: usize) -> Diagnostic {
        Place {
            source: "nightly.fio".into(),
            text: text.into(),
            line: 12,
            key: ColumnSpan { column, length },
            value: None,
        }
        .at_key(
            Fault::range("`rwmixread=150` is outside 0–100")
                .label("percent of reads in a mixed workload")
                .help("for a pure read workload write `rw=randread`"),
        )
    }

    #[test]
    fn a_message_shows_line_caret_and_help() {
        assert_eq!(
            at("rwmixread=150", 11, 3).render(),
            "error[job.range]: `rwmixread=150` is outside 0–100\n\
             \x20 --> nightly.fio:12:11\n\
             \x20   |\n\
             \x2012 | rwmixread=150\n\
             \x20   |           ^^^ percent of reads in a mixed workload\n\
             \x20  help: for a pure read workload write `rw=randread`\n"
        );
    }

    #[test]
    fn tabs_keep_the_caret_below_its_word() {
        let text = at("\trwmixread=150", 12, 3).render();
        assert!(
            text.contains("|     rwmixread=150\n    |               ^^^ "),
            "{text}"
        );
    }

    #[test]
    fn a_long_line_is_shown_around_the_fault_only() {
        let long = format!("{}=x", "k".repeat(4000));
        let text = at(&long, 4002, 1).render();
        assert!(text.len() < 600, "{text}");
        assert!(text.contains("=x\n"), "{text}");
    }

    #[test]
    fn a_span_beyond_the_line_is_harmless() {
        assert!(at("", 900, 900).render().contains('^'));
    }
}
