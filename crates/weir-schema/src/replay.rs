//! Recorded patterns as the source of a job's operations: which one, and how it is changed.

use serde::{Deserialize, Serialize};
use weir_units::{Bytes, JsonSchema};

use crate::kind::Kind;

/// A recorded pattern and how it is carried out again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The file that holds it.
    pub path: String,
    /// As fast as possible instead of at the recorded times.
    pub no_pauses: bool,
    /// Every operation goes to this file or device.
    pub onto: Option<String>,
    /// Offsets are divided by this.
    pub divide_offsets: u32,
    /// Offsets are rounded down to this.
    pub align_bytes: Bytes,
    /// Rate in percent of the recorded one: 200 halves the pauses.
    pub rate_percent: u32,
    /// Operations of these kinds are left out.
    pub leave_out: Vec<Kind>,
    /// It is read piece by piece while it is carried out, instead of whole beforehand.
    #[serde(default)]
    pub in_pieces: bool,
}
