//! Signatures in the first and last bytes of a device: partitions, a file system, a part of
//! something larger.
//!
//! In: a path. Out: a word for what is there. Reads a few blocks and nothing else. Not here: whether
//! the device is in use ([`crate::guard`]).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes from the start that are looked at.
const HEAD: usize = 136 << 10;

/// A mark at an offset.
struct Mark {
    at: usize,
    bytes: &'static [u8],
    meaning: &'static str,
}

const fn mark(at: usize, bytes: &'static [u8], meaning: &'static str) -> Mark {
    Mark { at, bytes, meaning }
}

/// A superblock of md.
const MD: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];

/// All marks, the more telling ones first: a partition table is last, as boot sectors of file systems
/// look like one.
const MARKS: &[Mark] = &[
    mark(1080, &[0x53, 0xef], "an ext file system"),
    mark(0, b"XFSB", "an XFS file system"),
    mark(0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    mark(0, b"LUKS\xba\xbe", "encrypted data (LUKS)"),
    mark(512, b"LABELONE", "a part of LVM"),
    mark(4086, b"SWAPSPACE2", "swap space"),
    mark(4086, b"SWAP-SPACE", "swap space"),
    mark(0, MD, "a member of a RAID (md)"),
    mark(4096, MD, "a member of a RAID (md)"),
    mark(0x2_0000, &[0x0c, 0xb1, 0xba, 0], "a member of a ZFS pool"),
    mark(512, b"EFI PART", "a partition table (GPT)"),
    mark(4096, b"EFI PART", "a partition table (GPT)"),
    mark(
        510,
        &[0x55, 0xaa],
        "a partition table (MBR) or a boot sector",
    ),
];

/// Probable content of a device; nothing where there is no mark, or where it cannot be read.
pub fn signature(path: &Path) -> Option<&'static str> {
    let mut file = File::open(path).ok()?;
    let mut head = Vec::with_capacity(HEAD);
    file.by_ref()
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .ok()?;
    let end = file.seek(SeekFrom::End(0)).ok()?;
    of_head(&head).or_else(|| of_end(&mut file, end))
}

fn of_head(head: &[u8]) -> Option<&'static str> {
    let is_there = |mark: &&Mark| {
        let found = head.get(mark.at..mark.at + mark.bytes.len());
        found == Some(mark.bytes)
    };
    MARKS.iter().find(is_there).map(|mark| mark.meaning)
}

/// The superblock of an older md lies 8 to 12 KiB before the end, that of 0.90 in the last 64 KiB.
fn of_end(file: &mut File, end: u64) -> Option<&'static str> {
    let places = [
        (end.checked_sub(8 << 10)? >> 12) << 12,
        (end.checked_sub(64 << 10)? >> 16) << 16,
    ];
    places.into_iter().find_map(|at| {
        let mut bytes = [0; 4];
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        (bytes == MD).then_some("a member of a RAID (md)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;

    fn of(marks: &[(usize, &[u8])]) -> Option<&'static str> {
        let mut bytes = vec![0; 1 << 20];
        for (at, mark) in marks {
            bytes[*at..*at + mark.len()].copy_from_slice(mark);
        }
        let fake = FakeTree::with(&[]);
        let path = fake.path().join("device");
        std::fs::create_dir_all(fake.path()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        signature(&path)
    }

    #[test]
    fn each_mark_is_known_and_an_empty_device_has_none() {
        assert_eq!(of(&[]), None);
        for mark in MARKS {
            assert_eq!(of(&[(mark.at, mark.bytes)]), Some(mark.meaning));
        }
        let older = (1 << 20) - (8 << 10);
        assert_eq!(of(&[(older, MD)]), Some("a member of a RAID (md)"));
    }

    #[test]
    fn a_file_system_with_a_boot_sector_is_a_file_system() {
        let both = of(&[(510, &[0x55, 0xaa]), (1080, &[0x53, 0xef])]);
        assert_eq!(both, Some("an ext file system"));
    }

    #[test]
    fn what_is_shorter_than_a_mark_has_none() {
        let fake = FakeTree::with(&[("short", "XF")]);
        assert_eq!(signature(&fake.path().join("short")), None);
        assert_eq!(signature(&fake.path().join("none")), None);
    }
}
