//! `--map OLD=NEW`: other beginnings for the paths that jobs name, so that a file written for one
//! machine runs on another unchanged.
//!
//! In: the command line's maps, then names as options give them. Out: the names that count; a
//! note on what was replaced, an error for each map that replaced nothing. The longest `OLD` that
//! a name begins with counts. Not here: which options hold paths.

use crate::diagnostic::{Diagnostic, Fault};
use crate::report::CompileReport;
use crate::value::list;

/// The maps of a command line, the longest first.
#[derive(Debug, Default)]
pub(crate) struct PathMaps(Vec<PathMap>);

#[derive(Debug)]
struct PathMap {
    old: String,
    new: String,
    replaced: u32,
    /// The first name that was replaced.
    example: Option<(String, String)>,
}

impl PathMaps {
    /// Reads the maps; those that are none are reported.
    pub(crate) fn read(texts: &[String], report: &mut CompileReport) -> Self {
        let mut maps: Vec<PathMap> = Vec::new();
        for text in texts {
            let parts = text.split_once('=');
            let Some((old, new)) = parts.filter(|(old, new)| !old.is_empty() && !new.is_empty())
            else {
                let fault = Fault::new("job.map", format!("`--map {text}` replaces nothing"))
                    .help("expected OLD=NEW, two beginnings of paths");
                report.push(Diagnostic::general(fault));
                continue;
            };
            if maps.iter().any(|map| map.old == old) {
                let fault = Fault::new("job.map", format!("`--map {old}` is given twice"));
                report.push(Diagnostic::general(fault));
                continue;
            }
            maps.push(PathMap {
                old: old.to_owned(),
                new: new.to_owned(),
                replaced: 0,
                example: None,
            });
        }
        maps.sort_by_key(|map| std::cmp::Reverse(map.old.len()));
        Self(maps)
    }

    /// The value of an option that holds paths, with what counts in place of what was written.
    pub(crate) fn apply(&mut self, value: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let names = list::names(value);
        let mapped = names.iter().map(|name| self.name(name).replace(':', "\\:"));
        Some(mapped.collect::<Vec<_>>().join(":"))
    }

    fn name(&mut self, name: &str) -> String {
        let map = self.0.iter_mut().find(|map| name.starts_with(&map.old));
        let Some(map) = map else {
            return name.to_owned();
        };
        let mapped = format!("{}{}", map.new, &name[map.old.len()..]);
        map.replaced += 1;
        map.example
            .get_or_insert_with(|| (name.to_owned(), mapped.clone()));
        mapped
    }

    /// Says what was replaced, and which maps replaced nothing.
    pub(crate) fn finish(self, report: &mut CompileReport) {
        let replaced: u32 = self.0.iter().map(|map| map.replaced).sum();
        let example = self.0.iter().find_map(|map| map.example.clone());
        if let Some((old, new)) = example {
            let names = if replaced == 1 { "name" } else { "names" };
            report.note(format!(
                "--map: {replaced} {names} replaced, for example {old} by {new}"
            ));
        }
        for map in self.0.iter().filter(|map| map.replaced == 0) {
            let message = format!("`--map {}` meets no file or device of the jobs", map.old);
            let fault = Fault::new("job.map", message)
                .help("the beginning of a filename or directory, as the job has it, is expected");
            report.push(Diagnostic::general(fault));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(texts: &[&str]) -> (PathMaps, CompileReport) {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        let mut report = CompileReport::default();
        (PathMaps::read(&texts, &mut report), report)
    }

    #[test]
    fn the_longest_beginning_counts() {
        let (mut maps, mut report) = maps(&["/dev/=/tmp/d/", "/dev/xdma0_=/tmp/c/ch_"]);
        let of = |maps: &mut PathMaps, text: &str| maps.apply(text).unwrap();
        assert_eq!(of(&mut maps, "/dev/xdma0_h2c_1"), "/tmp/c/ch_h2c_1");
        assert_eq!(of(&mut maps, "/dev/zero:a\\:b"), "/tmp/d/zero:a\\:b");
        maps.finish(&mut report);
        assert!(report.errors.is_empty());
        let [note] = report.notes.as_slice() else {
            panic!("one note")
        };
        assert!(note.contains("2 names"), "{note}");
    }

    #[test]
    fn maps_that_are_none_or_meet_nothing_are_errors() {
        for bad in ["", "a", "=b", "a="] {
            assert_eq!(maps(&[bad]).1.errors.len(), 1, "{bad}");
        }
        assert_eq!(maps(&["a=b", "a=c"]).1.errors.len(), 1);
        let (mut maps, mut report) = maps(&["/dev/=/tmp/"]);
        maps.apply("data");
        maps.finish(&mut report);
        assert!(report.notes.is_empty());
        assert!(report.errors[0].render().contains("`--map /dev/` meets no"));
    }
}
