//! Operations that come in bursts.
//!
//! In: nothing. Out: the type, and what share of operations reads. Not here: how they are drawn
//! (`weir-block`).

use serde::{Deserialize, Serialize};
use weir_units::JsonSchema;

/// Bursts of reads and of writes, drawn by the shares of the mix. Both go on along one sequence of
/// offsets, which starts over at its end; only time, bytes or operations end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Reads in a burst of them.
    pub reads: u32,
    /// Writes in a burst of them.
    pub writes: u32,
    /// A burst begins when nothing of the last one is in flight any more.
    #[serde(default)]
    pub drain: bool,
    /// The pause of a kind follows the last operation of a burst instead of each.
    #[serde(default)]
    pub pause_behind: bool,
    /// Kinds and offsets are those of the worker of this number; the worker's own where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// Each operation flushes the target and moves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush_only: bool,
}

impl Bursts {
    /// The share of operations that read, where so many of a hundred bursts do.
    pub fn read_share(&self, read_percent: u8) -> f64 {
        let percent = f64::from(read_percent.min(100));
        let reads = percent * f64::from(self.reads.max(1));
        let writes = (100.0 - percent) * f64::from(self.writes.max(1));
        reads / (reads + writes)
    }
}

impl Default for Bursts {
    /// Each operation is drawn alone.
    fn default() -> Self {
        Self {
            reads: 1,
            writes: 1,
            drain: false,
            pause_behind: false,
            stream: None,
            flush_only: false,
        }
    }
}
