//! A section of a page that others fill: what they found out about its results.
//!
//! In: headings, tables and lines as plain data. Out: the section. Not here: what they say.

use super::overview::of_rows;
use crate::plot::escaped;

/// Largest number of lines at once.
const LINES: usize = 200;

/// A section that others fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageSection {
    /// Name in links.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Parts of the section, in order.
    pub parts: Vec<SectionPart>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionPart {
    /// A heading within it.
    Heading(String),
    /// A table; columns that nothing stands in are left out.
    Table {
        /// The names of the columns.
        head: Vec<String>,
        /// The cells.
        rows: Vec<Vec<String>>,
    },
    /// Lines of text.
    Lines(Vec<SectionLine>),
}

/// A line of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionLine {
    /// Text of the line.
    pub text: String,
    /// Tone of the line.
    pub tone: LineTone,
}

/// Tone of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineTone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// A result that was hoped for.
    Good,
    /// A result that must be looked at.
    Odd,
    /// A result that was feared.
    Bad,
}

pub(super) fn section(section: &PageSection) -> String {
    let parts = section.parts.iter().map(|part| match part {
        SectionPart::Heading(text) => format!("<h3>{}</h3>", escaped(text)),
        SectionPart::Table { head, rows } => {
            let head: Vec<&str> = head.iter().map(String::as_str).collect();
            of_rows(&head, rows.clone())
        }
        SectionPart::Lines(all) => lines(all),
    });
    format!(
        "<section id=\"{}\"><h2>{}</h2>{}</section>\n",
        section.id,
        escaped(&section.title),
        parts.collect::<String>()
    )
}

fn lines(all: &[SectionLine]) -> String {
    let mut out: String = all.iter().take(LINES).map(line).collect();
    let more = all.len().saturating_sub(LINES);
    if more > 0 {
        push!(
            out,
            "<p class=\"warn\">And {more} more lines, which other formats have.</p>"
        );
    }
    out
}

fn line(line: &SectionLine) -> String {
    let class = match line.tone {
        LineTone::Plain => "",
        LineTone::Good => " class=\"good\"",
        LineTone::Odd => " class=\"warn\"",
        LineTone::Bad => " class=\"bad\"",
    };
    format!("<p{class}>{}</p>", escaped(&line.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_the_first_are_shown_and_the_others_counted() {
        let line = SectionLine {
            text: "x".to_owned(),
            tone: LineTone::Plain,
        };
        let text = lines(&vec![line; LINES + 7]);
        assert_eq!(text.matches("<p>x</p>").count(), LINES);
        assert!(
            text.ends_with("And 7 more lines, which other formats have.</p>"),
            "{text}"
        );
    }

    #[test]
    fn names_stay_text_and_empty_columns_go() {
        let text = section(&PageSection {
            id: "compare",
            title: "<b>".to_owned(),
            parts: vec![
                SectionPart::Heading("a & b".to_owned()),
                SectionPart::Table {
                    head: ["metric", "A", "p"].map(str::to_owned).to_vec(),
                    rows: vec![["rate", "</td>", ""].map(str::to_owned).to_vec()],
                },
                SectionPart::Lines(vec![SectionLine {
                    text: "<script>".to_owned(),
                    tone: LineTone::Bad,
                }]),
            ],
        });
        assert!(text.starts_with("<section id=\"compare\"><h2>&lt;b&gt;</h2><h3>a &amp; b</h3>"));
        assert!(
            text.contains("<p class=\"bad\">&lt;script&gt;</p>"),
            "{text}"
        );
        assert!(
            !text.contains("<th>p</th>") && !text.contains("</td></td>"),
            "{text}"
        );
    }
}
