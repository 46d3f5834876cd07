//! Pieces of text with their tones, fit for a terminal.
//!
//! In: words of our own and from outside (names, messages). Out: text that moves no cursor and
//! reorders nothing; in an ASCII style everything beyond ASCII is spelt out. Widths are display
//! columns. Not here: filling lines (`layout`).

use unicode_width::UnicodeWidthChar;

/// Look of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Dim,
    Bad,
    Warn,
}

impl Tone {
    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Bad => "\x1b[31m",
            Self::Warn => "\x1b[33m",
        }
    }
}

/// A piece of text that stays on one line if it can.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(pub(crate) Vec<(Tone, String)>);

impl Text {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self(vec![(tone, text.into())])
    }

    pub(crate) fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.0.push((tone, text.into()));
        self
    }

    pub(crate) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(crate) fn blanks(count: usize) -> Self {
        Self::new(Tone::Plain, " ".repeat(count))
    }

    /// True if it has no character, not even one without a width.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, text)| text.is_empty())
    }

    /// The width as it will be shown, once cleaned.
    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| width(text)).sum()
    }

    pub(crate) fn clean(&self, ascii: bool) -> Self {
        Self(
            self.0
                .iter()
                .map(|(tone, text)| (*tone, clean(text, ascii)))
                .collect(),
        )
    }

    /// Its words, each with its tone; a number keeps the unit behind it.
    pub(crate) fn words(&self) -> Vec<Self> {
        let mut words: Vec<Self> = vec![Self::default()];
        let mut last_word = "";
        for (tone, text) in &self.0 {
            for (i, word) in text.split(' ').enumerate() {
                if i > 0 && wants_next(last_word) {
                    words
                        .last_mut()
                        .into_iter()
                        .for_each(|w| w.0.push((*tone, " ".into())));
                } else if i > 0 {
                    words.push(Self::default());
                }
                if let (Some(last), false) = (words.last_mut(), word.is_empty()) {
                    last.0.push((*tone, word.to_owned()));
                }
                last_word = word;
            }
        }
        words.retain(|word| !word.0.is_empty());
        words
    }

    /// Cuts off what lies beyond `columns`.
    pub(crate) fn cut(&self, columns: usize) -> Self {
        let mut left = columns;
        let mut kept = Self::default();
        for (tone, text) in &self.0 {
            let mut piece = String::new();
            for c in text.chars() {
                let w = char_width(c);
                if w > left {
                    return kept.and(*tone, piece);
                }
                left -= w;
                piece.push(c);
            }
            kept.0.push((*tone, piece));
        }
        kept
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(Tone::Plain, text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(Tone::Plain, text)
    }
}

/// Nothing where there is nothing.
impl From<Option<String>> for Text {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::default(), Self::from)
    }
}

/// Writes a line; neighbours of the same tone share their codes, blanks at the end are left out.
pub(crate) fn paint(line: &Text, color: bool, out: &mut String) {
    let mut last = Tone::Plain;
    let start = out.len();
    for (tone, text) in line.0.iter().filter(|(_, text)| !text.is_empty()) {
        if color && *tone != last {
            if last != Tone::Plain {
                out.push_str("\x1b[0m");
            }
            out.push_str(tone.code());
            last = *tone;
        }
        out.push_str(text);
    }
    if last != Tone::Plain {
        out.push_str("\x1b[0m");
    }
    out.truncate(start + out[start..].trim_end_matches(' ').len());
}

/// Text fit for a terminal: nothing that moves the cursor or reorders, ASCII if asked for.
pub fn clean(text: &str, ascii: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            _ if c.is_ascii() => out.extend(c.escape_default()),
            _ if !ascii => out.extend(c.escape_debug()),
            'µ' => out.push('u'),
            '±' => out.push_str("+-"),
            '…' => out.push_str("..."),
            '×' => out.push('x'),
            '·' => out.push('_'),
            _ => match "▁▂▃▄▅▆▇█"
                .chars()
                .zip(".:-=+*#@".chars())
                .find(|(block, _)| *block == c)
            {
                Some((_, letter)) => out.push(letter),
                None => out.extend(c.escape_unicode()),
            },
        }
    }
    out
}

/// A number, what stands before one, or the letter of a thousand: `9.61`, `±`, `k` of `9.61 k ops/s`.
fn wants_next(word: &str) -> bool {
    let number = word.trim_start_matches('(');
    matches!(word, "k" | "M" | "G" | "T" | "±" | "+-")
        || number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.')
}

pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_sign_and_its_unit() {
        let words = Text::from("200 k ops/s ± 172 % between 3 runs").words();
        let words: Vec<String> = words
            .iter()
            .map(|word| word.0.iter().map(|(_, text)| &**text).collect())
            .collect();
        assert_eq!(words, ["200 k ops/s", "± 172 %", "between", "3 runs"]);
    }
}
