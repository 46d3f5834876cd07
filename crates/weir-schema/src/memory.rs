//! The buffers of block I/O.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

/// I/O buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Kind of the buffers' memory.
    pub kind: MemoryKind,
    /// File behind the memory, for `MemoryKind::File`.
    pub path: Option<String>,
    /// Alignment within the page-aligned area.
    pub align_bytes: Option<Bytes>,
    /// Page size of huge memory.
    pub huge_page_bytes: Option<Bytes>,
}

/// Kind of memory that buffers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Private pages, touched beforehand.
    #[default]
    Private,
    /// Shared pages.
    Shared,
    /// Huge pages.
    Huge,
    /// Shared huge pages.
    SharedHuge,
    /// Pages of a file.
    File,
}
