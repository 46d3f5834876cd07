//! From a request to sections: reads the files, follows includes, turns command words into
//! sections like those of a file.
//!
//! In: the request's sources and access to files. Out: batches of sections. The first holds the
//! command line and the first file, each further file is one of its own. Not here: what options
//! mean.

use std::collections::HashSet;
use std::sync::Arc;

use crate::diagnostic::{COMMAND_LINE, ColumnSpan, Diagnostic, Fault, Place};
use crate::report::CompileReport;
use crate::syntax::{self, ItemKind, SyntaxItem};
use crate::{CommandWord, CompileRequest, Files, JobSource};

/// Includes within includes.
const MAX_DEPTH: usize = 16;
/// Includes of one request.
const MAX_INCLUDES: usize = 1000;

/// An option as it was written.
#[derive(Clone, Debug)]
pub(crate) struct OptionEntry {
    pub key: String,
    pub value: Option<String>,
    pub place: Place,
    pub origin: Origin,
}

/// Origin of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    File,
    Command,
    /// `--set`, by its number.
    Set(usize),
}

/// A section with its options, included ones in their place.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub name: String,
    pub place: Place,
    pub entries: Vec<OptionEntry>,
}

impl Section {
    /// It sets defaults for the jobs below it.
    pub(crate) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// Sections that share their defaults.
pub(crate) type Batch = Vec<Section>;

/// Reads everything that the request names.
pub(crate) fn batches(
    request: &CompileRequest,
    files: &dyn Files,
    report: &mut CompileReport,
) -> Vec<Batch> {
    let mut loader = Loader {
        files,
        report,
        open: Vec::new(),
        includes: 0,
        seen: HashSet::new(),
    };
    let words = request.sources.iter().filter_map(|s| match s {
        JobSource::Words(words) => Some(words),
        JobSource::File(_) | JobSource::Text { .. } => None,
    });
    let mut batches = vec![command_sections(words.flatten())];
    let files = request.sources.iter().filter_map(|s| match s {
        JobSource::File(path) => Some(loader.file(path)),
        JobSource::Text { name, text } => Some(loader.sections(name, text.as_bytes())),
        JobSource::Words(_) => None,
    });
    for (index, sections) in files.enumerate() {
        match batches.first_mut().filter(|_| index == 0) {
            Some(first) => first.extend(sections),
            None => batches.push(sections),
        }
    }
    batches
}

fn command_place(word: &CommandWord) -> Place {
    let dashes = word.text.len() - word.text.trim_start_matches('-').len();
    let shown = word.value.as_deref().filter(|v| !v.is_empty());
    let at = shown
        .and_then(|v| word.text.rfind(v))
        .filter(|at| *at > dashes);
    let value = at.zip(shown).map(|(at, v)| ColumnSpan {
        column: word.text[..at].chars().count() + 1,
        length: v.chars().count(),
    });
    // As it stands there: fio's names may be cut short.
    let name = word.text[dashes..].split(['=', ' ']).next();
    Place {
        source: Arc::from(COMMAND_LINE),
        text: Arc::from(word.text.as_str()),
        line: word.argument,
        key: ColumnSpan {
            column: dashes + 1,
            length: name.map_or(0, |name| name.chars().count()).max(1),
        },
        value,
    }
}

fn command_entry(word: &CommandWord) -> OptionEntry {
    OptionEntry {
        key: word.key.clone(),
        value: word.value.clone(),
        place: command_place(word),
        origin: Origin::Command,
    }
}

/// Words before the first `--name` are defaults; each `--name` opens a job.
fn command_sections<'a>(words: impl Iterator<Item = &'a CommandWord>) -> Batch {
    let mut sections: Batch = Vec::new();
    for word in words {
        let place = command_place(word);
        if word.key == "name" {
            let name = word.value.clone().unwrap_or_default();
            let mut section = Section {
                name,
                place,
                entries: Vec::new(),
            };
            // fio counts it among the job's options.
            if !section.name.is_empty() && !section.is_global() {
                section.entries.push(command_entry(word));
            }
            sections.push(section);
            continue;
        }
        if sections.is_empty() {
            let name = "global".to_owned();
            sections.push(Section {
                name,
                place: place.clone(),
                entries: Vec::new(),
            });
        }
        if let Some(section) = sections.last_mut() {
            section.entries.push(command_entry(word));
        }
    }
    sections
}

struct Loader<'a> {
    files: &'a dyn Files,
    report: &'a mut CompileReport,
    /// Files being read, the outermost first.
    open: Vec<String>,
    includes: usize,
    /// Standard input can be read only once.
    seen: HashSet<&'static str>,
}

