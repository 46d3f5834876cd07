//! The files and devices of a job: which, how missing ones come to be, how they are opened and in
//! which order they are served.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

/// The files and devices of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
pub struct Targets {
    /// Names of the files.
    pub files: FileNames,
    /// Missing files: how they come to be.
    pub create: CreatePolicy,
    /// Mode in which files are opened.
    pub open: OpenMode,
    /// Files are removed after the job.
    pub remove_after: bool,
    /// Files are removed between passes over the region, and made anew when they are opened.
    #[serde(default)]
    pub renew_each_pass: bool,
    /// Writing to a mounted or held device is allowed.
    pub allow_mounted_write: bool,
    /// In which order several files are served.
    #[serde(default)]
    pub service: FileService,
    /// Begin at the end of each file instead of its start.
    #[serde(default)]
    pub append: bool,
}

/// Names of the targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum FileNames {
    /// These, shared by all clones.
    Listed {
        /// Paths, relative ones below the directory.
        paths: Vec<String>,
        /// Directories, used in turn by the clones.
        directories: Vec<String>,
    },
    /// Made from a pattern, own files for each clone.
    Generated {
        /// Text with `$jobname`, `$jobnum`, `$filenum`.
        pattern: String,
        /// Directories, used in turn by the clones.
        directories: Vec<String>,
        /// Files per clone.
        count: u32,
    },
    /// Every file in these directories and below, shared by all clones.
    Below {
        /// Directories.
        directories: Vec<String>,
        /// Paths that come first.
        paths: Vec<String>,
    },
    /// These, shared by all clones, each with a length of its own.
    Sized {
        /// The files.
        files: Vec<SizedFile>,
    },
    /// The engine needs no target.
    None,
}

/// A file and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizedFile {
    /// Path.
    pub path: String,
    /// Length from its start.
    pub bytes: Bytes,
}

/// Creation of missing or short files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches of one policy"
)]
pub struct CreatePolicy {
    /// May files be made? Absent: yes, except below `/dev`.
    pub allow: Option<bool>,
    /// Write the whole file anew before the run.
    pub overwrite: bool,
    /// Reservation of space before a write job.
    pub preallocate: Preallocate,
    /// fsync after the layout.
    pub sync: bool,
    /// Make the file when the job opens it, not before.
    pub on_open: bool,
    /// Stop after the layout.
    pub only: bool,
}

/// Reservation of space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preallocate {
    /// Not at all.
    None,
    /// fallocate(2) where the file system has it, else nothing.
    #[default]
    Native,
    /// `posix_fallocate`.
    Posix,
    /// fallocate(2) without changing the size.
    KeepSize,
    /// ftruncate(2).
    Truncate,
}

/// Opening and preparation of targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent open flags")]
pub struct OpenMode {
    /// `O_DIRECT`.
    pub direct: bool,
    /// `O_SYNC`.
    pub sync: bool,
    /// `O_DSYNC`.
    pub data_sync: bool,
    /// Drop the page cache of the region before each pass over it.
    pub drop_cache: bool,
    /// Read the region through first.
    pub read_first: bool,
    /// Refuse every write, absolutely.
    pub read_only: bool,
    /// Advice to the kernel about the order of offsets.
    #[serde(default)]
    pub advice: Advice,
    /// Advice to the kernel about the time that written data will stay.
    #[serde(default)]
    pub lifetime: Option<Lifetime>,
}

/// Advice to the kernel about the order of offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// None.
    #[default]
    None,
    /// The order of the job's offsets.
    Pattern,
    /// Random.
    Random,
    /// Sequential.
    Sequential,
}

/// Time that written data is expected to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Nothing can be said about it.
    None,
    /// Short.
    Short,
    /// Medium.
    Medium,
    /// Long.
    Long,
    /// Extremely long.
    Extreme,
}

/// In which order the files of a job are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileService {
    /// Order of the files.
    pub order: FileOrder,
    /// Operations on a file before the next one is chosen (1 when absent).
    pub run: Option<u32>,
    /// Files in use at a time; all when absent. The next one comes into use when one is done.
    pub at_once: Option<u32>,
}

/// Rule by which the next file is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum FileOrder {
    /// One after the other, in turn.
    #[default]
    InTurn,
    /// One is finished before the next is begun.
    Sequential,
    /// Any, all alike.
    Uniform,
    /// By Zipf's law.
    Zipf {
        /// Exponent.
        theta: f64,
    },
    /// By the Pareto distribution.
    Pareto {
        /// Skew, 0 < h < 1.
        h: f64,
    },
    /// Gaussian around the middle of the list.
    Normal {
        /// Standard deviation in percent of the list.
        deviation_percent: f64,
    },
}
