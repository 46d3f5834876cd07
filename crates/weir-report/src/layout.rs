//! Lines of limited width: text with tones is filled in, broken only where it must be, never
//! cut, and painted last.
//!
//! In: pieces of text ([`Text`]), rows of items ([`LayoutRow`]). Out: one string. Widths are
//! display columns. Not here: what is said, and how a piece of text looks (`color`).

use crate::color::{Text, Tone, char_width, paint};
use crate::style::Style;

/// Columns before the values of a row.
pub(crate) const INDENT: usize = 12;
/// Columns before a word that is too long for the usual indent.
const LEAST_INDENT: usize = 4;
/// Below this width every item has a line of its own.
const KEY_VALUE_BELOW: usize = 60;

/// One value of a row.
#[derive(Clone, Debug)]
pub(crate) struct RowItem {
    /// Key, shown where the item has a line of its own.
    key: String,
    value: Text,
    /// Form among other items, if not as key and value.
    among: Option<Text>,
    /// Columns it takes at least.
    pad: usize,
}

impl RowItem {
    /// `p50 74.2 µs`.
    pub(crate) fn keyed(key: impl Into<String>, value: impl Into<Text>) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            among: None,
            pad: 0,
        }
    }

    /// `412 k ops/s`, whose key shows only on a line of its own.
    pub(crate) fn bare(key: impl Into<String>, value: impl Into<Text>) -> Self {
        let value = value.into();
        Self {
            key: key.into(),
            among: Some(value.clone()),
            value,
            pad: 0,
        }
    }

    /// Another wording among other items: `0 errors` for errors 0.
    pub(crate) fn among(self, text: impl Into<Text>) -> Self {
        Self {
            among: Some(text.into()),
            ..self
        }
    }

    /// With the name of what it belongs to in its key: `read p50`.
    pub(crate) fn of(self, owner: &str) -> Self {
        Self {
            key: format!("{owner} {}", self.key),
            ..self
        }
    }

    pub(crate) fn pad(self, pad: usize) -> Self {
        Self { pad, ..self }
    }

    fn text(&self) -> Text {
        self.among.clone().unwrap_or_else(|| {
            Text::new(Tone::Plain, format!("{} ", self.key)).join(self.value.clone())
        })
    }
}

/// A labelled row of items.
#[derive(Clone, Debug)]
pub(crate) struct LayoutRow {
    pub(crate) label: String,
    pub(crate) items: Vec<RowItem>,
    /// Columns between items.
    pub(crate) gap: usize,
}

impl LayoutRow {
    pub(crate) fn new(label: impl Into<String>, items: Vec<RowItem>) -> Self {
        Self {
            label: label.into(),
            items,
            gap: 2,
        }
    }
}

/// The lines laid out so far.
pub(crate) struct LineLayout<'a> {
    style: &'a Style,
    out: String,
}