impl Loader<'_> {
    fn file(&mut self, path: &str) -> Batch {
        let fail = |why: String| {
            Diagnostic::general(
                Fault::new(
                    "job.file",
                    format!("cannot read the job file `{path}`: {why}"),
                )
                .peer(format!("fio: unable to open '{path}' job file")),
            )
        };
        if path == "-" && !self.seen.insert("-") {
            self.report
                .push(fail("standard input was already read".to_owned()));
            return Batch::new();
        }
        match self.files.read(path) {
            Ok(bytes) => self.sections(path, &bytes),
            Err(error) => {
                self.report.push(fail(error.to_string()));
                Batch::new()
            }
        }
    }

    fn sections(&mut self, path: &str, bytes: &[u8]) -> Batch {
        let name = if path == "-" { "standard input" } else { path };
        let document = syntax::parse(name, bytes, &mut |d| self.report.push(d));
        self.open.push(path.to_owned());
        let mut sections = Batch::new();
        let mut outside: Option<(SyntaxItem, usize)> = None;
        for item in document.items {
            if let ItemKind::Section(name) = item.kind {
                sections.push(Section {
                    name,
                    place: item.place,
                    entries: Vec::new(),
                });
            } else if let Some(section) = sections.last_mut() {
                self.line(item, &mut section.entries);
            } else {
                outside = Some(outside.map_or((item, 0), |(first, more)| (first, more + 1)));
            }
        }
        self.open.pop();
        if let Some((first, more)) = outside {
            self.report.push(outside_of_sections(&first, more));
        }
        sections
    }

    fn line(&mut self, item: SyntaxItem, entries: &mut Vec<OptionEntry>) {
        match item.kind {
            ItemKind::Option { key, value } => {
                entries.push(OptionEntry {
                    key,
                    value,
                    place: item.place,
                    origin: Origin::File,
                });
            }
            ItemKind::Include(path) => self.include(&path, &item.place, entries),
            ItemKind::Section(_) => self.report.push(
                item.place.at_key(
                    Fault::new("job.include", "a section within an included file")
                        .label("included files hold options only")
                        .peer("No new sections in included files"),
                ),
            ),
        }
    }

    fn include(&mut self, path: &str, place: &Place, entries: &mut Vec<OptionEntry>) {
        self.includes += 1;
        let failed = format!("Error 1 while parsing include file {path}");
        let fail = |message: String, label: &str| {
            place.at_value(
                Fault::new("job.include", message)
                    .label(label)
                    .peer(failed.clone()),
            )
        };
        if self.open.len() >= MAX_DEPTH || self.includes > MAX_INCLUDES {
            let label = format!("at most {MAX_DEPTH} deep and {MAX_INCLUDES} in all");
            self.report
                .push(fail("too many includes".to_owned(), &label));
            return;
        }
        let directory = self
            .open
            .last()
            .and_then(|p| p.rsplit_once('/'))
            .map(|(d, _)| d);
        let beside = directory
            .filter(|_| !path.starts_with('/'))
            .map(|d| format!("{d}/{path}"));
        let read = |p: &str| {
            if p == "-" {
                Err(not_found())
            } else {
                self.files.read(p)
            }
        };
        let (found, bytes) = match (read(path), beside) {
            (Ok(bytes), _) => (path.to_owned(), bytes),
            (Err(_), Some(beside)) if read(&beside).is_ok() => {
                let bytes = read(&beside).unwrap_or_default();
                (beside, bytes)
            }
            (Err(error), _) => {
                let mut fault = fail(format!("cannot read `{path}`: {error}"), "included here");
                fault
                    .peer
                    .insert(0, format!("fio: unable to open '{path}' job file"));
                self.report.push(fault);
                return;
            }
        };
        if self.open.contains(&found) {
            self.report
                .push(fail(format!("`{path}` includes itself"), "an endless loop"));
            return;
        }
        let document = syntax::parse(&found, &bytes, &mut |d| self.report.push(d));
        self.open.push(found);
        for item in document.items {
            self.line(item, entries);
        }
        self.open.pop();
    }
}

fn not_found() -> std::io::Error {
    std::io::ErrorKind::NotFound.into()
}

fn outside_of_sections(first: &SyntaxItem, more: usize) -> Diagnostic {
    let text = match &first.kind {
        ItemKind::Option {
            key,
            value: Some(value),
        } => format!("{key}={value}"),
        ItemKind::Option { key, value: None } => key.clone(),
        ItemKind::Include(path) => format!("include {path}"),
        ItemKind::Section(name) => format!("[{name}]"),
    };
    let fault = Fault::new("job.syntax", "an option before the first section")
        .label("expected a section such as `[global]` first")
        .peer(format!("fio: option <{text}> outside of [] job section"));
    let more = match more {
        0 => fault,
        more => fault.help(format!("{more} more lines stand before the first section")),
    };
    first.place.at_key(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cut_short_is_underlined_as_it_stands() {
        let of = |text: &str| {
            let word = CommandWord {
                key: "experimental_verify".to_owned(),
                value: Some("1".to_owned()),
                argument: 1,
                text: text.to_owned(),
            };
            let place = command_place(&word);
            (place.key.column, place.key.length)
        };
        assert_eq!(of("--experi=1"), (3, 6));
        assert_eq!(of("-experi 1"), (2, 6));
        assert_eq!(of("--experimental_verify=1"), (3, 19));
    }
}
