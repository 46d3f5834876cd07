//! A comparison as text for people.
//!
//! In: the comparison, a style. Out: lines: for each side beside the base a table of its figures, what
//! is odd about them, in what machines and plans differ, and a sentence about the primary figure of each
//! job. A table too wide for its lines loses columns, the chance first; nothing is cut.

use std::fmt::Write as _;

use weir_report::{NumberFormat, Style, clean};

use crate::comparison::{Comparison, PairComparison};
use crate::remarks::{Mark, Remark, RemarkTone, endings, facts, remarks};
use crate::table::{Table, heads, rows_of};

const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// The comparison as text, each line ended.
pub fn text(comparison: &Comparison, style: &Style) -> String {
    let mut out = Lines {
        style,
        text: String::new(),
    };
    for (number, pair) in comparison.pairs.iter().enumerate() {
        if number > 0 {
            out.line("", "");
        }
        out.pair(comparison, pair);
    }
    out.remarks(&endings(comparison));
    out.text
}

struct Lines<'a> {
    style: &'a Style,
    text: String,
}

impl Lines<'_> {
    /// One line, blanks at its end left out.
    fn line(&mut self, text: &str, paint: &str) {
        self.painted(&[(text, paint)]);
    }

    fn painted(&mut self, pieces: &[(&str, &str)]) {
        let mut line = String::new();
        for (text, paint) in pieces {
            let text = clean(text, self.style.ascii);
            if paint.is_empty() || !self.style.color {
                line.push_str(&text);
            } else {
                let _ = write!(line, "{paint}{text}{PLAIN}");
            }
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Words of a sentence on as many lines as it needs.
    fn sentence(&mut self, lead: &str, text: &str, paint: &str) {
        let mut line = lead.to_owned();
        let mut is_empty = true;
        for word in text.split(' ') {
            let gap = usize::from(!is_empty);
            let wide = line.chars().count() + gap + word.chars().count() > self.style.width;
            if wide && !is_empty {
                self.line(&line, paint);
                line = String::from("    ");
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.line(&line, paint);
    }

    fn pair(&mut self, comparison: &Comparison, pair: &PairComparison) {
        let title = format!("compare  {} -> {}", pair.a, pair.b);
        let facts = facts(comparison, pair);
        let fits = title.chars().count() + 3 + facts.chars().count() <= self.style.width;
        if fits {
            self.painted(&[(&title, BOLD), ("   ", ""), (&facts, "")]);
        } else {
            self.sentence("", &title, BOLD);
            self.sentence("         ", &facts, "");
        }
        self.table(comparison, pair);
        self.remarks(&remarks(pair));
    }

    fn remarks(&mut self, all: &[Remark]) {
        for remark in all {
            let lead = match remark.mark {
                Mark::Conclusion | Mark::Note => "  ",
                Mark::Oddity => "  ! ",
                Mark::Difference => "  differs  ",
                Mark::Failure => "  FAILED  ",
            };
            self.sentence(lead, &remark.text, paint(remark.tone));
        }
    }

    fn table(&mut self, comparison: &Comparison, pair: &PairComparison) {
        let numbers = NumberFormat {
            raw: self.style.raw,
        };
        let heads = heads(comparison);
        let jobs: Vec<_> = pair
            .jobs
            .iter()
            .map(|job| (&job.name, rows_of(job, numbers)))
            .collect();
        let rows = jobs
            .iter()
            .flat_map(|(_, rows)| rows)
            .map(|(cells, _)| cells);
        if rows.clone().next().is_none() {
            return;
        }
        let table = Table::of(&std::iter::once(&heads).chain(rows), self.style.width);
        let (line, last) = table.line(&heads);
        self.painted(&[(&line, DIM), (&last, DIM)]);
        for (name, rows) in &jobs {
            if jobs.len() > 1 {
                self.line(&format!("  {name}:"), BOLD);
            }
            for (cells, tone) in rows {
                let (line, last) = table.line(cells);
                self.painted(&[(&line, ""), (&last, paint(*tone))]);
            }
        }
    }
}

fn paint(tone: RemarkTone) -> &'static str {
    match tone {
        RemarkTone::Plain => "",
        RemarkTone::Good => GREEN,
        RemarkTone::Bad => RED,
    }
}
