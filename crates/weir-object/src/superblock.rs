//! The file of a pool and its first bytes, by which an engine knows it as its own.
//!
//! In: a pool's specification, or bytes of a file. Out: the locked file, a [`Superblock`]. Not here:
//! anything behind the superblock.

use std::fs::{File, OpenOptions};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::prelude::*;
use crc_fast::{CrcAlgorithm, checksum};
use rustix::fs::{FlockOperation, flock};

const VERSION: u32 = 1;
/// Bytes of a superblock.
pub(super) const BLOCK: usize = 128;

pub(super) fn io_error(what: &str, path: &Path, error: &std::io::Error) -> ObjectError {
    let why = format!("cannot {what} {}: {error}", path.display());
    ObjectError::new(code_of_io(error), why)
}

/// The directory of a file.
pub(super) fn folder_of(file: &Path) -> &Path {
    let named = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    named.unwrap_or_else(|| Path::new("."))
}

/// Length of the file of a pool.
pub(super) fn length_of(file: &File, path: &Path) -> Result<u64> {
    let metadata = file.metadata();
    metadata.map_or_else(
        |e| Err(io_error("read the length of", path, &e)),
        |it| Ok(it.len()),
    )
}

/// File of a pool, locked until this is dropped. A process that is about to start a program has the file
/// open a moment longer, and would keep a lock that only ends with the file.
#[derive(Debug)]
pub(super) struct PoolLock(File);

impl Deref for PoolLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl AsFd for PoolLock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for PoolLock {
    fn drop(&mut self) {
        // Where this fails the lock ends with the file.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Opens the file of a pool and locks it, a new one of the given length or the one that is there, and makes the
/// pool of it; a new file goes again where that fails.
pub(super) fn on_file<T>(
    path: &Path,
    mode: PoolMode,
    len: u64,
    pool: impl FnOnce(PoolLock) -> Result<T>,
) -> Result<T> {
    let new = mode == PoolMode::Create;
    let fail = |what, error: &std::io::Error| io_error(what, path, error);
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create_new(new);
    let file = options.open(path).map_err(|e| {
        let mut why = fail("open", &e);
        if why.code == ObjectCode::Exist {
            why.message += "; --pool UUID (-u) uses the pool in it, else remove the file";
        }
        why
    })?;
    let made = (|| {
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|e| fail("lock (another process uses it)", &e.into()))?;
        let file = PoolLock(file);
        if new {
            file.set_len(len)
                .map_err(|e| fail("set the length of", &e))?;
        }
        pool(file)
    })();
    if new && made.is_err() {
        // The file is this call's own: it was not there before.
        let _ = std::fs::remove_file(path);
    }
    made
}

/// Removes a pool that nobody has open, with the directory of its library if it has one.
///
/// # Errors
/// Of the file system.
pub fn remove_pool(path: &Path) -> std::io::Result<()> {
    let mut head = [0; 8];
    // A file that is too short is none of a library.
    let _ = File::open(path)?.read_exact_at(&mut head, 0);
    if DiskLibrary::of_pool(&head).is_some_and(DiskLibrary::has_directory) {
        std::fs::remove_dir_all(directory_of(path))?;
    }
    std::fs::remove_file(path)
}

/// Name and form of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    /// Name of the engine's format.
    pub(super) magic: [u8; 8],
    pub(super) uuid: StoreUuid,
    /// Bytes that the pool may have.
    pub(super) len: u64,
    /// Of several superblocks the greatest counts.
    pub(super) generation: u64,
    /// Words of the engine's own.
    pub(super) words: [u64; 3],
    pub(super) sums: ValueSums,
}

impl Superblock {
    pub(super) fn encode(&self) -> [u8; BLOCK] {
        let mut out = [0; BLOCK];
        let [a, b, c] = self.words;
        out[..8].copy_from_slice(&self.magic);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[16..32].copy_from_slice(&self.uuid);
        let words = [self.len, self.generation, a, b, c, self.sums as u64];
        for (slot, word) in out[32..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        let sum = Self::sum(&out);
        out[12..16].copy_from_slice(&sum.to_le_bytes());
        out
    }

    #[expect(clippy::cast_possible_truncation, reason = "a sum of 32 bits")]
    fn sum(bytes: &[u8]) -> u32 {
        checksum(CrcAlgorithm::Crc32Iscsi, &bytes[16..BLOCK]) as u32
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| bytes[at..].first_chunk().map(|w| u64::from_le_bytes(*w));
        if word(8)? >> 32 != u64::from(Self::sum(bytes)) {
            return None;
        }
        Some(Self {
            magic: *bytes.first_chunk()?,
            uuid: *bytes[16..].first_chunk()?,
            len: word(32)?,
            generation: word(40)?,
            words: [word(48)?, word(56)?, word(64)?],
            sums: match word(72)? {
                0 => ValueSums::None,
                1 => ValueSums::Crc32c,
                _ => ValueSums::Xxh3,
            },
        })
    }

    /// The superblock that counts, of an engine's format and a pool's name.
    pub(super) fn read<'a>(
        places: impl IntoIterator<Item = &'a [u8]>,
        magic: [u8; 8],
        uuid: Option<StoreUuid>,
    ) -> Result<Self> {
        let is_named = |bytes: &&[u8]| bytes.len() >= BLOCK && bytes.starts_with(&magic);
        let named: Vec<&[u8]> = places.into_iter().filter(is_named).collect();
        refuse!(named.is_empty() => Inval, "the file is no pool of weir, or one of another engine");
        let version = |bytes: &&[u8]| word(&bytes[8..]) & u64::from(u32::MAX);
        refuse!(named.iter().map(version).max() > Some(VERSION.into()) => NoSys,
            "the pool has the format of a newer weir");
        let whole = named.into_iter().filter_map(Self::decode);
        let Some(block) = whole.max_by_key(|block| block.generation) else {
            return ObjectCode::Io.fail("the pool's superblock is damaged");
        };
        refuse!(uuid.is_some_and(|uuid| uuid != block.uuid) => Mismatch, "the pool has another UUID");
        Ok(block)
    }
}
