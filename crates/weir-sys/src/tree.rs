//! A directory tree that holds `/proc` and `/sys`: the real one, or a made-up one in a test.
//!
//! In: paths below the tree. Out: trimmed text, numbers, sorted names. Every read answers `None`
//! where the kernel has no such file: facts are optional by nature. Not here: their meaning.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A directory whose files are read as facts.
#[derive(Clone, Debug)]
pub struct Tree {
    at: PathBuf,
}

/// The kernel writes megabytes where it lists the interrupts of many CPUs, and nothing longer.
const LONGEST_TEXT: u64 = 16 << 20;
/// An attribute is at most a page.
const LONGEST_WORD: usize = 4096;

/// A file; a pipe, which may be in a copy, would wait for ever.
fn open(path: &Path) -> Option<fs::File> {
    let is_file = fs::metadata(path).is_ok_and(|facts| facts.is_file());
    is_file.then(|| fs::File::open(path).ok())?
}

impl Tree {
    /// The machine's own tree.
    pub fn real() -> Self {
        Self::at("/")
    }

    /// A tree below the given directory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { at: path.into() }
    }

    /// Path of an entry of this tree; a leading `/` counts from the tree's own top.
    pub fn path(&self, entry: impl AsRef<Path>) -> PathBuf {
        let entry = entry.as_ref();
        self.at.join(entry.strip_prefix("/").unwrap_or(entry))
    }

    /// The text of a file without surrounding white space; nothing where it is too long for one that the
    /// kernel writes.
    pub fn text(&self, entry: impl AsRef<Path>) -> Option<String> {
        let file = open(&self.path(entry))?;
        let mut bytes = Vec::new();
        file.take(LONGEST_TEXT + 1).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > LONGEST_TEXT {
            return None;
        }
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The beginning of a file, for files of which the kernel makes up more than is asked here.
    pub fn head(&self, entry: impl AsRef<Path>, limit: u64) -> Option<String> {
        let file = open(&self.path(entry))?;
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The first CPU's part of `/proc/cpuinfo`. The whole takes the kernel milliseconds on a
    /// large machine.
    pub fn cpuinfo(&self) -> String {
        self.head("proc/cpuinfo", 8_192).unwrap_or_default()
    }

    /// The text of a file, unless it is empty, or nothing that an attribute of the kernel can be: in a copy of
    /// another machine there may be anything.
    pub fn word(&self, entry: impl AsRef<Path>) -> Option<String> {
        let is_odd = |c: char| {
            c == char::REPLACEMENT_CHARACTER || (c.is_control() && !c.is_ascii_whitespace())
        };
        let is_word = |text: &String| {
            !text.is_empty() && text.len() <= LONGEST_WORD && !text.contains(is_odd)
        };
        self.text(entry).filter(is_word)
    }

    /// The file's only word as a number (or anything else that parses).
    pub fn number<T: FromStr>(&self, entry: impl AsRef<Path>) -> Option<T> {
        self.text(entry)?.parse().ok()
    }

    /// The names in a directory, sorted; none if there is no such directory.
    pub fn names(&self, entry: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(entry)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The numbers behind names such as `cpu0` or `node12`, sorted.
    pub fn numbered(&self, entry: impl AsRef<Path>, prefix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .names(entry)
            .iter()
            .filter_map(|name| name.strip_prefix(prefix)?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The directory behind an entry, links followed.
    pub fn dir(&self, entry: impl AsRef<Path>) -> Option<Self> {
        let at = fs::canonicalize(self.path(entry)).ok()?;
        at.is_dir().then_some(Self { at })
    }

    /// The directory above this one.
    pub fn parent(&self) -> Option<Self> {
        Some(Self::at(self.at.parent()?))
    }

    /// The last part of this directory's own path.
    pub fn name(&self) -> String {
        let name = self.at.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// True if the entry exists.
    pub fn has(&self, entry: impl AsRef<Path>) -> bool {
        self.path(entry).exists()
    }
}

/// Made-up trees for tests: they vanish when dropped.
#[cfg(test)]
pub(crate) mod fake {
    use super::Tree;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::{fs, process};

    pub(crate) struct FakeTree {
        at: PathBuf,
    }

    impl FakeTree {
        pub(crate) fn new() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("weir-sys-{}-{number}", process::id());
            let at = std::env::temp_dir().join(name);
            fs::create_dir_all(&at).unwrap();
            Self { at }
        }

        pub(crate) fn with(files: &[(&str, &str)]) -> Self {
            let tree = Self::new();
            for (path, text) in files {
                tree.write(path, text);
            }
            tree
        }

        pub(crate) fn write(&self, path: &str, text: &str) {
            let path = self.at.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        pub(crate) fn dir(&self, path: &str) {
            fs::create_dir_all(self.at.join(path)).unwrap();
        }

        /// `link` points to `target`, both below the tree.
        pub(crate) fn link(&self, link: &str, target: &str) {
            let link = self.at.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(self.at.join(target), link).unwrap();
        }

        pub(crate) fn tree(&self) -> Tree {
            Tree::at(&self.at)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.at
        }
    }

    impl Drop for FakeTree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fake::FakeTree;

    #[test]
    fn a_missing_file_is_none_and_a_missing_directory_is_empty() {
        let fake = FakeTree::new();
        let tree = fake.tree();
        assert_eq!(tree.text("proc/nothing"), None);
        assert!(tree.names("sys/nothing").is_empty());
        assert!(tree.dir("sys/nothing").is_none());
    }

    #[test]
    fn numbered_names_sort_by_number_and_skip_strangers() {
        let fake = FakeTree::new();
        for name in ["cpu10", "cpu2", "cpufreq", "cpu0"] {
            fake.dir(&format!("sys/{name}"));
        }
        assert_eq!(fake.tree().numbered("/sys", "cpu"), [0, 2, 10]);
    }
}