impl<'a> LineLayout<'a> {
    pub(crate) fn new(style: &'a Style) -> Self {
        Self {
            style,
            out: String::new(),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Every item has a line of its own.
    pub(crate) fn is_key_value(&self) -> bool {
        self.style.width < KEY_VALUE_BELOW
    }

    pub(crate) fn blank(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    /// Columns that a text takes in this style.
    pub(crate) fn columns(&self, text: &Text) -> usize {
        text.clean(self.style.ascii).width()
    }

    /// Fills lines with atoms, each with the blanks before it; lines after the first are
    /// indented.
    pub(crate) fn flow(
        &mut self,
        lead: impl Into<Text>,
        indent: usize,
        atoms: impl IntoIterator<Item = (usize, Text)>,
    ) {
        let ascii = self.style.ascii;
        let mut fill = Fill {
            width: self.style.width,
            indent: indent.min(self.style.width / 2),
            line: Text::default(),
            used: 0,
            lines: Vec::new(),
        };
        fill.atom(0, &lead.into().clean(ascii));
        for (gap, atom) in atoms {
            fill.atom(gap, &atom.clean(ascii));
        }
        for line in fill.finish() {
            self.paint(&line);
        }
    }

    /// A sentence, broken between its words.
    pub(crate) fn prose(&mut self, lead: impl Into<Text>, indent: usize, text: &str) {
        let words = Text::from(text).words().into_iter().enumerate();
        self.flow(
            lead,
            indent,
            words.map(|(i, word)| (usize::from(i > 0), word)),
        );
    }

    /// Parts of a list, broken after the commas.
    pub(crate) fn list(&mut self, lead: impl Into<Text>, indent: usize, parts: &[Text]) {
        let last = parts.len().saturating_sub(1);
        let atoms = parts.iter().enumerate().map(|(i, part)| {
            let part = if i < last {
                part.clone().and(Tone::Plain, ",")
            } else {
                part.clone()
            };
            (usize::from(i > 0), part)
        });
        self.flow(lead, indent, atoms);
    }

    /// Rows whose items stand below each other.
    pub(crate) fn rows(&mut self, rows: &[LayoutRow]) {
        if self.is_key_value() {
            return self.key_values(rows);
        }
        let mut pads: Vec<usize> = Vec::new();
        for (i, item) in rows.iter().flat_map(|row| row.items.iter().enumerate()) {
            if pads.len() <= i {
                pads.resize(i + 1, 0);
            }
            // A single row keeps its items close together.
            let natural = if rows.len() > 1 {
                self.columns(&item.text())
            } else {
                0
            };
            pads[i] = pads[i].max(item.pad).max(natural);
        }
        for row in rows {
            let mut gap = 0;
            let mut atoms = Vec::new();
            for (item, pad) in row.items.iter().zip(&pads) {
                let text = item.text();
                let missing = pad.saturating_sub(self.columns(&text));
                atoms.push((gap, text));
                gap = row.gap + missing;
            }
            let lead = format!("  {:<1$}", row.label, INDENT - 2);
            self.flow(lead, INDENT, atoms);
        }
    }

    pub(crate) fn row(&mut self, row: LayoutRow) {
        self.rows(&[row]);
    }

    fn key_values(&mut self, rows: &[LayoutRow]) {
        let items = || rows.iter().flat_map(|row| &row.items);
        let width = |item: &RowItem| self.columns(&Text::from(&*item.key));
        let indent = INDENT.max(items().map(width).max().unwrap_or(0) + 3);
        for item in items()
            .filter(|item| !item.value.is_empty())
            .collect::<Vec<_>>()
        {
            let missing = " ".repeat(indent - 2 - self.columns(&Text::from(&*item.key)));
            let lead = format!("  {}{missing}", item.key);
            self.flow(lead, indent, [(0, item.value.clone())]);
        }
    }

    fn paint(&mut self, line: &Text) {
        paint(line, self.style.color, &mut self.out);
        self.out.push('\n');
    }
}

/// A line that is being filled.
struct Fill {
    width: usize,
    indent: usize,
    line: Text,
    used: usize,
    lines: Vec<Text>,
}

impl Fill {
    fn atom(&mut self, gap: usize, atom: &Text) {
        let columns = atom.width();
        if self.place(gap, atom, columns) {
            return;
        }
        if columns <= self.width - self.indent {
            self.next_line();
            self.push(0, atom, columns);
            return;
        }
        for (i, word) in atom.words().into_iter().enumerate() {
            let gap = if i == 0 { gap } else { 1 };
            let columns = word.width();
            if self.place(gap, &word, columns) {
                continue;
            }
            self.next_line();
            if self.used + columns > self.width {
                // A long word rather loses its indent than its unity.
                self.next_line_at(self.indent.min(LEAST_INDENT));
            }
            if !self.place(0, &word, columns) {
                self.letters(&word);
            }
        }
    }

    fn letters(&mut self, word: &Text) {
        for (tone, text) in &word.0 {
            for c in text.chars() {
                let columns = char_width(c);
                if self.used + columns > self.width {
                    self.next_line();
                }
                self.push(0, &Text::new(*tone, c), columns);
            }
        }
    }

    fn place(&mut self, gap: usize, text: &Text, columns: usize) -> bool {
        let fits = self.used + gap + columns <= self.width;
        if fits {
            self.push(gap, text, columns);
        }
        fits
    }

    fn push(&mut self, gap: usize, text: &Text, columns: usize) {
        self.line.0.extend(Text::blanks(gap).0);
        self.line.0.extend(text.0.iter().cloned());
        self.used += gap + columns;
    }

    /// Starts a line, unless the present one has nothing on it yet.
    fn next_line(&mut self) {
        self.next_line_at(self.indent);
    }

    fn next_line_at(&mut self, indent: usize) {
        let line = std::mem::replace(&mut self.line, Text::blanks(indent));
        self.used = indent;
        if line.0.iter().any(|(_, text)| !text.trim().is_empty()) {
            self.lines.push(line);
        }
    }

    fn finish(mut self) -> Vec<Text> {
        self.next_line();
        self.lines
    }
}
