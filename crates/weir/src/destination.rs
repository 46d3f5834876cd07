//! Destination of a report: a file that is replaced, an open descriptor, or a device or pipe.
//!
//! In: a path. Out: a [`Destination`]. Links are followed, as opening the path would follow them: what is
//! replaced is the file that they lead to, never a link. Not here: writing.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Most links in a row, as Linux follows them.
const MOST_LINKS: usize = 40;

/// Target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A regular file, or none yet: replaced whole by a rename within its folder. No link.
    Replaced(PathBuf),
    /// A descriptor of this process, like `/dev/stdout`, written at its position.
    Descriptor(u32),
    /// A device, a pipe, a descriptor of another process: written in place.
    InPlace,
}

impl Destination {
    /// # Errors
    /// A folder that is not there, a link that may not be followed.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        // The kernel refuses links that others have put into shared folders; asking it first keeps that.
        match fs::metadata(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut path = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(name) = path.file_name().map(OsStr::to_owned) else {
                return Ok(Self::InPlace);
            };
            let folder = match path.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
            let folder = fs::canonicalize(folder)?;
            if folder.starts_with("/proc") {
                return Ok(descriptor(&folder, &name).map_or(Self::InPlace, Self::Descriptor));
            }
            path = folder.join(&name);
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => path = folder.join(fs::read_link(&path)?),
                Ok(found) if !found.is_file() => return Ok(Self::InPlace),
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => return Ok(Self::Replaced(path)),
            }
        }
        Err(io::Error::other("too many links lead to each other"))
    }
}

/// The number of a descriptor of this process, `/proc/PID/fd/NUMBER` or `/proc/PID/task/TID/fd/NUMBER`.
fn descriptor(folder: &Path, name: &OsStr) -> Option<u32> {
    let own = fs::canonicalize("/proc/self").ok()?;
    let is_own = folder.starts_with(own) && folder.file_name() == Some(OsStr::new("fd"));
    name.to_str().filter(|_| is_own)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_lead_to_the_file_that_is_replaced() {
        let folder = std::env::temp_dir().join(format!("weir-links-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub")).unwrap();
        let folder = fs::canonicalize(folder).unwrap();
        symlink("sub/../two", folder.join("one")).unwrap();
        symlink(folder.join("sub/real"), folder.join("two")).unwrap();
        symlink("round", folder.join("round")).unwrap();
        symlink("none/real", folder.join("nowhere")).unwrap();
        symlink("/proc/self/fd/1", folder.join("out")).unwrap();
        let of = |name: &str| Destination::of(&folder.join(name));
        let real = Destination::Replaced(folder.join("sub/real"));
        // There is none yet, then there is.
        assert_eq!(of("one").unwrap(), real);
        fs::write(folder.join("sub/real"), "x").unwrap();
        assert_eq!(of("one").unwrap(), real);
        assert_eq!(of("sub/real").unwrap(), real);
        assert_eq!(
            of("new").unwrap(),
            Destination::Replaced(folder.join("new"))
        );
        assert_eq!(of("out").unwrap(), Destination::Descriptor(1));
        assert!(of("round").is_err() && of("nowhere").is_err() && of("no/file").is_err());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn descriptors_and_devices_are_not_replaced() {
        let of = |path: &str| Destination::of(Path::new(path)).unwrap();
        assert_eq!(of("/dev/stdout"), Destination::Descriptor(1));
        assert_eq!(of("/dev/stderr"), Destination::Descriptor(2));
        assert_eq!(of("/dev/fd/0"), Destination::Descriptor(0));
        assert_eq!(of("/proc/thread-self/fd/1"), Destination::Descriptor(1));
        assert_eq!(of("/dev/null"), Destination::InPlace);
        assert_eq!(of("/dev"), Destination::InPlace);
        let relative = std::env::current_dir().unwrap().join("r.json");
        assert_eq!(of("r.json"), Destination::Replaced(relative));
    }
}
