//! An archive in the kernel's form (newc), written in memory.
//!
//! In: files, folders, links and device nodes. Out: bytes that a kernel unpacks as its first file
//! system; several archives in a row count as one. Not here: what goes in (`initrd`).

use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

/// An archive that grows.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    inode: u32,
    folders: BTreeSet<String>,
}

impl Archive {
    /// A folder and those above it.
    pub(crate) fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        for (at, _) in path.match_indices('/').chain([(path.len(), "")]) {
            let above = &path[..at];
            if !above.is_empty() && self.folders.insert(above.to_owned()) {
                self.entry(above, FOLDER | 0o755, (0, 0), &[]);
            }
        }
    }

    pub(crate) fn file(&mut self, path: &str, permissions: u32, bytes: &[u8]) {
        self.above(path);
        self.entry(path, FILE | permissions, (0, 0), bytes);
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) {
        self.above(path);
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    pub(crate) fn character_device(&mut self, path: &str, number: (u32, u32)) {
        self.above(path);
        self.entry(path, CHARACTER_DEVICE | 0o600, number, &[]);
    }

    fn above(&mut self, path: &str) {
        if let Some((folder, _)) = path.trim_matches('/').rsplit_once('/') {
            self.folder(folder);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), bytes: &[u8]) {
        let name = path.trim_start_matches('/');
        self.inode += 1;
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let name_size = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
        // Magic, inode, mode, owner, group, links, time, size, device of the file, number of a
        // device node, length of the name with its zero, no checksum.
        self.bytes.extend_from_slice(b"070701");
        for field in [
            self.inode, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0,
        ] {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(bytes);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// The whole archive; not compressed, because an emulated processor takes longer to unpack than
    /// to copy. Its length is a multiple of 4, as the kernel wants it where another one follows.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Entries of an archive: path, mode, contents; read by the form's definition.
    fn entries(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        assert_eq!(bytes.len() % 4, 0);
        let mut rest = bytes;
        let mut found = Vec::new();
        loop {
            assert_eq!(&rest[..6], b"070701");
            let field = |n: usize| {
                let text = std::str::from_utf8(&rest[6 + 8 * n..14 + 8 * n]).unwrap();
                u32::from_str_radix(text, 16).unwrap()
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let path = String::from_utf8(rest[110..110 + name - 1].to_vec()).unwrap();
            let at = (110 + name).next_multiple_of(4);
            if path == "TRAILER!!!" {
                return found;
            }
            found.push((path, mode, rest[at..at + size].to_vec()));
            rest = &rest[(at + size).next_multiple_of(4)..];
        }
    }

    #[test]
    fn folders_above_a_file_come_once_and_before_it() {
        let mut archive = Archive::default();
        archive.file("/lab/a/x", 0o755, b"1");
        archive.link("/lab/a/y", "x");
        archive.folder("lab/b/");
        let entries = entries(&archive.finish());
        let paths: Vec<&str> = entries.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(paths, ["lab", "lab/a", "lab/a/x", "lab/a/y", "lab/b"]);
        assert_eq!(entries[2].1, 0o100_755);
        assert_eq!(entries[3].2, b"x");
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            files in proptest::collection::btree_map(
                "[a-z]{1,9}", proptest::collection::vec(any::<u8>(), 0..40), 0..8
            ),
        ) {
            let mut archive = Archive::default();
            for (name, bytes) in &files {
                archive.file(name, 0o644, bytes);
            }
            let out = entries(&archive.finish());
            let out: std::collections::BTreeMap<_, _> =
                out.into_iter().map(|(name, _, bytes)| (name, bytes)).collect();
            prop_assert_eq!(out, files);
        }
    }
}
