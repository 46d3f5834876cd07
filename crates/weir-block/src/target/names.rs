//! Names of targets: listed ones that clones share, or own ones made from a pattern.
//!
//! In: the plan's words. Out: for each clone its paths in order. Not here: what lies there.

use std::path::{Path, PathBuf};

use weir_schema::FileNames;

/// A target by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedTarget {
    /// As messages and results show it.
    pub(crate) shown: String,
    /// Path of the target.
    pub(crate) path: PathBuf,
}

/// The targets of one clone.
pub(crate) fn names(files: &FileNames, job: &str, clone: u32, base: &Path) -> Vec<NamedTarget> {
    let named = |directories: &[String], name: &str| {
        let turn = clone as usize % directories.len().max(1);
        let shown = match directories.get(turn) {
            // An absolute name lies below the directory too: alone it would be a file that the
            // job does not mean, and would overwrite.
            Some(directory) => Path::new(directory).join(name.trim_start_matches('/')),
            None => PathBuf::from(name),
        };
        NamedTarget {
            path: base.join(&shown),
            shown: shown.to_string_lossy().into_owned(),
        }
    };
    match files {
        FileNames::None => Vec::new(),
        FileNames::Listed { paths, directories } => {
            paths.iter().map(|path| named(directories, path)).collect()
        }
        FileNames::Sized { files } => files.iter().map(|file| named(&[], &file.path)).collect(),
        FileNames::Below { directories, paths } => {
            let mut all: Vec<NamedTarget> = paths.iter().map(|path| named(&[], path)).collect();
            for directory in directories {
                let found = below(&base.join(directory));
                all.extend(found.into_iter().map(|path| {
                    NamedTarget {
                        shown: path
                            .strip_prefix(base)
                            .unwrap_or(&path)
                            .to_string_lossy()
                            .into_owned(),
                        path,
                    }
                }));
            }
            all
        }
        FileNames::Generated {
            pattern,
            directories,
            count,
        } => {
            // A job that is named like a device means the device.
            if *count <= 1 && directories.is_empty() && is_device(&base.join(job)) {
                return vec![named(&[], job)];
            }
            let name = |number: u32| {
                // The longest word first: `$jobname` would not be mistaken for another.
                let name = pattern.replace("$jobname", job);
                let name = name.replace("$jobnum", &clone.to_string());
                name.replace("$filenum", &number.to_string())
            };
            (0..*count)
                .map(|number| named(directories, &name(number)))
                .collect()
        }
    }
}

/// Every file and device in a directory and below, in the order of their names. Links to
/// directories are not followed, so that no circle is walked.
fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let entries = std::fs::read_dir(&directory)
            .into_iter()
            .flatten()
            .flatten();
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(kind) if kind.is_symlink() && entry.path().is_dir() => {}
                _ => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}

fn is_device(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.metadata().is_ok_and(|status| {
        let kind = status.file_type();
        kind.is_block_device() || kind.is_char_device()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(paths: &[&str], directories: &[&str]) -> FileNames {
        let owned = |words: &[&str]| words.iter().map(|&w| w.to_owned()).collect();
        FileNames::Listed {
            paths: owned(paths),
            directories: owned(directories),
        }
    }

    fn paths(files: &FileNames, clone: u32) -> Vec<String> {
        let named = names(files, "job", clone, Path::new("/base"));
        named
            .into_iter()
            .map(|n| n.path.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn listed_names_are_shared_by_clones() {
        let files = listed(&["a", "/dev/b"], &[]);
        assert_eq!(paths(&files, 0), ["/base/a", "/dev/b"]);
        assert_eq!(paths(&files, 7), ["/base/a", "/dev/b"]);
    }

    #[test]
    fn directories_are_used_in_turn_by_the_clones() {
        let files = listed(&["a"], &["x", "/y"]);
        assert_eq!(paths(&files, 0), ["/base/x/a"]);
        assert_eq!(paths(&files, 1), ["/y/a"]);
        assert_eq!(paths(&files, 2), ["/base/x/a"]);
    }

    #[test]
    fn absolute_names_lie_below_their_directory() {
        let files = listed(&["/a/b", "//c"], &["x", "/y"]);
        assert_eq!(paths(&files, 0), ["/base/x/a/b", "/base/x/c"]);
        assert_eq!(paths(&files, 1), ["/y/a/b", "/y/c"]);
    }

    #[test]
    fn generated_names_belong_to_one_clone() {
        let files = FileNames::Generated {
            pattern: "$jobname.$jobnum.$filenum".into(),
            directories: Vec::new(),
            count: 2,
        };
        assert_eq!(paths(&files, 3), ["/base/job.3.0", "/base/job.3.1"]);
    }

    #[test]
    fn a_job_named_like_a_device_means_the_device() {
        let files = FileNames::Generated {
            pattern: "$jobname.$jobnum.$filenum".into(),
            directories: Vec::new(),
            count: 1,
        };
        let named = names(&files, "/dev/null", 0, Path::new("/base"));
        assert_eq!(named[0].path, Path::new("/dev/null"));
    }

    #[test]
    fn an_engine_without_target_has_no_names() {
        assert!(paths(&FileNames::None, 0).is_empty());
    }
}
