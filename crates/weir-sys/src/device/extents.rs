//! Written parts of a file.
//!
//! In: an open file. Out: bytes of data and bytes of holes; reads of holes reach no device. Not
//! here: blocks that a device itself has forgotten.

use crate::error::SysError;
use rustix::fs::{SeekFrom, fstat, fstatfs, seek};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::path::Path;
use weir_units::Bytes;

/// Pieces looked at before giving up: a badly fragmented file must not delay a run.
const MAX_PIECES: u32 = 100_000;
/// Magic number of tmpfs. It looks for a hole page by page, milliseconds for 100 MiB, but says
/// at once how many pages there are.
const TMPFS: u64 = 0x0102_1994;
/// The unit that files' sizes on storage are counted in.
const COUNTED: u64 = 512;

/// Bytes of data and of holes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Written bytes.
    pub data: Bytes,
    /// Never-written bytes.
    pub holes: Bytes,
    /// The whole file was looked at; if not, the two cover its beginning.
    pub is_complete: bool,
}

/// Looks for holes. Leaves the file's position at 0.
///
/// # Errors
/// [`SysError::Path`] if the file cannot be searched; `path` is for the message alone.
pub fn extents(file: impl AsFd, path: &Path) -> Result<Extents, SysError> {
    let file = file.as_fd();
    let fail = |error: Errno| SysError::Path {
        what: "look for holes in",
        path: path.to_owned(),
        source: error.into(),
    };
    let stat = fstat(file).map_err(fail)?;
    let len = u64::try_from(stat.st_size).unwrap_or(0);
    let stored = u64::try_from(stat.st_blocks).unwrap_or(0) * COUNTED;
    if stored >= len && fstatfs(file).is_ok_and(|fs| u64::try_from(fs.f_type) == Ok(TMPFS)) {
        return Ok(Extents {
            data: Bytes(len),
            holes: Bytes(0),
            is_complete: true,
        });
    }
    let (mut data, mut at, mut pieces) = (0, 0, 0);
    while at < len && pieces < MAX_PIECES {
        let from = match seek(file, SeekFrom::Data(at)) {
            Ok(from) => from.min(len),
            // No data beyond here.
            Err(Errno::NXIO) => len,
            Err(error) => return Err(fail(error)),
        };
        at = from;
        if from < len {
            at = seek(file, SeekFrom::Hole(from)).map_err(fail)?.min(len);
            data += at - from;
        }
        pieces += 1;
    }
    seek(file, SeekFrom::Start(0)).map_err(fail)?;
    Ok(Extents {
        data: Bytes(data),
        holes: Bytes(at - data),
        is_complete: at >= len,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::fake::FakeTree;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    #[test]
    fn data_and_holes_add_up_to_the_length() {
        let fake = FakeTree::new();
        let path = fake.path().join("sparse");
        let file = File::create_new(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&vec![1; 65_536], 1 << 19).unwrap();
        let found = extents(&file, &path).unwrap();
        assert!(found.is_complete);
        assert_eq!(found.data.0 + found.holes.0, 1 << 20);
        // A file system without holes reports all of it as data.
        assert!(found.data.0 == 65_536 || found.holes.0 == 0, "{found:?}");
    }

    #[test]
    fn a_file_in_memory_without_holes_is_all_data() {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file = File::from(rustix::fs::memfd_create("full", flags).unwrap());
        file.write_all_at(&vec![1; 65_536], 0).unwrap();
        let found = extents(&file, Path::new("full")).unwrap();
        assert_eq!((found.data, found.holes), (Bytes(65_536), Bytes(0)));
        file.set_len(1 << 20).unwrap();
        let found = extents(&file, Path::new("sparse")).unwrap();
        assert_eq!(found.data.0 + found.holes.0, 1 << 20);
        assert_eq!(found.data, Bytes(65_536));
    }

    #[test]
    fn an_empty_file_has_neither() {
        let fake = FakeTree::with(&[("empty", "")]);
        let path = fake.path().join("empty");
        let found = extents(File::open(&path).unwrap(), &path).unwrap();
        assert_eq!(
            (found.data, found.holes, found.is_complete),
            (Bytes(0), Bytes(0), true)
        );
    }
}
