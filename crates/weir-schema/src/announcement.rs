//! Announcements of a run before it begins to measure.
//!
//! In: what runners find and do to make jobs ready. Out: data; each door has words of its own for
//! it. Not here: warnings, which are part of the result.

use weir_units::Bytes;

/// Something worth saying while jobs are made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// Files are being made at their length.
    LayingOut {
        /// The job.
        job: String,
        /// Number of files.
        files: u64,
        /// Of all of them.
        bytes: Bytes,
    },
    /// A file has less than a job asks for, and does not grow because it is read alone.
    ShortFile {
        /// The file.
        target: String,
        /// Length of the file.
        length: Bytes,
        /// Bytes of it that are read.
        used: Bytes,
        /// Bytes asked for.
        asked: Bytes,
    },
    /// A server waits for its client.
    Listening {
        /// Where.
        address: String,
    },
    /// Somebody called who is not who is waited for, and was sent away.
    Stranger {
        /// Address of the stranger.
        address: String,
        /// Peer that is waited for: `client of weir axio`.
        awaited: String,
        /// Sign by which that was seen.
        why: String,
    },
}
